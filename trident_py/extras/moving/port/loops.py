"""Loops and switches."""

from __future__ import annotations

from collections.abc import Callable

from tree_sitter import Node

from . import expressions
from .code import Code, wrap
from .declarations import JavaField, read_declarators
from .effects import changes, is_steady
from .expressions import as_number, coerce, translate
from .java_types import INT, STRING, Type, promote
from .layout import break_lines
from .operators import update_parts
from .scope import Scope, hoisting
from .source import COMMENTS, Untranslatable, child, children, optional, text
from .statements import EFFECTS, LOOPS, after_loop, block_lines, handles, indent, moves, statement_lines


def _condition(node: Node, scope: Scope) -> str:
    """Translate a condition that is evaluated each time: nothing may stand before it."""
    with hoisting(scope) as before:
        code = translate(node, scope)
        if before:
            raise Untranslatable(node, "a class or a function in the condition of a loop is not translated")
    return code.text


@handles("enhanced_for_statement")
def enhanced_for(node: Node, scope: Scope) -> list[str]:
    values = translate(child(node, "value"), scope)
    kind, written = scope.read_type(child(node, "type")), text(child(node, "type"))
    name = values.type.name
    iterable = (
        name == "[]"
        or "Iterable" in expressions.library.lineage(name)
        or name in ("OrgJSONArray", "JsonNode", "Fields")
    )
    element = values.type.arg(0)
    cls = scope.find_class(name)
    if cls is not None:
        parent = next((one for one in scope.world.library_parents(cls) if one.name == "Iterable"), None)
        iterable = parent is not None
        element = expressions.of_receiver(parent.arg(0), cls, values.type) if parent is not None else element
    if not iterable:
        raise Untranslatable(node, f"a loop over {values.type} is not translated")
    source = _plain_source(values.text)
    inner = scope.loop(update=None)
    python = inner.declare(text(child(node, "name")), element if written == "var" else kind)
    body = block_lines(child(node, "body"), inner)
    item = Code(f"to_byte({python})" if element.name == "byte" else python, element)
    if (value := coerce(item, kind).text) != python:
        body.insert(0, f"{python} = {value}")
    return after_loop([*break_lines(f"for {python} in {source}:"), *indent(body)], scope)


def _plain_source(source: str) -> str:
    """Return what a loop goes through without the view that Java has to name."""
    for call, instead in (("key_set(", "{}"), ("values_of(", "{}.values()")):
        inside = source[len(call) : -1]
        if source.startswith(call) and inside.replace(".", "").replace("_", "").isalnum():
            source = instead.format(inside)
    return source


@handles("while_statement")
def while_statement(node: Node, scope: Scope) -> list[str]:
    inner = scope.loop(update=None)
    condition = _condition(child(node, "condition"), inner)
    return after_loop([*break_lines(f"while {condition}:"), *indent(block_lines(child(node, "body"), inner))], scope)


@handles("do_statement")
def do_statement(node: Node, scope: Scope) -> list[str]:
    condition = _condition(child(node, "condition"), scope)
    end = [f"if not {wrap(condition, 4)}:", "    break"]
    body = block_lines(child(node, "body"), scope.loop(update=tuple(end)))
    return after_loop(["while True:", *indent([*body, *end])], scope)


@handles("for_statement")
def for_statement(node: Node, scope: Scope) -> list[str]:
    inner = scope.loop()
    counted = _count_loop(node, inner)
    if counted is not None:
        body = block_lines(child(node, "body"), inner.inner(update=None))
        return after_loop([*break_lines(counted), *indent(body)], scope)
    lines: list[str] = []
    for one in node.children_by_field_name("init"):
        lines += (
            list(statement_lines([one], inner)) if one.type.endswith("declaration") else EFFECTS[one.type](one, inner)
        )
    _note_counter(node, inner)
    condition = optional(node, "condition")
    written = "True" if condition is None else _condition(condition, inner)
    updates = [line for one in node.children_by_field_name("update") for line in EFFECTS[one.type](one, inner)]
    body = block_lines(child(node, "body"), inner.inner(update=tuple(updates)))
    return after_loop([*lines, *break_lines(f"while {written}:"), *indent([*body, *updates])], scope)


def _note_counter(node: Node, scope: Scope) -> None:
    """Note a variable that a loop counts up from a literal: it is never negative."""
    starts, updates = node.children_by_field_name("init"), node.children_by_field_name("update")
    if len(starts) == len(updates) == 1 and starts[0].type == "local_variable_declaration":
        step = _step(updates[0])
        for one in read_declarators(starts[0], scope.source.aliases):
            counted = step is not None and step[0] == one.name and step[1] > 0 and text(one.value).isdigit()
            if counted and not changes(child(node, "body"), one.name):
                scope.locals[one.name].counts = True


