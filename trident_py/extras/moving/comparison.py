"""Compares what two sides hold, key by key. Both are read once and in any order into a temporary database on disk."""

from __future__ import annotations

import pickle
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import islice
from typing import Any

from ...errors import DefinitionError, TridentError
from ...model.canonical import canonical
from ...state import OpaqueValue, StateType, TransactionalValue
from ...state.roles import StoredValues
from ...tuples import Fields
from .declared_types import key_fields
from .divergence import Divergence, Rules, Version
from .sources import Batch, Number, ValueSource
from .state_import import SIZE
from .storm_values import Key, Rebase

GLOBAL_KEYS = {"$GLOBAL$", "$REDIS-MAP-STATE-GLOBAL"}  # of the one value of a global aggregate, in a table and in Redis
CACHE = 64_000  # KB of the temporary database that stay in memory


class NotComparable(DefinitionError):
    """One of the sides cannot be read, or they hold other things."""


@dataclass(frozen=True)
class Side:
    """One side of a comparison. ``columns``: the names of its values' columns, if they have names. With ``rows``, each
    value is a row by the names of its columns; a row without a key is its own key, and its value how often it is
    there. ``names``: those of columns and JSON maps that it declares, and that were read."""

    name: str
    shown: str
    kind: StateType
    key: Fields | None
    columns: tuple[str, ...] | None
    read: Callable[[], Iterator[Batch]]
    rows: bool = False
    names: set[str] = field(default_factory=set)

    @property
    def keyless(self) -> bool:
        return self.rows and self.key is None

    @classmethod
    def of_state(cls, name: str, shown: str, stored: StoredValues) -> Side:
        """Make the side of a state of ours."""
        columns = None if stored.value is None else tuple(stored.value)
        declared = {*(columns or ()), *(stored.key or ())}
        return cls(name, shown, stored.kind, stored.key, columns, lambda: _parts(stored.rows()), names=declared)

    @classmethod
    def of_values(cls, name: str, shown: str, values: Mapping[Key, Any]) -> Side:
        """Make the side of a state that only shows what it holds."""
        kinds = {OpaqueValue: StateType.OPAQUE, TransactionalValue: StateType.TRANSACTIONAL}
        kind = kinds.get(type(next(iter(values.values()), None)), StateType.NON_TRANSACTIONAL)
        return cls(name, shown, kind, None, None, lambda: _parts(values.items()))

    @classmethod
    def of_source(
        cls, name: str, source: ValueSource, columns: Sequence[str], names: Iterable[str],
        rebase: Rebase | None = None, number: Number | None = None,
    ) -> Side:  # fmt: skip
        """Make the side of one of Storm's states; ``rebase``: as its values are after an import; ``number``: as of
        `ValueSource.read`."""
        kind = source.kind if rebase is None else rebase.target
        named = tuple(columns) if len(columns) > 1 else None  # one column may hold anything
        read = partial(_read_source, source, rebase, number)
        return cls(name, source.shown, kind, None, named, read, names=set(names))

    def fit_keys(self, declared: Fields | None, split: str | None) -> Side:
        """Return this side with the types of the other one's keys, where it declares none itself."""
        if self.key is not None or self.rows:
            return self

        def read() -> Iterator[Batch]:
            for keys, values in self.read():
                yield key_fields(keys, declared, split), values

        return replace(self, key=declared, read=read)

    def rename(self, columns: Mapping[str, str], keys: Mapping[bytes, Key]) -> Side:
        """Return this side under the names of the other one. ``keys``: by the canonical form of those here."""
        own = self.columns and tuple(columns.get(name, name) for name in self.columns)

        def read() -> Iterator[Batch]:
            for found, values in self.read():
                named = values if self.rows or not columns else [self._rename(value, columns) for value in values]
                yield [keys.get(canonical(key), key) for key in found] if keys else found, named

        return replace(self, columns=own, read=read)

    def _rename(self, value: Any, columns: Mapping[str, str]) -> Any:
        """Return a stored value with other names in its JSON maps."""
        if isinstance(value, Mapping):
            self.names.update(value)
            return {columns.get(name, name): part for name, part in value.items()}
        if isinstance(value, (OpaqueValue, TransactionalValue)):
            return tuple.__new__(type(value), (value[0], *(self._rename(part, columns) for part in value[1:])))
        return value


