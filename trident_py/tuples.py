"""Fields and tuples, which every other module uses."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any, ClassVar, NamedTuple

from .errors import DefinitionError, MissingValueError, TridentError

TYPES = (
    "bigint", "binary", "blob", "bool", "boolean", "byte", "char", "date", "decimal", "double", "float", "int",
    "integer", "json", "long", "numeric", "real", "short", "smallint", "string", "text", "timestamp", "timestamp_ntz",
    "tinyint", "varchar",
)  # fmt: skip
"""The types of fields and of states' columns. Not every place takes each of them."""
_TYPE = rf"(?:{'|'.join(TYPES)})(?:\s*\([^()]*\))?|(?:array|map|struct)\s*<.*>"
_TYPED = re.compile(rf"(.*?\S)\s+({_TYPE})\s*", re.DOTALL | re.IGNORECASE)
_QUOTED = re.compile(r"`((?:[^`]|``)*)`(?:\s+(.*\S))?\s*", re.DOTALL)


def _parse(declaration: str) -> tuple[str, str]:
    """Return the name and the type of a field; without a type, the whole text is the name, as in Storm."""
    if quoted := _QUOTED.fullmatch(declaration):
        return quoted[1].replace("``", "`"), (quoted[2] or "").lower()
    typed = _TYPED.fullmatch(declaration)
    return (typed[1], typed[2].lower()) if typed else (declaration, "")


def declare(name: str, ddl: str | None = None) -> str:
    """Return the text that `Fields` takes for this name and type. A name that is no plain word gets backquotes."""
    plain = f"{name} {ddl}" if ddl else name
    if not re.search(r"[\s,]", name) and _parse(plain) == (name, ddl or ""):
        return plain
    quoted = f"`{name.replace('`', '``')}`"
    return f"{quoted} {ddl}" if ddl else quoted


class Fields:
    """An ordered list of distinct field names, each with an optional Spark type in DDL form.

    ``Fields("word", "count")``, ``Fields("word string", "count bigint")`` or ``Fields(["word", "count"])``.
    A field without a type is untyped and carries any picklable value. A name may be any text: "", "first name", "a.b".
    Only one that ends like a type ("birth date") or has a comma needs Spark's backquotes: "`birth date`". Source in
    Storm: org.apache.storm.tuple.Fields.

    Raises DefinitionError for a name that is repeated, not a string, or has a comma outside backquotes.
    """

    __slots__ = ("names", "types")
    names: tuple[str, ...]
    types: dict[str, str]

    def __init__(self, *fields: str | Iterable[str]) -> None:
        declarations = fields[0] if len(fields) == 1 and not isinstance(fields[0], str) else fields
        if isinstance(declarations, Fields):
            self._fill(declarations.names, declarations.types)
            return
        types: dict[str, str] = {}
        names: list[str] = []
        for field in declarations:
            if not isinstance(field, str):
                raise DefinitionError(f"a field name must be a string, got {field!r}")
            name, ddl = _parse(field)
            if "," in name and not field.startswith("`"):
                raise DefinitionError(
                    f"{field!r} is one string, and so one field; give each field a string of its own, or put a name "
                    "that has a comma in backquotes"
                )
            names.append(name)
            if ddl:
                types[name] = ddl
        self._fill(names, types)

    def _fill(self, names: Sequence[str], types: Mapping[str, str | None]) -> None:
        if len(set(names)) < len(names):
            raise DefinitionError(f"duplicate field {next(name for name in names if names.count(name) > 1)!r}")
        object.__setattr__(self, "names", tuple(names))
        object.__setattr__(self, "types", {name: ddl for name in names if (ddl := types.get(name))})

    @classmethod
    def of_names(cls, names: Iterable[str], types: Mapping[str, str | None] | None = None) -> Fields:
        """Return fields of exactly these names, none of which is read as a declaration, with the types that are
        known."""
        made = object.__new__(cls)
        made._fill(list(names), types or {})
        return made

    @classmethod
    def of(cls, fields: FieldsLike | None) -> Fields:
        """Convert names to Fields. None means no fields (never all of them)."""
        if isinstance(fields, Fields):
            return fields
        if fields is None:
            return cls()
        return cls(fields) if isinstance(fields, str) else cls(tuple(fields))

    @classmethod
    def of_columns(cls, columns: FieldsLike) -> Fields:
        """Parse as `of` does a store's columns: behind a blank there is a type. Raises DefinitionError for ``b
        strng``."""
        fields = cls.of(columns)
        if isinstance(columns, Fields):
            return fields
        for text in [columns] if isinstance(columns, str) else columns:
            name, _, ddl = text.partition(" ")
            if ddl and text in fields.names:
                raise DefinitionError(
                    f"column {name!r}: unknown type {ddl!r}; there are: {', '.join(TYPES)}. If {text!r} is a name, "
                    "put it in backquotes"
                )
        return fields

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError("Fields are immutable")

    def __len__(self) -> int:
        return len(self.names)

    def __iter__(self) -> Iterator[str]:
        return iter(self.names)

    def __contains__(self, name: object) -> bool:
        return name in self.names

    def __getitem__(self, index: int) -> str:
        return self.names[index]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Fields) and self.names == other.names and self.types == other.types

    def __hash__(self) -> int:
        return hash(self.names)

    def __reduce__(self) -> tuple:
        return Fields, (tuple(self.declarations()),)

    def __repr__(self) -> str:
        return f"Fields({', '.join(map(repr, self.declarations()))})"

    def __str__(self) -> str:
        return f"[{', '.join(self.names)}]"

    def declarations(self) -> list[str]:
        """Return the fields as they were declared: the name, and the type if it has one."""
        return [declare(name, self.types.get(name)) for name in self.names]

    def get(self, index: int) -> str:
        return self.names[index]

    def size(self) -> int:
        return len(self.names)

    def toList(self) -> list[str]:
        return list(self.names)

    def index(self, name: str) -> int:
        return self.fieldIndex(name)

    def fieldIndex(self, name: str) -> int:
        try:
            return self.names.index(name)
        except ValueError:
            raise DefinitionError(f"{name} does not exist; the fields are {self}") from None

    def contains(self, field: str) -> bool:
        return field in self.names

    def select(self, selector: FieldsLike, tuple: Sequence[Any]) -> list[Any]:
        """Return the values of the selector's fields, of a tuple that has these fields. Raises DefinitionError for
        others."""
        return [tuple[self.fieldIndex(name)] for name in Fields.of(selector)]

    def concat(self, other: Fields) -> Fields:
        """Return these fields, then the others. Raises DefinitionError if a name is in both."""
        return Fields.of_names(self.names + other.names, {**other.types, **self.types})

    def only(self, names: Iterable[str]) -> Fields:
        """Return the named fields, in the order of the names, with their types."""
        return Fields.of_names(names, self.types)

    def without(self, names: Iterable[str]) -> Fields:
        """Return these fields without the named ones, in their order."""
        excluded = set(names)
        return self.only(name for name in self.names if name not in excluded)


