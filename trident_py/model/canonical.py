"""The canonical form of a value, which decides everywhere whether two keys are equal.

Grouping, joining, routing, hashing and the caches of states use `identity`. `identity`, `canonical` and the hash in
`partitioning` are functions of one form, so equal keys are equal in every step and in every process. docs/semantics.md
(Equality) has the rules. Nothing here depends on the process: no `hash`, no `repr`.
"""

from __future__ import annotations

import dataclasses
import datetime
import decimal
import enum
import fractions
import struct
import uuid
from collections.abc import Callable, Iterable
from functools import lru_cache
from itertools import chain
from typing import Any

from ..errors import TridentError

_EPOCH = datetime.datetime.min.replace(tzinfo=datetime.UTC)
_EXACT = decimal.Context(prec=decimal.MAX_PREC, Emax=decimal.MAX_EMAX, Emin=decimal.MIN_EMIN)
_NUMPY_FINE = ("[ns]", "[ps]", "[fs]", "[as]")

Encoder = Callable[[Any], bytes]
SET_ORDER = f"{hash('trident'):x}"
"""A fingerprint of this process's order of sets. Processes with the same PYTHONHASHSEED have the same one."""
WORKERS_SEED = "0"
"""The PYTHONHASHSEED of Spark's workers: with the driver's, each restart would have another order of sets."""


class UnkeyableError(TridentError):
    """The value has no canonical form, so it can be neither a key nor part of an ordered set."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


def identity(value: Any) -> Any:
    """Return a hashable value. Those of two values are equal exactly if their canonical bytes are.

    Raises UnkeyableError if the value has no canonical form.
    """
    kind = type(value)
    if kind is str or kind is int or value is None:
        return value
    if kind in _ENCODERS:
        return canonical(value)
    plain = to_plain(value)
    return plain if type(plain) in (str, int) or plain is None else canonical(plain)


def key_of(values: Iterable[Any]) -> tuple:
    """Return the identity of a list of values: the key of a group or of a state's row. Raises UnkeyableError."""
    return tuple([v if type(v) is str or type(v) is int or v is None else identity(v) for v in values])


_OWN_IDENTITY = frozenset({str, int, type(None)})


def keys_of(many: Iterable[Iterable[Any]]) -> list[tuple]:
    """Return `key_of` of each. Keys of texts, integers and None are their own identity, and cost next to nothing."""
    keys = list(map(tuple, many))
    return keys if _OWN_IDENTITY.issuperset(map(type, chain.from_iterable(keys))) else list(map(key_of, keys))


def canonical(value: Any) -> bytes:
    """Return the canonical bytes of a value, tagged with its type. Raises UnkeyableError if it has none."""
    kind: Any = type(value)
    encode = _ENCODERS.get(kind)
    try:
        return encode(value) if encode is not None else _encoder(kind)(value)
    except RecursionError:
        raise UnkeyableError(f"a {kind.__name__} nested this deeply, or containing itself, cannot be a key") from None


def to_plain(value: Any) -> Any:
    """Return the plain value that this value stands for, else the value itself.

    NumPy, pandas and Arrow scalars become numbers, texts and times (NaT, NA and Arrow's null: None). A subclass of a
    plain type, or an enum derived from one, becomes the value it holds. bytearray and memoryview become bytes. Raises
    UnkeyableError if the plain type would lose information (nanoseconds).
    """
    kind: Any = type(value)
    read = _find_reader(kind)
    return value if read is None else read(value)


def plain_column(values: list) -> list:
    """Return `to_plain` for each value; the list itself if all are plain. A value without a plain form stays as it
    is."""
    if set(map(type, values)) <= _ENCODERS.keys():
        return values
    return list(map(_plain_or_same, values))


def _plain_or_same(value: Any) -> Any:
    try:
        return to_plain(value)
    except UnkeyableError:
        return value


def is_null(value: Any) -> bool:
    """Return whether the value stands for None: None itself, NaT and NA of pandas, NaT of NumPy, null of Arrow."""
    kind: Any = type(value)
    read = _find_reader(kind)
    if value is None or read is _no_value:
        return True
    if read is _of_arrow:
        return not value.is_valid
    return read is _of_numpy and value.dtype.kind in "mM" and bool(value != value)


def in_order(values: Iterable[Any]) -> Iterable[Any]:
    """Return the values; those of a set ordered by their canonical bytes, so that the hash seed does not matter.

    Raises UnkeyableError if an element of a set has no canonical form.
    """
    if not isinstance(values, set | frozenset):
        return values
    try:
        return sorted(values, key=canonical)
    except UnkeyableError as error:
        raise UnkeyableError(
            f"a set has a different order in every process, and its elements cannot be sorted: {error.reason}. "
            "Return a list"
        ) from None


