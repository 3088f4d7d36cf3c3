"""Map states in Redis, in Storm's own bytes. Source in Storm: storm-redis, RedisMapState."""

from __future__ import annotations

import json
import math
import pickle
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, runtime_checkable

from states.rows import check_asked_behind
from states.rows import share_rows as shared_rows

from ....errors import DefinitionError, StateError, show
from ....model.canonical import UnkeyableError, identity, key_of, to_plain
from ....model.chunks import encodable
from ....model.json_text import parse_json
from ....model.requirements import role
from ....model.secrets import redact_url
from ....state import (
    BackingMap,
    ITupleCollection,
    NonTransactionalMap,
    OpaqueValue,
    SnapshottableMap,
    StateFactory,
    StatePlace,
    StateType,
    TransactionalValue,
)
from ....state.base import Key
from ....state.keys import ExactKey
from ....state.maps import MAPS
from ....state.serializers import SERIALIZERS, json_text
from ....tuples import Fields
from ..ledger import RedisFactory, RedisFence
from ..location import OURS, RedisPlace, check_hash
from ..server import check_url
from ..writer import RedisWriter, check_expiry


@role
@runtime_checkable
class KeyFactory(Protocol):
    """Makes the name in Redis of a map's key. Called where the state is read and written, for each key of a batch, and
    must be picklable. Two keys must not get one name. Source in Storm: KeyFactory."""

    def build(self, key: Sequence[Any]) -> str: ...


class DefaultKeyFactory:
    """A key of one text is its own name. Raises StateError for any other key, as Storm's does."""

    def build(self, key: Sequence[Any]) -> str:
        if len(key) != 1:
            raise StateError(
                f"key {list(key)!r} has {len(key)} fields, and the default KeyFactory takes one. Give the state a "
                "keyFactory, an object with build(key), that makes one text of them"
            )
        if not isinstance(key[0], str):
            raise StateError(
                f"key {list(key)!r} ({type(key[0]).__name__}): the default KeyFactory takes a text. Group by a text, "
                "or give the state a keyFactory, an object with build(key)"
            )
        return key[0]

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self)

    def __hash__(self) -> int:
        return hash(type(self))

    def __repr__(self) -> str:
        return "DefaultKeyFactory()"


def check_factory(factory: Any) -> KeyFactory:
    """Raise DefinitionError for something that is not a KeyFactory, or cannot travel to tasks."""
    if not isinstance(factory, KeyFactory):
        raise DefinitionError(f"keyFactory must be an object with build(key), got {factory!r}")
    try:
        pickle.dumps(factory)
    except Exception as error:
        raise DefinitionError(f"keyFactory {factory!r} cannot be pickled for the tasks: {error}") from error
    return factory


def name_of(factory: KeyFactory, key: Key, strings: bool) -> str:
    """Return the key's name in Redis. Raises StateError for a name that is no text, or one of ours."""
    name = factory.build([to_plain(part) for part in key])
    if not isinstance(name, str) or not encodable(name):
        raise StateError(f"key {list(key)!r}: {factory!r} made {name!r} of it, which is not text. Nothing is written")
    if strings and name.startswith(OURS):
        raise StateError(
            f"key {list(key)!r}: names that begin with {OURS!r} are those of the ledger. Keep the state in a hash"
        )
    return name


def text_of(kind: StateType, stored: Any) -> bytes:
    """Return a map's value in Storm's bytes. Raises StateError for a part that would come back as another value."""
    serialize: Callable[[Any], bytes] = SERIALIZERS[kind].serialize
    if kind is StateType.TRANSACTIONAL:
        return serialize(TransactionalValue(stored[0], exact(stored[1])))
    if kind is StateType.OPAQUE:
        return serialize(OpaqueValue(stored[0], exact(stored[1]), exact(stored[2])))
    return serialize(exact(stored))


def value_of(kind: StateType, text: bytes) -> Any:
    """Return a map's value from its bytes. Unlike Storm's serializers, it reads back a value that was written outside a
    batch, without a txid. Raises StateError for bytes that this kind of map has not written."""
    if kind is not StateType.NON_TRANSACTIONAL and text.startswith(b"[null,"):
        parts = parse_json(text)
        value: Any = (OpaqueValue if kind is StateType.OPAQUE else TransactionalValue)(*parts)
        return value
    return SERIALIZERS[kind].deserialize(text)


def _no_number(name: str) -> Any:
    raise ValueError(f"JSON has no {name}")