FieldsLike = str | Sequence[str] | Fields


def Values(*values: Any) -> tuple:
    """Return the values of one tuple, as ``new Values(...)`` in Java."""
    return values


class TransactionAttempt(NamedTuple):
    """The batch id of spouts and aggregators: one attempt of one transaction.

    txid counts from 1 and is the same in every attempt; attemptId counts the attempts from 0.
    Source in Storm: org.apache.storm.trident.topology.TransactionAttempt.
    """

    txid: int
    attemptId: int

    def getTransactionId(self) -> int:
        return self.txid

    def getAttemptId(self) -> int:
        return self.attemptId

    def getId(self) -> int:
        return self.txid

    def __str__(self) -> str:
        return f"{self.txid}:{self.attemptId}"


class RichSpoutBatchId(NamedTuple):
    """The batch id of aggregators for a DRPC request: a number of its own, and no transaction.

    Source in Storm: org.apache.storm.trident.spout.RichSpoutBatchId.
    """

    id: int

    def getId(self) -> int:
        return self.id

    def getAttemptId(self) -> int:
        """Return 0: a request is not tried again."""
        return 0

    def __str__(self) -> str:
        return str(self.id)


BatchId = TransactionAttempt | RichSpoutBatchId


class _Missing:
    """The placeholder for a value that was never emitted. Reading it is an error; carrying it is not."""

    def __repr__(self) -> str:
        return "<missing>"

    def __reduce__(self) -> str:
        return "MISSING"


MISSING = _Missing()