def _count_loop(node: Node, scope: Scope) -> str | None:
    """Return the head of a `for` over a range, if the loop is one."""
    starts, updates = node.children_by_field_name("init"), node.children_by_field_name("update")
    condition = optional(node, "condition")
    if len(starts) != 1 or len(updates) != 1 or condition is None or starts[0].type != "local_variable_declaration":
        return None
    declared = read_declarators(starts[0], scope.source.aliases)
    step = _step(updates[0])
    if len(declared) != 1 or step is None or step[0] != declared[0].name or condition.type != "binary_expression":
        return None
    variable, operator = declared[0], text(child(condition, "operator"))
    if (
        text(child(condition, "left")) != variable.name
        or variable.value is None
        or variable.type.name not in ("int", "long", "var")
    ):
        return None
    if operator not in (("<", "<=") if step[1] > 0 else (">", ">=")):
        return None
    return _head(variable, child(condition, "right"), child(node, "body"), operator, step[1], scope)


def _head(variable: JavaField, bound: Node, body: Node, operator: str, step: int, scope: Scope) -> str | None:
    """Return the head of a loop whose variable and bound its body leaves alone."""
    if variable.value is None or changes(body, variable.name) or not is_steady(bound, body, scope):
        return None
    start, end = as_number(translate(variable.value, scope)), as_number(translate(bound, scope))
    if not (start.type.is_whole and end.type.is_whole):
        return None
    name = scope.declare(variable.name, Type(promote(start.type, INT).name))
    if (start if step > 0 else end).text.isdigit():
        scope.locals[variable.name].counts = True
    return _range(name, start, end, operator, step)


def _range(name: str, start: Code, end: Code, operator: str, step: int) -> str:
    stop = end.text
    if operator in ("<=", ">="):
        stop = f"{wrap(stop, 10)} {'+' if step > 0 else '-'} 1"
    if step != 1:
        return f"for {name} in range({start.text}, {stop}, {step}):"
    return f"for {name} in range({stop}):" if start.text == "0" else f"for {name} in range({start.text}, {stop}):"


def _step(node: Node) -> tuple[str, int] | None:
    if node.type == "update_expression":
        target, _, step = update_parts(node)
        return text(target), step
    if node.type == "assignment_expression" and text(child(node, "operator")) in ("+=", "-="):
        amount = text(child(node, "right"))
        if amount.isdigit() and int(amount):
            return text(child(node, "left")), int(amount) * (1 if text(child(node, "operator")) == "+=" else -1)
    return None


@handles("switch_expression")
def switch_statement(node: Node, scope: Scope) -> list[str]:
    return _switch(node, scope, _case_lines)


@expressions.handles("switch_expression")
def switch_value(node: Node, scope: Scope) -> Code:
    """Translate a switch whose value is used: an `if` before the statement that sets a variable."""
    _refuse_late(node, scope)
    name = scope.frame.fresh("chosen")
    kinds: list[Type] = []

    def case(part: list[Node], inner: Scope) -> list[str]:
        *first, only = part
        if only.type == "block":
            return case(children(only), inner)
        lines = list(statement_lines(first, inner))
        if only.type == "throw_statement":
            return [*lines, *statement_lines([only], inner)]
        value = translate(
            children(only)[0] if only.type in ("expression_statement", "yield_statement") else only, inner
        )
        kinds.append(value.type)
        return [*lines, *break_lines(f"{name} = {value.text}")]

    lines = _switch(node, scope, case)
    kind = kinds[0] if kinds else STRING
    for other in kinds[1:]:
        if kind.is_number and other.is_number and kind.primitive != other.primitive:
            raise Untranslatable(node, "a switch with numbers of different types is not translated")
        kind = other if kind.name == "null" else kind
    scope.frame.before += lines
    return Code(name, kind)


def _refuse_late(node: Node, scope: Scope) -> None:
    """Refuse a switch that Java reaches behind something else of its statement, or perhaps not: here it comes first."""
    inside, around = node, node.parent
    while around is not None and not around.type.endswith(_ENDS):
        operator = optional(around, "operator")
        chosen = operator is not None and text(operator) in ("&&", "||") and inside == optional(around, "right")
        if chosen or (around.type == "ternary_expression" and inside != optional(around, "condition")):
            raise Untranslatable(node, "a switch that only one way of an expression reaches is not translated")
        earlier = [one for one in _list_before(inside, around) if moves(one, [node], scope)]
        if earlier:
            raise Untranslatable(node, f"a switch behind {text(earlier[0])!r} in an expression is not translated")
        inside, around = around, around.parent


