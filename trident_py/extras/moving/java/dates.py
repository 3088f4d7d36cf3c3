"""Dates and times: SimpleDateFormat, LocalDate, LocalDateTime, Instant. Without a zone it is UTC."""

from __future__ import annotations

import calendar
import datetime
import enum
import re
from functools import total_ordering
from typing import Any
from zoneinfo import ZoneInfo

from .errors import DateTimeParseError, ParseError
from .numbers import quotient, to_int

__all__ = [
    "ChronoUnit",
    "Date",
    "DateTimeFormatter",
    "DayOfWeek",
    "Instant",
    "JavaDuration",
    "SimpleDateFormat",
    "between",
    "date_of_epoch_day",
    "date_time_text",
    "day_of_week",
    "epoch_day",
    "length_of_month",
    "local_time",
    "parse_date",
    "parse_date_time",
    "zone_of",
]  # fmt: skip

UTC = datetime.UTC
_EPOCH = datetime.datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = datetime.timedelta(microseconds=1)
_LETTERS = {
    "yyyy": "%Y", "uuuu": "%Y", "yy": "%y", "MMMM": "%B", "MMM": "%b", "MM": "%m", "dd": "%d", "HH": "%H", "hh": "%I",
    "mm": "%M", "ss": "%S", "EEEE": "%A", "EEE": "%a", "E": "%a", "a": "%p", "DDD": "%j", "Z": "%z", "XXX": "%:z",
}  # fmt: skip
_TOKEN = re.compile(r"'((?:[^']|'')*)'|([A-Za-z])\2*|.", re.DOTALL)


class DayOfWeek(enum.Enum):
    MONDAY, TUESDAY, WEDNESDAY, THURSDAY, FRIDAY, SATURDAY, SUNDAY = range(1, 8)


class ChronoUnit(enum.Enum):
    """A unit, with its milliseconds."""

    MILLIS, SECONDS, MINUTES, HOURS, DAYS = 1, 1000, 60_000, 3_600_000, 86_400_000


def _distance(start: Any, end: Any) -> int:
    if isinstance(start, Instant):
        return end.toEpochMilli() - start.toEpochMilli()
    return (end - start) // datetime.timedelta(milliseconds=1)


def between(start: Any, end: Any, unit: ChronoUnit) -> int:
    """Return how many whole units there are between two times."""
    return quotient(_distance(start, end), unit.value)


@total_ordering
class JavaDuration:
    def __init__(self, millis: int) -> None:
        self.millis = millis

    def __eq__(self, other: object) -> bool:
        return isinstance(other, JavaDuration) and self.millis == other.millis

    def __lt__(self, other: JavaDuration) -> bool:
        return self.millis < other.millis

    def __hash__(self) -> int:
        return hash(self.millis)

    def __str__(self) -> str:
        sign, rest = ("-" if self.millis < 0 else ""), abs(self.millis)
        hours, minutes, seconds = rest // 3_600_000, rest // 60_000 % 60, f"{rest % 60_000 / 1000:.3f}".rstrip("0")
        parts = [f"{sign}{count}{unit}" for count, unit in ((hours, "H"), (minutes, "M")) if count]
        return "PT" + "".join([*parts, *([f"{sign}{seconds.rstrip('.')}S"] if rest % 60_000 or not parts else [])])

    @classmethod
    def between(cls, start: Any, end: Any) -> JavaDuration:
        return cls(_distance(start, end))


def zone_of(name: str) -> datetime.tzinfo:
    return UTC if name in ("UTC", "GMT", "Z") else ZoneInfo(name)


class Date:
    """A java.util.Date: milliseconds since 1970."""

    def __init__(self, millis: int) -> None:
        self._millis = millis

    def getTime(self) -> int:
        return self._millis

    def compareTo(self, other: Date) -> int:
        return (self._millis > other._millis) - (self._millis < other._millis)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Date) and other._millis == self._millis

    def __hash__(self) -> int:
        return hash(self._millis)

    def __str__(self) -> str:
        return _moment(self._millis).strftime("%a %b %d %H:%M:%S UTC %Y")


