"""SqlQuery: a SELECT asked for all tuples of a batch at once. Source in Storm: storm-jdbc, JdbcQuery and JdbcState."""

from __future__ import annotations

import datetime
import decimal
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Any

from trident_py.errors import DefinitionError, StateError
from trident_py.model.canonical import UnkeyableError, key_of, to_plain
from trident_py.operations.base import TridentCollector
from trident_py.state import Location, Needs, QueryFunction, Reading, ReadOnlyState, StateFactory
from trident_py.tuples import Fields, FieldsLike, TridentTuple

from ..columns.values import Column, RefusedValue
from .connection import Connection, execute_bound
from .store import needs_of_store, parse_url, redact_url, store_of

# What may hide a colon, a question mark or a semicolon; then what they are outside of it.
_TOKENS = re.compile(
    r"""'(?:[^']|'')*' | "(?:[^"]|"")*" | `[^`]*` | --[^\n]* | /\*.*?\*/ | \$(?P<tag>\w*)\$.*?\$(?P=tag)\$
    | :: | :(?P<name>[A-Za-z_]\w*) | (?P<mark>\?) | (?P<end>;)""",
    re.VERBOSE | re.DOTALL,
)
_CODE = re.compile(r"/\*M?!")
_READS = re.compile(r"\s*(select|with|values|\()", re.IGNORECASE)


@dataclass(frozen=True)
class Select:
    """A query in pieces: ``names`` are the fields bound between the pieces of ``parts``, in their order."""

    parts: tuple[str, ...]
    names: tuple[str, ...]

    @classmethod
    def of(cls, text: str, fields: Fields) -> Select:
        """Parse ``text``, which has ``:name`` for an input field, or one ``?`` for each in their order. Raises
        DefinitionError."""
        text = _check_select(text)
        found = list(_TOKENS.finditer(text))
        if any(match["end"] for match in found):
            raise DefinitionError(f"SqlQuery takes one SELECT, and {text[:60]!r} has several statements")
        named = [match for match in found if match["name"]]
        places = named or [match for match in found if match["mark"]]
        names = tuple(match["name"] for match in named) if named else tuple(fields)[: len(places)]
        _check_names(names, len(places), fields)
        edges = [0, *chain.from_iterable(match.span() for match in places), len(text)]
        return cls(tuple(text[a:b] for a, b in zip(edges[::2], edges[1::2], strict=True)), names)

    def together(self, many: int) -> list[str]:
        """Return the pieces of one statement that asks ``many`` times; the first column of a row is the number of its
        question."""
        parts = [""]
        for number in range(many):
            before = "\nUNION ALL\n" if number else ""
            head, *rest = self.parts
            parts[-1] += f"{before}SELECT {number} AS trident_question, q.* FROM (\n{head}"
            parts += rest
            parts[-1] += "\n) AS q"  # a comment may end the query: a new line first
        return parts


def _check_select(text: str) -> str:
    if not isinstance(text, str) or not _READS.match(text):
        raise DefinitionError(f"SqlQuery takes a query that begins with SELECT or WITH, got {str(text)[:60]!r}")
    if _CODE.search(text):
        raise DefinitionError("SqlQuery: /*! is no comment to MySQL, which may find a second statement in it")
    if "\\'" in text:
        raise DefinitionError("SqlQuery: write '' for a quote within a text, since \\' is not SQL")
    return text.strip().removesuffix(";")


def _check_names(names: Sequence[str], places: int, fields: Fields) -> None:
    for name in names:
        if name not in fields:
            raise DefinitionError(f"SqlQuery: no input field {name!r} for :{name}; the input fields are {fields}")
    unused = [name for name in fields if name not in names]
    if unused or places != len(names):
        raise DefinitionError(
            f"SqlQuery: {places} parameters for the input fields {fields}: write :name for each of them, or one ? for "
            "each in their order"
        )


PARAMETERS = 30_000  # SQLite takes 32,766 in one statement, PostgreSQL 65,535
TEXT = 4_000_000  # characters in one statement; MySQL takes 16 MiB by default, values included
_BINDABLE = (
    str, int, float, bool, bytes, decimal.Decimal, datetime.date, datetime.time, type(None),
)  # fmt: skip


class SqlSource(ReadOnlyState):
    """The state beside a SqlQuery: it holds nothing, the query has its own connection.

    On replay: nothing, it is never written.
    """


@dataclass(frozen=True, repr=False)
class SqlSourceFactory(StateFactory):
    """Makes the state for `newStaticState`; says what each machine needs for the query."""

    url: str

    kind = "non-transactional"
    state_type = SqlSource
    reading = Reading.CURRENT

    @property
    def stateName(self) -> str:
        return redact_url(parse_url(self.url))

    @property
    def needs(self) -> Needs:
        return needs_of_store(self.url)

    @property
    def location(self) -> Location:
        """No table of its own: a query never writes."""
        return Location(frozenset([self.stateName]), frozenset(), shown=self.stateName)

    def makeState(self, conf: dict, metrics: Any, partitionIndex: int, numPartitions: int) -> SqlSource:
        return SqlSource()

    def __repr__(self) -> str:
        return f"SqlSourceFactory({redact_url(parse_url(self.url))!r})"


