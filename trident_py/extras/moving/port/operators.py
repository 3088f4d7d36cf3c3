"""Operators: what they mean depends on the types of both sides."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable
from operator import add, mul, sub

from tree_sitter import Node

from .code import BREAK, RANKS, Code, binary, rank, wrap
from .expressions import as_number, coerce, convert, handles, translate
from .java_types import BOOLEAN, INT, STRING, Type, promote
from .scope import Scope
from .source import Untranslatable, child, children, text

WIDE = re.compile(r"\bto_(int|long)\(|hash_code\(|\d{10,}|0x[0-9a-f]{8,}|nextInt\(\)|nextLong\(\)|shift_right")
"""What may make a sum leave the range of its type."""


def is_wide(code: Code) -> bool:
    return code.type.is_whole and (code.wide or WIDE.search(code.text) is not None)


def is_short(code: Code) -> bool:
    """Tell whether counting soon leaves the range of a type."""
    return code.type.primitive in ("byte", "short")


@handles("binary_expression")
def binary_expression(node: Node, scope: Scope) -> Code:
    operator = text(child(node, "operator"))
    if operator == "+":
        parts = _sum(node, scope)
        return parts[0] if len(parts) == 1 else concatenate(parts)
    left, right = translate(child(node, "left"), scope), translate(child(node, "right"), scope)
    return combine(operator, left, right, node, scope)


def _sum(node: Node, scope: Scope) -> list[Code]:
    """Return the parts of a text that ``+`` joins, or one number."""
    left_node = child(node, "left")
    nested = left_node.type == "binary_expression" and text(child(left_node, "operator")) == "+"
    left = _sum(left_node, scope) if nested else [translate(left_node, scope)]
    right = translate(child(node, "right"), scope)
    if len(left) > 1 or STRING in (left[0].type, right.type):
        return [*left, right]
    return [combine("+", left[0], right, node, scope)]


def concatenate(parts: list[Code]) -> Code:
    """Join values to a text: an f-string, or a sum of texts."""
    if all(part.type == STRING and (part.sure or False) for part in parts) and not all(map(_literal, parts)):
        joined = parts[0].text
        for part in parts[1:]:
            joined = binary(joined, "+", part.text)
        if not any(map(_literal, parts)):
            return Code(joined, STRING, True)
    if any(not _literal(part) and re.search(r'["\\{}]|' + BREAK, _piece(part)) for part in parts):
        return Code(
            " + ".join(part.text if _literal(part) else wrap(_as_text(part), 10) for part in parts), STRING, True
        )
    pieces = []
    for part in parts:
        if value := _literal(part):
            pieces.append(str(ast.literal_eval(value)))
        else:
            pieces.append(f"\x02{_piece(part)}\x03")
    body = "".join(pieces)
    plain = "\x02" not in body
    escaped = (
        body.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n").replace("\t", "\\t").replace("\r", "\\r")
    )
    if not plain:
        escaped = escaped.replace("{", "{{").replace("}", "}}").replace("\x02", "{").replace("\x03", "}")
    return Code(f'{"" if plain else "f"}"{escaped}"', STRING, True)


def _literal(part: Code) -> str:
    quoted = re.fullmatch(r""""(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'""", part.text)
    return part.text if quoted and part.type.name in ("String", "char") else ""


def _piece(part: Code) -> str:
    """Return what stands between the braces of an f-string."""
    plain = (part.type == STRING and part.sure) or (part.type.is_primitive and part.type.is_whole)
    return part.text if plain and rank(part.text) > 0 else _as_text(part)


def _as_text(part: Code) -> str:
    if part.type == STRING and part.sure:
        return part.text
    if part.type.primitive == "char" and part.type.is_primitive:
        return part.text
    return f"{'float_text' if part.type.primitive == 'float' else 'to_text'}({part.text})"


def combine(operator: str, left: Code, right: Code, node: Node, scope: Scope) -> Code:
    if operator in ("&&", "||"):
        return Code(binary(left.text, "and" if operator == "&&" else "or", right.text), BOOLEAN, True)
    if operator in ("==", "!="):
        return _equality(operator, left, right, node, scope)
    if operator in ("<", ">", "<=", ">="):
        if not left.type.primitive == right.type.primitive == "char":
            left, right = _comparable(as_number(left), as_number(right))
        _require_numbers(left, right, node)
        return Code(binary(left.text, operator, right.text), BOOLEAN, True)
    if operator in "&|^" and left.type.primitive == right.type.primitive == "boolean":
        return Code(binary(left.text, operator, right.text), BOOLEAN, True)
    left, right = as_number(left), as_number(right)
    _require_numbers(left, right, node)
    return _arithmetic(operator, left, right, node)


