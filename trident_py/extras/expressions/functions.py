"""The whitelist: every operator and function of expressions, with the number of its arguments."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from . import arithmetic, casts, dates, logic, string_kernels
from .compiled import Compiled, literal
from .types import Constant, SqlCall, SqlField, Tree, value_of

ANY = 1_000


class Known(NamedTuple):
    """``least`` and ``most``: how many arguments it takes."""

    compile_call: Callable[[SqlCall, list[Compiled]], Compiled]
    least: int = 1
    most: int = 1


OPERATORS = {
    "+": Known(arithmetic.compile_checked(pc.add_checked), 2, 2),
    "-": Known(arithmetic.compile_checked(pc.subtract_checked), 2, 2),
    "*": Known(arithmetic.compile_checked(pc.multiply_checked), 2, 2),
    "/": Known(arithmetic.compile_division, 2, 2),
    "div": Known(arithmetic.whole_quotient, 2, 2),
    "%": Known(arithmetic.remainder, 2, 2),
    "negative": Known(arithmetic.compile_checked(pc.negate_checked)),
    **{name: Known(logic.compile_comparison, 2, 2) for name in logic.COMPARISONS},
    "<=>": Known(logic.null_safe, 2, 2),
    "and": Known(logic.both, 2, 2),
    "or": Known(logic.either, 2, 2),
    "not": Known(logic.compile_not),
    "is null": Known(logic.is_null),
    "is true": Known(logic.is_true),
    "is false": Known(logic.is_false),
    "in": Known(logic.among, 2, ANY),
    "like": Known(string_kernels.like, 2, 2),
    "case": Known(logic.compile_case, 3, ANY),
    "cast": Known(casts.cast),
}
FUNCTIONS = {
    "abs": Known(arithmetic.compile_checked(pc.abs_checked)),
    "ceil": Known(arithmetic.whole("ceil")),
    "coalesce": Known(logic.first_known, 1, ANY),
    "concat": Known(string_kernels.compile_concat, 1, ANY),
    "contains": Known(string_kernels.compile_match(pc.match_substring), 2, 2),
    "endswith": Known(string_kernels.compile_match(pc.ends_with), 2, 2),
    "floor": Known(arithmetic.whole("floor")),
    "greatest": Known(logic.extreme("greatest"), 2, ANY),
    "isnan": Known(arithmetic.is_nan),
    "least": Known(logic.extreme("least"), 2, ANY),
    "length": Known(string_kernels.length),
    "lower": Known(string_kernels.compile_case_change("lower")),
    "ltrim": Known(string_kernels.compile_trim(pc.utf8_ltrim)),
    "nullif": Known(logic.null_if_equal, 2, 2),
    "replace": Known(string_kernels.compile_replace, 2, 3),
    "round": Known(arithmetic.compile_round, 1, 2),
    "rtrim": Known(string_kernels.compile_trim(pc.utf8_rtrim)),
    "sqrt": Known(arithmetic.root),
    "startswith": Known(string_kernels.compile_match(pc.starts_with), 2, 2),
    "substring": Known(string_kernels.part, 2, 3),
    "trim": Known(string_kernels.compile_trim(pc.utf8_trim)),
    "upper": Known(string_kernels.compile_case_change("upper")),
    **{name: Known(dates.date_part(name)) for name in dates.PARTS},
}
ALIASES = {
    "ceiling": "ceil", "char_length": "length", "character_length": "length", "dayofmonth": "day", "ifnull": "coalesce",
    "lcase": "lower", "len": "length", "nvl": "coalesce", "substr": "substring", "ucase": "upper",
}  # fmt: skip
ALSO = ("if", "isnotnull", "isnull", "mod", "negative")  # functions that are parsed as operators

Types = tuple[tuple[str, pa.DataType], ...]


@lru_cache(maxsize=512)
def compile_tree(tree: Tree, types: Types) -> Compiled:
    """Return the kernels of an expression for fields of these types. Raises DefinitionError if it has no meaning for
    them."""
    if isinstance(tree, Constant):
        return literal(*value_of(tree))
    if isinstance(tree, SqlField):
        name = tree.name
        return Compiled(dict(types)[name], lambda rows: rows.columns[name])
    known = OPERATORS.get(tree.name) or FUNCTIONS[tree.name]
    return known.compile_call(tree, [compile_tree(arg, types) for arg in tree.args])
