"""The linter: runs a fingerprint over sample events, and says where it would lose events or miss resends.

Memory is bounded: fingerprints and payloads go into a temporary SQLite file (as large as the sample, removed at the
end), which keeps at most 16 MB of it in memory; what `lint_fields` keeps of each field is bounded there.
"""

from __future__ import annotations

import math
import sqlite3
from collections import Counter
from collections.abc import Iterable, Mapping
from contextlib import closing
from dataclasses import asdict, dataclass
from typing import Any

from .canonical import canonical
from .errors import EventError
from .fingerprints import BITS, Fingerprint, moment, value_at
from .lint_fields import NEARLY, Field, FieldCounts, leaves
from .reading import value_of

EXAMPLES = 5
REASONS = 20
LOOKED_AT = 10_000  # collisions whose differing fields are counted
EXPECTED = 1_000_000_000
RISK = 1e-6  # accepted for one collision of the hash among all events

CREATE = """CREATE TABLE seen (fingerprint TEXT, payload TEXT, position INTEGER, event BLOB, copies INTEGER,
                              first REAL, last REAL, PRIMARY KEY (fingerprint, payload))"""
INSERT = """INSERT INTO seen VALUES (?, ?, ?, ?, 1, ?, ?) ON CONFLICT DO UPDATE SET
            copies = copies + 1, first = min(first, excluded.first), last = max(last, excluded.last)
            RETURNING copies"""
COLLIDING = "SELECT fingerprint FROM seen GROUP BY fingerprint HAVING count(*) > 1"


@dataclass(frozen=True)
class Collision:
    """Two different events with one fingerprint; ``differing``: field -> its two values (None for a missing one)."""

    fingerprint: str
    positions: tuple[int, int]
    differing: dict[str, tuple[Any, Any]]
    cause: str  # "fields": they agree in the chosen fields; "hash": only their hashes do


@dataclass(frozen=True)
class Report:
    """What a fingerprint does to a sample. Positions count the events from 0.

    ``events`` = ``distinct`` + ``resent`` + ``lost`` + ``refused``: ``distinct`` fingerprints; ``resent`` copies of the
    same payload (but for what the fingerprint leaves out, and the arrival time); ``lost`` events that would be refused
    as duplicates though their payload is another one.
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
        """(Nearly) unique fields that the fingerprint has not: were they in it, a resend might never match."""
        return [each for each in self.fields if is_unique(each) and not self._chosen(each.name)]

    @property
    def unique_inside(self) -> list[Field]:
        """(Nearly) unique fields of the fingerprint: right for the sender's own id, wrong if a resend has a new one."""
        return [each for each in self.fields if is_unique(each) and self._chosen(each.name)]

    @property
    def never_varying(self) -> list[Field]:
        """Fields of the fingerprint with one value in the whole sample: they tell nothing apart."""
        return [each for each in self.fields if not each.varies and self.events > 1 and self._chosen(each.name)]

    @property
    def incomplete(self) -> list[Field]:
        """Fields that some events have not, or have as null."""
        return [each for each in self.fields if each.missing or each.null]

    @property
    def risk(self) -> float:
        """The probability of one collision of the hash among the expected events (birthday bound)."""
        return birthday(self.expected, self.fingerprint.bits)

    @property
    def wide_enough(self) -> list[str]:
        """The algorithms whose risk for the expected events is accepted."""
        return [name for name, bits in {"plain": None, **BITS}.items() if birthday(self.expected, bits) <= RISK]

    def as_record(self) -> dict[str, Any]:
        """The report as a JSON object."""
        record = asdict(self)
        record["pseudoUnique"] = [each.name for each in self.pseudo_unique]
        record["uniqueInside"] = [each.name for each in self.unique_inside]
        record["neverVarying"] = [each.name for each in self.never_varying]
        record["width"] = {"bits": self.fingerprint.bits, "risk": self.risk, "wideEnough": self.wide_enough}
        return record

    def _chosen(self, name: str) -> bool:
        def within(path: str) -> bool:
            return name == path or name.startswith(f"{path}.")

        if self.fingerprint.fields is None:
            return not any(map(within, self.fingerprint.without))
        return any(map(within, self.fingerprint.names())) and not any(map(within, self.fingerprint.without))