def _exactly(kind: Any, copy: Callable[[Any], Any]) -> Callable[[Any], Any]:
    return lambda value: value if type(value) is kind else copy(value)


def _plain_datetime(value: datetime.datetime) -> datetime.datetime:
    return datetime.datetime(
        value.year, value.month, value.day, value.hour, value.minute, value.second, value.microsecond,
        value.tzinfo, fold=value.fold,
    )  # fmt: skip


def _no_value(value: Any) -> None:
    """NaT and NA."""


def _of_numpy(value: Any) -> Any:
    """Return a NumPy scalar as a Python value."""
    kind = value.dtype.kind
    if kind in "mM":
        return _numpy_time(value)
    if kind == "f":
        return _same(float(value), value)
    if kind == "c":
        return _same(complex(value), value)
    if kind in "VO":
        return value
    return to_plain(value.item())


def _same(plain: Any, value: Any) -> Any:
    if plain != value and value == value:
        raise _inexact(value, "has more digits than a double")
    return plain


def _numpy_time(value: Any) -> Any:
    if value != value:  # NaT
        return None
    item = value.item()
    if isinstance(item, int) and value.dtype.str.endswith(_NUMPY_FINE):
        coarse = value.astype(f"{value.dtype.kind}8[us]")
        if coarse.astype(value.dtype) != value:
            raise _inexact(value, "has nanoseconds")
        item = coarse.item()
    if isinstance(item, int):
        raise _inexact(value, "is outside the range of times in Python")
    return item


def _of_timestamp(value: Any) -> datetime.datetime:
    if value.nanosecond:
        raise _inexact(value, "has nanoseconds")
    return _plain_datetime(value)


def _of_timedelta(value: Any) -> datetime.timedelta:
    if value.nanoseconds:
        raise _inexact(value, "has nanoseconds")
    return datetime.timedelta(value.days, value.seconds, value.microseconds)


def _of_arrow(value: Any) -> Any:
    """Return an Arrow scalar as a Python value."""
    try:
        return to_plain(value.as_py())
    except (ValueError, OverflowError) as error:  # its repr would fail too
        kind = type(value).__name__
        raise UnkeyableError(f"a {kind} is outside the range of times in Python ({error}); convert it first") from None


def _inexact(value: Any, why: str) -> UnkeyableError:
    shown = f"{value!r} ({type(value).__name__})"
    return UnkeyableError(f"{shown} {why}; round it, or convert it to a text or a number first")


# A subclass counts as the first of these types among its bases, so an enum derived from str is a str.
_READ_AS: dict[type, Callable[[Any], Any]] = {
    str: _exactly(str, str.__str__),
    bool: bool,
    int: _exactly(int, int.__int__),
    float: _exactly(float, float.__float__),
    bytes: _exactly(bytes, lambda value: memoryview(value).tobytes()),
    bytearray: bytes,
    memoryview: memoryview.tobytes,
    complex: _exactly(complex, complex.__complex__),
    decimal.Decimal: _exactly(decimal.Decimal, decimal.Decimal),
    datetime.datetime: _exactly(datetime.datetime, _plain_datetime),
    datetime.date: _exactly(datetime.date, lambda value: datetime.date(value.year, value.month, value.day)),
}
# By name, so that no library must be imported.
_READ_BY_NAME: dict[tuple[str, str], Callable[[Any], Any]] = {
    ("numpy", "generic"): _of_numpy,
    ("pyarrow", "Scalar"): _of_arrow,
    ("pandas", "NaTType"): _no_value,
    ("pandas", "NAType"): _no_value,
    ("pandas", "Timestamp"): _of_timestamp,
    ("pandas", "Timedelta"): _of_timedelta,
}


@lru_cache(maxsize=4096)
def _find_reader(kind: Any) -> Callable[[Any], Any] | None:
    """Return the function that makes values of this type plain; None if the type is plain or has no plain form."""
    for base in kind.__mro__:
        read = _READ_BY_NAME.get((base.__module__.partition(".")[0], base.__name__)) or _READ_AS.get(base)
        if read is not None:
            return None if kind in _ENCODERS else read
    return None


def _text(value: str) -> bytes:
    return b"s" + value.encode("utf-8", "surrogatepass")


