"""Fingerprints, which tell whether two events are the same: a hash of the chosen fields in canonical encoding.

docs/events.md compares the algorithms.

**Birthday bound.** Among n events the probability that two different ones share a hash of b bits is about
n^2 / 2^(b+1). fnv1a (64): 2.7e-8 for a million events, 2.7 % for a billion, more likely than not from 5.1 billion.
128 bits: 1.5e-27 for a million, 1.5e-15 for 10^12.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any
from urllib.parse import quote

from ...errors import DefinitionError, explain_missing
from .canonical import DIGEST, EventError, canonical, digest, payload_hash

try:
    import mmh3
except ImportError:  # of the extra `events`; needed for murmur3 only
    mmh3 = None  # type: ignore[assignment]

LONGEST_PLAIN = 255
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
SECOND = 1_000_000
MICROSECOND = timedelta(microseconds=1)
FNV_OFFSET, FNV_PRIME, MASK = 0xCBF29CE484222325, 0x100000001B3, 0xFFFFFFFFFFFFFFFF
NUMBERS = frozenset({int, float, Decimal})
LAST_SECOND = 10**12  # far beyond the year 9999
MOST_DIGITS = -1_000
FINER = re.compile(r"[.,]\d{6}(\d+)")
ONLY_DOTS = re.compile(r"\.*")



def _fnv1a(data: bytes) -> str:
    state = FNV_OFFSET
    for byte in data:
        state = ((state ^ byte) * FNV_PRIME) & MASK
    return f"{state:016x}"


HASHES: dict[str, Callable[[bytes], str]] = {
    "md5": lambda data: hashlib.md5(data, usedforsecurity=False).hexdigest(),
    "sha1": lambda data: hashlib.sha1(data, usedforsecurity=False).hexdigest(),
    "murmur3": lambda data: mmh3.mmh3_x64_128_digest(data).hex(),  # x64, seed 0, in the byte order of its C source
    "fnv1a": _fnv1a,
    "blake2b": digest,
}
BITS = {"md5": 128, "sha1": 160, "murmur3": 128, "fnv1a": 64, "blake2b": 8 * DIGEST}
ALGORITHMS = ("plain", *HASHES)


@dataclass(frozen=True)
class Fingerprint:
    """Defines which events are the same event. A plain value, used in the gateway's workers.

    ``fields``: the fields to compare, in this order, nested ones by a dotted path (``device.id``); a key that contains
    the dot has precedence. None: the whole event. ``without``: fields to leave out first, present or not (an arrival
    time, a counter of attempts). ``timestamp``: a field that is compared as an *instant*, in seconds since 1970 or ISO
    8601 with a zone; so ``06:00Z`` and ``07:00+01:00`` are equal. A local time is refused: it occurs twice when the
    clocks go back. The instant counts with all digits, or rounded down to ``roundSeconds``; two readings within one
    interval are then one event. Without a timestamp in the fingerprint, equal readings of a sensor are one event while
    the store remembers it.

    The same event has the same fingerprint on every resend and in every process. Raises DefinitionError if the settings
    contradict each other.
    """

    fields: Sequence[str] | None = None
    algorithm: str = "blake2b"
    timestamp: str | None = None
    roundSeconds: int | None = None
    without: Sequence[str] = ()

    def __post_init__(self) -> None:
        for name, value in (("fields", self.fields), ("without", self.without)):
            if isinstance(value, str):
                raise DefinitionError(f"{name} of a fingerprint is a list of names, not the string {value!r}")
            object.__setattr__(self, name, None if value is None else tuple(value))
        _algorithm(self.algorithm)
        _consistent(self)

    @property
    def bits(self) -> int | None:
        """The width of the hash; None for plain, which has no hash collisions."""
        return BITS.get(self.algorithm)

    def names(self) -> tuple[str, ...]:
        """Return the fields to compare, the timestamp last unless it is among them; empty: the whole event."""
        if self.fields is None or self.timestamp is None or self.timestamp in self.fields:
            return tuple(self.fields or ())
        return (*self.fields, self.timestamp)

    def of(self, event: Mapping[str, Any]) -> str:
        """Return the fingerprint of an event. Raises EventError for a missing field, or a value that JSON lacks."""
        if self.algorithm == "plain":
            return _plain(self._values(event))
        return HASHES[self.algorithm](self.key(event))

    def of_many(self, events: Iterable[Mapping[str, Any]]) -> list[str]:
        """Return the fingerprints of many events, in order. An EventError names the event's index, from 0."""
        fingerprints: list[str] = []
        of, append = self.of, fingerprints.append
        try:
            for event in events:
                append(of(event))
        except EventError as error:
            raise EventError(f"event {len(fingerprints)}: {error}") from None
        return fingerprints

    def key(self, event: Mapping[str, Any]) -> bytes:
        """Return the bytes to hash: the canonical encoding of the fields' values as an array, or of the event."""
        values = self._values(event)
        return canonical(values[0] if self.fields is None else values)

    def payload(self, event: Mapping[str, Any]) -> str:
        """Return the `payload_hash` of the event without the ``without`` fields, with ``timestamp`` as the rounded
        instant. Two events with one fingerprint and different payloads are different events: the fingerprint has too
        few fields, or its hash is too small."""
        return payload_hash(self._with_instant(self.strip(event)))

    def strip(self, event: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return the event without the ``without`` fields. Does not change the event."""
        for path in self.without:
            event = _prune(event, path)
        return event

    def _values(self, event: Mapping[str, Any]) -> list[Any]:
        event = self.strip(event)
        if self.fields is None:
            return [self._with_instant(event)]
        values = [event[name] if name in event else _get_nested(event, name) for name in self.names()]
        if self.timestamp is not None:
            place = self.names().index(self.timestamp)
            values[place] = instant(values[place], self.timestamp, self.roundSeconds)
        return values

    def _with_instant(self, event: Mapping[str, Any]) -> dict[str, Any]:
        if self.timestamp is None:
            return dict(event)
        time = instant(value_at(event, self.timestamp), self.timestamp, self.roundSeconds)
        return {"event": dict(_prune(event, self.timestamp)), "time": time}


def value_at(event: Mapping[str, Any], path: str) -> Any:
    """Return the value of a field, nested ones by a dotted path. Raises EventError if it is missing."""
    return event[path] if path in event else _get_nested(event, path)


def instant(value: Any, field: str, roundSeconds: int | None = None) -> str:
    """Return an instant as UTC text, such as 20131103T060000Z. Raises EventError for other values and local times."""
    time, beyond = _exact_moment(value, field)
    micros = (time - EPOCH) // MICROSECOND
    if roundSeconds is not None:
        micros, beyond = micros - micros % (roundSeconds * SECOND), ""
    try:
        utc = EPOCH + timedelta(microseconds=micros)
    except OverflowError:
        raise EventError(f"field {field!r}: {value!r} rounded down is before the year 1") from None
    timespec = "microseconds" if beyond else "auto"
    return utc.isoformat(timespec=timespec).removesuffix("+00:00").replace("-", "").replace(":", "") + beyond + "Z"


def moment(value: Any, field: str) -> datetime:
    """Return ISO 8601 with a zone, or seconds since 1970, as a datetime in UTC, rounded down to the microsecond.

    Raises EventError for any other value.
    """
    return _exact_moment(value, field)[0]


def _exact_moment(value: Any, field: str) -> tuple[datetime, str]:
    """Return the datetime, and the digits after its microsecond: without them two instants could become one."""
    try:
        if type(value) is str:
            time = datetime.fromisoformat(value)
            beyond = match[1] if (match := FINER.search(value)) else ""
        elif type(value) in NUMBERS:
            micros, beyond = _micros(value)
            time = EPOCH + timedelta(microseconds=micros)
        else:
            raise ValueError(f"it is {value!r}")
        if time.tzinfo is None:
            raise ValueError(f"{value!r} has no zone, and a local time occurs twice when the clocks go back")
        return time.astimezone(UTC), beyond.rstrip("0")
    except (ValueError, ArithmeticError) as error:
        raise EventError(f"field {field!r} is not an instant: {error}. Send ISO 8601 with a zone "
                         "(2013-11-03T06:00:00Z) or seconds since 1970") from None  # fmt: skip


def _micros(seconds: int | float | Decimal) -> tuple[int, str]:
    """Return whole microseconds, rounded down, and the digits after them; for a float, those of its shortest form."""
    if not -LAST_SECOND < seconds < LAST_SECOND:
        raise OverflowError(f"{seconds!r} is outside the calendar")
    sign, digits, exponent = Decimal(str(seconds)).as_tuple()
    assert isinstance(exponent, int)  # the number is finite
    if exponent < MOST_DIGITS:
        raise ValueError(f"it has more than {-MOST_DIGITS} digits after the decimal point")
    number = int("".join(map(str, digits))) * (-1 if sign else 1)
    shift = exponent + 6  # negative: there are digits after the microsecond
    if shift >= 0:
        return number * 10**shift, ""
    micros, rest = divmod(number, 10**-shift)
    return micros, f"{rest:0{-shift}d}"


def _algorithm(name: str) -> None:
    if name not in ALGORITHMS:
        raise DefinitionError(f"fingerprints have no algorithm {name!r}; there are: {', '.join(ALGORITHMS)}")
    if name == "murmur3" and mmh3 is None:
        raise DefinitionError(explain_missing("murmur3", "the package mmh3", "events"))


def _consistent(fingerprint: Fingerprint) -> None:
    names, seconds = fingerprint.names(), fingerprint.roundSeconds
    if fingerprint.fields is not None and not names:
        raise DefinitionError("a fingerprint needs at least one field; fields=None takes the whole event")
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise DefinitionError(f"a fingerprint names each field once; named twice: {', '.join(twice)}")
    used = {*names, *([fingerprint.timestamp] if fingerprint.timestamp else [])}
    lost = sorted(n for n in used for path in fingerprint.without if n == path or n.startswith(f"{path}."))
    if lost:
        raise DefinitionError(f"both in the fingerprint and left out of it: {', '.join(lost)}")
    if seconds is not None and fingerprint.timestamp is None:
        raise DefinitionError("roundSeconds rounds the timestamp: name its field in timestamp")
    if seconds is not None and (type(seconds) is not int or seconds < 1):
        raise DefinitionError(f"roundSeconds is an integer from 1 on, not {seconds!r}")


def _get_nested(event: Mapping[str, Any], path: str) -> Any:
    value: Any = event
    for step in path.split("."):
        if not isinstance(value, Mapping) or step not in value:
            has = ", ".join(sorted(map(str, event))) or "nothing"
            raise EventError(f"no field {path!r} in this event; it has: {has}")
        value = value[step]
    return value


def _prune(event: Mapping[str, Any], path: str) -> Mapping[str, Any]:
    """Return the event without a field. Does not change the event."""
    if path in event:
        return {key: value for key, value in event.items() if key != path}
    step, _, rest = path.partition(".")
    if not rest or not isinstance(event.get(step), Mapping):
        return event
    return {**event, step: _prune(event[step], rest)}


def _plain(values: list[Any]) -> str:
    """Return the values as readable text: ``EWR:~2013:~1``. A tilde marks a value that is not plain text."""
    text = ":".join(map(_part, values))
    if len(text) > LONGEST_PLAIN:
        raise EventError(f"a plain fingerprint of {len(text)} characters ({text[:40]}...) is too long for a key, which "
                         f"has at most {LONGEST_PLAIN}; use fewer fields, or a hash such as blake2b")  # fmt: skip
    return text


def _part(value: Any) -> str:
    encoded = canonical(value)
    if type(value) is str and not ONLY_DOTS.fullmatch(value):  # a path segment of dots has another meaning
        return quote(value, safe="").replace("~", "%7E")
    return "~" + quote(encoded, safe="").replace("~", "%7E")
