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
from .numbers import quotient

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


class JavaDuration:
    def __init__(self, millis: int) -> None:
        self.millis = millis

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

    def match(self, text: str, whole: bool) -> tuple[dict[str, str], str]:
        pattern = "".join(re.escape(part) if kind == "text" else _reader(part) for kind, part in self._parts)
        match = re.compile(pattern + ("$" if whole else ""), re.IGNORECASE).match(text)
        if match is None:
            raise ValueError(f'Unparseable date: "{text}"')
        return match.groupdict(), match[0]


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


_READERS = {
    "y": r"\d+", "u": r"\d+", "M": r"\d{1,2}", "d": r"\d{1,2}", "H": r"\d{1,2}", "h": r"\d{1,2}", "m": r"\d{1,2}",
    "s": r"\d{1,2}", "S": r"\d{1,9}", "a": "[AP]M", "E": "[A-Za-z]+", "D": r"\d+", "Z": r"[+-]\d{4}|Z",
    "X": r"[+-]\d\d:\d\d|Z",
}  # fmt: skip


def _reader(token: str) -> str:
    kind, name = token[0], "M3" if token.startswith("MMM") else token[0]
    digits = r"\d{4}" if token in ("yyyy", "uuuu") else "[A-Za-z]+" if name == "M3" else _READERS[kind]
    return f"(?P<{name}>{digits})"


def _number(found: dict[str, str], *names: str, default: int) -> int:
    return next((int(found[name]) for name in names if name in found), default)


def _assemble(found: dict[str, str]) -> tuple[datetime.datetime, str | None]:
    month = _number(found, "M", default=1)
    if "M3" in found:
        names = [name.lower() for name in calendar.month_abbr]
        month = names.index(found["M3"][:3].lower())
    year = _number(found, "y", "u", default=1970)
    hour = _number(found, "H", default=_number(found, "h", default=0) % 12 + 12 * (found.get("a", "").upper() == "PM"))
    millis = int(found["S"][:6].ljust(6, "0")) if "S" in found else 0
    moment = datetime.datetime(
        year, month, _number(found, "d", default=1), hour, _number(found, "m", default=0),
        _number(found, "s", default=0), millis,
    )  # fmt: skip
    return moment, found.get("Z") or found.get("X")


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
            moment, zone = _assemble(self._pattern.match(text, whole=False)[0])
        except ValueError as error:
            raise ParseError(f'Unparseable date: "{text}"') from error
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
            return _assemble(self._pattern.match(text, whole=True)[0])[0]
        except ValueError as error:
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


def day_of_week(date: datetime.date) -> DayOfWeek:
    return DayOfWeek(date.isoweekday())


def epoch_day(date: datetime.date) -> int:
    return date.toordinal() - 719163


def date_of_epoch_day(day: int) -> datetime.date:
    return datetime.date.fromordinal(day + 719163)


def length_of_month(date: datetime.date) -> int:
    return calendar.monthrange(date.year, date.month)[1]
