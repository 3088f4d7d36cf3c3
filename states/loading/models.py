"""The settings of the SQL states in a file. A state's own module is imported only when the state is created."""

from __future__ import annotations

from pkgutil import resolve_name
from typing import Annotated, Any, ClassVar, Literal

from pydantic import AfterValidator, Field

from trident_py.state import StateFactory
from trident_py.tuples import Fields

from ..columns.values import Column
from ..sql.store import parsed
from .settings import Count, FieldList, StateSettings


def _url(value: str) -> str:
    parsed(value)
    return value


def _key(value: list[str]) -> list[str]:
    return _typed(value, key=True)


def _columns(value: list[str]) -> list[str]:
    return _typed(value, key=False)


def _typed(value: list[str], key: bool) -> list[str]:
    for name, ddl in Fields.of(value).types.items():
        _ = Column(name, ddl, key).family  # raises for an unknown type
    return value


Url = Annotated[str, AfterValidator(_url), Field(description="A SQLAlchemy URL, such as sqlite:///counts.db")]
Table = Annotated[str, Field(min_length=1, description="The table's name; it is made when it is missing")]
Key = Annotated[FieldList, AfterValidator(_key)]
Columns = Annotated[FieldList, AfterValidator(_columns)]
AllColumns = Annotated[
    Columns | None, Field(description="All fields of a row. Without it: the table's, or the tuples' if it is missing")
]
OnBadRow = Annotated[
    Literal["fail", "dead-letter"],
    Field(description="A row that the table refuses: stop the batch, or keep the row in a table of rejected rows"),
]


Files = Annotated[Count, Field(description="SQLite: how many files share the keys; fixed when the table is made")]


class SqlSettings(StateSettings):
    """A state in one SQL table."""

    factory: ClassVar[str]

    url: Url
    table: Table

    def arguments(self) -> dict[str, Any]:
        """The factory's arguments: the settings by name, without unset ones."""
        given = {name: getattr(self, name) for name in type(self).model_fields}
        return {name: value for name, value in given.items() if value is not None}

    def make(self) -> StateFactory:
        made: StateFactory = resolve_name(self.factory)(**self.arguments())
        return made


class SqlMap(SqlSettings):
    """Map states in one SQL table: a value for each key, updated by persistentAggregate."""

    kinds: ClassVar[tuple[str, ...]] = ("opaque", "transactional", "non-transactional")
    factory: ClassVar[str] = "states.sql:SqlMapState"

    kind: Literal["non-transactional", "transactional", "opaque"] = Field(
        description="What is kept beside a value: nothing, its txid, or its txid and the value before"
    )
    key: Key | None = Field(None, description="The key's fields. Without it: one value, of a global aggregate")
    value: Columns = Field(["count bigint"], description="The value's field, or several for a value that is a row")
    files: Files = 1

    def make(self) -> StateFactory:
        constructors = {"non-transactional": "nonTransactional"}
        constructor = getattr(resolve_name(self.factory), constructors.get(self.kind, self.kind))
        given = self.arguments()
        del given["kind"]
        made: StateFactory = constructor(**given)
        return made


class InsertIgnore(SqlSettings):
    """Rows with a key: each row is stored once, however often it arrives."""

    kinds: ClassVar[tuple[str, ...]] = ("insert-ignore",)
    factory: ClassVar[str] = "states.sql:InsertIgnoreState"

    key: Key = Field(description="The fields that make a row the same row: a function of the input alone")
    columns: AllColumns = None
    onConflict: Literal["ignore", "fail", "report"] = Field(
        "ignore", description="A row whose key is there with other values: drop it, stop the batch, or report it"
    )
    onBadRow: OnBadRow = "fail"
    files: Files = 1


class Append(SqlSettings):
    """Rows without a key: the rows of each batch are appended once."""

    kinds: ClassVar[tuple[str, ...]] = ("append",)
    factory: ClassVar[str] = "states.sql:AppendState"

    columns: AllColumns = None
    onBadRow: OnBadRow = "fail"


class Batch(SqlSettings):
    """Rows of whole batches: the rows of a batch become visible at once or not at all."""

    kinds: ClassVar[tuple[str, ...]] = ("batch",)
    factory: ClassVar[str] = "states.sql:BatchState"

    columns: AllColumns = None
    key: Key | None = Field(None, description="A key of the rows, if they have one")


class Sequenced(SqlSettings):
    """Rows numbered by their sender: stored in order, each once, as in TCP."""

    kinds: ClassVar[tuple[str, ...]] = ("sequence",)
    factory: ClassVar[str] = "states.sql:SequenceState"

    sender: Key = Field(description="The field, or fields, that name the sender")
    sequence: Key = Field(description="The field of the sender's number: whole, counted one by one")
    columns: AllColumns = None
    onGap: Literal["hold", "report"] = Field(
        "hold", description="A number further on than the next: hold the row back until the gap is closed, or report it"
    )
    first: int = Field(1, description="The number that a new sender begins with")
