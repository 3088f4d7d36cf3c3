"""The interface of a dialect. Each kind of database has one dialect object, chosen by the URL's scheme."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, ClassVar, Protocol, TypeVar

import pyarrow as pa
import sqlalchemy as sa
from sqlalchemy.engine import URL, Engine

from trident_py.errors import StateError
from trident_py.state import Needs

from ...columns.arrow import KeyedRows
from ...columns.values import Column
from ..connection import Connection, Statement
from ..maps.combiners import PartialResults, Recipe

T = TypeVar("T")
KEYS, STAGE, STAGED = "trident_keys", "trident_stage", "trident_staged"
"""The temporary tables. Each hides a table of its name, so no state may have one."""


class Dialect(Protocol):
    """Opens, locks, reads and writes one kind of database. What a method does here fits most databases.

    All statements go to the database driver's own connection, with ``?`` for values and ``"name"`` for names.
    SQLAlchemy finds drivers, writes DDL and reads schemas, but moves no rows. `tests/contracts/dialect.py` tests
    a dialect.
    """

    name: str
    shared: str
    """The end of a SELECT that locks rows against changes by other transactions until this one ends."""
    exclusive: str
    """The same for rows that this transaction will change."""
    served: bool
    """Whether a server runs the statements, so that transactions of several connections go on side by side."""
    pool: ClassVar[dict[str, Any]]
    """SQLAlchemy's options for the connections that read schemas."""
    aside: str
    """The prefix of a temporary table's name, so that it never means a permanent table."""
    temporary: str
    """The keywords for a temporary table in DROP."""
    joined: str
    """The JOIN of a temporary table with a permanent one that looks up each row by its key."""
    same: str
    """Format of a condition: two values are the same, and null is the same as null."""
    exact: str
    """Format of a text that is compared byte by byte."""
    stage_order: str
    """The end of a SELECT from a temporary table so that rows keep the order in which they were written."""
    listed: int
    """The most rows that `combine` takes as lists; more rows come as Arrow arrays."""
    reserved: tuple[str, ...] = ()
    """The columns that a table, or a temporary one beside it, may have here besides those of a row."""
    selects: int
    """How many SELECTs a statement may have; where a server could take more, what was measured to cost nothing."""

    # -- opening

    def address(self, url: URL) -> str:
        """Return the same text for all URLs of one database, as far as it is known without connecting."""

    def fold_name(self, table: str) -> str:
        """Return the same text for all names that mean one table."""
        return table

    def fold_on_server(self, connection: Connection, table: str) -> str:
        """Like `fold_name`, according to this server's configuration."""
        return self.fold_name(table)

    def absolute(self, url: URL) -> URL:
        """Return the URL in a form valid in every process. Raises DefinitionError if it cannot hold a state."""

    def needs(self, url: URL) -> Needs:
        """Return what each machine needs that runs tasks of a state there. Shows no secret of the URL."""

    def connect(self, engine: Engine) -> Connection:
        """Return a new connection of the database driver: durable at commit, in autocommit until `begin`. No setting of
        server or URL changes what it stores or reads (`trident_py.databases.sessions`)."""

    def alive(self, connection: Connection) -> bool:
        """Return whether an idle connection still reaches its server, or the file now at its path."""

    def begin(self, connection: Connection, seconds: float, first: Sequence[Statement] = ()) -> list[Any]:
        """Open a transaction that may write, and execute its ``first`` statements in the same request; return their
        answers, see `Connection.together`. Raises the driver's error if it stays locked out for so many seconds."""

    # -- errors

    def is_lock(self, error: BaseException) -> bool:
        """Return whether the transaction lost against another one (lock wait, deadlock) and may succeed if repeated."""

    def is_lost(self, error: BaseException) -> bool:
        """Return whether the connection or its server is gone: the last statement may or may not have taken effect."""
        return False

    def is_read_only(self, error: BaseException) -> bool:
        """Return whether the server takes no writes for now. The transaction has not been committed."""
        return False

    def advice(self, url: URL, error: BaseException) -> str:
        """Return what to fix, if the error itself does not tell; else ""."""
        return ""

    def is_duplicate(self, error: BaseException) -> bool:
        """Return whether a unique key refused a row, or another process created the same table at this moment."""

    def refuses(self, error: BaseException) -> bool:
        """Return whether the error is the table's refusal of a row, rather than a failure of the server."""

    def longest(self, connection: Connection, columns: Sequence[Column] | None = None) -> int | None:
        """Return how many bytes a row's text may have in a statement or, with ``columns``, in what `fill` sends; None
        for no limit."""
        return None

    # -- tables

    def storage(self, column: Column) -> Any:
        """Return the SQLAlchemy type of a column."""

    def ddl_of(self, type_name: str) -> str | None:
        """Return the DDL type for a column of an existing table; None if no DDL type fits."""

    def fits(self, column: Column, type_name: str) -> bool:
        """Return whether an existing column keeps this column's values unchanged. May raise Refused with the reason."""

    def narrow(self, column: Column, type_name: str) -> Column:
        """Return the column with the limits of the existing table (such as a text's length) and of this database."""
        return column

    def columns_now(self, table: str, columns: Sequence[Column]) -> Statement:
        """Return a question that costs next to nothing, whose answer (rows and description) differs once the type of
        one of these columns is another one. Nobody can alter them between the answer and the end of the transaction."""

    def may_not_read(self, error: BaseException) -> bool:
        """Return whether the error says that this user may not ask `columns_now`."""
        return False

    def find_auto_increment(self, connection: Connection, table: str) -> set[str]:
        """Return the auto-increment columns of an existing table, in which null becomes the next number."""
        return set()

    def decoder(self, column: Column) -> Callable[[Any], Any] | None:
        """Convert what the database driver returns into a value; None if no conversion is needed."""

    def table_options(self, connection: Connection, keyed: bool) -> dict[str, Any]:
        """Return SQLAlchemy's options for a new table."""
        return {}

    def own_key(self, connection: Connection) -> sa.Column | None:
        """Return the key of a table that has none of its own, if the server takes no table without one."""
        return None

    def inexact(self, connection: Connection, table: str, names: Sequence[str]) -> dict[str, str]:
        """Text columns that treat different texts as equal ('ok' and 'OK '): name to collation and remedy."""

    def type_names(self, engine: Engine, table: str) -> dict[str, str]:
        """Return the types of an existing table's columns in the database's words; "" for a column without a type."""

    def cuts(self, name: str) -> str | None:
        """Return what the database makes of a name that it shortens without a word; None if it takes or refuses it."""
        return None

    def unfit(self, connection: Connection, table: str) -> str | None:
        """Return why an existing table cannot hold a state ("is a view"); None for a plain or a missing table.

        A plain table keeps all rows that it accepts, returns them all, and rolls back with its transaction.
        """

    def measure_table(self, connection: Connection, table: str) -> int | None:
        """Return how many bytes a table takes, with its indexes; None if the database does not tell. ``table``: as
        `fold_on_server` returns it."""
        return None

    def unique_keys(self, connection: Connection, table: str) -> list[set[str]]:
        """Return the columns of each unique key that covers whole columns and all rows, and is checked by every
        statement."""

    def other_unique(self, connection: Connection, table: str, keys: Sequence[Column]) -> list[str]:
        """Unique indexes, apart from the key's, through which `write` and `instead` could change rows of other keys."""
        return []

    # -- rows; `keys` and `columns` are those of the table, rows hold the keys' values first

    def read(
        self, connection: Connection, table: str, keys: Sequence[Column], columns: Sequence[Column],
        asked: Sequence[tuple],
    ) -> list[tuple | None]:  # fmt: skip
        """Return the columns of the rows with these keys, in the order of ``asked``; None for a missing row."""

    def write(
        self, connection: Connection, table: str, keys: Sequence[Column], columns: Sequence[Column],
        rows: Sequence[tuple],
    ) -> None:  # fmt: skip
        """Insert the rows; a row whose key exists replaces that row's columns. The last of equal keys wins. Raises
        Untaken, as `insert` and `fill` do."""

    def insert(self, connection: Connection, table: str, columns: Sequence[Column], rows: Sequence[tuple]) -> None:
        """Insert the rows as they are; a refused row is an error, and so is one that is left out."""
        check_taken(table, len(rows), connection.executemany(insert_text(table, columns), rows).rowcount)

    def instead(self, connection: Connection, keys: Sequence[str], others: Sequence[str], of: str = "") -> str:
        """Return the end of an INSERT whose rows replace the ``others`` columns of existing rows; without any, none
        changes.

        Waits for a row that another transaction is inserting at this moment. ``of``: the name in the SELECT of what the
        rows come from; "" if they are VALUES.
        """
        return replace_clause(keys, others)

    def direct(
        self, connection: Connection, table: str, rows: KeyedRows, known: float, every: bool
    ) -> int | None:  # fmt: skip
        """Insert the rows that have a new key, in key order; of equal keys, the first. Returns how many.

        ``known``: the share of the rows whose key the table probably has. Returns None, and writes nothing, if an
        existing key cannot be told from another reason to leave a row out; with ``every`` also unless every row was
        new.
        """

    def stage(
        self, engine: Engine, connection: Connection, table: str, columns: Sequence[Column], name: str
    ) -> None:  # fmt: skip
        """Create a temporary table for rows on their way into ``table``. It accepts every row; creating it commits
        nothing."""

    def stage_to_read(
        self, connection: Connection, table: str, columns: Sequence[Column], arrays: Sequence[pa.Array], name: str
    ) -> str | None:  # fmt: skip
        """Create and fill a temporary table for rows whose keys ``table`` probably has, faster than `stage` and `fill`
        do. It can only be read, and may not accept every row. Returns the `exact` that holds for it and ``table``; None
        if there is no faster one."""
        return None

    def cannot_stage(self, error: BaseException) -> bool:
        """Return whether it is for its temporary table that `stage_to_read` or a SELECT from it failed. The transaction
        is as it was before."""
        return False

    def unless_there(self, keys: Sequence[Column]) -> str:
        """Return the end of an INSERT that leaves out the rows whose key exists; "" if it would leave out other rows,
        too."""
        return f" ON CONFLICT ({names(keys)}) DO NOTHING"

    def fill(
        self, connection: Connection, table: str, columns: Sequence[Column], arrays: Sequence[pa.Array],
        temporary: bool = False,
    ) -> None:  # fmt: skip
        """Write all rows, in the fastest way, into a table that is expected to accept them. ``temporary``: it is a
        temporary table."""

    def combine(self, connection: Connection, recipe: Recipe, batch: PartialResults, wanted: bool) -> list[Any] | None:
        """Combine every row of the batch with the stored row of its key, under the rules of `combining.Recipe`.

        Returns the new values in the order of the batch, or an empty list unless they are ``wanted``. Returns None, and
        leaves the transaction as it was, if a row may not be changed or a result does not fit.
        """


