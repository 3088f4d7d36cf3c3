"""storm-jdbc by its own names, for translated topologies: a `BatchState` takes the rows, and `JdbcQuery` asks."""

from __future__ import annotations

import datetime
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import URL, make_url

from states.sql.connection import execute_bound
from states.sql.query import Select
from states.sql.rows.batch import BatchRows, BatchState
from states.sql.store import Store, parse_url, store_of
from states.sql.table import describe, nearest, unknown_column

from ....errors import DefinitionError, StateError
from ....operations.base import TridentCollector
from ....state import QueryFunction, StateUpdater
from ....tuples import Fields, FieldsLike, TridentTuple, Values
from .builders import make_setter

__all__ = [
    "Column", "ConnectionProvider", "HikariCPConnectionProvider", "JdbcClient", "JdbcLookupMapper", "JdbcMapper",
    "JdbcQuery", "JdbcState", "JdbcStateFactory", "JdbcUpdater", "SimpleJdbcLookupMapper", "SimpleJdbcMapper",
]  # fmt: skip

_DRIVERS = {"mysql": "mysql+pymysql", "mariadb": "mariadb+pymysql", "postgresql": "postgresql+psycopg"}
_DATE, _TIMESTAMP, _ZONED = 91, 93, 2014
_TYPES = {"date": _DATE, "timestamp": _TIMESTAMP}
"""Types of tables, whose times have no zone, as numbers of java.sql.Types. Of the others, the column's own decides."""


class HikariCPConnectionProvider:
    """Says which database is meant. Connections are ours. Raises DefinitionError for none that `states.sql` has."""

    def __init__(self, configMap: Mapping[str, Any]) -> None:
        self.url = _url_of(configMap)

    def prepare(self) -> None:
        """Do nothing: a connection is opened when it is needed."""

    def cleanup(self) -> None:
        """Do nothing."""


ConnectionProvider = HikariCPConnectionProvider


def _url_of(settings: Mapping[str, Any]) -> str:
    text = settings.get("jdbcUrl") or settings.get("dataSource.url") or ""
    kind, _, place = text.removeprefix("jdbc:").partition(":")
    if kind == "sqlite":
        return URL.create("sqlite", database=place).render_as_string(hide_password=False)
    if kind not in _DRIVERS:
        known = ", ".join(f"jdbc:{one}:" for one in ("sqlite", *_DRIVERS))
        raise DefinitionError(f"jdbcUrl or dataSource.url must begin with one of {known}; got {kind!r}")
    url = make_url(f"{_DRIVERS[kind]}:{place}")
    if unknown := sorted(set(url.query) - {"user", "password"}):
        raise DefinitionError(f"no counterpart for {', '.join(unknown)}, which is for the JDBC driver: leave it out")
    user = settings.get("username", settings.get("dataSource.user", url.query.get("user")))
    password = settings.get("password", settings.get("dataSource.password", url.query.get("password")))
    return url.set(query={}, username=user, password=password).render_as_string(hide_password=False)


class JdbcClient:
    def __init__(self, connectionProvider: ConnectionProvider, queryTimeoutSecs: int) -> None:
        self._url = connectionProvider.url

    def executeSql(self, sql: str) -> None:
        engine = sa.create_engine(self._url, poolclass=sa.NullPool)
        with engine.begin() as connection:
            connection.execution_options(no_parameters=True).exec_driver_sql(sql)


class JdbcColumn:
    """``Column(name, sqlType)`` or ``Column(name, val, sqlType)``."""

    def __init__(self, columnName: str, *more: Any) -> None:
        self.columnName, self.sqlType = columnName, more[-1]
        self.val = more[0] if len(more) > 1 else None

    def getColumnName(self) -> str:
        return self.columnName

    def getVal(self) -> Any:
        return self.val

    def getSqlType(self) -> int:
        return self.sqlType


Column = JdbcColumn


class JdbcMapper(ABC):
    @abstractmethod
    def getColumns(self, tuple: TridentTuple) -> Sequence[Column]: ...


class JdbcLookupMapper(JdbcMapper):
    @abstractmethod
    def toTuple(self, input: TridentTuple, columns: Sequence[Column]) -> Sequence[Sequence[Any]]: ...


class SimpleJdbcMapper(JdbcMapper):
    """Of a table's columns, or of those that are given. Milliseconds become dates and times in columns of these."""

    def __init__(self, columns: str | Sequence[Column], connectionProvider: ConnectionProvider | None = None) -> None:
        if isinstance(columns, str):
            assert connectionProvider is not None
            columns = _columns_of(columns, store_of(parse_url(connectionProvider.url)))
        self._columns = columns

    def getColumns(self, tuple: TridentTuple) -> list[Column]:
        return [
            Column(one.columnName, _to_sql(tuple.getValueByField(one.columnName), one.sqlType), one.sqlType)
            for one in self._columns
        ]


