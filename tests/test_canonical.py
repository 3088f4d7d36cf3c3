"""One canonical form decides which values are equal, and where they go."""

from __future__ import annotations

import dataclasses
import datetime as dt
import enum
import pickle
import struct
import subprocess
import sys
from collections import OrderedDict, defaultdict, namedtuple
from decimal import Decimal
from fractions import Fraction
from typing import Any
from uuid import UUID
from zoneinfo import ZoneInfo

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from trident_py import Fields
from trident_py.model.canonical import UnkeyableError, canonical, identity, in_order, is_null, key_of, keys_of, to_plain
from trident_py.model.chunks import Chunk, convert, to_list
from trident_py.model.partitioning import FieldsPartition, Route, java_hash
from trident_py.state.keys import ExactKey

pytestmark = pytest.mark.filterwarnings("ignore:Generating overly large repr")  # of strategies of so many types
BERLIN = ZoneInfo("Europe/Berlin")
Point = namedtuple("Point", "x y")


class Word(enum.StrEnum):
    A = "a"
    ONE = "1"


class Old(str, enum.Enum):  # noqa: UP042
    A = "a"


class Level(enum.IntEnum):
    ONE = 1


class Mode(enum.IntFlag):
    ONE = 1
    TWO = 2


class Color(enum.Enum):
    A = "a"
    ONE = 1


class Access(enum.Flag):
    READ = 1
    WRITE = 2


class Name(str):
    """A text with a name."""


class Number(int):
    """A whole number with a name."""


class Ratio(float):
    """A float with a name."""


@dataclasses.dataclass(frozen=True)
class Place:
    name: Any
    level: Any = 1
    note: str = dataclasses.field(default="", compare=False)


@dataclasses.dataclass(frozen=True)
class Spot:
    name: Any
    level: Any = 1


# -- an oracle of its own: written from docs/semantics.md, without the code under test


def plain(value: Any) -> Any:
    """What docs/semantics.md says that a value is: a tag and something that Python compares."""
    if isinstance(value, pa.Scalar):
        return plain(value.as_py())
    if value is None or value is pd.NaT or value is pd.NA or (isinstance(value, np.datetime64) and np.isnat(value)):
        return ("null",)
    if isinstance(value, bool | np.bool_):
        return ("bool", bool(value))
    if isinstance(value, str):
        return ("text", tuple(map(ord, value)))
    if isinstance(value, np.datetime64 | np.timedelta64):
        return plain(value.item())
    if isinstance(value, int | np.integer):
        return ("int", int(value))
    if isinstance(value, float | np.floating):
        return ("float", "nan" if value != value else struct.pack(">d", value))
    if isinstance(value, complex):
        return ("complex", plain(value.real), plain(value.imag))
    if isinstance(value, Decimal):
        return ("decimal", "nan" if value != value else value)
    if isinstance(value, bytes | bytearray | memoryview):
        return ("bytes", bytes(value))
    return plain_time(value) if isinstance(value, dt.date | dt.time | dt.timedelta) else plain_whole(value)


def plain_time(value: Any) -> Any:
    if isinstance(value, dt.datetime):
        utc = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
        naive = value.utcoffset() is None
        return ("clock", value.replace(fold=0)) if naive else ("instant", (value - utc) / dt.timedelta(microseconds=1))
    if isinstance(value, dt.time):
        return ("time", value.utcoffset() is None, value.replace(fold=0))
    return ("date", value) if isinstance(value, dt.date) else ("span", dt.timedelta(0) + value)


def plain_whole(value: Any) -> Any:
    if isinstance(value, list | tuple):
        return ("list", tuple(map(plain, value)))
    if isinstance(value, dict):
        return ("dict", frozenset((plain(k), plain(v)) for k, v in value.items()))
    if isinstance(value, set | frozenset):
        return ("set", frozenset(map(plain, value)))
    if dataclasses.is_dataclass(value):
        return ("record", type(value), plain(value.name), plain(value.level))
    return ("other", type(value), value)


def one_of(values: list) -> Any:
    """One of these; `sampled_from` would show them all in each of its warnings."""
    return st.integers(0, len(values) - 1).map(lambda i: values[i])