def _comparable(left: Code, right: Code) -> tuple[Code, Code]:
    """Return the operands of a comparison: Java rounds a long, and an int beside a float, to the other's type."""
    kind = promote(left.type, right.type)
    if not kind.is_float:
        return left, right
    exact = "long" not in (left.type.primitive, right.type.primitive) and kind.name == "double"
    small = any(re.fullmatch(r"-?\d{1,6}(\.\d+)?", side.text) for side in (left, right))
    return (left, right) if exact or small else (coerce(left, kind), coerce(right, kind))


def _require_numbers(left: Code, right: Code, node: Node) -> None:
    for side in (left, right):
        if not side.type.is_number:
            raise Untranslatable(node, f"the type of {side.text!r} ({side.type}) is no number")


def _equality(operator: str, left: Code, right: Code, node: Node, scope: Scope) -> Code:
    identical = "is" if operator == "==" else "is not"
    if "None" in (left.text, right.text):
        value = left if right.text == "None" else right
        return Code(f"{wrap(value.text, 6)} {identical} None", BOOLEAN, True)
    if left.type.is_primitive or right.type.is_primitive:
        if not left.type.primitive == right.type.primitive == "char":
            left, right = _comparable(as_number(left), as_number(right))
        return Code(binary(left.text, operator, right.text), BOOLEAN, True)
    for side in (left, right):
        if side.type.primitive or side.type == STRING:
            raise Untranslatable(
                node, f"{operator} compares {side.type} objects by identity; equals() is probably meant",
                "porting.md#from-java-to-python",
            )  # fmt: skip
    return Code(f"{wrap(left.text, 6)} {identical} {wrap(right.text, 6)}", BOOLEAN, True)


def _arithmetic(operator: str, left: Code, right: Code, node: Node) -> Code:
    kind = promote(left.type, right.type)
    if operator in ("<<", ">>", ">>>"):
        kind = promote(left.type, left.type)
        return _shift(operator, left, right, kind)
    if kind.name == "float":
        inner = _compute_floating(operator, left, right, node)
        return Code(f"to_float({inner})", kind, True)
    if kind.is_float:
        return Code(_compute_floating(operator, left, right, node), kind, True)
    return _whole(operator, left, right, kind)


def _compute_floating(operator: str, left: Code, right: Code, node: Node) -> str:
    if operator == "%":
        return f"remainder({left.text}, {right.text})"
    if operator == "/" and not _is_nonzero(right.text):
        return f"divide({left.text}, {right.text})"
    if operator in "+-*/":
        return binary(left.text, operator, right.text)
    raise Untranslatable(node, f"{operator} of doubles")


def _is_nonzero(written: str) -> bool:
    return re.fullmatch(r"-?[\d.]+(e[+-]?\d+)?", written) is not None and float(written) != 0


def _is_natural(written: str) -> bool:
    """Tell whether a text is a number that is not negative for certain: a literal or a length."""
    return re.fullmatch(r"\d+|len\([\w.]+\)", written) is not None


def _shift(operator: str, left: Code, right: Code, kind: Type) -> Code:
    bits = 64 if kind.name == "long" else 32
    count = right.text
    if operator == ">>>":
        return Code(f"shift_right({left.text}, {count}, {bits})", kind, True)
    if not (count.isdigit() and int(count) < bits):
        count = f"({wrap(count, 8)} & {bits - 1})"
    shifted = f"{wrap(left.text, 9)} {operator} {wrap(count, 10)}"
    return Code(wrap_overflow(shifted, kind) if operator == "<<" else shifted, kind, True)


def _whole(operator: str, left: Code, right: Code, kind: Type) -> Code:
    if operator in "/%":
        plain = _is_natural(left.text) and right.text.isdigit() and right.text != "0"
        python, function = ("//", "quotient") if operator == "/" else ("%", "remainder")
        written = binary(left.text, python, right.text) if plain else f"{function}({left.text}, {right.text})"
        return Code(written, kind, True)
    if operator in "+-*":
        written = binary(_unwrap(left, kind), operator, _unwrap(right, kind))
        if constant := _constant(written, kind):
            return Code(constant, kind, True)
        wide = operator == "*" or is_wide(left) or is_wide(right)
        return Code(wrap_overflow(written, kind), kind, True, True, written) if wide else Code(written, kind, True)
    return Code(binary(left.text, operator, right.text), kind, True)


def _unwrap(code: Code, kind: Type) -> str:
    """Return a sum or product without its own wrapping, which that of the whole sum does too."""
    return code.unbounded if code.unbounded and code.text == wrap_overflow(code.unbounded, kind) else code.text


def wrap_overflow(written: str, kind: Type) -> str:
    return f"to_{kind.primitive if kind.primitive in ('long', 'short', 'byte') else 'int'}({written})"


def _constant(written: str, kind: Type) -> str:
    """Return a product or sum of literals as it stands, if it does not overflow."""
    if not re.fullmatch(r"[\d\s+*()-]+", written):
        return ""
    value = _value_of(ast.parse(written, mode="eval").body)
    half = 1 << (63 if kind.name == "long" else 31)
    return written if -half <= value < half else str((value + half) % (2 * half) - half)


