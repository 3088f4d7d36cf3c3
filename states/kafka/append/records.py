"""Converts tuples into records: key, value, headers and topic. Named fields are converted as whole columns, a mapper's
tuples one by one.

A single field of text (UTF-8) or bytes is written as it is, any other single field as its JSON text. Several fields
become a JSON object with sorted names and no blanks, so equal values give equal bytes. None is null: a record without a
key, or a tombstone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import repeat
from typing import Any, NamedTuple, Protocol, runtime_checkable

from trident_py.errors import DefinitionError, StateError
from trident_py.model.chunks import CHUNK_ROWS, Chunk, TupleList
from trident_py.model.requirements import role
from trident_py.tuples import Fields, FieldsLike, TridentTuple

from ..producer import TransactionalProducer
from ..sender import Sender
from .json_codec import Bytes, UnwritableError, as_bytes, json_objects, json_texts

Headers = list[tuple[str, Bytes]]


@role
@runtime_checkable
class TupleToKafkaMapper(Protocol):
    """Storm's mapper."""

    def getKeyFromTuple(self, tuple: TridentTuple) -> Any: ...
    def getMessageFromTuple(self, tuple: TridentTuple) -> Any: ...


@role
@runtime_checkable
class KafkaTopicSelector(Protocol):
    """Storm's topic selector."""

    def getTopic(self, tuple: TridentTuple) -> Any: ...


class RecordBlock(NamedTuple):
    """Records in the order of their tuples; None where no record has any. ``topics`` None: the state's own topic."""

    values: list[Bytes]
    keys: list[Bytes] | None = None
    headers: list[Headers] | None = None
    topics: list[str] | None = None

    def send_to(self, target: Sender | TransactionalProducer, topic: str) -> None:
        """Queue the records in order. Raises what ``target`` raises."""
        if self.topics is None:
            target.send(topic, self.values, self.keys, self.headers)
            return
        for row, value in enumerate(self.values):
            more = {} if self.headers is None else {"headers": self.headers[row]}
            target.produce(self.topics[row], value, None if self.keys is None else self.keys[row], **more)


@dataclass(frozen=True)
class FieldNameBasedTupleToKafkaMapper:
    """Key and value from two fields, as in Storm."""

    keyField: str = "key"
    msgField: str = "message"

    def getKeyFromTuple(self, tuple: TridentTuple) -> Any:
        return tuple.getValueByField(self.keyField)

    def getMessageFromTuple(self, tuple: TridentTuple) -> Any:
        return tuple.getValueByField(self.msgField)


