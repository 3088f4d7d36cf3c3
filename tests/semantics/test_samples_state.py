"""The code samples of Storm's document on Trident state, line by line, in its order, with the results it gives.

Source: docs/Trident-state.md of Apache Storm. `test_sample_list.py` holds the list.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from states.sql import SqlMapState
from trident_py import Fields, TridentTopology
from trident_py.operations.builtin import Count, Sum
from trident_py.state import (
    BackingMap,
    BaseQueryFunction,
    BaseStateUpdater,
    CachedMap,
    CombinerValueUpdater,
    JSONNonTransactionalSerializer,
    JSONOpaqueSerializer,
    JSONTransactionalSerializer,
    Location,
    MapState,
    NonTransactionalMap,
    OpaqueMap,
    OpaqueValue,
    Snapshottable,
    SnapshottableMap,
    State,
    StateFactory,
    TransactionalMap,
    TransactionalValue,
)
from trident_py.testing import Crashing, LoggingBackingMap, MemoryMapState, collect, stored

from .sample_parts import Split, counted, spout_of
from .support import Batches, bag, bags, both, current, run

MAN, DOG, APPLE = ["man"], ["dog"], ["apple"]


class Table(BackingMap):
    """A database with one value for each key."""

    def __init__(self, rows: dict[str, Any]) -> None:
        self.rows = rows

    def multiGet(self, keys: Any) -> list[Any]:
        return [self.rows.get(key) for (key,) in keys]

    def multiPut(self, keys: Any, vals: Any) -> None:
        self.rows.update({key: val for (key,), val in zip(keys, vals, strict=True)})


def updates(*partials: int) -> list[Any]:
    return [CombinerValueUpdater(Count(), partial) for partial in partials]


def counts(cluster: Any, kind: str, batches: list[int], replays: dict[int, int] | None = None) -> Any:
    """The value of a word that comes so often in each batch. The batches in ``replays`` fail behind their commit, and
    come again with so many."""
    factory = LoggingBackingMap.Factory(kind)
    again = {txid: [("word",)] * n for txid, n in (replays or {}).items()}
    spout = Batches("word", [[("word",)] * n for n in batches], again if kind == "opaque" else None)
    topology = TridentTopology()
    state = Crashing(factory, "afterCommit", {(txid, 0) for txid in again})
    topology.newStream("s", spout).groupBy("word").persistentAggregate(state, Count(), "count")
    run(cluster, topology)
    return stored(factory)[("word",)]


def test_d16_the_table_of_a_transactional_state() -> None:
    apple = TransactionalValue(2, 10)
    table = Table({"man": TransactionalValue(1, 3), "dog": TransactionalValue(3, 4), "apple": apple})
    state = TransactionalMap.build(table)
    state.beginCommit(3)
    assert state.multiUpdate([MAN, DOG], updates(2, 1)) == [5, 4]
    state.commit(3)
    assert table.rows == {"man": TransactionalValue(3, 5), "dog": TransactionalValue(3, 4), "apple": apple}


@both
def test_d16_a_transactional_state_skips_what_the_txid_has_written(cluster: Any) -> None:
    assert counts(cluster, "transactional", [3, 2], {2: 2}) == TransactionalValue(2, 5)


def test_d17_the_table_of_an_opaque_state() -> None:
    for txid, expected in ((3, OpaqueValue(3, 6, 4)), (2, OpaqueValue(2, 3, 1))):
        table = Table({"man": OpaqueValue(2, 4, 1)})
        state = OpaqueMap.build(table)
        state.beginCommit(txid)
        state.multiUpdate([MAN], updates(2))
        state.commit(txid)
        assert table.rows == {"man": expected}


@both
def test_d17_an_opaque_state_of_the_next_txid(cluster: Any) -> None:
    assert counts(cluster, "opaque", [1, 3]) == OpaqueValue(2, 4, 1)
    assert counts(cluster, "opaque", [1, 3, 2]) == OpaqueValue(3, 6, 4)


@both
def test_d17_an_opaque_state_of_the_same_txid(cluster: Any) -> None:
    assert counts(cluster, "opaque", [1, 3], {2: 2}) == OpaqueValue(2, 3, 1)


@both
def test_d18_the_word_count_in_an_opaque_state(cluster: Any, tmp_path: Path) -> None:
    """Storm's MemcachedState.opaque(serverLocations) is a project of its own; a SQL table takes its place."""
    factory = SqlMapState.opaque(f"sqlite:///{tmp_path}/c.db", "c", key="word string", value="count bigint")
    topology = TridentTopology()
    (
        topology.newStream("spout1", spout_of(4))
        .each(Fields("sentence"), Split(), Fields("word"))
        .groupBy(Fields("word"))
        .persistentAggregate(factory, Count(), Fields("count"))
    )
    run(cluster, topology)
    assert current(stored(factory)) == counted(4)