def _columns_of(table: str, store: Store) -> list[Column]:
    """Return the columns of a table. Raises StateError for one that no state writes: without it, its rows would lack
    what Storm writes."""
    found = describe(store, table)
    if found is None:
        raise StateError(f"SimpleJdbcMapper: there is no table {table!r}, whose columns it should have")
    known = nearest(store, found)
    if other := next((name for name in found if name not in known), None):
        raise StateError(
            f"SimpleJdbcMapper: table {table!r} {unknown_column(other, found)}. Alter it (a time in MySQL to "
            "DATETIME(6)), or name the columns to be written"
        )
    return [Column(name, _TYPES.get(kind, 0)) for name, kind in known.items()]


def _to_sql(value: Any, sqlType: int) -> Any:
    if value is None or sqlType not in (_DATE, _TIMESTAMP, _ZONED):
        return value
    time = datetime.datetime.fromtimestamp(value // 1000).replace(microsecond=value % 1000 * 1000)
    return time.date() if sqlType == _DATE else time.astimezone() if sqlType == _ZONED else time


class SimpleJdbcLookupMapper(SimpleJdbcMapper, JdbcLookupMapper):
    def __init__(self, outputFields: FieldsLike, queryColumns: Sequence[Column]) -> None:
        super().__init__(queryColumns)
        self._outputs = Fields.of(outputFields)

    def toTuple(self, input: TridentTuple, columns: Sequence[Column]) -> list[Sequence[Any]]:
        found = {one.columnName.lower(): one.val for one in columns}
        given = dict(zip(input.getFields(), input, strict=True))
        return [Values(*(given[name] if name in given else found[name.lower()] for name in self._outputs))]


class Options:
    """What is said of a JdbcState. A timeout is a setting of the database."""

    provider: ConnectionProvider
    mapper: JdbcMapper
    lookup: JdbcLookupMapper
    table, select = "", ""

    withConnectionProvider = make_setter("provider")
    withTableName = make_setter("table")
    withMapper = make_setter("mapper")
    withJdbcLookupMapper = make_setter("lookup")
    withSelectQuery = make_setter("select")

    def withQueryTimeoutSecs(self, queryTimeoutSecs: int) -> Options:
        return self

    def __repr__(self) -> str:
        return f"Options({self.table!r}, {self.select!r})"


class JdbcState:
    Options = Options


@dataclass(frozen=True, init=False, repr=False)
class JdbcStateFactory(BatchState):
    """A `BatchState`, which is never less than Storm's: that writes rows again if a batch is replayed.

    On replay: as a BatchState.
    """

    def __init__(self, options: Options) -> None:
        super().__init__(options.provider.url, options.table or "jdbc")
        object.__setattr__(self, "options", options)


class JdbcUpdater(StateUpdater):
    """Writes what the mapper makes of each tuple."""

    calls = ("insert",)

    def updateState(self, state: BatchRows, tuples: Sequence[TridentTuple], collector: TridentCollector) -> None:
        mapper = state.factory.options.mapper
        state.insert([_row_of(mapper.getColumns(row)) for row in tuples], tell=False)


def _row_of(columns: Sequence[Column]) -> TridentTuple:
    return TridentTuple.of(Fields.of_names(one.columnName for one in columns), [one.val for one in columns])


class JdbcQuery(QueryFunction):
    """Asks for each tuple, and emits what the mapper makes of each row. On replay: it asks again."""

    def batchRetrieve(self, state: BatchRows, tuples: Sequence[TridentTuple]) -> list[list[Sequence[Any]]]:
        options, store = state.factory.options, store_of(parse_url(state.factory.url))
        with store.reading() as connection, store.errors("run the query of JdbcState"):
            return [_ask(connection, options, row) for row in tuples]

    def execute(self, tuple: TridentTuple, result: Any, collector: TridentCollector) -> None:
        for values in result:
            collector.emit(values)


def _ask(connection: Any, options: Options, row: TridentTuple) -> list[Sequence[Any]]:
    given = options.lookup.getColumns(row)
    parts = Select.of(options.select, Fields.of([f"p{index}" for index in range(len(given))])).parts
    cursor = execute_bound(connection, parts, [one.val for one in given])
    labels = [column[0] for column in cursor.description]
    found = [[Column(*named, 0) for named in zip(labels, values, strict=True)] for values in cursor.fetchall()]
    return [values for columns in found for values in options.lookup.toTuple(row, columns)]