ZONES = one_of([None, dt.UTC, dt.timezone(dt.timedelta(hours=1)), dt.UTC, ZoneInfo("UTC"), BERLIN])
CLOCKS = st.builds(
    lambda day, hour, half, micro, zone, fold: dt.datetime(
        2025, *day, hour, 30 * half, 0, micro, tzinfo=zone, fold=fold
    ),
    st.sampled_from([(10, 26), (3, 30), (1, 1)]), st.integers(0, 4), st.booleans(), st.sampled_from([0, 1]), ZONES,
    st.sampled_from([0, 1]),
)  # fmt: skip
BERLIN_NOON = dt.datetime(2025, 1, 1, 12, tzinfo=BERLIN)
EDGES = one_of([
    dt.datetime.min, dt.datetime.max, dt.datetime.min.replace(tzinfo=dt.timezone(dt.timedelta(hours=14))),
    dt.datetime.max.replace(tzinfo=dt.timezone(-dt.timedelta(hours=12))), dt.datetime.min.replace(tzinfo=dt.UTC),
])  # fmt: skip
SOME_NUMBERS = [
    0, 1, -1, 127, 128, -128, -129, 255, 256, 2**63 - 1, 2**63, -(2**63), 2**64, 10**400, True, False, 0.0, -0.0, 1.0,
    float("nan"), -float("nan"), float("inf"), 5e-324, Decimal("1"), Decimal("1.0"), Decimal("1.00"), Decimal("-0"),
    Decimal("0.0"), Decimal("1E+2"), Decimal("100"), Decimal("NaN"), Decimal("-Infinity"), Decimal("1e-40"),
    Decimal("1234567890123456789012345678901234567890.10"), Decimal("1234567890123456789012345678901234567890.1"),
    Fraction(1, 2), 1j, complex(1, 0), complex(0.0, -0.0), Number(1), Ratio(1.0), Level.ONE, Mode.ONE,
    Mode.ONE | Mode.TWO,
    np.int64(1), np.int8(-1), np.uint64(2**64 - 1), np.bool_(True), np.float64(1.0), np.float32(0.5), np.float32(0.1),
    float(np.float32(0.1)), np.float16(1), np.float64("nan"), np.longdouble(1), np.complex64(1j), 3,
    pa.scalar(1), pa.scalar(1, pa.int8()), pa.scalar(True), pa.scalar(1.0), pa.scalar(float("nan")),
    pa.scalar(0.5, pa.float32()), pa.scalar(Decimal("1.00")),
]  # fmt: skip
SOME_TEXTS = [
    "", "a", "1", "é", "e\u0301", "\ud800", "a\0", "a ", b"", b"a", b"1", bytearray(b"a"), memoryview(b"a"),
    Name("a"), Name("1"), Word.A, Word.ONE, Old.A, np.str_("a"), np.bytes_(b"a"), Color.A,
    pa.scalar("a"), pa.scalar("a", pa.large_string()), pa.scalar(b"a"),
    Color.ONE, Access.READ, Access.READ | Access.WRITE, UUID(int=1),
]  # fmt: skip
SOME_TIMES = [
    dt.date(2025, 1, 1), dt.date(2025, 10, 26), dt.time(1), dt.time(1, tzinfo=dt.UTC), dt.time(1, fold=1),
    dt.time(2, tzinfo=dt.timezone(dt.timedelta(hours=1))), dt.timedelta(1), dt.timedelta(hours=24), dt.timedelta(0, 1),
    pd.Timestamp("2025-01-01"), pd.Timestamp("2025-01-01", tz="UTC"), pd.Timestamp("2025-01-01 01:00", tz=BERLIN),
    pd.Timedelta(days=1), np.datetime64("2025-01-01"), np.datetime64("2025-01-01T00:00"), np.timedelta64(1, "D"),
    np.datetime64("2025-01-01T00:00:00.000000000"), np.datetime64("NaT"),
    pa.scalar(dt.date(2025, 1, 1)), pa.scalar(dt.datetime(2025, 1, 1)), pa.scalar(None), pa.scalar(None, pa.string()),
    pd.NaT, pd.NA, None, BERLIN_NOON, BERLIN_NOON.astimezone(dt.UTC),
]  # fmt: skip
VIEWS = st.sampled_from([b"a", b"1"]).map(lambda data: memoryview(bytearray(data)))
SCALARS = st.one_of(
    one_of(SOME_NUMBERS), one_of(SOME_TEXTS), one_of(SOME_TIMES), CLOCKS, EDGES, VIEWS,
    st.text("a1", max_size=2), st.integers(-2, 2), st.booleans(),
)  # fmt: skip


def hashables(inner: Any) -> Any:
    few = st.lists(inner, max_size=2)
    return st.one_of(few.map(tuple), few.filter(all_hashable).map(frozenset), st.builds(Point, inner, inner))


def all_hashable(values: Any) -> bool:
    try:
        return len(list(map(hash, values))) >= 0
    except (TypeError, ValueError):
        return False


