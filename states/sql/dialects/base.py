"""What differs between databases; one object each, found by the URL's scheme."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, ClassVar, Protocol

import pyarrow as pa
from sqlalchemy.engine import URL, Engine

from ...columns.keyed import KeyedRows
from ...columns.values import Column
from ..connection import Connection
from ..maps.combining import PartialResults, Recipe


class Dialect(Protocol):
    """How one kind of database is opened, locked, read and written.

    All statements go to the driver's own connection, with ``?`` for values and ``"name"`` for names: SQLAlchemy
    finds drivers, writes DDL and reads schemas, but stands aside where rows move. A dialect proves itself by
    `tests/states/dialect_contract.py`.
    """

    name: str
    shared: str
    """What a SELECT ends with to keep a row from being changed by others until the transaction ends."""
    exclusive: str
    """The same for a row that this transaction will change."""
    pool: ClassVar[dict[str, Any]]
    """SQLAlchemy's options for the connections that read schemas."""
    aside: str
    """What stands before the name of a temporary table, so that a lasting one of that name is never meant."""
    temporary: str
    """What DROP calls a temporary table."""
    joined: str
    """The JOIN of a temporary table with a lasting one that looks each row up by its key."""
    same: str
    """Whether two values are the same, null with null, as a format of both."""
    exact: str
    """A text to be compared byte by byte, as a format."""
    stage_order: str
    """What ends a SELECT from a temporary table, where rows would come in another order than they went in."""
    columnar: bool
    """Whether `combine` takes its batch as Arrow arrays, else as lists."""

    # -- opening

    def address(self, url: URL) -> str:
        """One spelling for URLs of one database, as far as it can be known without asking."""
        ...

    def folded(self, table: str) -> str:
        """One spelling for names that mean one table."""
        ...

    def named(self, connection: Connection, table: str) -> str:
        """The same, as this server has been set up."""
        ...

    def absolute(self, url: URL) -> URL:
        """The URL as every process will understand it. Raises DefinitionError if it cannot hold a state."""
        ...

    def part(self, url: URL, index: int) -> URL:
        """The URL of one of several files; index 0 is the URL itself. Raises DefinitionError if it has no files."""
        ...

    def connect(self, engine: Engine) -> Connection:
        """A new connection of the driver, durable at commit, in autocommit until `begin`; nothing that the server
        or the URL sets changes what it stores or reads (`trident_py.sessions`)."""
        ...

    def alive(self, connection: Connection) -> bool:
        """Whether an idle connection still reaches its server, or the file that is there now."""
        ...

    def begin(self, connection: Connection, seconds: float) -> None:
        """Opens a transaction that may write. Raises the driver's error if it is locked out that long."""
        ...

    # -- errors

    def is_lock(self, error: BaseException) -> bool:
        """Whether the transaction lost against another one (lock wait, deadlock): begun again it may succeed."""
        ...

    def is_lost(self, error: BaseException) -> bool:
        """Whether the connection or its server is gone: what was in flight may have happened or not."""
        ...

    def advice(self, url: URL, error: BaseException) -> str:
        """What to mend, where the error itself does not tell it; else nothing."""
        ...

    def is_duplicate(self, error: BaseException) -> bool:
        """Whether a unique key refused a row, or another process made the same table at the same moment."""
        ...

    def refuses(self, error: BaseException) -> bool:
        """Whether the table objected to a row, and not the server to the work."""
        ...

    def longest(self, connection: Connection, columns: Sequence[Column] | None = None) -> int | None:
        """How many bytes the text of a row in a statement may have; with ``columns`` in what `fill` sends for them."""
        ...

    # -- tables

    def storage(self, column: Column) -> Any:
        """The SQLAlchemy type of a column."""
        ...

    def declared(self, type_name: str) -> str | None:
        """The DDL type for a column of an existing table, or None if no type of ours fits."""
        ...

    def fits(self, column: Column, type_name: str) -> bool:
        """Whether an existing column keeps what this column must, as it is. Raises Refused with the reason."""
        ...

    def narrowed(self, column: Column, type_name: str) -> Column:
        """The column with the limits of the table that is there (a text's length) and of this database."""
        ...

    def numbered(self, connection: Connection, table: str) -> set[str]:
        """The columns of a table that is there in which null becomes the next number."""
        ...

    def decoder(self, column: Column) -> Callable[[Any], Any] | None:
        """From what the driver returns to the value; None if that is the value."""
        ...

    def table_options(self, connection: Connection, keyed: bool) -> dict[str, Any]:
        """SQLAlchemy's options for a new table."""
        ...

    def inexact(self, connection: Connection, table: str, names: Sequence[str]) -> dict[str, str]:
        """Text columns that take different texts for equal ('ok' and 'OK '): name to collation and remedy."""
        ...

    def type_names(self, engine: Engine, table: str) -> dict[str, str]:
        """The types of an existing table's columns as the database says them, "" for a column without one."""
        ...

    def unfit(self, connection: Connection, table: str) -> str | None:
        """What keeps a table that is there from holding a state ("is a view"); None for a plain one, and for none.

        A table is plain if it keeps all rows that it takes, gives them all back, and rolls back with its transaction.
        """
        ...

    def unique_keys(self, connection: Connection, table: str) -> list[set[str]]:
        """The sets of columns that no two rows have in common, each column as a whole; of all rows, at once."""
        ...

    def other_unique(self, connection: Connection, table: str, keys: Sequence[Column]) -> list[str]:
        """Unique indexes beside the key's in which `write` and `instead` would hit rows that have another key."""
        ...

    # -- rows; `keys` and `columns` are those of the table, rows hold the keys' values first

    def read(
        self, connection: Connection, table: str, keys: Sequence[Column], columns: Sequence[Column],
        asked: Sequence[tuple],
    ) -> list[tuple | None]:  # fmt: skip
        """The columns of these keys, in the order asked; None where there is no row."""
        ...

    def write(
        self, connection: Connection, table: str, keys: Sequence[Column], columns: Sequence[Column],
        rows: Sequence[tuple],
    ) -> None:  # fmt: skip
        """Inserts the rows, or puts their columns in the place of those that have the key; the last one wins."""
        ...

    def insert(self, connection: Connection, table: str, columns: Sequence[Column], rows: Sequence[tuple]) -> None:
        """Inserts the rows as they are; every objection of the table is an error."""
        ...

    def instead(self, keys: Sequence[str], others: Sequence[str]) -> str:
        """What ends an INSERT whose rows give these columns to those that have their key; without any: nothing changes.

        A row that another transaction is inserting at this moment is waited for.
        """
        ...

    def direct(self, connection: Connection, table: str, rows: KeyedRows, all_new: bool) -> int | None:
        """Inserts the rows that have a new key, of equal keys the first, in the order of their keys.

        ``all_new``: the last batch had no other rows.
        Returns how many. None, and nothing written, where this cannot tell a known key from another objection.
        """
        ...

    def stage(
        self, engine: Engine, connection: Connection, table: str, columns: Sequence[Column], name: str
    ) -> None:  # fmt: skip
        """Makes a temporary table for rows on their way into ``table``; it objects to nothing and commits nothing."""
        ...

    def unless_there(self, keys: Sequence[Column]) -> str:
        """What ends an INSERT that leaves out the rows whose key is there; "" where that leaves out more than those."""
        ...

    def fill(
        self, connection: Connection, table: str, columns: Sequence[Column], arrays: Sequence[pa.Array],
        temporary: bool = False,
    ) -> None:  # fmt: skip
        """All rows into a table (of this connection alone: ``temporary``) that objects to none, as fast as it goes."""
        ...

    def combine(self, connection: Connection, recipe: Recipe, batch: PartialResults, wanted: bool) -> list[Any] | None:
        """Combines every row of the batch with that of its key, under the rules of `combining.Recipe`.

        Returns the new values in the order of the batch, an empty list unless they are ``wanted``. None where a
        row may not be changed or a result does not fit: the caller takes back to its savepoint what was done.
        """
        ...