def exact(value: Any) -> Any:
    """Return the plain value, if JSON gives it back as it is. Raises StateError."""
    kind = type(value)
    short = kind is int and abs(value) < 1 << 64  # Python writes no number of more than 4,300 digits
    if short or value is None or kind is bool or (kind is float and math.isfinite(value)):
        return value
    try:
        plain = to_plain(value)
        text = json_text(plain)
        if encodable(text) and identity(json.loads(text, parse_constant=_no_number)) == identity(plain):
            return plain
        why = "it would change in JSON"
    except (UnkeyableError, ValueError, RecursionError) as error:
        why = str(error)
    raise StateError(
        f"value {show(value)[:80]} ({kind.__name__}): {why}. Nothing of the batch is written. Let the aggregator give "
        "numbers, texts, booleans, or lists and maps of them"
    )


@dataclass(frozen=True)
class MapLayout:
    """How a map lies in its place."""

    place: RedisPlace
    kind: StateType
    factory: KeyFactory
    expire: float

    def names(self, keys: Sequence[Key]) -> list[str]:
        return [name_of(self.factory, key, self.place.hash is None) for key in keys]

    def value(self, name: str, text: bytes | None) -> Any:
        """Return the stored value; None for an absent one. Raises StateError for bytes that this kind of map has not
        written."""
        if text is None:
            return None
        try:
            return value_of(self.kind, text)
        except (StateError, TypeError, ValueError) as error:
            raise StateError(
                f"{self.place.shown}, key {name!r}: {error}. The state is {self.kind.value}; give it the kind that the "
                "values were written with, or another place"
            ) from error

    def read_all(self) -> Iterator[tuple[tuple[str], Any]]:
        """Yield every name with its value."""
        for name, text in self.place.scan():
            yield (name,), self.value(name, text)


class RedisBackingMap(BackingMap):
    """The keys and values of one state partition.

    On replay: does nothing special; the map above it compares the txids.
    """

    def __init__(self, layout: MapLayout, writer: RedisWriter) -> None:
        self.layout = layout
        self.writer = writer
        self._keys: dict[str, tuple] = {}

    def begin(self, txid: int | None) -> None:
        """Raise ZombieError for an older driver, attempt or batch, FailedException if Redis is away."""
        self._keys = {}
        self.writer.begin(txid)

    def multiGet(self, keys: Sequence[Key]) -> list[Any]:
        names = self.layout.names(keys)
        return [self.layout.value(name, text) for name, text in zip(names, self.writer.read(names), strict=True)]

    def multiPut(self, keys: Sequence[Key], vals: Sequence[Any]) -> None:
        for name, key, value in zip(self.layout.names(keys), keys, vals, strict=True):
            own = key_of(key)
            if self._keys.setdefault(name, own) != own:
                raise StateError(
                    f"{self.layout.place.shown}: {self.layout.factory!r} gives two keys of the batch the name "
                    f"{name!r}, one of them {list(key)!r}. Nothing of the batch is written"
                )
            try:
                self.writer.pending[name] = text_of(self.layout.kind, value)
            except StateError as error:
                raise StateError(f"{self.layout.place.shown}, key {name!r}: {error}") from error

    def commit(self, txid: int | None) -> int:
        """Write all values in one step; return how many."""
        return self.writer.commit(txid, self.layout.expire)

    def discard(self) -> None:
        """Forget what the commit would write."""
        self.writer.discard()

    def rows(self) -> Iterator[tuple[tuple[str], Any]]:
        """Yield every name with its value, as this partition's commit will leave it."""
        pending = dict(self.writer.pending)
        for key, value in self.layout.read_all():
            if key[0] not in pending:
                yield key, value
        for name, text in pending.items():
            yield (name,), self.layout.value(name, text)


class StoredRedisValues:
    """The values of a map by their names in Redis, outside of any run. See `trident_py.state.roles.StoredValues`."""

    key = value = None

    def __init__(self, layout: MapLayout) -> None:
        self.layout = layout
        self.kind = layout.kind

    def put(self, keys: Sequence[Key], values: Sequence[Any]) -> None:
        writer = RedisWriter(self.layout.place, None, 0)
        names = self.layout.names(keys)
        writer.pending = {name: text_of(self.kind, value) for name, value in zip(names, values, strict=True)}
        writer.commit(None, self.layout.expire)

    def get(self, keys: Sequence[Key]) -> list[Any]:
        names = self.layout.names(keys)
        return [self.layout.value(name, text) for name, text in zip(names, self.layout.place.read(names), strict=True)]

    def holds(self, keys: Sequence[Key], values: Sequence[Any]) -> bool:
        return self.get(keys) == list(values)

    def count(self) -> int:
        return self.layout.place.count()

    def rows(self) -> Iterator[tuple[Key, Any]]:
        return self.layout.read_all()


GLOBAL_KEY = "$REDIS-MAP-STATE-GLOBAL"


