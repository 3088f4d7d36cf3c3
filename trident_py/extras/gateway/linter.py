"""The linter: runs a fingerprint over sample events and shows where it would lose events or miss resends."""

from __future__ import annotations

import csv
import hashlib
import math
import sqlite3
from array import array
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from .canonical import EventError, canonical
from .event_reader import value_of
from .fingerprints import BITS, Fingerprint, moment, value_at


def read(path: Path, nulls: Collection[str] = ("",)) -> Iterator[dict[str, Any]]:
    """Yield the events of a file: CSV if its name ends in .csv, else one JSON object per line.

    In a CSV file every value is text; a text in ``nulls`` is null. Raises EventError with file, line and problem.
    """
    try:
        yield from _csv(path, frozenset(nulls)) if path.suffix.lower() == ".csv" else _json_lines(path)
    except OSError as error:
        raise EventError(f"cannot read {path}: {error.strerror}") from None
    except UnicodeDecodeError as error:
        raise EventError(f"{path} is not UTF-8 ({error.reason}): convert it first") from None
    except csv.Error as error:  # a value of more than 131,072 characters
        raise EventError(f"{path} is no CSV that can be read: {error}; write JSON lines") from None


def _csv(path: Path, nulls: frozenset[str]) -> Iterator[dict[str, Any]]:
    with path.open(newline="", encoding="utf-8-sig") as file:
        rows = csv.reader(file)
        heading = next(rows, [])
        twice = sorted({name for name in heading if heading.count(name) > 1})
        if twice:
            raise EventError(f"{path}: the heading names a column twice: {', '.join(twice)}")
        for row in rows:
            if len(row) != len(heading):
                if not row:
                    continue
                raise EventError(f"{path} line {rows.line_num}: {len(row)} values under {len(heading)} columns")
            yield {name: None if value in nulls else value for name, value in zip(heading, row, strict=True)}


def _json_lines(path: Path) -> Iterator[dict[str, Any]]:
    with path.open(newline="\n", encoding="utf-8-sig") as file:
        for number, line in enumerate(file, 1):
            if not line.strip():
                continue
            try:
                event = value_of(line)
            except (ValueError, RecursionError) as error:
                raise EventError(f"{path} line {number}: not JSON ({error}); write one object per line") from None
            if not isinstance(event, dict):
                raise EventError(f"{path} line {number}: {type(event).__name__}, not an object; write one per line")
            yield event


SAMPLE = 100_000
MOST_FIELDS = 200
NEARLY = 0.99  # share of the events that have the field
ABSENT = 0  # stands for a value's hash; a value has this hash as rarely as any other collision of 64 bits


@dataclass(frozen=True)
class Field:
    """One field in the sample. ``distinct`` values in ``sampled`` different events; ``varies`` is over all events."""

    name: str
    missing: int
    null: int
    distinct: int
    sampled: int
    varies: bool

    @property
    def unique(self) -> float:
        """The number of distinct values per sampled event that has the field."""
        return self.distinct / self.sampled if self.sampled else 0.0


