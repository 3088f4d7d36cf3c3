"""RedisState: one text for each key, from a mapper. Source in Storm: storm-redis, RedisState, RedisStateUpdater,
RedisStateQuerier, RedisStoreMapper, RedisLookupMapper, RedisDataTypeDescription."""

from __future__ import annotations

import enum
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ...errors import DefinitionError, StateError
from ...model.canonical import to_plain
from ...model.chunks import encodable
from ...model.secrets import redact_url
from ...operations.base import TridentCollector
from ...state import (
    QueryFunction,
    State,
    StateFactory,
    StateUpdater,
)
from ...state.serializers import json_text
from ...tuples import Fields, TridentTuple
from .ledger import RedisFactory, RedisFence
from .location import OURS, RedisPlace, check_hash
from .server import check_url
from .writer import RedisWriter, check_expiry


class RedisDataType(enum.Enum):
    """The types of Redis that a state can be kept in."""

    STRING = "STRING"
    HASH = "HASH"


@dataclass(frozen=True)
class RedisDataTypeDescription:
    """Where a mapper's values are: strings, or the hash ``additionalKey``."""

    dataType: RedisDataType = RedisDataType.STRING
    additionalKey: str | None = None

    def __post_init__(self) -> None:
        if self.dataType not in (RedisDataType.STRING, RedisDataType.HASH):
            raise DefinitionError(f"a Trident state is kept in a STRING or a HASH of Redis, not in {self.dataType!r}")
        if (self.additionalKey is not None) != (self.dataType is RedisDataType.HASH):
            raise DefinitionError("a HASH has an additionalKey, which is its name; a STRING has none")

    def getDataType(self) -> RedisDataType:
        return self.dataType

    def getAdditionalKey(self) -> str | None:
        return self.additionalKey


class RedisMapper(ABC):
    """What both mappers say: where the values are, and the key of a tuple, a text. Must be picklable."""

    @abstractmethod
    def getDataTypeDescription(self) -> RedisDataTypeDescription: ...

    @abstractmethod
    def getKeyFromTuple(self, tuple: TridentTuple) -> str: ...


class RedisStoreMapper(RedisMapper):
    """Called in the tasks, once for each tuple that is stored. On a replay it must give the same texts."""

    @abstractmethod
    def getValueFromTuple(self, tuple: TridentTuple) -> str: ...


class RedisLookupMapper(RedisMapper):
    """Called in the tasks, once for each tuple that asks. ``value`` is None if there is none; each list of values is
    emitted."""

    @abstractmethod
    def toTuple(self, input: TridentTuple, value: str | None) -> Sequence[Sequence[Any]]: ...


@dataclass(frozen=True)
class FieldMapper(RedisStoreMapper, RedisLookupMapper):
    """Both mappers by fields: the key's, and the value's, which are text or number. A lookup emits the text, or None.
    ``hash`` None: strings."""

    key: str
    value: str = ""
    hash: str | None = None

    def getDataTypeDescription(self) -> RedisDataTypeDescription:
        kind = RedisDataType.STRING if self.hash is None else RedisDataType.HASH
        return RedisDataTypeDescription(kind, self.hash)

    def getKeyFromTuple(self, tuple: TridentTuple) -> str:
        key: str = tuple.getValueByField(self.key)
        return key

    def getValueFromTuple(self, tuple: TridentTuple) -> str:
        value = to_plain(tuple.getValueByField(self.value))
        return json_text(value) if isinstance(value, int | float) else value

    def toTuple(self, input: TridentTuple, value: str | None) -> Sequence[Sequence[Any]]:
        return [[value]]


class RedisRows(State):
    """One partition of a RedisState.

    On replay: the same keys are written again, with the replay's values.
    """

    def __init__(self, writer: RedisWriter) -> None:
        self.writer = writer
        self._expire: float = 0

    @property
    def place(self) -> RedisPlace:
        return self.writer.place

    def beginCommit(self, txid: int | None) -> None:
        self._expire = 0
        self.writer.begin(txid)

    def commit(self, txid: int | None) -> Any:
        return {"partition": self.writer.partition, "written": self.writer.commit(txid, self._expire)}

    def rollback(self, txid: int | None) -> None:
        self.writer.discard()

    def store(self, mapper: RedisStoreMapper, tuples: Sequence[TridentTuple], expire: float) -> None:
        """Note the values for the commit; of several tuples of one key the last one's stays. Raises StateError for a
        key or a value that is no text."""
        check_mapper(mapper, self.place)
        self._expire = expire
        for row in tuples:
            name = self._text(mapper.getKeyFromTuple(row), "key", row, mapper)
            value = self._text(mapper.getValueFromTuple(row), "value", row, mapper)
            self.writer.pending[name] = value.encode()

    def lookup(self, mapper: RedisLookupMapper, tuples: Sequence[TridentTuple]) -> list[str | None]:
        """Return the texts under the tuples' keys, in their order; None for an absent one."""
        check_mapper(mapper, self.place)
        names = [self._text(mapper.getKeyFromTuple(row), "key", row, mapper) for row in tuples]
        return [None if text is None else text.decode("utf-8", "replace") for text in self.writer.read(names)]

    def _text(self, text: Any, what: str, row: TridentTuple, mapper: RedisMapper) -> str:
        if not isinstance(text, str) or not encodable(text):
            raise StateError(
                f"{self.place.shown}: {type(mapper).__name__} gave the {what} {text!r} ({type(text).__name__}) for "
                f"{tuple(row)!r}, which is not text. Nothing of the batch is written"
            )
        if what == "key" and self.place.hash is None and text.startswith(OURS):
            raise StateError(f"key {text!r}: names that begin with {OURS!r} are those of the ledger. Use a hash")
        return str(text)