class Database:
    """The home-grown database of user locations: a file, which each process opens."""

    def __init__(self, path: str) -> None:
        self.path = path
        with self.opened() as db:
            db.execute("create table if not exists locations (user integer primary key, location text)")

    @contextmanager
    def opened(self) -> Iterator[sqlite3.Connection]:
        with closing(sqlite3.connect(self.path, timeout=30)) as db, db:
            yield db


class LocationDB(State):
    def __init__(self, path: str) -> None:
        self.database = Database(path)

    def beginCommit(self, txid: int | None) -> None:
        pass

    def commit(self, txid: int | None) -> None:
        pass

    def setLocation(self, userId: int, location: str) -> None:
        with self.database.opened() as db:
            db.execute("insert or replace into locations values (?, ?)", (userId, location))

    def getLocation(self, userId: int) -> str | None:
        with self.database.opened() as db:
            row = db.execute("select location from locations where user = ?", (userId,)).fetchone()
        return row and row[0]


class BulkLocationDB(State):
    def __init__(self, path: str) -> None:
        self.database = Database(path)

    def beginCommit(self, txid: int | None) -> None:
        pass

    def commit(self, txid: int | None) -> None:
        pass

    def setLocationsBulk(self, userIds: list[int], locations: list[str]) -> None:
        with self.database.opened() as db:
            db.executemany("insert or replace into locations values (?, ?)", zip(userIds, locations, strict=True))

    def bulkGetLocations(self, userIds: list[int]) -> list[str | None]:
        with self.database.opened() as db:
            found = dict(db.execute(f"select user, location from locations where user in ({str(userIds)[1:-1]})"))
        return [found.get(userId) for userId in userIds]


@dataclass(frozen=True)
class LocationDBFactory(StateFactory):
    path: str
    bulk: bool = False

    @property
    def location(self) -> Location:
        return Location(frozenset([self.path]), frozenset(["locations"]))

    def makeState(self, conf: dict, metrics: Any, partitionIndex: int, numPartitions: int) -> State:
        return BulkLocationDB(self.path) if self.bulk else LocationDB(self.path)


def locations_of(path: Path, bulk: bool = False) -> LocationDBFactory:
    """A database in which users 1 and 2 have a location."""
    LocationDB(str(path)).setLocation(1, "Oslo")
    BulkLocationDB(str(path)).setLocationsBulk([2], ["Lima"])
    return LocationDBFactory(str(path), bulk)


def test_d19_a_state_and_its_factory(tmp_path: Path) -> None:
    for bulk in (False, True):
        state = locations_of(tmp_path / "users.db", bulk).makeState({}, None, 0, 1)
        state.beginCommit(1)
        state.commit(1)
        assert isinstance(state, BulkLocationDB if bulk else LocationDB)
    assert LocationDB(str(tmp_path / "users.db")).getLocation(1) == "Oslo"


class QueryLocation(BaseQueryFunction):
    def batchRetrieve(self, state: LocationDB, inputs: Any) -> list[Any]:
        ret = []
        for input in inputs:
            ret.append(state.getLocation(input.getLong(0)))
        return ret

    def execute(self, tuple: Any, location: Any, collector: Any) -> None:
        collector.emit([location])