def names(columns: Sequence[Column | str]) -> str:
    """The columns' names for a statement."""
    return ", ".join(f'"{each if isinstance(each, str) else each.name}"' for each in columns)


def marks(count: int) -> str:
    """So many placeholders."""
    return ", ".join("?" * count)


def upsert_text(table: str, keys: Sequence[Column], columns: Sequence[Column]) -> str:
    """One row in the SQL that SQLite and PostgreSQL share."""
    tail = replacing_text([each.name for each in keys], [each.name for each in columns])
    return insert_text(table, [*keys, *columns]) + tail


def replacing_text(keys: Sequence[str], others: Sequence[str]) -> str:
    """What ends an INSERT in SQLite and PostgreSQL whose rows take the place of those with their key."""
    changes = ", ".join(f'"{name}" = excluded."{name}"' for name in others)
    return f" ON CONFLICT ({names(keys)}) DO {'UPDATE SET ' + changes if others else 'NOTHING'}"


def insert_text(table: str, columns: Sequence[Column]) -> str:
    return f'INSERT INTO "{table}" ({names(columns)}) VALUES ({marks(len(columns))})'


class OnConflict:
    """The methods of such a dialect."""

    def longest(self, connection: Any, columns: Sequence[Column] | None = None) -> int | None:
        return None

    def other_unique(self, connection: Any, table: str, keys: Sequence[Column]) -> list[str]:
        return []  # a row that another unique index refuses is an error

    def unless_there(self, keys: Sequence[Column]) -> str:
        return f" ON CONFLICT ({names(keys)}) DO NOTHING"

    def instead(self, keys: Sequence[str], others: Sequence[str]) -> str:
        """What ends INSERT ... SELECT: a row whose key is there takes the new values."""
        return replacing_text(keys, others)
