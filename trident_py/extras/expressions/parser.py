"""SQL text to `tree`, by sqlglot. What is not on the whitelist is refused here, before anything runs."""

from __future__ import annotations

import difflib
import importlib
import re
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from ...errors import DefinitionError, explain_missing
from .functions import ALIASES, ALSO, FUNCTIONS, OPERATORS, Known
from .types import Constant, SqlCall, SqlField, Tree, value_of

_BINARY = {
    "Add": "+", "Sub": "-", "Mul": "*", "Div": "/", "IntDiv": "div", "Mod": "%", "EQ": "=", "NullSafeEQ": "<=>",
    "LT": "<", "LTE": "<=", "GT": ">", "GTE": ">=", "And": "and", "Or": "or", "DPipe": "concat",
}  # fmt: skip
_CALLS = {
    "Upper": "upper", "Lower": "lower", "Length": "length", "Substring": "substring", "Concat": "concat",
    "Replace": "replace", "Contains": "contains", "StartsWith": "startswith", "EndsWith": "endswith", "Abs": "abs",
    "Round": "round", "Floor": "floor", "Ceil": "ceil", "Sqrt": "sqrt", "Greatest": "greatest", "Least": "least",
    "Coalesce": "coalesce", "Nullif": "nullif", "IsNan": "isnan", "Year": "year", "Quarter": "quarter",
    "Month": "month", "Day": "day", "DayOfMonth": "day", "DayOfYear": "dayofyear", "DayOfWeek": "dayofweek",
    "Hour": "hour", "Minute": "minute", "Second": "second", "Negative": "negative",
}  # fmt: skip
_ARGUMENTS = ("this", "start", "length", "expression", "replacement", "expressions", "decimals")
_OTHERS = ("low", "high", "ifs", "default", "true", "false", "to", "is_string", "position", "alias", "quoted", "negate")
_FLAGS = ("typed", "coalesce", "ignore_nulls")  # set by the parser for a dialect, not by the text
_TYPES = {
    "BOOLEAN": "boolean", "TINYINT": "tinyint", "SMALLINT": "smallint", "INT": "int", "BIGINT": "bigint",
    "FLOAT": "float", "DOUBLE": "double", "TEXT": "string", "DATE": "date",
}  # fmt: skip
# Spark and sqlglot bind these differently when one stands beside another without parentheses.
_PREDICATES = ("EQ", "NEQ", "NullSafeEQ", "LT", "LTE", "GT", "GTE", "Is", "In", "Between", "Like", "Not")
_ESCAPES = re.compile(r"\\(?:[^\\'\"nt%_]|$)")
INTEGER_BITS = {"tinyint": 8, "smallint": 16, "int": 32, "bigint": 64}
_DIGITS = re.compile(r"-?[0-9]+")
_FRACTION = re.compile(r"-?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")
_SIZED = re.compile(r"\b(var)?char\s*\(", re.IGNORECASE)


class Named(NamedTuple):
    """One expression of a list. ``name``: what stands behind AS, or the field that it is; else ""."""

    tree: Tree
    name: str
    renamed: bool


def parse(text: str) -> list[Named]:
    """Return the expressions of a list, as behind SELECT. Raises DefinitionError for what is not understood."""
    sqlglot = _sqlglot()
    if found := _ESCAPES.search(text):
        raise DefinitionError(f"expr({text!r}): the escape {found[0]} is not offered; write the character itself")
    if _SIZED.search(text):
        raise DefinitionError(f"expr({text!r}): a text with a length is not offered; use STRING and substring")
    try:
        statements = sqlglot.parse(f"SELECT {text}", read="spark")
    except (sqlglot.errors.SqlglotError, RecursionError) as error:
        raise DefinitionError(f"expr({text!r}) cannot be parsed: {_first_line(error)}") from None
    select: Any = statements[0] if len(statements) == 1 else None
    if not _is_a(select, "Select") or any(v for k, v in select.args.items() if k != "expressions"):
        raise DefinitionError(f"expr({text!r}): an expression, or a list of them, is needed, without clauses")
    if not select.expressions:
        raise DefinitionError("expr needs an expression")
    return [_name(expression) for expression in select.expressions]


def _sqlglot() -> Any:
    """Return the parser. Workers never load it."""
    try:
        return importlib.import_module("sqlglot")
    except ImportError:
        raise DefinitionError(explain_missing("expr", "sqlglot", "sql")) from None


def _is_a(node: Any, *kinds: str) -> bool:
    return type(node).__name__ in kinds


def _first_line(error: BaseException) -> str:
    line = (str(error).splitlines() or [type(error).__name__])[0]
    return re.sub(r"\x1b\[[0-9;]*m", "", line)


