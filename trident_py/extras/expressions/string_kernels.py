"""Kernels over strings, with Spark's results: positions and lengths in code points."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from ...errors import DefinitionError
from .compiled import Compiled, Datum, by_value, eager, strict, widen
from .types import BOOLEAN, STRING, VOID, SqlCall, sql_name

CompileCall = Callable[[SqlCall, list[Compiled]], Compiled]
_RUNS = re.compile(r"%+|_+|[^%_\\]+|\\.?", re.DOTALL)


def texts(call: SqlCall, args: list[Compiled]) -> list[Compiled]:
    """Return the arguments as texts. Raises DefinitionError for one of another type."""
    for arg in args:
        if arg.kind not in (STRING, VOID):
            raise DefinitionError(f"expr: {call} needs texts, but has {sql_name(arg.kind)}; use CAST")
    return [widen(arg, STRING) for arg in args]


def constant(call: SqlCall, arg: Compiled, kind: type, what: str) -> Any:
    """Return the value of an argument that must be a literal."""
    if not arg.constant or type(arg.value) is not kind:
        raise DefinitionError(f"expr: {call}: {what} must be a literal")
    return arg.value


def compile_case_change(name: str) -> CompileCall:
    """Compile upper and lower. The kernel does one letter for one; other texts than ASCII take Unicode's full
    mapping."""
    kernel, full_mapping = (pc.ascii_upper, str.upper) if name == "upper" else (pc.ascii_lower, str.lower)

    def run(datum: Datum) -> Datum:
        plain = pc.string_is_ascii(datum)
        if isinstance(datum, pa.Scalar):
            return by_value(full_mapping, datum, STRING)
        strange = pc.fill_null(pc.invert(plain), False)
        found = kernel(datum)
        if not pc.any(strange).as_py():
            return found
        return pc.replace_with_mask(found, strange, by_value(full_mapping, datum.filter(strange), STRING))

    return lambda call, args: strict(STRING, run, texts(call, args))


def length(call: SqlCall, args: list[Compiled]) -> Compiled:
    return strict(pa.int32(), pc.utf8_length, texts(call, args))


def compile_trim(kernel: Callable[..., Datum]) -> CompileCall:
    """Remove spaces, and no other white space."""
    return lambda call, args: strict(STRING, lambda x: kernel(x, characters=" "), texts(call, args))


def part(call: SqlCall, args: list[Compiled]) -> Compiled:
    """Compile substring(text, position[, length]): from 1 on, 0 is as 1, negative from the end."""
    at = constant(call, args[1], int, "the position")
    count = constant(call, args[2], int, "the length") if len(args) > 2 else None
    start = at - 1 if at > 0 else at
    stop = None if count is None or (start < 0 <= start + count) else start + count
    if count is not None and count <= 0:
        start, stop = 0, 0

    def kernel(datum: Datum) -> Datum:
        return pc.utf8_slice_codeunits(datum, start=start, stop=stop)

    return strict(STRING, kernel, texts(call, args[:1]))


def compile_concat(call: SqlCall, args: list[Compiled]) -> Compiled:
    def kernel(*data: Datum) -> Datum:
        return pc.binary_join_element_wise(*data, pa.scalar("", STRING), null_handling="emit_null")

    return eager(STRING, kernel, texts(call, args))


def compile_replace(call: SqlCall, args: list[Compiled]) -> Compiled:
    old = constant(call, args[1], str, "the text to replace")
    new = constant(call, args[2], str, "the replacement") if len(args) > 2 else ""

    def kernel(datum: Datum) -> Datum:
        return pc.replace_substring(datum, pattern=old, replacement=new) if old else datum

    return strict(STRING, kernel, texts(call, args[:1]))


def compile_match(kernel: Callable[..., Datum]) -> CompileCall:
    """Compile startswith, endswith and contains, with a literal."""

    def compile_call(call: SqlCall, args: list[Compiled]) -> Compiled:
        pattern = constant(call, args[1], str, "the second text")
        return strict(BOOLEAN, lambda x: kernel(x, pattern=pattern), texts(call, args[:1]))

    return compile_call


def like(call: SqlCall, args: list[Compiled]) -> Compiled:
    r"""Compile LIKE with a literal: % is any text, _ one character, \ takes the next of these three as it stands."""
    pattern = _expression(call, constant(call, args[1], str, "the pattern"))
    return strict(BOOLEAN, lambda x: pc.match_substring_regex(x, pattern=pattern), texts(call, args[:1]))


def _expression(call: SqlCall, pattern: str) -> str:
    parts = []
    for found in _RUNS.findall(pattern):
        if found[0] == "%":
            parts.append(".*")
        elif found[0] == "_":
            parts.append("." * len(found))
        elif found[0] == "\\":
            if found[1:] not in ("%", "_", "\\"):
                raise DefinitionError(rf"expr: {call}: \ stands before %, _ or \ in a pattern")
            parts.append(re.escape(found[1:]))
        else:
            parts.append(_quote(found))
    return rf"(?s)\A{''.join(parts)}\z"


def _quote(text: str) -> str:
    return "".join(f"\\{letter}" if letter.isascii() and not letter.isalnum() else letter for letter in text)