class RedisMapPartition(SnapshottableMap, ITupleCollection):
    """One partition of a RedisMapState.

    On replay: transactional keeps what the batch has written, opaque starts again from the previous value,
    non-transactional applies the batch again.
    """

    def __init__(self, backing: RedisBackingMap, globalKey: str, partition: int, of: int) -> None:
        super().__init__(MAPS[backing.layout.kind].build(backing), (globalKey,))
        self.backing = backing
        self.partition = partition
        self.of = of

    def beginCommit(self, txid: int | None) -> None:
        self.backing.begin(txid)
        super().beginCommit(txid)

    def commit(self, txid: int | None) -> Any:
        super().commit(txid)
        return {"partition": self.partition, "written": self.backing.commit(txid)}

    def rollback(self, txid: int | None) -> None:
        super().commit(txid)
        self.backing.discard()

    def getTuples(self) -> Iterator[list[Any]]:
        plain = isinstance(self.delegate, NonTransactionalMap)
        for key, stored in shared_rows(self.backing.rows(), self.partition, self.of):
            yield [*key, stored if plain else stored[1]]


@dataclass(frozen=True, repr=False)
class RedisMapState(RedisFactory, StateFactory):
    """A map state in Redis; call `nonTransactional`, `transactional` or `opaque` to create it.

    ``hash``: the hash that holds the values (Storm's RedisDataTypeDescription HASH and its additional key); None: each
    value is a string of the database, which this state must then have for itself, but for hashes. ``keyFactory`` makes
    the names of keys that are not one text. ``globalKey`` is the name of a global aggregate's value.
    ``expireIntervalSec``: values are forgotten so long after their last update, a hash as a whole, as in Storm.

    The bytes are Storm's: `[txid,value]`, `[currTxid,curr,prev]` or the value, in JSON. So a Storm topology's values
    can be continued: the first start asks for ``topology.txid.base``.
    On replay: as its kind; every partition of a batch is one script, in which the ledger's fence is checked.
    Raises DefinitionError for options that cannot work; opens nothing.
    """

    url: str
    hash: str | None
    type: StateType
    keyFactory: KeyFactory = field(default_factory=DefaultKeyFactory)
    globalKey: str = GLOBAL_KEY
    expireIntervalSec: float = 0
    state_type = RedisMapPartition

    def __post_init__(self) -> None:
        check_url(self.url)
        check_factory(self.keyFactory)
        check_hash(self.hash)
        check_expiry(self.expireIntervalSec)

    @classmethod
    def nonTransactional(cls, url: str, hash: str | None = None, **more: Any) -> RedisMapState:
        """Store each value alone. A replayed batch counts twice."""
        return cls(url, hash, StateType.NON_TRANSACTIONAL, **more)

    @classmethod
    def transactional(cls, url: str, hash: str | None = None, **more: Any) -> RedisMapState:
        """Store each value with its txid. Exact if a replayed batch has the same content."""
        return cls(url, hash, StateType.TRANSACTIONAL, **more)

    @classmethod
    def opaque(cls, url: str, hash: str | None = None, **more: Any) -> RedisMapState:
        """Store each value with its txid and the previous value. Exact even if a replayed batch has other content, but
        for S12."""
        return cls(url, hash, StateType.OPAQUE, **more)

    @property
    def kind(self) -> str:
        return self.type.value

    @property
    def key_fields(self) -> Fields | None:
        return Fields("one text without a keyFactory") if type(self.keyFactory) is DefaultKeyFactory else None

    def makeState(self, conf: dict, metrics: Any, partitionIndex: int, numPartitions: int) -> RedisMapPartition:
        writer = RedisWriter(self.place, RedisFence.of(conf), partitionIndex)
        backing = RedisBackingMap(self._layout, writer)
        return RedisMapPartition(backing, self.globalKey, partitionIndex, numPartitions)

    def check_place(self, place: StatePlace) -> None:
        """Raise DefinitionError for a query that could not see all that its batch has written."""
        check_asked_behind(place, self.place.what)

    def stored(self) -> dict[tuple, Any]:
        """Return all values: (name,) -> plain value, TransactionalValue or OpaqueValue."""
        return {ExactKey(key): value for key, value in self._layout.read_all()}

    def open_values(self) -> StoredRedisValues:
        return StoredRedisValues(self._layout)

    def _last_txid(self) -> int:
        if self.type is StateType.NON_TRANSACTIONAL:
            return 0
        return max((int(value[0] or 0) for _, value in self._layout.read_all()), default=0)

    @property
    def _layout(self) -> MapLayout:
        return MapLayout(self.place, self.type, self.keyFactory, self.expireIntervalSec)

    def __repr__(self) -> str:
        where = "" if self.hash is None else f", hash={self.hash!r}"
        return f"RedisMapState({self.kind}, {redact_url(self.url)!r}{where})"