def _parts(rows: Iterable[tuple[Sequence[Any], Any]]) -> Iterator[Batch]:
    every = iter(rows)
    while part := list(islice(every, SIZE)):
        yield [tuple(key) for key, _ in part], [value for _, value in part]


def _read_source(source: ValueSource, rebase: Rebase | None, number: Number | None) -> Iterator[Batch]:
    for keys, values in source.read(SIZE, number):
        yield (keys, values) if rebase is None else rebase(keys, values)


@dataclass
class Comparison:
    """The result: how many keys each side has, and what became of them. ``only_null``: of those on one side alone, how
    many have the value null there."""

    left: int
    right: int
    equal: int = 0
    only_left: int = 0
    only_right: int = 0
    only_null: int = 0
    different: int = 0
    first: Divergence | None = None

    def note(self, found: Divergence) -> None:
        self.only_left += found.right is None
        self.only_right += found.left is None
        one = found.left or found.right
        self.only_null += bool(one and one.is_null and None in (found.left, found.right))
        self.different += found.left is not None and found.right is not None
        if self.first is None or found.order < self.first.order:
            self.first = found


@dataclass(frozen=True)
class SideNames:
    """What differs between the names of the sides. ``split``: what stands between the fields of a key in its name;
    ``columns``: names of the left side, with those of the right one; ``read_keys``: returns its keys with those of the
    right one, by the types of the keys; ``batch``: the column of the txid, by its right name."""

    split: str | None = None
    columns: Mapping[str, str] = field(default_factory=dict)
    read_keys: Callable[[Fields | None], Mapping[bytes, Key]] = lambda declared: {}
    batch: str | None = None

    def check(self, left: _Collected, right: _Collected) -> None:
        """Raise NotComparable for a name that is not there. Nothing is known of a side without rows and columns."""
        sides = [each for each in (left, right) if each.count or each.side.names]
        for one, other in self.columns.items():
            for each in sides:
                if (name := one if each is left else other) not in each.side.names:
                    raise NotComparable(
                        f"--rename {one}={other}: {each.side.shown} has no name {name!r}; {_list(each.side.names)}"
                    )
        rows = [each for each in sides if each.side.rows]
        there = {self.columns.get(name, name) if each is left else name for each in rows for name in each.side.names}
        if self.batch is not None and rows and self.batch not in there:
            raise NotComparable(f"--batch {self.batch}: no side has this column; {_list(there)}")


def _list(names: Iterable[str]) -> str:
    return f"there are {', '.join(sorted(names)) or 'none'}"


def compare(
    left: Side, right: Side, rules: Rules, ignored: Sequence[str] = (), names: SideNames | None = None,
    note: Callable[[Divergence], Any] = lambda found: None,
) -> Comparison:  # fmt: skip
    """Compare all keys. ``ignored``: columns of the values that do not count; ``note`` gets each key that differs.
    Raises NotComparable."""
    if rules.txids and left.kind is not right.kind:
        raise NotComparable(
            f"--txids: {left.shown} is {left.kind.value}, and {right.shown} {right.kind.value}. Compare their values "
            "alone, without --txids"
        )
    _check_keys(left, right, rules)
    names, declared = names or SideNames(), left.key or right.key
    left = left.fit_keys(declared, names.split).rename(names.columns, names.read_keys(declared))
    right = right.fit_keys(declared, names.split).rename({name: name for name in names.columns.values()}, {})
    choice = _Choice.of(left, right, ignored)
    try:
        with closing(sqlite3.connect("")) as database:
            sides = _Collected(database, left, choice, rules), _Collected(database, right, choice, rules)
            _collect(database, sides)
            names.check(*sides)
            choice.check_used()
            _check_types(*sides)
            return _compare_in(database, sides, rules, note)
    except sqlite3.Error as error:
        raise NotComparable(
            f"the temporary database of the comparison: {error}. It needs room for both sides; name a folder that has "
            "it with the variable SQLITE_TMPDIR"
        ) from error


def _collect(database: sqlite3.Connection, sides: Sequence[_Collected]) -> None:
    database.execute(f"PRAGMA cache_size = -{CACHE}")
    database.execute("CREATE TABLE held (side, key, version, copies, last, PRIMARY KEY (side, key)) WITHOUT ROWID")
    for each in sides:
        each.read()


def _check_keys(left: Side, right: Side, rules: Rules) -> None:
    """Raise NotComparable if one side has keys and the other none, or if that makes a rule senseless."""
    if left.keyless != right.keyless:
        one, other = (left, right) if left.keyless else (right, left)
        raise NotComparable(f"{one.shown} has rows without a key, {other.shown} has keys: name the columns with --key")
    if left.keyless and rules.tolerance:
        raise NotComparable(f"--tolerance: the rows of {left.shown} have no key to find the other row by: name --key")