def _moment(millis: int) -> datetime.datetime:
    return _EPOCH + datetime.timedelta(milliseconds=millis)


class _Pattern:
    """A pattern of letters. Raises ValueError for letters that have no counterpart."""

    def __init__(self, pattern: str) -> None:
        self._parts: list[tuple[str, str]] = []
        for match in _TOKEN.finditer(pattern):
            token = match[0]
            if match[1] is not None:
                self._parts.append(("text", match[1].replace("''", "'") or "'"))
            elif match[2] is None:
                self._parts.append(("text", token))
            elif token in _LETTERS or token in ("SSS", "d", "M", "H", "h", "m", "s", "y", "u"):
                self._parts.append(("letters", token))
            else:
                raise ValueError(f"the letters {token!r} of the pattern {pattern!r} have no counterpart")

    def text_of(self, moment: datetime.date) -> str:
        return "".join(part if kind == "text" else _write(part, moment) for kind, part in self._parts)

    def match(self, text: str, exact: bool) -> dict[str, str]:
        """Return what the letters stand for. ``exact``: all of the text, each number in as many digits as letters; else
        only one that another number follows."""
        parts = [*self._parts, ("text", "")]
        pattern = "".join(
            re.escape(part) if kind == "text" else _reader(part, exact or parts[at + 1][0] != "text", exact)
            for at, (kind, part) in enumerate(self._parts)
        )
        match = re.fullmatch(pattern, text) if exact else re.match(pattern, text, re.IGNORECASE)
        if match is None:
            raise ValueError(f'Unparseable date: "{text}"')
        found = match.groupdict()
        if ("letters", "yy") in parts and len(found["y"]) == 2:
            found["y"] = str(2000 + int(found["y"]) if exact else _BEGIN + (int(found["y"]) - _BEGIN) % 100)
        return found


def _write(letters: str, moment: Any) -> str:
    if letters == "SSS":
        return f"{moment.microsecond // 1000:03d}"
    if letters in ("d", "M", "H", "h", "m", "s", "y", "u"):
        names = {"d": "day", "M": "month", "H": "hour", "m": "minute", "s": "second", "y": "year", "u": "year"}
        return str((moment.hour - 1) % 12 + 1 if letters == "h" else getattr(moment, names[letters]))
    if letters in ("yyyy", "uuuu"):
        return f"{moment.year:04d}"
    if letters == "XXX":
        written = moment.strftime("%z") or "+0000"
        return "Z" if written == "+0000" else f"{written[:3]}:{written[3:]}"
    return moment.strftime(_LETTERS[letters])


_READERS = {"a": "[AP]M", "Z": r"[+-]\d{4}|Z", "X": r"[+-]\d\d:\d\d|Z"}
_BEGIN = 1946
"""Years of two digits are of the century from here on, as in Java in 2026: the clock would decide there."""


def _reader(token: str, fixed: bool, exact: bool) -> str:
    kind, name = token[0], "M3" if token.startswith("MMM") else token[0]
    count = f"{{{len(token)}}}" if fixed and len(token) > 1 else "{1,2}" if exact and kind not in "yu" else "+"
    word = "[A-Z][a-z]+" if exact else "[A-Za-z]+"
    return f"(?P<{name}>{word if name in ('M3', 'E') else _READERS.get(kind) or '[0-9]' + count})"


def _number(found: dict[str, str], *names: str, default: int) -> int:
    return next((int(found[name]) for name in names if name in found), default)


def _month_of(found: dict[str, str]) -> int:
    if "M3" not in found:
        return _number(found, "M", default=1)
    return [name.lower() for name in calendar.month_abbr].index(found["M3"][:3].lower())


def _hour_of(found: dict[str, str]) -> int:
    hour = _number(found, "h", default=0)
    return _number(found, "H", default=(0 if hour == 12 else hour) + 12 * (found.get("a", "").upper() == "PM"))


