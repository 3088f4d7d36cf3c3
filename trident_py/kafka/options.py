"""The options of a `KafkaSpout`: cluster, topics, kind, fields, formats and limits, checked when it is made."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from ..errors import DefinitionError
from ..spouts.interfaces import OPAQUE, TRANSACTIONAL
from ..tuples import Fields, FieldsLike
from .clients import Cluster
from .formats import Format, format_of

TYPES = {
    "topic": "topic string", "partition": "partition int", "offset": "offset bigint",
    "headers": "headers", "timestamp": "timestamp timestamp",
}  # fmt: skip
STORM = ("topic", "partition", "offset", "key", "value")
RECORD_FIELDS = (*STORM, "headers", "timestamp")

STRATEGIES = ("EARLIEST", "LATEST", "UNCOMMITTED_EARLIEST", "UNCOMMITTED_LATEST", "TIMESTAMP")
ISOLATION = ("read_committed", "read_uncommitted")
# Settings that the spout decides, and what to do instead.
OURS = {
    "auto.offset.reset": "use firstPollOffsetStrategy", "isolation.level": "use isolationLevel",
    "group.id": "use groupId", "bootstrap.servers": "use bootstrap",
    "metadata.broker.list": "use bootstrap",
    "enable.auto.commit": "use groupId with shareOffsets", "enable.auto.offset.store": "use groupId with shareOffsets",
    "enable.partition.eof": "it is always on", "error_cb": "use the logger trident_py.kafka.librdkafka",
    "logger": "use the logger trident_py.kafka.librdkafka",
}  # fmt: skip


@dataclass(frozen=True)
class KafkaOptions:
    """The options of `KafkaSpout`, which documents them. Driver and tasks share them."""

    bootstrap: str
    topics: str | Iterable[str] | None = None
    pattern: str | None = None
    kind: str = TRANSACTIONAL
    fields: FieldsLike | None = None
    key: Any = "bytes"
    value: Any = "bytes"
    translator: Callable[..., Any] | Mapping[Any, Callable[..., Any]] | None = None
    onBadRecord: str = "fail"
    firstPollOffsetStrategy: str = "UNCOMMITTED_EARLIEST"
    startTimestamp: int | None = None
    groupId: str | None = None
    shareOffsets: bool = False
    isolationLevel: str = "read_committed"
    maxRecordsPerBatch: int = 100_000
    maxRecordsPerSecond: int | None = None
    endingOffsets: str | None = None
    settings: Mapping[str, Any] | None = field(default=None, repr=False)
    cluster: Cluster = field(init=False, repr=False)
    output: Fields = field(init=False, repr=False)
    columns: tuple[str, ...] = field(init=False, repr=False)
    keyFormat: Format = field(init=False, repr=False)
    valueFormat: Format = field(init=False, repr=False)

    def __post_init__(self) -> None:
        put = object.__setattr__
        put(self, "cluster", Cluster.of(self.bootstrap, self.settings))
        put(self, "settings", self.cluster.settings)
        put(self, "keyFormat", format_of(self.key, "key"))
        put(self, "valueFormat", format_of(self.value, "value"))
        put(self, "topics", self._names())
        self._check_choices()
        self._check_numbers()
        self._check_offsets()
        put(self, "output", self._declare_fields())

    def __repr__(self) -> str:
        """Show the options that differ from their defaults; never the settings."""
        options = [
            f"{option.name}={value!r}"
            for option in dataclasses.fields(self)[1:]
            if option.repr and (value := vars(self)[option.name]) not in (option.default, ())
        ]
        return f"KafkaSpout({', '.join([self.bootstrap, *options])})"

    def __hash__(self) -> int:
        return hash((self.bootstrap, self.topics, self.pattern, self.kind))

    def _names(self) -> tuple[str, ...]:
        names = (self.topics,) if isinstance(self.topics, str) else tuple(self.topics or ())
        if bool(names) == (self.pattern is not None):
            raise DefinitionError("KafkaSpout: set either topics or pattern=, a regular expression for topic names")
        for name in names:
            if not isinstance(name, str) or not re.fullmatch(r"[A-Za-z0-9._-]{1,249}", name):
                raise DefinitionError(
                    f"KafkaSpout: {name!r} is not a topic name; for a regular expression use pattern="
                )
        if self.pattern is not None:
            try:
                re.compile(self.pattern)
            except (re.error, TypeError) as error:
                raise DefinitionError(
                    f"KafkaSpout: pattern={self.pattern!r} is not a regular expression: {error}"
                ) from error
        return tuple(dict.fromkeys(names))

    def _check_choices(self) -> None:
        for name, value, choices in (
            ("kind", self.kind, (TRANSACTIONAL, OPAQUE)),
            ("onBadRecord", self.onBadRecord, ("fail", "skip")),
            ("firstPollOffsetStrategy", self.firstPollOffsetStrategy, STRATEGIES),
            ("isolationLevel", self.isolationLevel, ISOLATION),
            ("endingOffsets", self.endingOffsets, (None, "latest")),
        ):
            if value not in choices:
                raise DefinitionError(
                    f"KafkaSpout: {name} must be one of {', '.join(map(str, choices))}; got {value!r}"
                )
        for name in dict(self.cluster.settings):
            if name in OURS:
                raise DefinitionError(f"KafkaSpout: the setting {name} cannot be changed: {OURS[name]}")

    def _check_numbers(self) -> None:
        for name, number, least in (
            ("maxRecordsPerBatch", self.maxRecordsPerBatch, 1),
            ("maxRecordsPerSecond", self.maxRecordsPerSecond, 1),
            ("startTimestamp", self.startTimestamp, 0),
        ):
            if number is None and name != "maxRecordsPerBatch":
                continue
            if isinstance(number, bool) or not isinstance(number, int) or number < least:
                raise DefinitionError(f"KafkaSpout: {name} must be an integer of at least {least}, got {number!r}")
            if number >= 1 << 63:
                raise DefinitionError(f"KafkaSpout: {name} must be an integer of at most 64 bits, got {number!r}")

    def _check_offsets(self) -> None:
        if (self.firstPollOffsetStrategy == "TIMESTAMP") != (self.startTimestamp is not None):
            raise DefinitionError(
                'KafkaSpout: set firstPollOffsetStrategy="TIMESTAMP" and startTimestamp (ms since 1970) together'
            )
        if self.shareOffsets and not self.groupId:
            raise DefinitionError("KafkaSpout: shareOffsets needs groupId, the group that the offsets belong to")

    def _declare_fields(self) -> Fields:
        """Return the output fields. Sets ``columns``, the parts of records to read."""
        if self.translator is not None:
            return self._translate_fields()
        names = STORM if self.fields is None else tuple(Fields.of(self.fields))
        unknown = [name for name in names if name not in RECORD_FIELDS]
        if unknown or not names:
            raise DefinitionError(
                f"KafkaSpout: no field {unknown[0] if unknown else ''!r}; a record has: {', '.join(RECORD_FIELDS)}. "
                "Json(...) and translator= define others"
            )
        object.__setattr__(self, "columns", names)
        object.__setattr__(self, "fields", names)
        formats = {"key": self.keyFormat, "value": self.valueFormat}
        declared = [formats[name].declare(name) if name in formats else [TYPES[name]] for name in names]
        return Fields([field for fields in declared for field in fields])

    def _translate_fields(self) -> Fields:
        fields = Fields.of(self.fields)
        functions = self.translator if isinstance(self.translator, Mapping) else {None: self.translator}
        if not len(fields) or not functions or not all(map(callable, functions.values())):
            raise DefinitionError(
                "KafkaSpout: translator must be a function, or a dict of functions by topic, and fields= must name the "
                "values that it returns"
            )
        missing = [name for name in self.topics or () if not {name, None} & set(functions)]
        if missing:
            raise DefinitionError(
                f"KafkaSpout: no translator for topic {missing[0]!r}; the key None covers all other topics"
            )
        object.__setattr__(self, "columns", ())
        object.__setattr__(self, "fields", fields)
        return fields
