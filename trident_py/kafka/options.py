"""The options of a `KafkaSpout`: cluster, topics, kind, fields, formats and limits, checked when it is made."""

from __future__ import annotations

import dataclasses
import importlib.util
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
KNOWN = (*STORM, "headers", "timestamp")

STRATEGIES = ("EARLIEST", "LATEST", "UNCOMMITTED_EARLIEST", "UNCOMMITTED_LATEST", "TIMESTAMP")
ISOLATION = ("read_committed", "read_uncommitted")
# Settings that the spout decides, and the option that replaces each.
OURS = {
    "auto.offset.reset": "firstPollOffsetStrategy", "isolation.level": "isolationLevel", "group.id": "groupId",
    "bootstrap.servers": "bootstrap", "enable.auto.commit": "groupId with shareOffsets",
    "enable.auto.offset.store": "groupId with shareOffsets", "enable.partition.eof": "nothing: it is on",
    "error_cb": "the logger trident_py.kafka.librdkafka", "logger": "the logger trident_py.kafka.librdkafka",
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
        if importlib.util.find_spec("confluent_kafka") is None:
            raise DefinitionError("KafkaSpout needs the client of Kafka: pip install 'trident-py[kafka]'")
        put = object.__setattr__
        put(self, "cluster", Cluster.of(self.bootstrap, self.settings))
        put(self, "settings", self.cluster.settings)
        put(self, "keyFormat", format_of(self.key, "key"))
        put(self, "valueFormat", format_of(self.value, "value"))
        put(self, "topics", self._names())
        self._check_choices()
        self._check_numbers()
        self._check_offsets()
        put(self, "output", self._declared())

    def __repr__(self) -> str:
        """Shows the options that differ from their defaults; never the settings."""
        options = [each for each in dataclasses.fields(self)[1:] if each.repr]
        said = [
            f"{each.name}={given!r}"
            for each in options
            if (given := vars(self)[each.name]) not in (each.default, ())
        ]
        return f"KafkaSpout({', '.join([self.bootstrap, *said])})"

    def __hash__(self) -> int:
        return hash((self.bootstrap, self.topics, self.pattern, self.kind))

    def _names(self) -> tuple[str, ...]:
        given = (self.topics,) if isinstance(self.topics, str) else tuple(self.topics or ())
        if bool(given) == (self.pattern is not None):
            raise DefinitionError("KafkaSpout: name the topics, or give pattern=, a regular expression for their names")
        for name in given:
            if not isinstance(name, str) or not re.fullmatch(r"[A-Za-z0-9._-]{1,249}", name):
                raise DefinitionError(
                    f"KafkaSpout: {name!r} is no name of a topic; for a regular expression say pattern="
                )
        if self.pattern is not None:
            try:
                re.compile(self.pattern)
            except (re.error, TypeError) as error:
                raise DefinitionError(
                    f"KafkaSpout: pattern={self.pattern!r} is no regular expression: {error}"
                ) from error
        return tuple(dict.fromkeys(given))

    def _check_choices(self) -> None:
        for name, given, among in (
            ("kind", self.kind, (TRANSACTIONAL, OPAQUE)),
            ("onBadRecord", self.onBadRecord, ("fail", "skip")),
            ("firstPollOffsetStrategy", self.firstPollOffsetStrategy, STRATEGIES),
            ("isolationLevel", self.isolationLevel, ISOLATION),
            ("endingOffsets", self.endingOffsets, (None, "latest")),
        ):
            if given not in among:
                raise DefinitionError(f"KafkaSpout: no {name} {given!r}; there are: {', '.join(map(str, among))}")
        for name in dict(self.cluster.settings):
            if name in OURS:
                raise DefinitionError(f"KafkaSpout: the setting {name} is the spout's; say it with {OURS[name]}")

    def _check_numbers(self) -> None:
        for name, given, least in (
            ("maxRecordsPerBatch", self.maxRecordsPerBatch, 1),
            ("maxRecordsPerSecond", self.maxRecordsPerSecond, 1),
            ("startTimestamp", self.startTimestamp, 0),
        ):
            if given is None and name != "maxRecordsPerBatch":
                continue
            if isinstance(given, bool) or not isinstance(given, int) or given < least:
                raise DefinitionError(f"KafkaSpout: {name} is a whole number from {least} on, got {given!r}")

    def _check_offsets(self) -> None:
        if (self.firstPollOffsetStrategy == "TIMESTAMP") != (self.startTimestamp is not None):
            raise DefinitionError(
                'KafkaSpout: firstPollOffsetStrategy="TIMESTAMP" and startTimestamp (ms since 1970) go together'
            )
        if self.shareOffsets and not self.groupId:
            raise DefinitionError("KafkaSpout: shareOffsets needs groupId, the group whose offsets these are")

    def _declared(self) -> Fields:
        """Returns the output fields. Sets ``columns``, the parts of records to read."""
        if self.translator is not None:
            return self._translated()
        names = STORM if self.fields is None else tuple(Fields.of(self.fields))
        strange = [name for name in names if name not in KNOWN]
        if strange or not names:
            raise DefinitionError(
                f"KafkaSpout: no field {strange[0] if strange else ''!r}; there are: {', '.join(KNOWN)}. "
                "Json(...) and translator= make others"
            )
        object.__setattr__(self, "columns", names)
        object.__setattr__(self, "fields", names)
        formats = {"key": self.keyFormat, "value": self.valueFormat}
        declared = [formats[name].declared(name) if name in formats else [TYPES[name]] for name in names]
        return Fields([one for several in declared for one in several])

    def _translated(self) -> Fields:
        made = Fields.of(self.fields)
        given = self.translator
        functions = list(given.values()) if isinstance(given, Mapping) else [given]
        if not len(made) or not functions or not all(map(callable, functions)):
            raise DefinitionError(
                "KafkaSpout: a translator is a function, or a dict of them by topic, with fields= it makes"
            )
        missing = [name for name in self.topics or () if isinstance(given, Mapping) and not {name, None} & set(given)]
        if missing:
            raise DefinitionError(f"KafkaSpout: no translator for topic {missing[0]!r}; None stands for all others")
        object.__setattr__(self, "columns", ())
        object.__setattr__(self, "fields", made)
        return made