def lint(
    events: Iterable[Mapping[str, Any]], fingerprint: Fingerprint, times: str | None = None, expected: int = EXPECTED
) -> Report:
    """Run ``fingerprint`` over ``events``, one pass; see `Report`.

    ``times``: the field that says when a copy of an event arrived (an instant); two copies may differ in it, and the
    report has the longest time between two events of one fingerprint: the store must remember for longer.
    ``expected``: the events that a store will remember at once, for the width of the hash. An event that cannot be
    fingerprinted is counted with its reason; EventError if that is all of them.
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
    """The probability that two of ``events`` different keys share a hash of ``bits`` bits; 0 without a hash."""
    return 0.0 if bits is None else -math.expm1(-events * (events - 1) / 2 ** (bits + 1))


def is_unique(field: Field) -> bool:
    return field.sampled > 1 and field.unique >= NEARLY


def _row(event: Mapping[str, Any], fingerprint: Fingerprint, times: str | None) -> tuple[str, str, bytes, float | None]:
    """Fingerprint, hash of the payload, the event, the time it arrived."""
    encoded = canonical(dict(event))
    arrived = None if times is None else moment(value_at(event, times), times).timestamp()
    return fingerprint.of(event), _payload(fingerprint, times).of(event), encoded, arrived


def _payload(fingerprint: Fingerprint, times: str | None) -> Fingerprint:
    """The whole event, but for what may differ in a resend."""
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
        collisions=store.execute(f"SELECT count(*) FROM ({COLLIDING})").fetchone()[0],
        examples=examples,
        differing=differing,
        refused=refused,
        reasons=dict(reasons),
        fields=fields,
        fields_left_out=counts.left_out,
        key=counts.key(leave_out=[each.name for each in fields if is_unique(each) or each.name == times]),
        longest=_longest(store),
        expected=expected,
    )


def _collisions(
    store: sqlite3.Connection, fingerprint: Fingerprint, times: str | None
) -> tuple[list[Collision], dict[str, int]]:
    """Examples, and in how many of the first `LOOKED_AT` collisions each field differs."""
    examples: list[Collision] = []
    differing = Counter[str]()
    for (value,) in store.execute(f"{COLLIDING} ORDER BY min(position) LIMIT {LOOKED_AT}"):
        rows = store.execute(
            "SELECT position, event FROM seen WHERE fingerprint = ? ORDER BY position LIMIT 2", (value,)
        ).fetchall()
        found = collision(fingerprint, [(position, value_of(event.decode())) for position, event in rows], times)
        differing.update(found.differing.keys())
        if len(examples) < EXAMPLES:
            examples.append(found)
    return examples, dict(differing.most_common())


def collision(fingerprint: Fingerprint, pair: list[tuple[int, dict[str, Any]]], times: str | None = None) -> Collision:
    """What tells two events of one fingerprint apart."""
    (first, one), (second, other) = pair
    left, right = (dict(leaves(_payload(fingerprint, times).kept(event))) for event in (one, other))
    differing = {
        name: (left.get(name), right.get(name))
        for name in left | right
        if name not in left or name not in right or canonical(left[name]) != canonical(right[name])
    }
    cause = "fields" if fingerprint.key(one) == fingerprint.key(other) else "hash"
    return Collision(fingerprint.of(one), (first, second), differing, cause)


def _longest(store: sqlite3.Connection) -> float | None:
    """The longest time between two events of one fingerprint; None without times, or without such events."""
    longest = store.execute(
        "SELECT max(spread) FROM (SELECT max(last) - min(first) AS spread FROM seen "
        "GROUP BY fingerprint HAVING sum(copies) > 1)"
    ).fetchone()[0]
    return None if longest is None else float(longest)
