"""CAST as in Spark's ANSI mode: what does not fit is an error. Pairs whose texts or rounding differ are not offered."""

from __future__ import annotations

import datetime
from collections.abc import Callable

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ...errors import DefinitionError
from .compiled import Compiled, Datum, by_value, full, literal, strict, widen
from .types import BOOLEAN, DATE, DOUBLE, FLOATS, INTEGERS, NUMBERS, STRING, VOID, SqlCall, kind_of, sql_name

_BLANK = "".join(map(chr, [*range(0x21), 0x7F]))
_WHOLE = r"\A[+-]?[0-9]+\z"
_DECIMAL = r"\A[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?\z"
_TRUE, _FALSE = ("t", "true", "y", "yes", "1"), ("f", "false", "n", "no", "0")
_SPECIAL = {"inf": "inf", "+inf": "inf", "infinity": "inf", "+infinity": "inf", "-inf": "-inf", "-infinity": "-inf",
            "nan": "nan"}  # fmt: skip


def cast(call: SqlCall, args: list[Compiled]) -> Compiled:
    (part,), kind = args, kind_of(call.detail)
    if part.kind == kind:
        return part
    if part.kind == VOID:
        return literal(None, kind)
    if pa.types.is_decimal(part.kind) and part.constant and kind in FLOATS:
        return widen(part, kind)
    kernel = _kernel(part, kind)
    if kernel is None:
        raise DefinitionError(f"expr: {call}: a cast of {sql_name(part.kind)} to {sql_name(kind)} is not offered")
    return strict(kind, kernel, [part], call)


def _kernel(part: Compiled, kind: pa.DataType) -> Callable[[Datum], Datum] | None:
    source = part.kind
    if kind in NUMBERS and source == BOOLEAN:
        return lambda x: pc.cast(x, kind) if kind in INTEGERS else pc.cast(pc.cast(x, pa.int8()), kind)
    if kind == BOOLEAN and source in NUMBERS:
        return lambda x: pc.not_equal(x, pa.scalar(0, source))
    if kind in FLOATS and source in NUMBERS:
        return lambda x: pc.cast(x, kind, safe=False)
    if kind in INTEGERS and source in INTEGERS:
        return lambda x: pc.cast(x, kind)
    if kind in INTEGERS and source in FLOATS:
        return lambda x: cut(x, kind)
    if kind == STRING and (source in INTEGERS or source == BOOLEAN):
        return lambda x: pc.cast(x, STRING)
    return _of_text(part, kind) if source == STRING else None


def _of_text(part: Compiled, kind: pa.DataType) -> Callable[[Datum], Datum] | None:
    if kind in INTEGERS:
        return lambda x: _parse(_trim(x), _WHOLE, kind)
    if kind == DOUBLE:
        return _doubles
    if kind == BOOLEAN:
        return lambda x: by_value(_condition, _trim(x), BOOLEAN)
    if kind == DATE and part.constant:
        return lambda x: by_value(datetime.date.fromisoformat, x, DATE)
    return None


def _trim(datum: Datum) -> Datum:
    return pc.utf8_trim(datum, characters=_BLANK)


def _parse(datum: Datum, form: str, kind: pa.DataType) -> Datum:
    """Parse by Arrow, for texts of this form only. It does not know a plus."""
    array = full(datum, 1)
    wrong = array.filter(pc.invert(pc.match_substring_regex(array, pattern=form)))
    if pc.count(wrong).as_py():
        raise pa.ArrowInvalid(f"{next(text for text in wrong.to_pylist() if text is not None)!r:.80} is no number")
    found = pc.cast(pc.utf8_ltrim(array, characters="+"), kind)
    return found[0] if isinstance(datum, pa.Scalar) else found


def _doubles(datum: Datum) -> Datum:
    """Parse Java's forms too: a trailing d or f, Infinity, NaN."""
    plain = pc.match_substring_regex(full(datum, 1), pattern=_DECIMAL)
    if pc.all(plain).as_py() is not False:
        return _parse(datum, _DECIMAL, DOUBLE)
    return _parse(by_value(_java_double, datum, STRING), ".*", DOUBLE)


def _java_double(text: str) -> str:
    text = text.strip(_BLANK[:-1])
    if text.lower() in _SPECIAL:
        return _SPECIAL[text.lower()]
    digits = text[:-1] if text[-1:] in tuple("dDfF") and text[:1] not in ("I", "N", "i", "n") else text
    if not pc.match_substring_regex(pa.scalar(digits), pattern=_DECIMAL).as_py():
        raise pa.ArrowInvalid(f"{text!r:.80} is no number")
    return digits


def _condition(text: str) -> bool:
    if text.lower() in _TRUE:
        return True
    if text.lower() in _FALSE:
        return False
    raise pa.ArrowInvalid(f"{text!r:.80} is neither true nor false")


def cut(datum: Datum, kind: pa.DataType) -> Datum:
    """Drop the fraction. A double that is 2 ** 63 becomes the largest bigint, as in Spark."""
    array = full(datum, 1)
    values = pc.fill_null(array, pa.scalar(0, array.type)).to_numpy(zero_copy_only=False).astype(np.float64)
    low, high = -(2.0 ** (kind.bit_width - 1)), 2.0 ** (kind.bit_width - 1)
    fits = (np.floor(values) < high) & (np.ceil(values) >= low) if kind != pa.int64() else (np.abs(values) <= high)
    if not fits.all():
        raise pa.ArrowInvalid(f"{values[~fits][0]} does not fit {sql_name(kind)}")
    whole = np.where(values == 2.0**63, 2**63 - 1, np.where(values < 2.0**63, values, 0).astype(np.int64))
    found = pc.if_else(array.is_valid(), pa.array(whole, pa.int64()).cast(kind), pa.scalar(None, kind))
    return found[0] if isinstance(datum, pa.Scalar) else found