_FOLDS: dict[type[ast.operator], Callable[[int, int], int]] = {ast.Add: add, ast.Sub: sub, ast.Mult: mul}


def _value_of(node: ast.expr) -> int:
    """Return the value of a sum or product of literals."""
    if isinstance(node, ast.BinOp):
        return _FOLDS[type(node.op)](_value_of(node.left), _value_of(node.right))
    if isinstance(node, ast.UnaryOp):
        value = _value_of(node.operand)
        return -value if isinstance(node.op, ast.USub) else value
    assert isinstance(node, ast.Constant)
    return int(str(node.value))


@handles("unary_expression")
def unary_expression(node: Node, scope: Scope) -> Code:
    operator, value = text(child(node, "operator")), translate(child(node, "operand"), scope)
    if operator == "!":
        flipped = re.fullmatch(r"([\w.\[\]]+) (in|is) ([\w.]+)", value.text)
        if flipped:
            negated = f"{flipped[1]} {'not in' if flipped[2] == 'in' else 'is not'} {flipped[3]}"
            return Code(negated, BOOLEAN, True)
        if value.text.startswith("not ") and rank(value.text) == 4:
            return Code(f"bool({value.text[4:]})", BOOLEAN, True)
        return Code(f"not {wrap(value.text, 4)}", BOOLEAN, True)
    value = as_number(value)
    _require_numbers(value, value, node)
    kind = promote(value.type, value.type)
    if operator == "-" and is_wide(value) and not value.text.isdigit():
        return Code(wrap_overflow(f"-{wrap(value.text, 12)}", kind), kind, True)
    return Code(value.text if operator == "+" else f"{operator}{wrap(value.text, 12)}", kind, True)


@handles("update_expression")
def update_expression(node: Node, scope: Scope) -> Code:
    """Translate ``i++`` whose value is used."""
    target, before, step = update_parts(node)
    value = translate(target, scope)
    if not value.type.is_whole or value.type.primitive == "char":
        raise Untranslatable(node, f"{text(node)}, whose value is used, is not translated for {value.type}")
    sign = "+" if step > 0 else "-"
    if value.text.isidentifier():
        if text(target) not in scope.locals:
            scope.frame.globals.add(value.text)
        wraps = is_wide(value) or is_short(value)
        changed = f"({value.text} := {_count(value.text, sign, value.type, wraps)})"
        counted = changed if before else _count(changed, "-" if step > 0 else "+", value.type, wraps)
        return Code(counted, value.type, True, wraps)
    owner, _, name = value.text.rpartition(".")
    if is_short(value):
        raise Untranslatable(node, f"{text(node)}, whose value is used, is not translated for {value.type}")
    if target.type == "array_access":
        array, index = (translate(child(target, part), scope).text for part in ("array", "index"))
        call = f"post_update({array}, {index}, {step})"
    elif owner and name.isidentifier():
        call = f'post_update({owner}, "{name}", {step})'
    else:
        raise Untranslatable(node, f"{text(node)}, whose value is used, is not translated here")
    return Code(f"{call} {sign} 1" if before else call, value.type, True)


def _count(written: str, sign: str, kind: Type, wraps: bool) -> str:
    return wrap_overflow(f"{written} {sign} 1", kind) if wraps else f"{written} {sign} 1"


def update_parts(node: Node) -> tuple[Node, bool, int]:
    """Return the target, whether the operator stands before it, and 1 or -1."""
    operator = next(text(one) for one in node.children if text(one) in ("++", "--") and not one.is_named)
    return children(node)[0], text(node.children[0]) == operator, 1 if operator == "++" else -1


@handles("assignment_expression")
def assignment_expression(node: Node, scope: Scope) -> Code:
    """Translate an assignment whose value is used, as in the condition of a loop."""
    left = child(node, "left")
    if text(child(node, "operator")) != "=" or left.type != "identifier" or text(left) not in scope.locals:
        raise Untranslatable(node, "an assignment whose value is used is translated for locals alone")
    local = scope.locals[text(left)]
    value = coerce(translate(child(node, "right"), scope), local.type)
    return Code(f"({local.python} := {value.text})", local.type, value.sure)


def compound(target: Code, operator: str, value: Code, node: Node, scope: Scope) -> str | None:
    """Return the right side of ``target operator= value``, or None if ``target operator= value`` says it in Python."""
    if target.type == STRING and operator == "+":
        return concatenate([target, value]).text
    result = combine(operator, target, value, node, scope)
    if target.type.primitive == "boolean" or not target.type.is_number:
        return None
    kind = Type(target.type.primitive)
    if promote(result.type, INT) != promote(kind, INT) or kind.name in ("byte", "short", "char"):
        return convert(result, kind, node).text
    same = operator in RANKS and result.text == binary(target.text, operator, as_number(value).text)
    return None if same else result.text