_ENDS = ("_statement", "lambda_expression", "block", "_body", "field_declaration", "switch_rule", "_group")


def _list_before(inside: Node, around: Node) -> list[Node]:
    """Return what Java evaluates in a node before one of its parts; of an assignment's target, its place alone."""
    first = around.named_children[: around.named_children.index(inside)]
    apart = [optional(around, "name"), optional(around, "type")]
    found = [one for one in first if one not in apart and one.type not in COMMENTS]
    if around.type == "assignment_expression" and text(child(around, "operator")) == "=":
        return [part for one in found for part in one.named_children if part != optional(one, "field")]
    return found


def _switch(node: Node, scope: Scope, case: Callable[[list[Node], Scope], list[str]]) -> list[str]:
    value = translate(child(node, "condition"), scope)
    before = []
    if not value.text.replace(".", "").replace("_", "").isalnum():
        name = scope.frame.fresh("selected")
        before, value = break_lines(f"{name} = {value.text}"), Code(name, value.type)
    lines: list[str] = []
    default: list[str] | None = None
    for labels, part, is_default in _cases(child(node, "body")):
        inner = scope.inner()
        with hoisting(inner) as hoisted:
            body = case(part, inner)
            body = [*hoisted, *body] or ["pass"]
        if is_default:
            default = body
            continue
        word = "elif" if lines else "if"
        lines += [*break_lines(f"{word} {_test(value, labels, scope)}:"), *indent(body)]
    if default is None:
        return [*before, *lines]
    return [*before, *lines, "else:", *indent(default)] if lines else [*before, *default]


def _cases(body: Node) -> list[tuple[list[Node], list[Node], bool]]:
    """Return the labels, the statements and whether it is the default, of each case. Labels that fall through to the
    next statements are put together."""
    found, labels, default = [], [], False
    groups = children(body)
    for index, group in enumerate(groups):
        marks = [one for one in children(group) if one.type == "switch_label"]
        part = [one for one in group.named_children if one.type != "switch_label"]
        labels += [one for mark in marks for one in children(mark)]
        default = default or any(text(mark).startswith("default") for mark in marks)
        if not children_of(part) and index + 1 < len(groups):
            continue
        if group.type == "switch_block_statement_group" and index + 1 < len(groups) and not _ends(part):
            raise Untranslatable(group, "a case that falls through to the next one is not translated")
        found.append((labels, part, default))
        labels, default = [], False
    return found


def children_of(part: list[Node]) -> list[Node]:
    return [one for one in part if one.type not in COMMENTS]


def _ends(part: list[Node]) -> bool:
    last = children_of(part)[-1]
    if last.type == "block":
        return bool(children(last)) and _ends(children(last))
    return last.type in (
        "break_statement",
        "return_statement",
        "throw_statement",
        "continue_statement",
        "yield_statement",
    )


def _test(value: Code, labels: list[Node], scope: Scope) -> str:
    cls = scope.find_class(value.type.name)
    if cls is not None and cls.kind == "enum":
        constants = [f"{cls.python}.{text(one)}" for one in labels]
        return f"{value.text} is {constants[0]}" if len(constants) == 1 else f"{value.text} in ({', '.join(constants)})"
    written = [coerce(translate(one, scope), value.type).text for one in labels]
    return f"{value.text} == {written[0]}" if len(written) == 1 else f"{value.text} in ({', '.join(written)})"


def _case_lines(part: list[Node], scope: Scope) -> list[str]:
    """Translate the statements of a case, without the `break` that ends it."""
    nodes = list(part)
    while len(children_of(nodes)) == 1 and children_of(nodes)[0].type == "block":
        nodes = children_of(nodes)[0].named_children
    if children_of(nodes) and _is_plain_break(children_of(nodes)[-1]):
        nodes = nodes[: nodes.index(children_of(nodes)[-1])]
    for one in nodes:
        _refuse_breaks(one)
    if len(nodes) == 1 and nodes[0].type in EFFECTS:
        return EFFECTS[nodes[0].type](nodes[0], scope)
    return list(statement_lines(nodes, scope))


def _is_plain_break(node: Node) -> bool:
    """Tell whether a node leaves the switch: one with a label leaves a loop around it."""
    return node.type == "break_statement" and not children(node)


def _refuse_breaks(node: Node) -> None:
    if _is_plain_break(node):
        raise Untranslatable(node, "a break inside a case is not translated")
    if node.type not in (*LOOPS, "switch_expression"):
        for one in node.children:
            _refuse_breaks(one)