class FieldCounts:
    """Counts the fields of events, one event after the other. An event that repeats a payload is only counted.

    Counts cover all events. Distinct values are counted in the first `SAMPLE` different events, as 8-byte hashes in
    arrays: at most 8 bytes per event and field, for at most `MOST_FIELDS` fields.
    """

    def __init__(self, sample: int = SAMPLE) -> None:
        self.sample = sample
        self.events = 0
        self.left_out = 0
        self._sampled = 0
        self._present: dict[str, int] = {}
        self._null: dict[str, int] = {}
        self._first: dict[str, int] = {}
        self._varying: set[str] = set()
        self._columns: dict[str, array[int]] = {}

    def add(self, event: Mapping[str, Any], is_new: bool) -> None:
        """Add an event. ``is_new``: no earlier event had this payload."""
        self.events += 1
        sampled = is_new and self._sampled < self.sample
        for name, value in dict(leaves(event)).items():
            if name not in self._columns and not self._begin(name):
                continue
            self._present[name] += 1
            self._null[name] += value is None
            if not sampled and name in self._varying:
                continue
            hashed = _hash(value)
            if hashed != self._first.setdefault(name, hashed):
                self._varying.add(name)
            if sampled:
                self._column(name).append(hashed)
        self._sampled += sampled

    def fields(self) -> list[Field]:
        """Return the counts of each field, in the order of their first appearance."""
        return [self._field(name) for name in self._columns]

    def key(self, leave_out: Iterable[str] = ()) -> list[str] | None:
        """Return a few fields that together distinguish all sampled events; None if all fields cannot. A greedy hint.

        Takes the field that distinguishes most events, then the next, then drops fields that are not needed.
        """
        columns = {name: self._column(name) for name in self._columns if name not in set(leave_out)}
        fields: list[str] = []
        groups: Sequence[int] = [0] * self._sampled
        parts = min(1, self._sampled)
        while parts < self._sampled:
            counts = {name: len(set(zip(groups, column, strict=True))) for name, column in columns.items()}
            best = max(counts, key=lambda name: counts[name], default=None)
            if best is None or counts[best] <= parts:
                return None
            fields.append(best)
            parts, groups = counts[best], _number_lines(zip(groups, columns.pop(best), strict=True))
        return self._drop_derived(fields)

    def _drop_derived(self, fields: list[str]) -> list[str]:
        for name in list(fields):
            others = [self._column(other) for other in fields if other != name]
            if others and len(set(zip(*others, strict=True))) == self._sampled:
                fields.remove(name)
        return fields

    def _begin(self, name: str) -> bool:
        if len(self._columns) >= MOST_FIELDS:
            self.left_out += 1
            return False
        self._present[name] = self._null[name] = 0
        self._columns[name] = array("Q")
        return True

    def _column(self, name: str) -> array[int]:
        column = self._columns[name]
        column.extend([ABSENT] * (self._sampled - len(column)))
        return column

    def _field(self, name: str) -> Field:
        missing = self.events - self._present[name]
        column = self._column(name)
        has = len(column) - column.count(ABSENT) if ABSENT in column else len(column)
        distinct = len(set(column) - {ABSENT})
        varies = name in self._varying or 0 < missing < self.events
        return Field(name, missing, self._null[name], distinct, has, varies)


def leaves(event: Mapping[str, Any], before: str = "") -> Iterator[tuple[str, Any]]:
    """Yield each value with its dotted path; an array or an empty object is one value."""
    for key, value in event.items():
        if isinstance(value, Mapping) and value:
            yield from leaves(value, f"{before}{key}.")
        else:
            yield before + key, value


def _hash(value: Any) -> int:
    return int.from_bytes(hashlib.blake2b(canonical(value), digest_size=8).digest(), "little")


def _number_lines(pairs: Iterable[tuple[int, int]]) -> list[int]:
    numbers: dict[tuple[int, int], int] = {}
    return [numbers.setdefault(pair, len(numbers)) for pair in pairs]


EXAMPLES = 5
REASONS = 20
LOOKED_AT = 10_000  # collisions whose differing fields are counted
EXPECTED = 1_000_000_000
RISK = 1e-6  # accepted probability of one hash collision among all events

CREATE = """CREATE TABLE seen (fingerprint TEXT, payload TEXT, position INTEGER, event BLOB, copies INTEGER,
                              first REAL, last REAL, PRIMARY KEY (fingerprint, payload))"""
INSERT = """INSERT INTO seen VALUES (?, ?, ?, ?, 1, ?, ?) ON CONFLICT DO UPDATE SET
            copies = copies + 1, first = min(first, excluded.first), last = max(last, excluded.last)
            RETURNING copies"""
COLLIDING = "SELECT fingerprint FROM seen GROUP BY fingerprint HAVING count(*) > 1"


@dataclass(frozen=True)
class Collision:
    """Two different events with one fingerprint; ``differing``: field -> its two values (None if it is missing)."""

    fingerprint: str
    positions: tuple[int, int]
    differing: dict[str, tuple[Any, Any]]
    cause: str  # "fields": the events agree in the chosen fields; "hash": only in their hashes