def _assemble(found: dict[str, str], lenient: bool) -> datetime.datetime:
    """Return the moment. ``lenient``: what is too large goes on into the next hour, month or year."""
    year, month, day = _number(found, "y", "u", default=1970), _month_of(found), _number(found, "d", "D", default=1)
    hour, minute, second = _hour_of(found), _number(found, "m", default=0), _number(found, "s", default=0)
    millis = _number(found, "S", default=0)
    if "D" in found or lenient:
        begin = datetime.datetime(year + (month - 1) // 12, (month - 1) % 12 + 1, 1)
        moment = begin + datetime.timedelta(day - 1, second, 0, millis, minute, hour)
        if not lenient and moment.year != year:
            raise ValueError("the year has not so many days")
        return moment
    return datetime.datetime(year, month, day, hour, minute, second, millis * 1000)


def _assemble_smartly(found: dict[str, str]) -> datetime.datetime:
    """Return the moment as a DateTimeFormatter does: 31 is the last day of a shorter month, 24:00 the next day."""
    if 28 < _number(found, "d", default=1) <= 31:
        last = calendar.monthrange(_number(found, "y", "u", default=1970), _month_of(found))[1]
        found = {**found, "d": str(min(int(found["d"]), last))}
    midnight = found.get("H") == "24" and not any(_number(found, name, default=0) for name in "msS")
    moment = _assemble({**found, "H": "0"} if midnight else found, lenient=False)
    return moment + datetime.timedelta(days=midnight)


def _offset(text: str) -> datetime.tzinfo:
    if text == "Z":
        return UTC
    digits = text.replace(":", "")
    minutes = int(digits[1:3]) * 60 + int(digits[3:5])
    return datetime.timezone(datetime.timedelta(minutes=-minutes if digits[0] == "-" else minutes))


class SimpleDateFormat:
    def __init__(self, pattern: str) -> None:
        self._pattern, self._zone, self._lenient = _Pattern(pattern), UTC, True

    def setTimeZone(self, zone: Any) -> None:
        self._zone = zone

    def setLenient(self, lenient: bool) -> None:
        self._lenient = lenient

    def format(self, date: Date | int) -> str:
        millis = date if isinstance(date, int) else date.getTime()
        return self._pattern.text_of(_moment(millis).astimezone(self._zone))

    def parse(self, text: str) -> Date:
        try:
            found = self._pattern.match(text, exact=False)
            moment = _assemble(found, self._lenient)
        except (ValueError, OverflowError) as error:
            raise ParseError(f'Unparseable date: "{text}"') from error
        zone = found.get("Z") or found.get("X")
        aware = moment.replace(tzinfo=_offset(zone) if zone else self._zone)
        return Date((aware - _EPOCH) // datetime.timedelta(milliseconds=1))


class DateTimeFormatter:
    def __init__(self, pattern: str, zone: datetime.tzinfo | None = None) -> None:
        self._text, self._pattern, self._zone = pattern, _Pattern(pattern), zone

    def withZone(self, zone: datetime.tzinfo) -> DateTimeFormatter:
        return DateTimeFormatter(self._text, zone)

    def format(self, moment: Any) -> str:
        if isinstance(moment, Instant):
            if self._zone is None:
                raise ValueError("an Instant needs a formatter with a zone")
            moment = moment.moment().astimezone(self._zone)
        return self._pattern.text_of(moment)

    def parse(self, text: str) -> datetime.datetime:
        try:
            return _assemble_smartly(self._pattern.match(text, exact=True))
        except (ValueError, OverflowError) as error:
            raise DateTimeParseError(f"Text '{text}' could not be parsed at index 0") from error


@total_ordering
class Instant:
    def __init__(self, seconds: int, nanos: int = 0) -> None:
        self.seconds, self.nanos = seconds + nanos // 1_000_000_000, nanos % 1_000_000_000

    @classmethod
    def ofEpochMilli(cls, millis: int) -> Instant:
        return cls(millis // 1000, millis % 1000 * 1_000_000)

    @classmethod
    def parse(cls, text: str) -> Instant:
        if not text.endswith("Z"):
            raise DateTimeParseError(f"Text '{text}' could not be parsed at index {len(text)}")
        moment = datetime.datetime.fromisoformat(text)
        return cls.ofEpochMilli((moment - _EPOCH) // datetime.timedelta(milliseconds=1))

    def toEpochMilli(self) -> int:
        return self.seconds * 1000 + self.nanos // 1_000_000

    def plusSeconds(self, seconds: int) -> Instant:
        return Instant(self.seconds + seconds, self.nanos)

    def plusMillis(self, millis: int) -> Instant:
        return Instant(self.seconds, self.nanos + millis * 1_000_000)

    def moment(self) -> datetime.datetime:
        return _moment(self.toEpochMilli())

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Instant) and (self.seconds, self.nanos) == (other.seconds, other.nanos)

    def __lt__(self, other: Instant) -> bool:
        return (self.seconds, self.nanos) < (other.seconds, other.nanos)

    def __hash__(self) -> int:
        return hash((self.seconds, self.nanos))

    def __str__(self) -> str:
        plain = _moment(self.seconds * 1000).strftime("%Y-%m-%dT%H:%M:%S")
        return plain + (_fraction(self.nanos) if self.nanos else "") + "Z"


def _fraction(nanos: int) -> str:
    digits = 3 if nanos % 1_000_000 == 0 else 6 if nanos % 1000 == 0 else 9
    return f".{nanos:09d}"[: digits + 1]


def local_time(instant: Instant, zone: datetime.tzinfo) -> datetime.datetime:
    return instant.moment().astimezone(zone).replace(tzinfo=None)


def parse_date(text: str) -> datetime.date:
    if not re.fullmatch(r"\d{4}-\d\d-\d\d", text):
        raise DateTimeParseError(f"Text '{text}' could not be parsed at index 0")
    try:
        return datetime.date.fromisoformat(text)
    except ValueError as error:
        raise DateTimeParseError(f"Text '{text}' could not be parsed: {error}") from error


def parse_date_time(text: str) -> datetime.datetime:
    if "T" not in text:
        raise DateTimeParseError(f"Text '{text}' could not be parsed at index {len(text)}")
    return datetime.datetime.fromisoformat(text)


def date_time_text(moment: datetime.datetime) -> str:
    seconds = f":{moment.second:02d}" if moment.second or moment.microsecond else ""
    return f"{moment:%Y-%m-%dT%H:%M}{seconds}{_fraction(moment.microsecond * 1000) if moment.microsecond else ''}"


def hash_of_time(value: Any) -> int | None:
    """Return the hash code of a date or a time, or None for something else. Python's differs in each process."""
    if isinstance(value, datetime.datetime):
        nanos = (value - value.replace(hour=0, minute=0, second=0, microsecond=0)) // _MICROSECOND * 1000
        return _hash_of_date(value) ^ _fold(nanos)
    if isinstance(value, datetime.date):
        return _hash_of_date(value)
    if isinstance(value, JavaDuration):
        return _fold(value.millis // 1000) + 51 * (value.millis % 1000 * 1_000_000)
    if isinstance(value, Instant):
        return _fold(value.seconds) + 51 * value.nanos
    return _fold(value.getTime()) if isinstance(value, Date) else None


def _hash_of_date(date: datetime.date) -> int:
    return (date.year & 0xFFFFF800) ^ ((date.year << 11) + (date.month << 6) + date.day)


def _fold(number: int) -> int:
    """Return the hash code of a Long."""
    return to_int(number ^ (number >> 32))


def day_of_week(date: datetime.date) -> DayOfWeek:
    return DayOfWeek(date.isoweekday())


def epoch_day(date: datetime.date) -> int:
    return date.toordinal() - 719163


def date_of_epoch_day(day: int) -> datetime.date:
    return datetime.date.fromordinal(day + 719163)


def length_of_month(date: datetime.date) -> int:
    return calendar.monthrange(date.year, date.month)[1]
