"""The settings of the SQL states in a file."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from pydantic import AfterValidator, Field

from trident_py.tuples import Fields

from ..columns.values import Column
from ..sql.store import parse_url
from .settings import FactorySettings, FieldList, MapKind, MapSettings


def _url(value: str) -> str:
    parse_url(value)
    return value


def _key(value: list[str]) -> list[str]:
    return _check_types(value, key=True)


def _columns(value: list[str]) -> list[str]:
    return _check_types(value, key=False)


def _check_types(value: list[str], key: bool) -> list[str]:
    for name, ddl in Fields.of_columns(value).types.items():
        _ = Column(name, ddl, key).family  # raises for an unknown type
    return value


Key = Annotated[FieldList, AfterValidator(_key)]
Columns = Annotated[FieldList, AfterValidator(_columns)]
AllColumns = Annotated[
    Columns | None,
    Field(description="All fields of a row, including any key; default: the table's columns, or all fields of the "
                      "tuples if the table is missing"),
]  # fmt: skip
OnBadRow = Annotated[
    Literal["fail", "dead-letter"],
    Field(description="Action if the table refuses a row: fail stops the batch, dead-letter stores the row separately"),
]
TxidColumn = Annotated[
    str | None,
    Field(description="Column that gets the txid of the row's batch, so that trident txid rewind can take rows back; "
                      "default: none"),
]  # fmt: skip


class SqlSettings(FactorySettings):
    """A state in one SQL table."""

    url: Annotated[
        str, AfterValidator(_url), Field(description="SQLAlchemy URL of the database, such as sqlite:///counts.db")
    ]
    table: str = Field(min_length=1, description="Name of the table; a missing table is created")


class SqlMap(MapSettings, SqlSettings):
    """Map states in one SQL table: a value for each key, updated by persistentAggregate."""

    factory: ClassVar[str] = "states.sql:SqlMapState"

    kind: MapKind
    key: Key | None = Field(
        None, description="Fields of the key; default: none, for the one value of a global aggregate"
    )
    value: Columns = Field(["count bigint"], description="Field of the value, or several fields if the value is a row")


class InsertIgnore(SqlSettings):
    """Rows with a key: each row is stored once, however often it arrives."""

    kinds: ClassVar[tuple[str, ...]] = ("insert-ignore",)
    factory: ClassVar[str] = "states.sql:InsertIgnoreState"

    key: Key = Field(description="Fields that identify a row; they must be a function of the input alone")
    columns: AllColumns = None
    onConflict: Literal["ignore", "fail", "report"] = Field(
        "ignore",
        description="Action if the key exists with other values: ignore drops the row, fail stops the batch, report "
        "drops, counts and logs it",
    )
    onBadRow: OnBadRow = "fail"
    txid: TxidColumn = None


class Append(SqlSettings):
    """Rows without a key: the rows of each batch are appended once."""

    kinds: ClassVar[tuple[str, ...]] = ("append",)
    factory: ClassVar[str] = "states.sql:AppendState"

    columns: AllColumns = None
    onBadRow: OnBadRow = "fail"
    txid: TxidColumn = None


class Batch(SqlSettings):
    """Rows of whole batches: the rows of a batch become visible at once or not at all."""

    kinds: ClassVar[tuple[str, ...]] = ("batch",)
    factory: ClassVar[str] = "states.sql:BatchState"

    columns: AllColumns = None
    key: Key | None = Field(
        None,
        description="Fields of the key: a row replaces the stored row with its key; default: none, every row is kept",
    )
    txid: TxidColumn = None


class Sequenced(SqlSettings):
    """Rows numbered by their sender: stored in order, each once, as in TCP."""

    kinds: ClassVar[tuple[str, ...]] = ("sequence",)
    factory: ClassVar[str] = "states.sql:SequenceState"

    sender: Key = Field(
        description="Fields that identify the sender; reserved names: first, held, last, missing, time, txid"
    )
    sequence: Key = Field(description="Field of the sender's number, an integer that the sender increments by one")
    columns: AllColumns = None
    onGap: Literal["hold", "report"] = Field(
        "hold",
        description="Action on a gap in the numbers: hold keeps later rows back until it closes, report applies them "
        "and reports it",
    )
    first: int = Field(1, description="First number of a new sender")


class Window(SqlSettings):
    """The store of one window: tuples that later windows may hold, in blocks."""

    kinds: ClassVar[tuple[str, ...]] = ("window",)
    factory: ClassVar[str] = "states.sql:SqlWindowsStoreFactory"