def containers(inner: Any) -> Any:
    few = st.lists(inner, max_size=3)
    pairs = st.lists(st.tuples(inner.filter(lambda v: all_hashable([v])), inner), max_size=3)
    return st.one_of(
        few, few.map(tuple), few.filter(all_hashable).map(set), few.filter(all_hashable).map(frozenset),
        pairs.map(dict), pairs.map(OrderedDict),
        pairs.map(lambda p: dict(reversed(p))), pairs.map(lambda p: defaultdict(int, p)), hashables(inner),
        st.builds(Place, inner, inner, st.sampled_from(["", "x"])), st.builds(Spot, inner),
    )  # fmt: skip


VALUES = st.recursive(SCALARS, containers, max_leaves=4)
by_plain: dict[Any, list] = {}
for each in [*SOME_NUMBERS, *SOME_TEXTS, *SOME_TIMES]:
    by_plain.setdefault(plain(each), []).append(each)
ALIKE = [values for values in by_plain.values() if len(values) > 1]
SETS = st.permutations(["a", "1", 1.5, Decimal("1.0"), Decimal("2"), b"x"])


@st.composite
def pairs(draw: Any) -> tuple[Any, Any]:
    """Two values; more than half of the pairs are equal, in different types and orders."""
    kind = draw(st.sampled_from(range(6)))
    if kind == 0:
        return draw(VALUES), draw(VALUES)
    if kind == 1:
        value = draw(VALUES)
        return value, value
    if kind == 2:
        order = draw(SETS)
        return set(order), frozenset(reversed(order))
    if kind == 3:
        return draw(CLOCKS), draw(CLOCKS)
    if kind == 4:
        return draw(SCALARS), draw(SCALARS)
    alike = ALIKE[draw(st.integers(0, len(ALIKE) - 1))]
    wrap = [lambda v: v, lambda v: [v], lambda v: {"k": v}, lambda v: Place((v, 1))][draw(st.integers(0, 3))]
    one, other = (alike[draw(st.integers(0, len(alike) - 1))] for _ in range(2))
    return wrap(one), wrap(other)


@pytest.mark.parametrize("scalar", [pa.scalar("z"), pa.scalar(None, pa.string()), np.str_("z"), Word.A])
def test_a_scalar_in_a_typed_field_counts_as_its_value_wherever_it_stands(scalar: Any) -> None:
    value = to_plain(scalar)
    for column in ([scalar], [scalar, "a"], ["a", scalar], [None, scalar, "a"], ["a", scalar, "\u00fc"]):
        wanted = [value if each is scalar else each for each in column]
        assert to_list(convert(column, "string", "f")) == wanted


def test_a_null_of_arrow_is_null() -> None:
    assert is_null(pa.scalar(None)) and is_null(pa.scalar(None, pa.int64())) and not is_null(pa.scalar(0))


@given(pairs())
def test_values_are_one_key_exactly_if_their_canonical_bytes_are_equal(pair: tuple[Any, Any]) -> None:
    one, other = pair
    same = plain(one) == plain(other)
    assert (canonical(one) == canonical(other)) is same
    assert (identity(one) == identity(other)) is same
    assert (key_of([one, "k"]) == key_of([other, "k"])) is same
    assert (ExactKey((one,)) == ExactKey((other,))) is same
    if same:
        assert hash(identity(one)) == hash(identity(other)) and hash(ExactKey((one,))) == hash(ExactKey((other,)))
        assert java_hash(one) == java_hash(other)
        for targets in (2, 3, 4, 7):
            assert len(placed([one, other], targets)) == 1


def placed(values: list, targets: int) -> set[int]:
    """The partitions that these values come to, in one column and each in a chunk of its own."""
    chunks = [Chunk({"k": values}, len(values)), *(Chunk({"k": [value]}, 1) for value in values)]
    route = Route(txid=1, source=0, sent=0, targets=targets)
    return {target for chunk in chunks for target, _ in FieldsPartition(Fields("k")).split(chunk, route)}


@given(VALUES)
def test_a_value_is_the_same_key_after_a_process_boundary(value: Any) -> None:
    chunk = Chunk({"k": [value, value]}, 2)
    [one, other] = Chunk.decode(chunk.encode()).pylist("k")
    assert canonical(one) == canonical(other) == canonical(value)


@given(st.lists(st.sampled_from([0.0, -0.0, 1.0, float("nan"), None]), min_size=1))
def test_a_typed_column_routes_as_an_untyped_one(values: list) -> None:
    route = Route(txid=1, source=0, sent=0, targets=64)
    typed, untyped = ([
        (target, [canonical(v) for v in part.pylist("k")])
        for target, part in FieldsPartition(Fields("k")).split(Chunk({"k": column}, len(values)), route)
    ] for column in (pa.array(values, pa.float64()), values))  # fmt: skip
    assert typed == untyped


