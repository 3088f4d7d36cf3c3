"""Converts tuples into records: key, value, headers and topic. Named fields are converted as whole columns, a mapper's
tuples one by one.

A single field of text (UTF-8) or bytes is written as it is, any other single field as its JSON text. Several fields
become a JSON object with sorted names and no blanks, so equal values give equal bytes. None is null: a record without a
key, or a tombstone.
"""

from __future__ import annotations

import datetime
import decimal
import json
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property
from itertools import repeat
from json.encoder import encode_basestring
from typing import Any, ClassVar, NamedTuple, Protocol, runtime_checkable

import pyarrow as pa

from trident_py.errors import DefinitionError, StateError, TridentError, show
from trident_py.kafka.clients import Cluster
from trident_py.model.canonical import UnkeyableError, plain_column, to_plain
from trident_py.model.chunks import CHUNK_ROWS, Chunk, Column, TupleList, encodable, kinds_of, to_list
from trident_py.model.requirements import role
from trident_py.state import Location, Needs, Reading, StateFactory
from trident_py.tuples import Fields, FieldsLike, TridentTuple

from ...diagnostics import Finding
from ...rows import RowUpdater
from ..producer import TransactionalProducer
from ..sender import Sender
from ..settings import cluster_of, location_of, pairs
from ..topic_admin import look, partition_count


@dataclass(frozen=True, repr=False)
class RecordFactory(StateFactory):
    """The options that both factories share. Each adds its own, including ``partitions`` and ``settings``; ``cluster``
    and ``form`` are derived."""

    bootstrap: str
    topic: str
    value: FieldsLike | None = None
    key: FieldsLike | None = None
    headers: FieldsLike | None = None
    mapper: Any = None
    topicSelector: Any = None
    asJson: bool = False
    cluster: Cluster = field(init=False, compare=False)
    form: RecordForm = field(init=False, compare=False)
    shown: ClassVar[tuple[str, ...]] = ("value", "key", "headers", "mapper", "topicSelector")
    """The options that the repr names if they are set."""
    own_updater = RowUpdater()
    reading = Reading.NOTHING

    def __post_init__(self) -> None:
        """Raise DefinitionError for options that contradict each other."""
        form = RecordForm.of(
            self.topic, self.value, self.key, self.headers, self.mapper, self.topicSelector, self.asJson
        )
        options = vars(self)  # with those of the subclass
        settings = options["settings"]
        derived: dict[str, Any] = {"value": form.value, "key": form.key, "headers": form.headers, "form": form}
        derived |= {"settings": pairs(self.topic, settings), "cluster": cluster_of(self.bootstrap, settings)}
        for name, value in derived.items():
            object.__setattr__(self, name, value)
        partition_count(self.topic, options["partitions"])

    @property
    def needs(self) -> Needs:
        return self.cluster.needs

    @property
    def location(self) -> Location:
        return location_of(self.cluster, self.topic, "records")  # records of other states do not change its own

    @property
    def row_fields(self) -> Fields:
        return self.form.needed

    def check(self) -> Sequence[Finding]:
        """Look at the topic and write nothing. (A selector's topics are unknown before the start.)"""
        return look(self.cluster, self.topic, vars(self)["partitions"])

    def __repr__(self) -> str:
        options = "".join(f", {name}={value!r}" for name in self.shown if (value := vars(self)[name]))
        return f"{type(self).__name__}({self.bootstrap!r}, {self.topic!r}{options})"


Bytes = bytes | None


class UnwritableError(TridentError):
    """A value that cannot be written; ``row`` is its position in the chunk."""

    def __init__(self, row: int, reason: str) -> None:
        super().__init__(reason)
        self.row = row