def _name(node: Any) -> Named:
    if _is_a(node, "Alias"):
        if not _is_a(node.args["alias"], "Identifier"):
            raise _unknown(node)
        return Named(_tree(node.this), node.alias, True)
    tree = _tree(node)
    return Named(tree, tree.name if isinstance(tree, SqlField) else "", False)


def _tree(node: Any) -> Tree:
    kind = type(node).__name__
    flags = _FLAGS if kind.endswith("Cast") else (*_FLAGS, "safe")
    if any(value and name not in _ARGUMENTS + _OTHERS + flags for name, value in node.args.items()):
        raise _unknown(node)
    if kind in _READERS:
        tree = _READERS[kind](node)
        if isinstance(tree, Constant):
            value_of(tree)  # refused here, also if the fields have no types
        return tree
    if kind in _BINARY:
        left, right = _operand(node, node.this), _operand(node, node.expression)
        return SqlCall(_BINARY[kind], (left, right))
    if kind in _CALLS:
        return _call(_CALLS[kind], node, list(_arguments(node)))
    raise _unknown(node)


def _operand(parent: Any, node: Any) -> Tree:
    """Return an operand of an operator. Raises DefinitionError where Spark could bind it differently."""
    inner, outer = type(node).__name__, type(parent).__name__
    mixed = inner in _PREDICATES and outer not in ("And", "Or", "Not")
    joins = "DPipe" in (inner, outer) and inner != outer and isinstance(node, _sqlglot().exp.Binary)
    if mixed or joins:
        raise DefinitionError(f"expr: put parentheses around {_sql(node)} in {_sql(parent)}")
    return _tree(node)


def _arguments(node: Any) -> Iterator[Tree]:
    """Return the arguments of a function in their order."""
    for name in _ARGUMENTS:
        value = node.args.get(name)
        for item in value if isinstance(value, list) else [value] if value is not None else []:
            yield _tree(item.this if _is_a(item, "TsOrDsToDate") else item)


def _call(name: str, node: Any, args: list[Tree]) -> SqlCall:
    known: Known = FUNCTIONS.get(name) or OPERATORS[name]
    if not known.least <= len(args) <= known.most:
        raise DefinitionError(f"expr: {_sql(node)}: {name} does not take {len(args)} arguments")
    return SqlCall(name, tuple(args))


def _unknown(node: Any) -> DefinitionError:
    name = node.name if _is_a(node, "Anonymous") else node.sql_name() if isinstance(node, _sqlglot().exp.Func) else ""
    if _is_a(node, "Anonymous") or (name and node.sql("spark").lower().startswith(name.lower())):
        every = sorted({*FUNCTIONS, *ALIASES, *ALSO})
        close = difflib.get_close_matches(name.lower(), every, 1, 0.7)
        hint = f"did you mean {close[0]}? " if close else ""
        names = ", ".join(every)
        return DefinitionError(
            f"expr: no function {name.lower()}; {hint}there are {names}. For others use @vectorized"
        )
    return DefinitionError(
        f"expr: {_sql(node)} is not offered; docs/expressions.md lists what is. For others use @vectorized"
    )


def _sql(node: Any) -> str:
    return f"{node.sql('spark'):.80}"


# -- nodes of their own -----------------------------------------------------------------------------------------------


def _column(node: Any) -> Tree:
    if any(value for name, value in node.args.items() if name != "this") or not _is_a(node.this, "Identifier"):
        raise _unknown(node)
    return SqlField(node.name)


def _literal(node: Any) -> Constant:
    text = node.this
    if node.is_string:
        return Constant(text, "string")
    return _number(text)


def _number(text: str) -> Constant:
    if not _DIGITS.fullmatch(text):
        if not _FRACTION.fullmatch(text):
            raise DefinitionError(f"expr: {text} is no number")
        return Constant(text, "double" if "e" in text.lower() else "decimal")
    for kind in ("int", "bigint"):
        limit = 2 ** (INTEGER_BITS[kind] - 1)
        if -limit <= int(text) < limit:
            return Constant(text, kind)
    raise DefinitionError(f"expr: {text} does not fit bigint")


def _negative(node: Any) -> Tree:
    inner = node.this
    if _is_a(inner, "Literal") and not inner.is_string:
        return _number(f"-{inner.this}")
    if _has_suffix(inner):
        constant = _cast(inner)
        assert isinstance(constant, Constant)
        return Constant(f"-{constant.text}", constant.kind)
    return SqlCall("negative", (_operand(node, inner),))


def _has_suffix(node: Any) -> bool:
    """Return whether it is a number with a suffix, such as 1L or 2.5D, which the parser makes a cast of."""
    if not (_is_a(node, "TryCast") and _is_a(node.this, "Literal")) or node.this.is_string:
        return False
    kind, text = _TYPES.get(node.to.this.name), node.this.this
    return kind == "double" or (kind in INTEGER_BITS and bool(_DIGITS.fullmatch(text)) and _fits(int(text), kind))