def _integer(value: int) -> bytes:
    return b"i" + value.to_bytes((value + (value < 0)).bit_length() // 8 + 1, "big", signed=True)


def _float(value: float) -> bytes:
    return b"fnan" if value != value else b"f" + struct.pack(">d", value)


def _complex(value: complex) -> bytes:
    return b"c" + _row((_float(value.real), _float(value.imag)))


def _decimal(value: decimal.Decimal) -> bytes:
    if value.is_nan():
        return b"dnan"
    return b"d" + str(_EXACT.normalize(value)).encode() if value else b"d0"


def _fraction(value: fractions.Fraction) -> bytes:
    return b"q" + f"{value.numerator:x}/{value.denominator:x}".encode()


def _datetime(value: datetime.datetime) -> bytes:
    """Encode, with a zone, the instant, whatever its zone and fold. Without: the clock time."""
    if value.tzinfo is None:
        return b"n" + _span(value - datetime.datetime.min)
    if value.utcoffset() is None:
        return _datetime(value.replace(tzinfo=None))
    return b"z" + _span(value - _EPOCH)


def _time(value: datetime.time) -> bytes:
    offset = value.utcoffset()
    clock = datetime.timedelta(0, (value.hour * 60 + value.minute) * 60 + value.second, value.microsecond)
    return b"hn" + _span(clock) if offset is None else b"hz" + _span(clock - offset)


def _span(value: datetime.timedelta) -> bytes:
    return struct.pack(">iII", value.days, value.seconds, value.microseconds)


def _list(value: list | tuple) -> bytes:
    encoder_of = _ENCODERS.get
    return b"l" + _row([encoder_of(type(item), canonical)(item) for item in value])


def _dict(value: dict) -> bytes:
    return b"m" + _row(sorted({_row((canonical(k), canonical(v))) for k, v in value.items()}))


def _row(parts: Iterable[bytes]) -> bytes:
    """Join several parts. Different lists of parts never give the same bytes."""
    return b"".join([len(part).to_bytes(4, "big") + part for part in parts])


def _flag(value: enum.Flag) -> bytes:
    return b"e" + _row((_name(type(value)), canonical(value.value)))


def _name(kind: type) -> bytes:
    return f"{kind.__module__}.{kind.__qualname__}".encode()


_ENCODERS: dict[type, Encoder] = {
    type(None): lambda value: b"-",
    bool: lambda value: b"b1" if value else b"b0",
    str: _text,
    int: _integer,
    float: _float,
    bytes: lambda value: b"x" + value,
    complex: _complex,
    decimal.Decimal: _decimal,
    fractions.Fraction: _fraction,
    uuid.UUID: lambda value: b"u" + value.bytes,
    datetime.datetime: _datetime,
    datetime.date: lambda value: b"y" + struct.pack(">I", value.toordinal()),
    datetime.time: _time,
    datetime.timedelta: lambda value: b"p" + _span(value),
    list: _list,
    tuple: _list,
    dict: _dict,
    set: lambda value: b"t" + _row(sorted(set(map(canonical, value)))),
    frozenset: lambda value: b"t" + _row(sorted(set(map(canonical, value)))),
}


@lru_cache(maxsize=4096)
def _encoder(kind: Any) -> Encoder:
    """Return the encoder of a type that is not plain."""
    read = _find_reader(kind)
    if read is not None:
        return lambda value: _as_read(value, read(value))
    if issubclass(kind, enum.Flag):
        return _flag
    if issubclass(kind, enum.Enum):
        return lambda value: b"e" + _row((_name(kind), value.name.encode()))
    encoder = next((_ENCODERS[base] for base in kind.__mro__ if base in _ENCODERS), None)
    return encoder or (_record(kind) if _is_record(kind) else _refuse)


def _as_read(value: Any, plain: Any) -> bytes:
    encode = _ENCODERS.get(type(plain))
    return _refuse(value) if encode is None else encode(plain)


def _is_record(kind: type) -> bool:
    """Return whether the type is a dataclass that compares by its fields."""
    return dataclasses.is_dataclass(kind) and kind.__dataclass_params__.eq  # type: ignore[attr-defined]


def _record(kind: type) -> Encoder:
    names = [field.name for field in dataclasses.fields(kind) if field.compare]  # the user's, known only at run time
    return lambda value: b"o" + _row((_name(kind), *(canonical(getattr(value, name)) for name in names)))


def _refuse(value: Any) -> bytes:
    kind = type(value)
    names = {f"{base.__module__.partition('.')[0]}.{base.__name__}" for base in kind.__mro__}
    how = "a text, a number, or a tuple of these"
    if "numpy.ndarray" in names:
        how = "a tuple: tuple(array.tolist())"
    raise UnkeyableError(
        f"a {kind.__module__}.{kind.__qualname__} cannot be a key: it has no canonical form, so equal values would not "
        f"be recognised in every process. Convert it to {how} first"
    )