class BulkQueryLocation(BaseQueryFunction):
    def batchRetrieve(self, state: BulkLocationDB, inputs: Any) -> list[Any]:
        userIds = []
        for input in inputs:
            userIds.append(input.getLong(0))
        return state.bulkGetLocations(userIds)

    def execute(self, tuple: Any, location: Any, collector: Any) -> None:
        collector.emit([location])


def located(cluster: Any, factory: LocationDBFactory, query: Any) -> dict[int, list[str]]:
    topology = TridentTopology()
    locations = topology.newStaticState(factory)
    spout = Batches(Fields("userid"), [[(1,), (2,), (3,)], [(2,)]])
    found = topology.newStream("myspout", spout).stateQuery(locations, Fields("userid"), query, Fields("location"))
    collect(found, "found")
    return bags(run(cluster, topology).collected("found"))


LOCATED = {1: bag([(1, "Oslo"), (2, "Lima"), (3, None)]), 2: bag([(2, "Lima")])}


@both
def test_d20_a_query_of_one_location_at_a_time(cluster: Any, tmp_path: Path) -> None:
    assert located(cluster, locations_of(tmp_path / "users.db"), QueryLocation()) == LOCATED


@both
def test_d20_a_query_in_bulk(cluster: Any, tmp_path: Path) -> None:
    assert located(cluster, locations_of(tmp_path / "users.db", bulk=True), BulkQueryLocation()) == LOCATED


class LocationUpdater(BaseStateUpdater):
    def updateState(self, state: BulkLocationDB, tuples: Any, collector: Any) -> None:
        ids = []
        locations = []
        for t in tuples:
            ids.append(t.getLong(0))
            locations.append(t.getString(1))
        state.setLocationsBulk(ids, locations)


@both
def test_d21_partition_persist_of_locations(cluster: Any, tmp_path: Path) -> None:
    topology = TridentTopology()
    locationsSpout = Batches(Fields("userid", "location"), [[(1, "Rome"), (3, "Bern")], [(3, "Cusco")]])
    factory = locations_of(tmp_path / "users.db", bulk=True)
    locations = topology.newStream("locations", locationsSpout).partitionPersist(
        factory, Fields("userid", "location"), LocationUpdater()
    )
    collect(locations.newValuesStream(), "new values")
    assert bags(run(cluster, topology).collected("new values")) == {}
    assert BulkLocationDB(str(tmp_path / "users.db")).bulkGetLocations([1, 2, 3]) == ["Rome", "Lima", "Cusco"]


@both
def test_d22_persistent_aggregate(cluster: Any) -> None:
    factory = MemoryMapState.Factory()
    topology = TridentTopology()
    (
        topology.newStream("spout1", spout_of(5, cycles=2))
        .each(Fields("sentence"), Split(), Fields("word"))
        .groupBy(Fields("word"))
        .persistentAggregate(factory, Count(), Fields("count"))
    )
    run(cluster, topology)
    assert current(stored(factory)) == {word: 2 * n for word, n in counted(5).items()}


class FileMap(BackingMap):
    """An IBackingMap over a file, in Storm's JSON."""

    def __init__(self, path: str, serializer: Any) -> None:
        self.database = Database(path)
        self.serializer = serializer
        with self.database.opened() as db:
            db.execute("create table if not exists map (key text primary key, value blob)")

    def multiGet(self, keys: Any) -> list[Any]:
        with self.database.opened() as db:
            found = dict(db.execute("select key, value from map"))
        raw = [found.get(json.dumps(list(key))) for key in keys]
        return [None if value is None else self.serializer.deserialize(value) for value in raw]

    def multiPut(self, keys: Any, vals: Any) -> None:
        rows = [(json.dumps(list(k)), self.serializer.serialize(v)) for k, v in zip(keys, vals, strict=True)]
        with self.database.opened() as db:
            db.executemany("insert or replace into map values (?, ?)", rows)