def check_mapper(mapper: RedisMapper, place: RedisPlace) -> None:
    """Raise DefinitionError if the mapper's values are elsewhere than the state's."""
    wanted = mapper.getDataTypeDescription()
    if wanted.additionalKey != place.hash:
        argument = "no hash" if wanted.additionalKey is None else f"hash={wanted.additionalKey!r}"
        raise DefinitionError(
            f"{type(mapper).__name__} describes {wanted.dataType.value} {wanted.additionalKey or ''}".rstrip()
            + f", and the state is {place.what}: give RedisState {argument}"
        )


@dataclass(frozen=True)
class RedisStateUpdater(StateUpdater):
    """Writes each tuple as its mapper says. Emits nothing. On replay: the keys are written again."""

    storeMapper: RedisStoreMapper
    expireIntervalSec: float = 0

    calls = ("store",)

    def __post_init__(self) -> None:
        check_expiry(self.expireIntervalSec)
        self.storeMapper.getDataTypeDescription()

    def withExpire(self, expireIntervalSec: float) -> RedisStateUpdater:
        """Return the updater whose values are forgotten so many seconds after they were written; a hash as a whole."""
        return RedisStateUpdater(self.storeMapper, expireIntervalSec)

    def name_fields(self, factory: StateFactory) -> Fields:
        mapper = self.storeMapper
        return Fields.of_names(dict.fromkeys([mapper.key, mapper.value])) if type(mapper) is FieldMapper else Fields()

    def updateState(self, state: RedisRows, tuples: Sequence[TridentTuple], collector: TridentCollector) -> None:
        state.store(self.storeMapper, tuples, self.expireIntervalSec)


@dataclass(frozen=True)
class RedisStateQuerier(QueryFunction):
    """Asks for all keys of a batch at once, and emits what the mapper makes of each text."""

    lookupMapper: RedisLookupMapper

    calls = ("lookup",)

    def name_fields(self, factory: StateFactory) -> Fields:
        mapper = self.lookupMapper
        return Fields.of_names([mapper.key]) if type(mapper) is FieldMapper else Fields()

    def batchRetrieve(self, state: RedisRows, tuples: Sequence[TridentTuple]) -> Sequence[Any]:
        texts = state.lookup(self.lookupMapper, tuples)
        return [self.lookupMapper.toTuple(row, text) for row, text in zip(tuples, texts, strict=True)]

    def execute(self, tuple: TridentTuple, result: Any, collector: TridentCollector) -> None:
        for values in result:
            collector.emit(values)


@dataclass(frozen=True, repr=False)
class RedisState(RedisFactory, StateFactory):
    """One text for each key, in a hash or (``hash`` None) in the strings of a database.

    `RedisStateUpdater` writes it, `RedisStateQuerier` reads it, with mappers of one's own. With ``mapper``, a
    partitionPersist needs no updater; ``expireIntervalSec`` is then its expiry.
    On replay: the same keys are written again; every partition of a batch is one script, in which the ledger's fence is
    checked, so no older driver or attempt puts an older value back (in Storm it may).
    Raises DefinitionError for options that cannot work; opens nothing.
    """

    url: str
    hash: str | None = None
    mapper: RedisStoreMapper | None = None
    expireIntervalSec: float = 0

    kind = "upsert"
    state_type = RedisRows

    def __post_init__(self) -> None:
        check_url(self.url)
        check_expiry(self.expireIntervalSec)
        check_hash(self.hash)
        if self.mapper is not None:
            check_mapper(self.mapper, self.place)

    @classmethod
    def Factory(cls, url: str, hash: str | None = None) -> RedisState:
        """Build; Storm's name of the constructor."""
        return cls(url, hash)

    @property
    def own_updater(self) -> StateUpdater | None:
        return None if self.mapper is None else RedisStateUpdater(self.mapper, self.expireIntervalSec)

    def makeState(self, conf: dict, metrics: Any, partitionIndex: int, numPartitions: int) -> RedisRows:
        return RedisRows(RedisWriter(self.place, RedisFence.of(conf), partitionIndex))

    def stored(self) -> dict[tuple, Any]:
        """Return all texts: (name,) -> text."""
        return {(name,): text.decode("utf-8", "replace") for name, text in self.place.scan()}

    def __repr__(self) -> str:
        where = "" if self.hash is None else f", hash={self.hash!r}"
        return f"RedisState({redact_url(self.url)!r}{where})"