def test_a_subclass_or_an_enum_that_is_a_text_or_a_number_is_that() -> None:
    assert identity(Word.A) == identity(Old.A) == identity(Name("a")) == identity(np.str_("a")) == "a"
    assert identity(Level.ONE) == identity(Number(1)) == identity(np.int32(1)) == identity(Mode.ONE) == 1
    assert identity(Color.A) != identity("a") and identity(Color.ONE) != identity(1)
    assert type(to_plain(Word.A)) is str and type(to_plain(Level.ONE)) is int and type(to_plain(np.float64(1))) is float


def test_an_instant_is_one_key_in_whichever_zone_it_is_told() -> None:
    six = dt.datetime(2026, 1, 1, 6, tzinfo=dt.UTC)
    told = [six, six.astimezone(dt.timezone(dt.timedelta(hours=1))), six.astimezone(BERLIN), pd.Timestamp(six)]
    assert len({identity(each) for each in told}) == 1
    assert identity(six) != identity(six.replace(tzinfo=None))
    twice = dt.datetime(2025, 10, 26, 2, 30, tzinfo=BERLIN)  # one hour apart, though Python calls them equal
    assert twice == twice.replace(fold=1) and identity(twice) != identity(twice.replace(fold=1))


def test_keys_that_a_column_may_hold_as_one_meet_in_one_partition() -> None:
    six = dt.datetime(2026, 1, 1, 6, tzinfo=BERLIN)
    assert java_hash(six) == java_hash(six.astimezone(dt.UTC).replace(tzinfo=None))
    assert java_hash(Decimal("-7.00")) == java_hash(-7) != java_hash(Decimal("-7.01"))


class Plain:
    """An object with nothing but its address."""


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (np.array([1, 2]), r"numpy.ndarray cannot be a key.*tuple\(array.tolist\(\)\)"),
        (np.array(1), "numpy.ndarray cannot be a key"),
        (pd.Series([1]), "Series cannot be a key"),
        (Plain(), "Plain cannot be a key: it has no canonical form"),
        ([{"a": Plain()}], "Plain cannot be a key"),
        (range(3), "builtins.range cannot be a key"),
        (pd.Timestamp("2026-01-01 00:00:00.000000001"), "has nanoseconds; round it"),
        (np.datetime64("2026-01-01T00:00:00.000000001"), "has nanoseconds"),
        (pd.Timedelta(1, "ns"), "has nanoseconds"),
        (pa.scalar(10**18 + 1, pa.timestamp("ns")), "has nanoseconds"),
        (pa.scalar(10**8, pa.date32()), "Date32Scalar is outside the range of times in Python"),
        (np.datetime64("20000-01-01"), "is outside the range of times in Python"),
        (np.longdouble(1) / 3, "more digits than a double"),
    ],
)
def test_a_value_without_a_canonical_form_is_refused(value: Any, words: str) -> None:
    with pytest.raises(UnkeyableError, match=words):
        identity(value)
    with pytest.raises(UnkeyableError, match=f"field 'k': .*{words}"):
        placed([value], 4)


def test_a_value_that_holds_itself_is_refused() -> None:
    loop: list = []
    loop.append(loop)
    with pytest.raises(UnkeyableError, match="or containing itself, cannot be a key"):
        identity(loop)


def test_a_set_has_one_order_in_processes_with_different_hash_seeds() -> None:
    values = {"a", "b", "c", "d", 1, 2.5, Decimal("1.0"), (1, "x"), None}
    code = (
        "import sys, pickle; from trident_py.model.canonical import in_order, canonical; from decimal import Decimal;"
        "v = pickle.loads(bytes.fromhex(sys.argv[1])); print(repr(in_order(v)), canonical(v).hex())"
    )
    found = {
        subprocess.run(
            [sys.executable, "-c", code, pickle.dumps(values).hex()],
            env={"PYTHONHASHSEED": seed, "PYTHONPATH": ":".join(sys.path)}, capture_output=True, text=True, check=True,
        ).stdout
        for seed in ("0", "1", "12345")
    }  # fmt: skip
    assert found == {f"{in_order(values)!r} {canonical(values).hex()}\n"}


@given(st.lists(st.lists(st.one_of(st.text(max_size=2), st.integers(), st.none(), st.booleans(), st.floats()))))
def test_the_keys_of_many_are_those_of_each(rows: list[list[Any]]) -> None:
    assert keys_of(rows) == [key_of(row) for row in rows]