class TridentTuple(tuple):
    """The input of an operation: a tuple of values with field names.

    Immutable. Equal to any tuple or list with the same values; it has the methods of a java.util.List that change
    nothing. Accessors neither cast nor convert. In tests, make one
    with ``TridentTuple.of(fields, values)``. Source in Storm: TridentTuple, TridentTupleView.
    """

    __slots__ = ()
    _fields: Fields = Fields()
    EMPTY_TUPLE: ClassVar[TridentTuple]

    @staticmethod
    def createFreshTuple(fields: FieldsLike, *values: Any) -> TridentTuple:
        """Build as `of` does, with the values as arguments or as one list. Storm's TridentTupleView has it, for
        tests."""
        return TridentTuple.of(fields, values[0] if len(values) == 1 and isinstance(values[0], list) else values)

    @staticmethod
    def of(fields: FieldsLike | None, values: Iterable[Any]) -> TridentTuple:
        """Return a tuple for tests. Raises DefinitionError if the numbers of fields and values differ."""
        named = Fields.of(fields)
        instance = tuple_class(named)(values)
        if len(instance) != len(named):
            raise DefinitionError(f"{len(instance)} values for {len(named)} fields {named}")
        return instance

    def __eq__(self, other: object) -> bool:
        return tuple.__eq__(self, tuple(other)) if isinstance(other, list) else tuple.__eq__(self, other)

    def __ne__(self, other: object) -> bool:
        return not self == other

    __hash__ = tuple.__hash__

    def __reduce__(self) -> tuple:
        return TridentTuple.of, (self._fields, tuple(self))

    def __repr__(self) -> str:
        return f"[{', '.join(map(str, self))}]"

    def size(self) -> int:
        return len(self)

    def isEmpty(self) -> bool:
        return len(self) == 0

    def get(self, index: int) -> Any:
        return self[index]

    def indexOf(self, value: Any) -> int:
        """Return the first place of the value, else -1. As in Java, 1, 1.0 and True are three values."""
        return next((n for n, item in enumerate(self) if type(item) is type(value) and item == value), -1)

    def lastIndexOf(self, value: Any) -> int:
        """Return the last place of the value, else -1."""
        return max((n for n, item in enumerate(self) if type(item) is type(value) and item == value), default=-1)

    def subList(self, start: int, end: int) -> list[Any]:
        return self.toArray()[start:end]

    def toArray(self) -> list[Any]:
        return list(self)

    def getFields(self) -> Fields:
        return self._fields

    def getValues(self) -> TridentTuple:
        return self

    def contains(self, field: str) -> bool:
        return field in self._fields

    def fieldIndex(self, field: str) -> int:
        return self._fields.fieldIndex(field)

    def select(self, fields: FieldsLike) -> TridentTuple:
        wanted = Fields.of(fields)
        return tuple_class(wanted)(self[self.fieldIndex(name)] for name in wanted)

    def getValue(self, index: int) -> Any:
        return self[index]

    def getValueByField(self, field: str) -> Any:
        return self[self._fields.fieldIndex(field)]


TridentTuple.EMPTY_TUPLE = TridentTuple()


class ShortTuple(TridentTuple):
    """A tuple that was emitted with too few values. Only reading a missing value raises MissingValueError."""

    __slots__ = ()

    def __getitem__(self, index: Any) -> Any:
        value = tuple.__getitem__(self, index)
        if value is MISSING:
            raise absence_error(self._fields[index])
        if isinstance(index, slice) and any(item is MISSING for item in value):
            return self._whole()[index]
        return value

    def __iter__(self) -> Iterator[Any]:
        return map(self.__getitem__, range(len(self)))

    def __reversed__(self) -> Iterator[Any]:
        """Needed because Python would take MissingValueError, an IndexError, for the end."""
        return reversed(self._whole())

    def __contains__(self, value: object) -> bool:
        return any(value is item or value == item for item in self)

    def __add__(self, other: Any) -> tuple:
        return self._whole() + other

    def __radd__(self, other: Any) -> tuple:
        return tuple(other) + self._whole()

    def __eq__(self, other: object) -> bool:
        return self._whole() == (tuple(other) if isinstance(other, list) else other)

    def __hash__(self) -> int:
        return hash(self._whole())

    def _whole(self) -> tuple:
        """Return all values. Raises MissingValueError if one is missing."""
        return tuple(iter(self))

    def __reduce__(self) -> tuple:
        return short_tuple, (self._fields, list(tuple.__iter__(self)))

    def __repr__(self) -> str:
        return f"[{', '.join(map(str, tuple.__iter__(self)))}]"


def absence_error(field: str) -> MissingValueError:
    """Return the error for reading this field."""
    return MissingValueError(
        f"a tuple was emitted with too few values: it has none for field {field!r}; "
        "emit as many values as there are output fields"
    )


def _accessors(name: str, kind: type, *subtypes: type) -> None:
    exact = frozenset((kind, type(None), *subtypes))

    def strange(value: Any, where: Any) -> Any:
        if isinstance(value, kind) and not isinstance(value, bool):
            return value
        raise TridentError(f"get{name}: {where!r} holds {value!r}, a {type(value).__name__}")

    def by_index(self: TridentTuple, index: int) -> Any:
        value = self[index]
        return value if type(value) in exact else strange(value, index)

    def by_field(self: TridentTuple, field: str) -> Any:
        value = self.getValueByField(field)
        return value if type(value) in exact else strange(value, field)

    setattr(TridentTuple, f"get{name}", by_index)
    setattr(TridentTuple, f"get{name}ByField", by_field)


for _name in ("Long", "Integer", "Short", "Byte"):
    _accessors(_name, int)
for _name in ("Double", "Float"):
    _accessors(_name, float)
_accessors("String", str)
_accessors("Boolean", bool)
_accessors("Binary", bytes, bytearray)


@lru_cache(maxsize=1024)
def tuple_class(fields: Fields) -> type[TridentTuple]:
    """Return the class of tuples with these fields. A tuple holds only its values; its class holds the names."""
    return type("TridentTuple", (TridentTuple,), {"__slots__": (), "_fields": fields})


@lru_cache(maxsize=1024)
def _short_class(fields: Fields) -> type[ShortTuple]:
    return type("TridentTuple", (ShortTuple,), {"__slots__": (), "_fields": fields})


def short_tuple(fields: Fields, values: Iterable[Any]) -> ShortTuple:
    """Return a tuple in which some values are MISSING."""
    return _short_class(fields)(values)