@dataclass(frozen=True)
class Report:
    """The effect of a fingerprint on a sample. Positions count the events from 0.

    ``events`` = ``distinct`` + ``resent`` + ``lost`` + ``refused``. ``distinct``: the number of fingerprints.
    ``resent``: copies of a payload (without the fields that the fingerprint leaves out, and the arrival time).
    ``lost``: events that would be refused because an event with another payload has their fingerprint.
    """

    fingerprint: Fingerprint
    events: int
    distinct: int
    resent: int
    lost: int
    collisions: int
    examples: list[Collision]
    differing: dict[str, int]
    refused: int
    reasons: dict[str, int]
    fields: list[Field]
    fields_left_out: int
    key: list[str] | None
    longest: float | None
    expected: int

    @property
    def pseudo_unique(self) -> list[Field]:
        """(Nearly) unique fields outside the fingerprint. Inside it, they might keep a resend from ever matching."""
        return [field for field in self.fields if is_unique(field) and not self._is_inside(field)]

    @property
    def unique_inside(self) -> list[Field]:
        """(Nearly) unique fields of the fingerprint: right for the sender's id, wrong if a resend has a new value."""
        return [field for field in self.fields if is_unique(field) and self._is_inside(field)]

    @property
    def never_varying(self) -> list[Field]:
        """Fields of the fingerprint with one value in the whole sample: they distinguish nothing."""
        return [field for field in self.fields if not field.varies and self.events > 1 and self._is_inside(field)]

    @property
    def incomplete(self) -> list[Field]:
        """Fields that are missing or null in some events."""
        return [field for field in self.fields if field.missing or field.null]

    @property
    def risk(self) -> float:
        """The probability of one collision of the hash among the expected events (birthday bound)."""
        return birthday(self.expected, self.fingerprint.bits)

    @property
    def wide_enough(self) -> list[str]:
        """The algorithms whose risk for the expected events is accepted."""
        return [name for name, bits in {"plain": None, **BITS}.items() if birthday(self.expected, bits) <= RISK]

    def as_record(self) -> dict[str, Any]:
        """Return the report as a JSON object."""
        record = asdict(self)
        record["pseudoUnique"] = [field.name for field in self.pseudo_unique]
        record["uniqueInside"] = [field.name for field in self.unique_inside]
        record["neverVarying"] = [field.name for field in self.never_varying]
        record["width"] = {"bits": self.fingerprint.bits, "risk": self.risk, "wideEnough": self.wide_enough}
        return record

    def _is_inside(self, field: Field) -> bool:
        def within(path: str) -> bool:
            return field.name == path or field.name.startswith(f"{path}.")

        if self.fingerprint.fields is None:
            return not any(map(within, self.fingerprint.without))
        return any(map(within, self.fingerprint.names())) and not any(map(within, self.fingerprint.without))


def lint(
    events: Iterable[Mapping[str, Any]], fingerprint: Fingerprint, times: str | None = None, expected: int = EXPECTED
) -> Report:
    """Run ``fingerprint`` over ``events`` in one pass; see `Report`.

    ``times``: the field with the arrival time of a copy (an instant). Copies may differ in it, and the report has the
    longest time between two events of one fingerprint: the store must remember for longer. ``expected``: the number of
    events that a store will remember at once, for the width of the hash. An event without a fingerprint is counted with
    its reason. Raises EventError if no event has one.
    """
    counts, refused, reasons = FieldCounts(), 0, Counter[str]()
    with closing(sqlite3.connect("")) as store:  # an empty name: a temporary file
        store.execute("PRAGMA cache_size = -16384")
        store.execute(CREATE)
        for position, event in enumerate(events):
            try:
                row = _row(event, fingerprint, times)
            except EventError as error:
                refused += 1
                if str(error) in reasons or len(reasons) < REASONS:
                    reasons[str(error)] += 1
                if _encodable(event):
                    counts.add(event, is_new=False)
                continue
            copies = store.execute(INSERT, (*row[:2], position, row[2], row[3], row[3])).fetchone()[0]
            counts.add(event, is_new=copies == 1)
        return _report(store, counts, fingerprint, refused, reasons, times, expected)


def birthday(events: int, bits: int | None) -> float:
    """Return the probability that two of ``events`` different keys share a hash of ``bits`` bits; 0 without a hash."""
    return 0.0 if bits is None else -math.expm1(-events * (events - 1) / 2 ** (bits + 1))