def _compare_in(
    database: sqlite3.Connection, sides: Sequence[_Collected], rules: Rules, note: Callable[[Divergence], Any]
) -> Comparison:
    result = Comparison(sides[0].count, sides[1].count)
    for key, one, other in _join(database):
        if one is not None and other is not None and rules.agree(one, other):
            result.equal += 1
        else:
            result.note(found := rules.diverge(key, one, other))
            note(found)
    return result


class _Choice:
    """The columns of a value that count."""

    def __init__(self, names: tuple[str, ...] | None, ignored: Sequence[str], rows: bool) -> None:
        self.rows = rows  # on both sides
        self.several = names is not None and len(names) > 1
        self._names, self._ignored, self._unused = names, set(ignored), set(ignored) - set(names or ())
        self._left: bool | None = None  # whether a value had anything else

    @classmethod
    def of(cls, left: Side, right: Side, ignored: Sequence[str]) -> _Choice:
        """Return the choice for both sides. Raises NotComparable if they have another number of columns."""
        if left.columns and right.columns and len(left.columns) != len(right.columns):
            raise NotComparable(
                f"{left.shown} has the value columns {', '.join(left.columns)}, and {right.shown} "
                f"{', '.join(right.columns)}: their numbers differ. Name the columns that belong together"
            )
        return cls(left.columns or right.columns, ignored, left.rows and right.rows)

    def of_row(self, row: Mapping[str, Any]) -> Any:
        """Return what counts of a row, in the form of the other side's values where that has no rows."""
        kept = self(row)
        if self.rows:
            return kept
        wanted = [name for name in self._names or () if name not in self._ignored]
        if len(wanted) > 1:
            return [kept[name] for name in wanted] if kept.keys() == set(wanted) else kept
        return next(iter(kept.values())) if len(kept) == 1 else kept

    def __call__(self, value: Any) -> Any:
        if not self._ignored or value is None:
            return value
        kept = self._keep(value)
        self._left = bool(self._left) or kept not in (None, {}, [])
        return kept

    def _keep(self, value: Any) -> Any:
        if isinstance(value, Mapping):
            self._unused -= value.keys()
            return {name: part for name, part in value.items() if name not in self._ignored}
        if self._names is None:
            return value
        if not self.several:
            return None if self._names[0] in self._ignored else value
        if not isinstance(value, (list, tuple)) or len(value) != len(self._names):
            return value
        return [part for name, part in zip(self._names, value, strict=True) if name not in self._ignored]

    def check_used(self) -> None:
        """Raise NotComparable for a column that no value has, and for values that have no other one."""
        if self._unused:
            there = ", ".join(self._names) if self._names else "none with a name"
            raise NotComparable(f"--ignore {min(self._unused)}: no value has this column; there are {there}")
        if self._left is False:
            ignored = ", ".join(sorted(self._ignored))
            raise NotComparable(f"--ignore {ignored}: nothing of a value is left to compare")