def as_bytes(name: str, column: Column) -> list[Bytes]:
    """Text as UTF-8, bytes unchanged, None as None, any other value as its JSON text."""
    if not isinstance(column, list):
        if pa.types.is_string(column.type) or pa.types.is_large_string(column.type):
            return to_list(column.cast(pa.binary() if pa.types.is_string(column.type) else pa.large_binary()))
        if pa.types.is_binary(column.type) or pa.types.is_large_binary(column.type):
            return to_list(column)
    elif kinds_of(column) <= {bytes}:
        return column
    return [_one(name, row, value) for row, value in enumerate(plain_column(to_list(column)))]


def _one(name: str, row: int, value: Any) -> Bytes:
    if value is None or isinstance(value, bytes):
        return value
    if isinstance(value, bytearray | memoryview):
        return bytes(value)
    try:
        return (value if isinstance(value, str) else _text(value)).encode()
    except (TypeError, ValueError, RecursionError, UnkeyableError) as error:
        raise UnwritableError(row, f"{name} is {show(value)}, which cannot be written: {error}") from error


def json_texts(name: str, column: Column) -> list[str]:
    """Return the JSON text of every value of a column. Decimals and times are strings, to be exact."""
    values = plain_column(to_list(column))
    kinds = set(map(type, values))
    if len(kinds) == 1 and (simple := _TEXTS.get(kinds.pop())) is not None:
        with suppress(ValueError):  # told below, with its row
            return list(map(simple, values))
    texts = []
    for row, value in enumerate(values):
        try:
            texts.append(_text(value))
        except (TypeError, ValueError, RecursionError, UnkeyableError) as error:
            raise UnwritableError(row, f"{name} is {show(value)}, which has no JSON form: {error}") from error
    return texts


def json_objects(names: Sequence[str], columns: Sequence[list[str]], length: int) -> list[Bytes]:
    """Return a JSON object for each row, with ``names`` in their order; ``columns`` are their JSON texts."""
    if not names:
        return [b"{}"] * length
    form = "{" + ",".join(encode_basestring(name).replace("%", "%%") + ":%s" for name in names) + "}"
    objects = map(form.__mod__, zip(*columns, strict=True))
    try:
        return [text.encode() for text in objects]
    except UnicodeEncodeError as error:
        row = next(i for i, row in enumerate(zip(*columns, strict=True)) if not encodable("".join(row)))
        raise UnwritableError(row, f"a text is not valid UTF-8: {error}") from error


def _float(value: float) -> str:
    if not math.isfinite(value):
        raise ValueError("JSON has no such number")
    return float.__repr__(value)


_TEXTS: dict[type, Callable[[Any], str]] = {
    str: encode_basestring, int: int.__repr__, float: _float, bool: lambda value: "true" if value else "false",
    type(None): lambda value: "null",
}  # fmt: skip


def _text(value: Any) -> str:
    simple = _TEXTS.get(type(value))
    if simple is not None:
        return simple(value)
    return json.dumps(
        value, ensure_ascii=False, allow_nan=False, sort_keys=True, separators=(",", ":"), default=_other
    )


def _other(value: Any) -> Any:
    plain = to_plain(value)
    if plain is None or isinstance(plain, int | float | str):
        return plain
    if isinstance(value, datetime.date | datetime.time):
        return value.isoformat()
    if isinstance(value, decimal.Decimal):
        return str(value)
    raise TypeError(f"a {type(value).__name__}")


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

    @cached_property
    def needed(self) -> Fields:
        """The fields that tuples must have."""
        names = [name for fields in (self.key, self.value, self.headers) for name in fields or ()]
        if type(self.mapper) is FieldNameBasedTupleToKafkaMapper:
            names += [self.mapper.keyField, self.mapper.msgField]
        names += [self.selector] if isinstance(self.selector, str) else []
        return Fields.of_names(dict.fromkeys(names))

    def blocks(self, tuples: Sequence[TridentTuple]) -> Iterator[RecordBlock]:
        """Yield the records, some thousands at a time. Raises StateError for the first row it cannot convert."""
        done = 0
        for fields, chunk in chunks_of(tuples):
            if missing := self.needed.without(fields):
                raise StateError(f"topic {self.topic!r} needs the fields {missing}; the tuples have {fields}")
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