class Untaken(StateError):
    """The server took fewer rows than were sent. `Transaction.using` adds the state and the batch."""


def check_taken(table: str, sent: int, taken: int) -> None:
    """Compare what was sent with what the server says that it took. Raises Untaken if rows are missing.

    More is no error: MySQL counts a row that replaces another one as two.
    """
    if taken < sent:
        raise Untaken(
            f"table {table!r} took {max(taken, 0)} of {sent} rows: a trigger leaves rows out. Nothing of the batch is "
            "written. Remove the trigger, or leave such rows out before the state"
        )


def undo_if_none(connection: Connection, work: Callable[[], T | None]) -> T | None:
    """Return the result of the work. If that is None, what it has written is undone."""
    connection.execute("SAVEPOINT trident")
    result = work()
    if result is None:
        connection.execute("ROLLBACK TO SAVEPOINT trident")
    connection.execute("RELEASE SAVEPOINT trident")
    return result


def names(columns: Sequence[Column | str]) -> str:
    """Return the quoted names of the columns, for a statement."""
    return ", ".join(f'"{column if isinstance(column, str) else column.name}"' for column in columns)


def marks(count: int) -> str:
    """Return a list of ``count`` placeholders."""
    return ", ".join("?" * count)


def upsert_text(table: str, keys: Sequence[Column], columns: Sequence[Column]) -> str:
    """Return the upsert of one row, for SQLite and PostgreSQL."""
    tail = replace_clause([key.name for key in keys], [column.name for column in columns])
    return insert_text(table, [*keys, *columns]) + tail


def replace_clause(keys: Sequence[str], others: Sequence[str]) -> str:
    """Return the end of an INSERT whose rows replace the existing rows of their keys, for SQLite and PostgreSQL."""
    changes = ", ".join(f'"{name}" = excluded."{name}"' for name in others)
    return f" ON CONFLICT ({names(keys)}) DO {'UPDATE SET ' + changes if others else 'NOTHING'}"


def insert_text(table: str, columns: Sequence[Column]) -> str:
    return f'INSERT INTO "{table}" ({names(columns)}) VALUES ({marks(len(columns))})'