def _fits(value: int, kind: str) -> bool:
    limit = 2 ** (INTEGER_BITS[kind] - 1)
    return -limit <= value <= limit  # the sign of the smallest one is read later


def _cast(node: Any) -> Tree:
    name = node.to.this.name if not node.to.expressions else ""
    if name not in _TYPES or node.args.get("default"):
        raise DefinitionError(f"expr: {_sql(node)} is not offered; CAST takes {', '.join(sorted(_TYPES.values()))}")
    kind = _TYPES[name]
    if _has_suffix(node):
        return Constant(node.this.this, kind)
    if kind == "date":
        return _date(node)
    return SqlCall("cast", (_tree(node.this),), kind)


def _date(node: Any) -> Constant:
    if not (_is_a(node.this, "Literal") and re.fullmatch("[0-9]{4}-[0-9]{2}-[0-9]{2}", node.this.name)):
        raise DefinitionError(f"expr: {_sql(node)}: only a literal becomes a date, as DATE '2026-01-31'")
    return Constant(node.this.name, "date")


def _is(node: Any) -> SqlCall:
    what, (left, right) = type(node.expression).__name__, (node.this, node.expression)
    if what == "Null":
        return SqlCall("is null", (_operand(node, left),))
    if what == "Boolean":
        return SqlCall("is true" if right.this else "is false", (_operand(node, left),))
    raise _unknown(node)


def _in(node: Any) -> SqlCall:
    if any(value for name, value in node.args.items() if name not in ("this", "expressions")):
        raise _unknown(node)
    return _call("in", node, [_operand(node, node.this), *map(_tree, node.expressions)])


def _between(node: Any) -> SqlCall:
    if node.args.get("symmetric"):
        raise _unknown(node)
    value, low, high = (_operand(node, node.args[name]) for name in ("this", "low", "high"))
    return SqlCall("and", (SqlCall(">=", (value, low)), SqlCall("<=", (value, high))))


def _like(node: Any) -> SqlCall:
    like = SqlCall("like", (_operand(node, node.this), _operand(node, node.expression)))
    return SqlCall("not", (like,)) if node.args.get("negate") else like


def _case(node: Any) -> SqlCall:
    subject = _tree(node.this) if node.this is not None else None
    args: list[Tree] = []
    for branch in node.args["ifs"]:
        when = _tree(branch.this)
        args += [when if subject is None else SqlCall("=", (subject, when)), _tree(branch.args["true"])]
    default = node.args.get("default")
    return SqlCall("case", (*args, Constant("", "void") if default is None else _tree(default)))


def _if(node: Any) -> SqlCall:
    otherwise = node.args.get("false")
    values = _tree(node.this), _tree(node.args["true"])
    return SqlCall("case", (*values, Constant("", "void") if otherwise is None else _tree(otherwise)))


def _trim(node: Any) -> SqlCall:
    if node.args.get("expression") is not None or node.args.get("collation") is not None:
        raise DefinitionError(f"expr: {_sql(node)}: only spaces can be trimmed; use @vectorized for others")
    name = {"LEADING": "ltrim", "TRAILING": "rtrim"}.get(str(node.args.get("position") or ""), "trim")
    return SqlCall(name, (_tree(node.this),))


def _anonymous(node: Any) -> Tree:
    args, name = list(map(_tree, node.expressions)), node.name.lower()
    if name in ("isnull", "isnotnull") and len(args) == 1:
        null = SqlCall("is null", (args[0],))
        return null if name == "isnull" else SqlCall("not", (null,))
    if name in FUNCTIONS or name in ALIASES:
        return _call(ALIASES.get(name, name), node, args)
    raise _unknown(node)


def _distinct(node: Any) -> SqlCall:
    equal = SqlCall("<=>", (_operand(node, node.this), _operand(node, node.expression)))
    return SqlCall("not", (equal,))


_READERS: dict[str, Callable[[Any], Tree]] = {
    "Column": _column,
    "Literal": _literal,
    "Boolean": lambda node: Constant("true" if node.this else "false", "boolean"),
    "Null": lambda node: Constant("", "void"),
    "Paren": lambda node: _tree(node.this),
    "Neg": _negative,
    "Not": lambda node: SqlCall("not", (_operand(node, node.this),)),
    "NEQ": lambda node: SqlCall("not", (SqlCall("=", (_operand(node, node.this), _operand(node, node.expression))),)),
    "NullSafeNEQ": _distinct,
    "Cast": _cast,
    "TryCast": _cast,
    "Is": _is,
    "In": _in,
    "Between": _between,
    "Like": _like,
    "Case": _case,
    "If": _if,
    "Trim": _trim,
    "Anonymous": _anonymous,
}
