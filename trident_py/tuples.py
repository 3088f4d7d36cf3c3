"""Fields and tuples, which every other module uses."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from typing import Any, ClassVar, NamedTuple

from .errors import DefinitionError, MissingValueError, TridentError


def _without_brackets(text: str) -> str:
    """The text without its parts in brackets, as in ``decimal(10, 2)`` and ``map<string, array<int>>``."""
    shorter = re.sub(r"[(<][^()<>]*[)>]", "", text)
    return shorter if shorter == text else _without_brackets(shorter)


class Fields:
    """An ordered list of distinct field names, each with an optional Spark type in DDL form.

    ``Fields("word", "count")``, ``Fields("word string", "count bigint")`` or ``Fields(["word", "count"])``.
    A field without a type is untyped and carries any picklable value. Source in Storm:
    org.apache.storm.tuple.Fields.

    Raises DefinitionError for a name that is repeated, empty, not a string, or has a comma.
    """

    __slots__ = ("names", "types")
    names: tuple[str, ...]
    types: dict[str, str]

    def __init__(self, *fields: str | Iterable[str]) -> None:
        declarations = fields[0] if len(fields) == 1 and not isinstance(fields[0], str) else fields
        types: dict[str, str] = {}
        names: list[str] = []
        for field in declarations:
            if not isinstance(field, str) or not field.strip():
                raise DefinitionError(f"a field name must be a string that is not blank, got {field!r}")
            name, _, ddl = field.strip().partition(" ")
            if "," in field and "," in _without_brackets(field):
                raise DefinitionError(f"{field!r} is one string, and so one field; give each field a string of its own")
            if name in names:
                raise DefinitionError(f"duplicate field {name!r}")
            names.append(name)
            if ddl.strip():
                types[name] = ddl.strip().lower()
        object.__setattr__(self, "names", tuple(names))
        object.__setattr__(self, "types", types)

    @classmethod
    def of(cls, fields: FieldsLike | None) -> Fields:
        """Converts names to Fields. None means no fields (never all of them)."""
        if isinstance(fields, Fields):
            return fields
        if fields is None:
            return cls()
        return cls(fields) if isinstance(fields, str) else cls(tuple(fields))

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
        """The fields as they were declared: the name, and the type if it has one."""
        return [f"{name} {self.types[name]}" if name in self.types else name for name in self.names]

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
        """The values of the selector's fields, of a tuple that has these fields. Raises DefinitionError for others."""
        return [tuple[self.fieldIndex(name)] for name in Fields.of(selector)]

    def concat(self, other: Fields) -> Fields:
        """These fields, then the others. Raises DefinitionError if a name is in both."""
        return Fields(self.declarations() + other.declarations())

    def only(self, names: Iterable[str]) -> Fields:
        """The named fields, in the order of the names, with their types."""
        return Fields([f"{name} {self.types[name]}" if name in self.types else name for name in names])

    def without(self, names: Iterable[str]) -> Fields:
        """These fields without the named ones, in their order."""
        excluded = set(names)
        return self.only(name for name in self.names if name not in excluded)


FieldsLike = str | Sequence[str] | Fields


def Values(*values: Any) -> tuple:
    """The values of one tuple, as ``new Values(...)`` in Java."""
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
        """0: a request is not tried again."""
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

    Immutable. Equal to any tuple or list with the same values. Accessors neither cast nor convert. In tests, make one
    with ``TridentTuple.of(fields, values)``. Source in Storm: TridentTuple, TridentTupleView.
    """

    __slots__ = ()
    _fields: Fields = Fields()
    EMPTY_TUPLE: ClassVar[TridentTuple]

    @staticmethod
    def createFreshTuple(fields: FieldsLike, *values: Any) -> TridentTuple:
        """As `of`, with the values as arguments or as one list. Storm's TridentTupleView has it, for tests."""
        return TridentTuple.of(fields, values[0] if len(values) == 1 and isinstance(values[0], list) else values)

    @staticmethod
    def of(fields: FieldsLike | None, values: Iterable[Any]) -> TridentTuple:
        """A tuple for tests. Raises DefinitionError if the numbers of fields and values differ."""
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
            raise missing_value(self._fields[index])
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
        """All values. Raises MissingValueError if one is missing."""
        return tuple(iter(self))

    def __reduce__(self) -> tuple:
        return short_tuple, (self._fields, list(tuple.__iter__(self)))

    def __repr__(self) -> str:
        return f"[{', '.join(map(str, tuple.__iter__(self)))}]"


def missing_value(field: str) -> MissingValueError:
    """The error for reading this field."""
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
    """The class of tuples with these fields. A tuple holds only its values; its class holds the names."""
    return type("TridentTuple", (TridentTuple,), {"__slots__": (), "_fields": fields})


@lru_cache(maxsize=1024)
def _short_class(fields: Fields) -> type[ShortTuple]:
    return type("TridentTuple", (ShortTuple,), {"__slots__": (), "_fields": fields})


def short_tuple(fields: Fields, values: Iterable[Any]) -> ShortTuple:
    """A tuple in which some values are MISSING."""
    return _short_class(fields)(values)
