"""What differs between databases; one object each, found by the URL's scheme."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from sqlalchemy.engine import URL, Engine

from trident_py.errors import DefinitionError
from trident_py.state import StateType

from .columns import Column


class Dialect(Protocol):
    """How one kind of database is opened, locked, read and written.

    All statements go to the driver's own connection: SQLAlchemy finds drivers, writes DDL and reads
    schemas, but stands aside where rows move.
    """

    name: str
    chunk: int
    """How many keys one read asks for."""

    def absolute(self, url: URL) -> URL:
        """The URL as every process will understand it. Raises DefinitionError if it cannot hold a state."""
        ...

    def part(self, url: URL, index: int) -> URL:
        """The URL of one of several files; index 0 is the URL itself."""
        ...

    def connect(self, engine: Engine) -> Any:
        """A new connection of the driver, durable at commit, in autocommit until `begin`."""
        ...

    def begin(self, connection: Any, seconds: float) -> None:
        """Opens a transaction that may write. Raises the driver's error if it is locked out that long."""
        ...

    def relaxed(self, connection: Any, on: bool) -> None:
        """Bookkeeping that may be lost in a power cut (never in a crash) need not wait for the disk."""
        ...

    def is_lock(self, error: BaseException) -> bool:
        """Whether trying again later may help."""
        ...

    def storage(self, column: Column) -> Any:
        """The SQLAlchemy type of a column."""
        ...

    def declared(self, type_name: str) -> str | None:
        """The DDL type for a column of an existing table, or None if no type of ours fits."""
        ...

    def fits(self, column: Column, type_name: str) -> bool:
        """Whether an existing column can hold what this column must."""
        ...

    def table_options(self) -> dict[str, Any]: ...

    def select(self, table: str, keys: Sequence[str], columns: Sequence[str], count: int) -> str:
        """Reads ``count`` keys: each row is the key asked for, the first key column found, the columns.

        Rows come in the order of the keys, with NULLs where nothing is found.
        """
        ...

    def upsert(self, table: str, keys: Sequence[str], columns: Sequence[str]) -> str: ...

    def add(self, table: str, keys: Sequence[str], value: str, kind: StateType, count: int) -> str | None:
        """Adds to ``count`` keys under the rules of the kind and returns (keys, new value, txid) for each.

        The first parameter is the txid, then keys and amount of each row. The txid returned is the row's: a
        newer one than the parameter is left as it is. A row that a transactional map skips is not returned.
        None if the database cannot.
        """
        ...

    def insert_new(self, table: str, keys: Sequence[str], columns: Sequence[str]) -> str:
        """Inserts a row unless the key exists; every other objection of the table stays an error."""
        ...


def dialect_of(url: URL) -> Dialect:
    """The dialect of a URL. Raises DefinitionError for a database that has none here."""
    from .sqlite import SQLITE  # a module per database; it imports this one

    known: dict[str, Dialect] = {"sqlite": SQLITE}
    name = url.get_backend_name()
    if name not in known:
        raise DefinitionError(f"no dialect for {name!r} in states.sql; there are: {', '.join(known)}")
    return known[name]