def is_unique(field: Field) -> bool:
    return field.sampled > 1 and field.unique >= NEARLY


def _row(event: Mapping[str, Any], fingerprint: Fingerprint, times: str | None) -> tuple[str, str, bytes, float | None]:
    """Return fingerprint, payload hash, event and arrival time."""
    encoded = canonical(dict(event))
    arrived = None if times is None else moment(value_at(event, times), times).timestamp()
    return fingerprint.of(event), _payload(fingerprint, times).of(event), encoded, arrived


def _payload(fingerprint: Fingerprint, times: str | None) -> Fingerprint:
    """Return a fingerprint of the whole event, except the parts that may differ in a resend."""
    without = (*fingerprint.without, *([] if times is None or times == fingerprint.timestamp else [times]))
    return Fingerprint(timestamp=fingerprint.timestamp, roundSeconds=fingerprint.roundSeconds, without=without)


def _encodable(event: Mapping[str, Any]) -> bool:
    try:
        canonical(dict(event))
    except EventError:
        return False
    return True


def _report(
    store: sqlite3.Connection, counts: FieldCounts, fingerprint: Fingerprint, refused: int, reasons: Counter[str],
    times: str | None, expected: int,
) -> Report:  # fmt: skip
    distinct, payloads, copies = store.execute(
        "SELECT count(DISTINCT fingerprint), count(*), coalesce(sum(copies), 0) FROM seen"
    ).fetchone()
    if refused and not copies:
        raise EventError(f"none of {refused:,} events has a fingerprint; the first: {next(iter(reasons))}")
    examples, differing = _collisions(store, fingerprint, times)
    fields = counts.fields()
    return Report(
        fingerprint=fingerprint,
        events=copies + refused,
        distinct=distinct,
        resent=copies - payloads,
        lost=payloads - distinct,
        collisions=store.execute(f"SELECT count(*) FROM ({COLLIDING})").fetchone()[0],  # noqa: S608  a constant
        examples=examples,
        differing=differing,
        refused=refused,
        reasons=dict(reasons),
        fields=fields,
        fields_left_out=counts.left_out,
        key=counts.key(leave_out=[field.name for field in fields if is_unique(field) or field.name == times]),
        longest=_longest(store),
        expected=expected,
    )


def _collisions(
    store: sqlite3.Connection, fingerprint: Fingerprint, times: str | None
) -> tuple[list[Collision], dict[str, int]]:
    """Return examples, and how often each field differs in the first `LOOKED_AT` collisions."""
    examples: list[Collision] = []
    differing = Counter[str]()
    for (value,) in store.execute(f"{COLLIDING} ORDER BY min(position) LIMIT {LOOKED_AT}"):
        rows = store.execute(
            "SELECT position, event FROM seen WHERE fingerprint = ? ORDER BY position LIMIT 2", (value,)
        ).fetchall()
        example = collision(fingerprint, [(position, value_of(event.decode())) for position, event in rows], times)
        differing.update(example.differing.keys())
        if len(examples) < EXAMPLES:
            examples.append(example)
    return examples, dict(differing.most_common())


def collision(fingerprint: Fingerprint, pair: list[tuple[int, dict[str, Any]]], times: str | None = None) -> Collision:
    """Return the differences between two events of one fingerprint."""
    (position_a, a), (position_b, b) = pair
    fields_a, fields_b = (dict(leaves(_payload(fingerprint, times).strip(event))) for event in (a, b))
    differing = {
        name: (fields_a.get(name), fields_b.get(name))
        for name in fields_a | fields_b
        if name not in fields_a or name not in fields_b or canonical(fields_a[name]) != canonical(fields_b[name])
    }
    cause = "fields" if fingerprint.key(a) == fingerprint.key(b) else "hash"
    return Collision(fingerprint.of(a), (position_a, position_b), differing, cause)


def _longest(store: sqlite3.Connection) -> float | None:
    """Return the longest time between two events of one fingerprint; None without times or such events."""
    longest = store.execute(
        "SELECT max(spread) FROM (SELECT max(last) - min(first) AS spread FROM seen "
        "GROUP BY fingerprint HAVING sum(copies) > 1)"
    ).fetchone()[0]
    return None if longest is None else float(longest)