@dataclass(frozen=True)
class RecordForm:
    """How a state's tuples become records. A frozen value.

    ``value`` None: all fields but the key's. ``mapper`` replaces key, value and headers: a callable (tuple) -> (key,
    value) or (key, value, headers), or an object with Storm's getKeyFromTuple and getMessageFromTuple. ``selector``: a
    field's name, a callable (tuple) -> topic, or an object with getTopic; if it returns None, ``topic`` is used.
    ``json`` writes a single field as an object, too.
    """

    topic: str
    value: Fields | None = None
    key: Fields | None = None
    headers: Fields | None = None
    mapper: Any = None
    selector: Any = None
    json: bool = False

    @classmethod
    def of(
        cls, topic: str, value: FieldsLike | None = None, key: FieldsLike | None = None,
        headers: FieldsLike | None = None, mapper: Any = None, selector: Any = None, json: bool = False,
    ) -> RecordForm:  # fmt: skip
        """Raise DefinitionError for options that contradict each other."""
        if mapper is not None and not (value is key is headers is None):
            raise DefinitionError(f"topic {topic!r}: a mapper makes key, value and headers; do not set those beside it")
        if not (mapper is None or callable(mapper) or isinstance(mapper, TupleToKafkaMapper)):
            raise DefinitionError(
                f"topic {topic!r}: a mapper is a callable (tuple) -> (key, value), or has getKeyFromTuple and "
                f"getMessageFromTuple; got {mapper!r}"
            )
        if not (selector is None or callable(selector) or isinstance(selector, str | KafkaTopicSelector)):
            raise DefinitionError(
                f"topic {topic!r}: a topic selector is a field's name, a callable (tuple) -> topic, or has getTopic; "
                f"got {selector!r}"
            )
        options = {"value": value, "key": key, "headers": headers}
        fields = {name: None if names is None else Fields.of(names) for name, names in options.items()}
        if any(names is not None and len(names) == 0 for names in fields.values()):
            raise DefinitionError(
                f"topic {topic!r}: value, key and headers must each name at least one field, or be left out"
            )
        return cls(topic, **fields, mapper=mapper, selector=selector, json=json)

    def names(self) -> list[str]:
        """Return the fields that tuples must have."""
        names = [name for fields in (self.key, self.value, self.headers) for name in fields or ()]
        return [*names, self.selector] if isinstance(self.selector, str) else names

    def check(self, fields: Fields) -> None:
        """Raise DefinitionError for fields that the tuples do not have."""
        for name in self.names():
            if name not in fields:
                raise DefinitionError(f"topic {self.topic!r}: no field {name!r} in the tuples; they have: {fields}")

    def blocks(self, tuples: Sequence[TridentTuple]) -> Iterator[RecordBlock]:
        """Yield the records, some thousands at a time. Raises StateError for the first row it cannot convert."""
        done = 0
        for fields, chunk in chunks_of(tuples):
            try:
                yield self._block(fields, chunk)
            except UnwritableError as error:
                raise StateError(
                    f"topic {self.topic!r}, row {done + error.row} of the batch: {error}. Nothing of the batch is "
                    "written. Correct the row before the state, or declare its type"
                ) from error
            done += chunk.length

    def _block(self, fields: Fields, chunk: Chunk) -> RecordBlock:
        topics = self._topics(fields, chunk)
        if self.mapper is not None:
            return _map_tuples(self.mapper, chunk.tuples(fields))._replace(topics=topics)
        value = fields.without(self.key or ()) if self.value is None else self.value
        keys = None if self.key is None else _texts(chunk, self.key, self.json)
        headers = None if self.headers is None else _headers(chunk, self.headers)
        return RecordBlock(_texts(chunk, value, self.json), keys, headers, topics)

    def _topics(self, fields: Fields, chunk: Chunk) -> list[str] | None:
        if self.selector is None:
            return None
        if isinstance(self.selector, str):
            topics = chunk.pylist(self.selector)
        else:
            choose = self.selector.getTopic if isinstance(self.selector, KafkaTopicSelector) else self.selector
            topics = [choose(values) for values in chunk.tuples(fields)]  # not `map`, which a StopIteration would end
        for row, topic in enumerate(topics):
            if topic is not None and (not isinstance(topic, str) or not topic):
                raise UnwritableError(row, f"the topic selector names {topic!r}, which is not a topic")
        return [topic or self.topic for topic in topics]


def chunks_of(tuples: Sequence[TridentTuple]) -> Iterator[tuple[Fields, Chunk]]:
    """Yield the tuples as chunks of columns, each with its fields."""
    if isinstance(tuples, TupleList):
        for chunk in tuples.chunks:
            yield tuples.fields, chunk
        return
    for at in range(0, len(tuples), CHUNK_ROWS):
        rows = tuples[at : at + CHUNK_ROWS]
        fields = rows[0].getFields()
        yield fields, Chunk.of_rows(fields, rows)


def _texts(chunk: Chunk, fields: Fields, json: bool) -> list[Bytes]:
    if len(fields) == 1 and not json:
        return as_bytes(fields[0], chunk.columns[fields[0]])
    names = sorted(fields)
    return json_objects(names, [json_texts(name, chunk.columns[name]) for name in names], chunk.length)


def _headers(chunk: Chunk, fields: Fields) -> list[Headers]:
    columns = [zip(repeat(name), as_bytes(name, chunk.columns[name]), strict=False) for name in fields]
    return [list(row) for row in zip(*columns, strict=True)]


def _map_tuples(mapper: Any, tuples: list[TridentTuple]) -> RecordBlock:
    values, keys, headers = [], [], []
    call = _caller(mapper)
    for row, values_of_row in enumerate(tuples):
        record = call(values_of_row)
        if not isinstance(record, tuple | list) or len(record) not in (2, 3):
            raise UnwritableError(
                row, f"the mapper returned {record!r}; it must return (key, value) or (key, value, headers)"
            )
        key, value = as_bytes("the mapper's key", [record[0]]), as_bytes("the mapper's value", [record[1]])
        keys += key
        values += value
        headers.append(_pairs(record[2]) if len(record) == 3 and record[2] else [])
    return RecordBlock(values, keys, headers if any(headers) else None)


def _caller(mapper: Any) -> Callable[[TridentTuple], Any]:
    if isinstance(mapper, TupleToKafkaMapper):
        return lambda row: (mapper.getKeyFromTuple(row), mapper.getMessageFromTuple(row))
    function: Callable[[TridentTuple], Any] = mapper
    return function


def _pairs(headers: Any) -> Headers:
    pairs = headers.items() if isinstance(headers, Mapping) else headers
    return [(str(name), as_bytes(str(name), [value])[0]) for name, value in pairs]