class _Collected:
    """The values of a side in the temporary database, and the types that they have, each with a key as its example."""

    def __init__(self, database: sqlite3.Connection, side: Side, choice: _Choice, rules: Rules) -> None:
        self.side, self.count = side, 0
        self.key_types: dict[str, Key] = {}
        self.value_types: dict[str, Key] = {}
        self._database, self._choice, self._rules = database, choice, rules

    def read(self) -> None:
        """Read the side. Raises NotComparable if that is not possible."""
        try:
            for keys, values in self.side.read():
                self._add(keys, values)
        except DefinitionError:
            raise
        except (TridentError, OSError, UnicodeDecodeError) as error:
            where = "" if self.side.shown in str(error) else f", {self.side.shown},"
            raise NotComparable(f"{self.side.name}{where} cannot be read: {error}") from error

    def _add(self, keys: Sequence[Key], values: Sequence[Any]) -> None:
        rows = []
        for key, value in zip(map(self._rules.read, keys), map(self._rules.read, values), strict=True):
            version = self._version(value)
            if self.side.keyless:
                key, version = (version.value,), Version(1, version.txid)
            elif len(key) == 1 and key[0] in GLOBAL_KEYS:
                key = (min(GLOBAL_KEYS),)
            for types, name in ((self.key_types, self._type_of_key(key)), (self.value_types, self._type_of(version))):
                if name is not None:
                    types.setdefault(name, key)
            rows.append((self.side.name, canonical(key), pickle.dumps((key, version)), version.txid))
        if self.side.keyless:
            self._database.executemany(_COUNT, rows)
            self.count += len(rows)
            return
        before = self._database.total_changes
        self._database.executemany("INSERT OR IGNORE INTO held VALUES (?, ?, ?, NULL, ?)", rows)
        new = self._database.total_changes - before
        self.count += new
        if new < len(rows):
            self._check_repeated(rows)

    def _check_repeated(self, rows: Sequence[tuple[str, bytes, bytes, Any]]) -> None:
        """Raise NotComparable for a key that came before with another value."""
        for *place, row, _ in rows:
            kept = self._database.execute("SELECT version FROM held WHERE side = ? AND key = ?", place).fetchone()[0]
            (key, one), (_, other) = _load(kept), _load(row)
            if not Rules(txids=True).agree(one, other):
                raise NotComparable(
                    f"{self.side.name}, {self.side.shown}: key {list(key)!r} comes twice, with {one.describe()} "
                    f"and {other.describe()}. Nothing says which one counts: remove one, or read while nothing writes"
                )

    def _version(self, value: Any) -> Version:
        choose = self._choice.of_row if self.side.rows else self._choice
        if isinstance(value, OpaqueValue):
            return Version(choose(value[1]), value[0], choose(value[2]), True)
        return Version(choose(value[1]), value[0]) if isinstance(value, TransactionalValue) else Version(choose(value))

    def _type_of_key(self, key: Key) -> str | None:
        if self.side.keyless:
            return _type_of_row(key[0])
        return ", ".join(type(part).__name__ for part in key)

    def _type_of(self, version: Version) -> str | None:
        value = version.value
        if self._choice.rows and isinstance(value, Mapping):
            return _type_of_row(value)
        if isinstance(value, (list, tuple)):
            return f"row of {len(value)}" if self._choice.several else "list"
        return None if value is None else _type_of_field(value)


def _type_of_row(row: Mapping[str, Any]) -> str | None:
    """Return the names and types of its columns; None if a null leaves one open."""
    return None if None in row.values() else ", ".join(f"{name} {_type_of_field(row[name])}" for name in sorted(row))


def _type_of_field(value: Any) -> str:
    name = type(value).__name__
    return "number" if name in ("int", "float", "Decimal") else name


def _check_types(left: _Collected, right: _Collected) -> None:
    """Raise NotComparable if the keys or the values of the sides have no type in common."""
    keys, values = (left.key_types, right.key_types), (left.value_types, right.value_types)
    for what, (one, other) in (("keys", keys), ("values", values)):
        if one and other and not one.keys() & other.keys():
            (first, key), (second, another) = next(iter(one.items())), next(iter(other.items()))
            raise NotComparable(
                f"the {what} have other types: {first} in {left.side.shown}, as of key {list(key)!r}, and {second} in "
                f"{right.side.shown}, as of key {list(another)!r}. Compare with a state that declares the types"
            )


_COUNT = """
    INSERT INTO held VALUES (?, ?, ?, 1, ?)
    ON CONFLICT DO UPDATE SET copies = copies + 1, last = max(last, excluded.last)
"""
_PAIRS = """
    SELECT l.version, l.copies, l.last, r.version, r.copies, r.last
    FROM held l LEFT JOIN held r ON r.side = 'right' AND r.key = l.key
    WHERE l.side = 'left'
    UNION ALL
    SELECT NULL, NULL, NULL, r.version, r.copies, r.last
    FROM held r LEFT JOIN held l ON l.side = 'left' AND l.key = r.key
    WHERE r.side = 'right' AND l.side IS NULL
"""


def _join(database: sqlite3.Connection) -> Iterator[tuple[Key, Version | None, Version | None]]:
    """Yield each key with what the sides hold of it."""
    for row in database.execute(_PAIRS):
        (left, right) = [None if each[0] is None else _load(*each) for each in (row[:3], row[3:])]
        key = (left or right or ((), None))[0]
        yield key, left and left[1], right and right[1]


def _load(row: bytes, copies: int | None = None, last: int | None = None) -> tuple[Key, Version]:
    key, version = pickle.loads(row)  # noqa: S301  from this process, by its own database
    return key, version if copies is None else Version(copies, last)