@dataclass(frozen=True, repr=False)
class SqlQuery(QueryFunction):
    """Asks a database for each tuple, and emits a tuple for every row of the answer: none, one or many.

    ``select``: a SELECT with ``:name`` for an input field, or one ``?`` for each in their order. Values are bound by
    the database driver, never put into the text. ``inFields``: with a type ("day date") a value is checked and stored
    as in a table of ours; without, a time with a zone is bound in UTC. ``outFields``: one for each column, in their
    order; with a type it is read as from a table of ours. `source` is the state to ask:

        names = SqlQuery(url, "SELECT name FROM users WHERE id = :id", "id", "name")
        stream.stateQuery(topology.newStaticState(names.source), "id", names, "name")

    It runs where the tuples are, once for each batch and partition, as one statement for each 2,000 different questions
    (SQLite: 500).
    A row that is still uncommitted is not seen. On replay: it asks again, and the answer may have changed; declare it
    ``deterministic(...)`` if it never does. Raises DefinitionError for a text and fields that do not fit.
    """

    url: str
    select: str
    inFields: FieldsLike
    outFields: FieldsLike
    _select: Select = field(init=False, compare=False)

    def __post_init__(self) -> None:
        where = parse_url(self.url).render_as_string(hide_password=False)
        derived: dict[str, Any] = {"url": where, "inFields": Fields.of_columns(self.inFields or ())}
        derived["outFields"] = Fields.of_columns(self.outFields)
        derived["_select"] = Select.of(self.select, derived["inFields"])
        for name, value in derived.items():
            object.__setattr__(self, name, value)
        for fields in (self._inputs, self._outputs):
            for column in fields:
                _ = column is None or column.family  # raises DefinitionError for an unknown type

    @property
    def source(self) -> SqlSourceFactory:
        """The factory of the state to ask, for `newStaticState`."""
        return SqlSourceFactory(self.url)

    def name_fields(self, factory: StateFactory) -> Fields:
        return Fields.of_columns(self.inFields)

    def batchRetrieve(self, state: Any, tuples: Sequence[TridentTuple]) -> Sequence[Any]:
        """Return the rows for each tuple. Raises FailedException if the database is away, StateError for a value that
        cannot be bound and for a query that the database refuses."""
        questions: dict[tuple, int] = {}
        values: list[list[Any]] = []
        asked = []
        for row in tuples:
            given = [self._bind(row, name) for name in Fields.of_columns(self.inFields)]
            number = questions.setdefault(key_of(given), len(values))
            if number == len(values):
                values.append(given)
            asked.append(number)
        answers = self._answers(values)
        return [answers[number] for number in asked]

    def execute(self, tuple: TridentTuple, result: Any, collector: TridentCollector) -> None:
        for row in result:
            collector.emit(row)

    def _answers(self, values: list[list[Any]]) -> list[list[tuple]]:
        """Return the rows of each question."""
        names = list(Fields.of_columns(self.inFields))
        columns = [_encode(column, names[i], [row[i] for row in values]) for i, column in enumerate(self._inputs)]
        places = [columns[names.index(name)] for name in self._select.names]
        answers: list[list[tuple]] = []
        store = store_of(parse_url(self.url))
        most = PARAMETERS // max(len(places), 1), TEXT // (len(self.select) + 60)
        at_once = max(1, min(store.dialect.selects, *most))
        with store.reading() as connection, store.errors(f"run {self!r}"):
            for start in range(0, len(values), at_once):
                part = [[column[i] for column in places] for i in range(start, min(start + at_once, len(values)))]
                answers += self._ask(connection, part, store.dialect.decoder)
        return answers

    def _ask(self, connection: Connection, part: list[list[Any]], decoder: Any) -> list[list[tuple]]:
        parameters = [value for row in part for value in row]
        cursor = execute_bound(connection, self._select.together(len(part)), parameters)
        self._check_columns([column[0] for column in cursor.description][1:])
        decoders = [None if column is None else decoder(column) for column in self._outputs]
        answers: list[list[tuple]] = [[] for _ in part]
        for number, *row in cursor.fetchall():
            answers[number].append(tuple(_decode(value, read) for value, read in zip(row, decoders, strict=True)))
        return answers

    def _check_columns(self, names: list[str]) -> None:
        if len(names) != len(Fields.of_columns(self.outFields)):
            raise StateError(
                f"{self!r}: the query has the columns ({', '.join(names)}), and outFields are ({self.outFields}). Name "
                "one field for each column"
            )

    def _bind(self, row: TridentTuple, name: str) -> Any:
        value = row.getValueByField(name)
        try:
            plain = to_plain(value)
            if isinstance(plain, datetime.datetime) and plain.utcoffset() is not None:
                return plain.astimezone(datetime.UTC)  # PyMySQL leaves the zone out
            if isinstance(plain, _BINDABLE):
                return plain
            why = "the query takes texts, numbers, booleans, bytes, dates and times"
        except UnkeyableError as error:
            why = error.reason
        except OverflowError:
            why = "its year is outside 1 to 9999 in UTC"
        raise StateError(f"{self!r}: field {name!r} of {row!r} cannot be bound ({type(value).__name__}): {why}")

    @property
    def _inputs(self) -> list[Column | None]:
        return _columns(Fields.of_columns(self.inFields))

    @property
    def _outputs(self) -> list[Column | None]:
        return _columns(Fields.of_columns(self.outFields))

    def __repr__(self) -> str:
        return f"SqlQuery({redact_url(parse_url(self.url))!r}, {self.select!r})"


def _columns(fields: Fields) -> list[Column | None]:
    """Return the column of each field that has a type."""
    return [Column(name, fields.types[name]) if name in fields.types else None for name in fields]


def _encode(column: Column | None, name: str, values: Sequence[Any]) -> Sequence[Any]:
    if column is None:
        return values
    try:
        return column.encode(values)
    except RefusedValue as why:
        bad = values[why.index]
        raise StateError(
            f"field {name!r} ({column.ddl}) cannot hold {bad!r} ({type(bad).__name__}): {why.reason}. Convert the "
            "value before the query, or give the field another type"
        ) from None


def _decode(value: Any, read: Any) -> Any:
    return value if read is None or value is None else read(value)
