"""Statements: one handler for each kind. What cannot be translated stays as a comment beside a raise."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from itertools import zip_longest

from tree_sitter import Node

from .calls import EXCEPTIONS, call_statement, choose, python_class
from .code import Code, wrap
from .core_storm import leave_to_storm
from .declarations import CLASSES, read_declarators
from .effects import has_effects, is_steady
from .expressions import array_values, as_number, class_named, coerce, translate
from .java_types import Type
from .layout import add_comment, break_lines
from .operators import compound, is_short, is_wide, update_parts, wrap_overflow
from .scope import Scope, hoisting, register
from .source import COMMENTS, Untranslatable, child, children, comment_lines, is_beside, optional, text, walk

LOOPS = ("for_statement", "while_statement", "enhanced_for_statement", "do_statement")
Handler = Callable[[Node, Scope], list[str]]
HANDLERS: dict[str, Handler] = {}
handles = partial(register, HANDLERS)


def indent(lines: list[str]) -> list[str]:
    return [f"    {line}" if line else line for line in lines]


def block_lines(node: Node, scope: Scope) -> list[str]:
    """Translate a block, or one statement, as the body of something: at least `pass`."""
    lines = list(statement_lines(node.named_children if node.type == "block" else [node], scope.inner()))
    return lines if any(line and not line.startswith("#") for line in lines) else [*lines, "pass"]


def statement_lines(nodes: list[Node], scope: Scope) -> Iterator[str]:
    previous = None
    for node, following in zip_longest(nodes, nodes[1:]):
        if previous is not None and node.start_point[0] > previous.end_point[0] + 1:
            yield ""
        if node.type in COMMENTS:
            if not is_beside(node, previous):
                yield from (f"# {line}" for line in comment_lines(node))
        elif node.type != ";":
            beside = comment_lines(following) if following is not None and is_beside(following, node) else []
            yield from add_comment(statement(node, scope), beside)
        previous = node


def statement(node: Node, scope: Scope) -> list[str]:
    """Translate a statement; one that cannot be is reported, and raises if it is reached."""
    report = scope.report
    compound_statement = node.type in ("block", *CLASSES)
    report.statements += not compound_statement
    with hoisting(scope) as before:
        try:
            handler = HANDLERS.get(node.type)
            if handler is None:
                raise Untranslatable(node, f"{node.type.replace('_', ' ')} is not translated")
            lines = handler(node, scope)
            return [*before, *lines]
        except Untranslatable as error:
            return refuse(node, error, scope)


def refuse(node: Node, error: Untranslatable, scope: Scope) -> list[str]:
    """Return the Java as a comment, and the raise. Declares what the statement declares."""
    if node.type == "local_variable_declaration":
        for one in read_declarators(node, scope.source.aliases):
            scope.declare(one.name, one.type)
    line = node.start_point[0] + 1
    scope.report.refuse(line, error)
    java = [f"# {part.strip()}" if part.strip() else "#" for part in text(node).splitlines()]
    reason = error.reason.replace("\\", "\\\\").replace('"', '\\"').replace("\n", " ")
    return [*java, *break_lines(f'raise NotImplementedError("{scope.source.name}:{line}: {reason}")')]


@handles("block")
def block(node: Node, scope: Scope) -> list[str]:
    return list(statement_lines(node.named_children, scope.inner()))


@handles("local_variable_declaration")
def local_variable(node: Node, scope: Scope) -> list[str]:
    lines = []
    for one in read_declarators(node, scope.source.aliases):
        if one.value is None:
            scope.declare(one.name, one.type)
            continue
        value = initial(one.value, one.type, scope)
        kind = value.type if one.type.name == "var" else one.type
        if kind.args == () and value.type.name == kind.name:
            kind = value.type
        python = scope.declare(one.name, kind)
        scope.locals[one.name].wide = is_wide(value)
        unused = one.value.type in _CALLS and not _is_used(node, one.name)
        lines += break_lines(value.text if unused else f"{python} = {value.text}")
    return lines


_CALLS = ("method_invocation", "object_creation_expression")


def _is_used(declaration: Node, name: str) -> bool:
    """Tell whether something behind a declaration names the local."""
    block = declaration.parent
    used = [one for one in walk(block) if one.type == "identifier" and text(one) == name] if block is not None else []
    return len(used) != 1


def initial(node: Node, kind: Type, scope: Scope) -> Code:
    """Translate the value of a declaration."""
    if node.type == "array_initializer":
        return array_values(node, kind, scope)
    expected = None if kind.name == "var" else kind
    return coerce(translate(node, scope.inner(expected=expected)), kind)


@handles("expression_statement")
def expression_statement(node: Node, scope: Scope) -> list[str]:
    inner = children(node)[0]
    return EFFECTS.get(inner.type, _value)(inner, scope)


def _value(node: Node, scope: Scope) -> list[str]:
    return break_lines(translate(node, scope).text)


def _call(node: Node, scope: Scope) -> list[str]:
    if left := leave_to_storm(node, scope):
        return left
    code = call_statement(node, scope)
    return [] if code.text == "None" else break_lines(code.text)


def assignment(node: Node, scope: Scope) -> list[str]:
    left, right, operator = child(node, "left"), child(node, "right"), text(child(node, "operator"))
    targets = [left]
    while operator == "=" and right.type == "assignment_expression" and text(child(right, "operator")) == "=":
        targets.append(child(right, "left"))
        right = child(right, "right")
    first, codes = _targets(targets, right, scope)
    if operator == "=":
        value = initial(right, codes[-1].type, scope)
        _note_width(left, value, scope)
        return first + _assign_all(codes, value)
    target, value = codes[0], translate(right, scope)
    whole = compound(target, operator[:-1], value, node, scope)
    plain = operator[:-1] in ("+", "-", "*", "&", "|", "^", ">>")
    _note_width(left, value if whole is None else target._replace(wide=True), scope)
    if whole is None and plain:
        return first + break_lines(f"{target.text} {operator} {as_number(value).text}")
    if whole is None:
        raise Untranslatable(node, f"{operator} is not translated")
    return first + break_lines(f"{target.text} = {whole}")


def _assign_all(codes: list[Code], value: Code) -> list[str]:
    """Assign a value to several targets: each gets what the one behind it became."""
    if len({code.type.primitive for code in codes}) == 1:
        return break_lines(" = ".join([*(code.text for code in codes), value.text]))
    lines = []
    for code in reversed(codes):
        lines += break_lines(f"{code.text} = {coerce(value, code.type).text}")
        value = code
    return lines


def _targets(nodes: list[Node], right: Node, scope: Scope) -> tuple[list[str], list[Code]]:
    """Translate targets. Java computes the object and the index before the value, and once: where one of them does
    something, or changes meanwhile, it comes first."""
    lines, codes = [], []
    for index, node in enumerate(nodes):
        first, code = _target(node, [*nodes[index + 1 :], right], scope)
        lines += first
        codes.append(code)
    return lines, codes


def _target(node: Node, later: list[Node], scope: Scope) -> tuple[list[str], Code]:
    """Translate a target. ``later``: what Java evaluates behind it."""
    if node.type == "array_access":
        return _item(node, later, scope)
    code = translate(node, scope)
    if code.text.isidentifier() and (node.type != "identifier" or text(node) not in scope.locals):
        scope.frame.globals.add(code.text)
    owner = optional(node, "object")
    if owner is None or class_named(owner, scope) is not None or not moves(owner, later, scope):
        return [], code
    before, _, name = code.text.rpartition(".")
    place = scope.frame.fresh("owner")
    return break_lines(f"{place} = {before}"), code._replace(text=f"{place}.{name}")


def _item(node: Node, later: list[Node], scope: Scope) -> tuple[list[str], Code]:
    """Translate an item of an array as a target."""
    array_node, index_node = child(node, "array"), child(node, "index")
    code, array, index = translate(node, scope), translate(array_node, scope), translate(index_node, scope)
    if code.type.name == "byte":
        raise Untranslatable(node, "bytes do not change in Python")
    lines, owner, place = [], array.text, as_number(index).text
    if moves(array_node, [index_node, *later], scope):
        owner = scope.frame.fresh("values")
        lines += break_lines(f"{owner} = {array.text}")
    if moves(index_node, later, scope):
        name = scope.frame.fresh("place")
        lines += break_lines(f"{name} = checked({place})")
        return lines, Code(f"{wrap(owner)}[{name}]", code.type)
    plain = code.text.startswith("item(")
    return lines, Code(f"{wrap(owner)}[checked({place})]" if plain else f"{wrap(owner)}[{place}]", code.type)


def moves(node: Node, later: list[Node], scope: Scope) -> bool:
    """Tell whether an expression does something, or would give something else behind what is evaluated later."""
    return has_effects(node, scope) or any(has_effects(one, scope) and not is_steady(node, one, scope) for one in later)


def _note_width(node: Node, value: Code, scope: Scope) -> None:
    if is_wide(value) and (local := scope.locals.get(text(node))):
        local.wide = True


def update(node: Node, scope: Scope) -> list[str]:
    target_node, _, step = update_parts(node)
    first, target = _target(target_node, [], scope)
    if target.type.primitive == "char":
        return [*first, f"{target.text} = chr(ord({target.text}) {'+' if step > 0 else '-'} 1)"]
    if not target.type.is_number:
        raise Untranslatable(node, f"{target.type} is no number")
    sign = "+" if step > 0 else "-"
    if is_wide(target) or is_short(target):
        return [*first, f"{target.text} = {wrap_overflow(f'{target.text} {sign} 1', target.type)}"]
    return [*first, f"{target.text} {sign}= 1"]


@handles("return_statement")
def return_statement(node: Node, scope: Scope) -> list[str]:
    value = children(node)
    if not value:
        return ["return"]
    expected = scope.returns if scope.returns is not None and scope.returns.name != "Values" else None
    code = translate(value[0], scope.inner(expected=expected))
    if scope.returns is not None:
        code = coerce(code, scope.returns)
    return break_lines(f"return {code.text}")


@handles("if_statement")
def if_statement(node: Node, scope: Scope) -> list[str]:
    return _conditional(node, scope, "if")


def _conditional(node: Node, scope: Scope, word: str) -> list[str]:
    condition = translate(child(node, "condition"), scope)
    lines = [*break_lines(f"{word} {condition.text}:"), *indent(block_lines(child(node, "consequence"), scope))]
    alternative = optional(node, "alternative")
    if alternative is None:
        return lines
    if alternative.type == "if_statement":
        with hoisting(scope) as before:
            nested = _conditional(alternative, scope, "elif")
        if not before:
            scope.report.statements += 1
            return lines + nested
        return [*lines, "else:", *indent(statement(alternative, scope))]
    return [*lines, "else:", *indent(block_lines(alternative, scope))]


@handles("throw_statement")
def throw_statement(node: Node, scope: Scope) -> list[str]:
    thrown = children(node)[0]
    code = translate(thrown, scope)
    cause = ""
    if thrown.type == "object_creation_expression" and code.type.name in EXCEPTIONS:
        arguments = children(optional(thrown, "arguments"))
        if code.type.args and arguments:
            cause = f" from {translate(arguments[-1], scope).text}"
    return break_lines(f"raise {code.text}{cause}")


@handles("try_statement", "try_with_resources_statement")
def try_statement(node: Node, scope: Scope) -> list[str]:
    catches = [one for one in node.named_children if one.type == "catch_clause"]
    caught = {
        word for one in catches for word in text(one).partition(")")[0].replace("(", " ").replace("|", " ").split()
    }
    inner = scope.inner(checked=scope.checked or bool(caught & _CAST_ERRORS))
    resources = []
    for one in children(optional(node, "resources")):
        name, value = text(child(one, "name")), translate(child(one, "value"), inner)
        resources.append(f"{value.text} as {inner.declare(name, scope.read_type(child(one, 'type')))}")
    body = block_lines(child(node, "body"), inner)
    if resources:
        body = [*break_lines(f"with {', '.join(resources)}:"), *indent(body)]
    final = next((one for one in node.named_children if one.type == "finally_clause"), None)
    if not catches and final is None:
        return body
    lines = ["try:", *indent(body)]
    for one in catches:
        lines += _catch(one, scope)
    if final is not None:
        lines += ["finally:", *indent(block_lines(children(final)[0], scope))]
    return lines


_CAST_ERRORS = {"ClassCastException", "RuntimeException", "Exception", "Throwable"}
_CAUGHT = {
    "RuntimeException": "RuntimeErrors", "Exception": "Exception", "Throwable": "Exception",
    "NullPointerException": "(TypeError, AttributeError)",
    "ArithmeticException": "ArithmeticError",
    "IndexOutOfBoundsException": "IndexError",
    "UnsupportedEncodingException": "LookupError", "TException": "Exception", "AlreadyAliveException": "ValueError",
    "InvalidTopologyException": "ValueError", "AuthorizationException": "ValueError", "ExecutionException": "Exception",
    "SQLException": "Exception",
}  # fmt: skip


def _catch(node: Node, scope: Scope) -> list[str]:
    parameter = next(one for one in node.named_children if one.type == "catch_formal_parameter")
    kinds = [
        scope.read_type(one) for part in parameter.named_children if part.type == "catch_type" for one in children(part)
    ]
    inner = scope.inner()
    name = inner.declare(text(child(parameter, "name")), kinds[0] if len(kinds) == 1 else Type("Exception"))
    caught = [_caught(kind, node, scope) for kind in kinds]
    body = child(node, "body")
    used = any(text(one) == text(child(parameter, "name")) for one in walk(body) if one.type == "identifier")
    written = caught[0] if len(caught) == 1 else f"({', '.join(dict.fromkeys(part.strip('()') for part in caught))})"
    return [f"except {written}{f' as {name}' if used else ''}:", *indent(block_lines(body, inner))]


def _caught(kind: Type, node: Node, scope: Scope) -> str:
    name = kind.name.rpartition(".")[2]
    cls = scope.find_class(kind.name)
    if cls is not None:
        return cls.python
    found = _CAUGHT.get(name) or EXCEPTIONS.get(name)
    if found is None:
        raise Untranslatable(node, f"catch ({name}) has no counterpart")
    return found


@handles("synchronized_statement")
def synchronized(node: Node, scope: Scope) -> list[str]:
    return block(child(node, "body"), scope)


@handles("assert_statement")
def assert_statement(node: Node, scope: Scope) -> list[str]:
    return []


@handles("break_statement")
def break_statement(node: Node, scope: Scope) -> list[str]:
    return _jump("break", node, scope) or ["break"]


@handles("continue_statement")
def continue_statement(node: Node, scope: Scope) -> list[str]:
    return _jump("continue", node, scope) or [*(scope.update or ()), "continue"]


def _jump(word: str, node: Node, scope: Scope) -> list[str]:
    """Translate a jump to a label of an outer loop: a flag that the loops in between look at."""
    label = text(children(node)[0]) if children(node) else ""
    if not label or scope.labels[-1:] == (label,):
        return []
    if label not in scope.labels:
        raise Untranslatable(node, f"{word} {label} leaves something else than a loop")
    scope.frame.jumps.append((word, label))
    return [f"{word}_{label} = True", "break"]


def after_loop(lines: list[str], scope: Scope) -> list[str]:
    """Add to a loop what passes on a jump to the loops around it, to which ``scope`` belongs."""
    jumps = list(dict.fromkeys(scope.frame.jumps))
    if not jumps:
        return lines
    starts = [f"{word}_{label} = False" for word, label in jumps]
    checks = []
    for word, label in jumps:
        there = scope.labels[-1:] == (label,)
        then = [*(scope.update or ()), "continue"] if there and word == "continue" else ["break"]
        checks += [f"if {word}_{label}:", *indent(then)]
        if there:
            scope.frame.jumps[:] = [jump for jump in scope.frame.jumps if jump != (word, label)]
    return [*starts, *lines, *checks]


@handles("labeled_statement")
def labeled(node: Node, scope: Scope) -> list[str]:
    label, labelled = children(node)
    return statement(labelled, scope.inner(label=text(label) if labelled.type in LOOPS else ""))


@handles("explicit_constructor_invocation")
def constructor_invocation(node: Node, scope: Scope) -> list[str]:
    cls = scope.cls
    called = text(child(node, "constructor"))
    if cls is None:
        raise Untranslatable(node, f"{called}(...) outside a class")
    if called == "this":
        return break_lines(f"self.__init__({choose(cls.constructors, node, scope)[1]})")
    for parent in cls.parents:
        own = scope.find_class(parent.name)
        if own is not None and own.constructors:
            return break_lines(f"super().__init__({choose(own.constructors, node, scope)[1]})")
    arguments = children(optional(node, "arguments"))
    if not arguments:
        return []
    written = ", ".join(translate(one, scope).text for one in arguments)
    exceptions = any(parent.name in EXCEPTIONS for one in scope.world.lineage(cls) for parent in one.parents)
    if not exceptions and not any(python_class(parent.name) for parent in cls.parents):
        raise Untranslatable(node, "super(...) of a class that has no counterpart")
    if exceptions and len(arguments) == 2:
        return [
            f"super().__init__({translate(arguments[0], scope).text})",
            f"self.__cause__ = {translate(arguments[1], scope).text}",
        ]
    return break_lines(f"super().__init__({written})")


EFFECTS: dict[str, Handler] = {
    "method_invocation": _call, "assignment_expression": assignment, "update_expression": update,
}  # fmt: skip
"""Expressions that stand alone for what they do."""