class OwnMap(MapState, Snapshottable):
    """A MapState of one's own, which is Snapshottable too. Knows no txids."""

    def __init__(self, backing: BackingMap) -> None:
        self.backing = backing

    def beginCommit(self, txid: int | None) -> None:
        pass

    def commit(self, txid: int | None) -> None:
        pass

    def multiGet(self, keys: Any) -> list[Any]:
        return self.backing.multiGet(keys)

    def multiUpdate(self, keys: Any, updaters: Any) -> list[Any]:
        new = [updater.update(old) for updater, old in zip(updaters, self.multiGet(keys), strict=True)]
        self.multiPut(keys, new)
        return new

    def multiPut(self, keys: Any, vals: Any) -> None:
        self.backing.multiPut(keys, vals)

    def get(self) -> Any:
        return self.multiGet([["all"]])[0]

    def update(self, updater: Any) -> Any:
        return self.multiUpdate([["all"]], [updater])[0]

    def set(self, value: Any) -> None:
        self.multiPut([["all"]], [value])


@dataclass(frozen=True)
class MyStateFactory(StateFactory):
    """As MemcachedState puts the parts together."""

    path: str
    kind: str

    @property
    def location(self) -> Location:
        return Location(frozenset([self.path]), frozenset(["map"]))

    def makeState(self, conf: dict, metrics: Any, partitionIndex: int, numPartitions: int) -> State:
        if self.kind == "non-transactional own":
            return OwnMap(FileMap(self.path, JSONNonTransactionalSerializer()))
        serializer, build = {
            "non-transactional": (JSONNonTransactionalSerializer, NonTransactionalMap.build),
            "transactional": (JSONTransactionalSerializer, TransactionalMap.build),
            "opaque": (JSONOpaqueSerializer, OpaqueMap.build),
        }[self.kind]
        return SnapshottableMap(build(CachedMap(FileMap(self.path, serializer()), 100)), ["all"])


BYTES = {
    "non-transactional own": {'["the"]': b"5", '["all"]': b"36"},
    "non-transactional": {'["the"]': b"5", '["all"]': b"36"},
    "transactional": {'["the"]': b"[2,5]", '["all"]': b"[2,36]"},
    "opaque": {'["the"]': b"[2,5,4]", '["all"]': b"[2,36,22]"},
}


def aggregated(cluster: Any, kind: str, folder: Path) -> dict[str, bytes]:
    """What a state of one's own stores of the counts of words, and of the count of all words."""
    words, all_words = MyStateFactory(f"{folder}/words.db", kind), MyStateFactory(f"{folder}/all.db", kind)
    topology = TridentTopology()
    stream = topology.newStream("spout1", spout_of(5)).each(Fields("sentence"), Split(), Fields("word"))
    stream.groupBy(Fields("word")).persistentAggregate(words, Count(), Fields("count"), stateName="words")
    ones = stream.each(Fields("word"), lambda word: [1], Fields("one"))
    ones.persistentAggregate(all_words, Fields("one"), Sum(), Fields("sum"), stateName="all")
    run(cluster, topology)
    found: dict[str, bytes] = {}
    for factory in (words, all_words):
        with Database(factory.path).opened() as db:
            found |= dict(db.execute("select key, value from map"))
    assert len(found) == 29
    return {key: bytes(found[key]) for key in BYTES[kind]}


@both
def test_d22_a_map_state_and_a_snapshottable_of_ones_own(cluster: Any, tmp_path: Path) -> None:
    assert aggregated(cluster, "non-transactional own", tmp_path) == BYTES["non-transactional own"]


@pytest.mark.parametrize("kind", ["non-transactional", "transactional", "opaque"])
@both
def test_d22_map_states_over_a_backing_map(kind: str, cluster: Any, tmp_path: Path) -> None:
    assert aggregated(cluster, kind, tmp_path) == BYTES[kind]
