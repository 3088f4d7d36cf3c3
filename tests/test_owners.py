"""One place for data has one owner: what `build()` refuses before anything is opened."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any, get_type_hints

import pytest

from states.files import FileState
from states.kafka import CompactedTopicState, RowUpdater, TopicState, TransactionalTopicState
from states.sql import AppendState, BatchState, InsertIgnoreState, SequenceState, SqlMapState
from trident_py import Fields, TridentTopology
from trident_py.errors import DefinitionError
from trident_py.extras.moving.java.storm import StateFactoryOf
from trident_py.operations.builtin import Count, MapGet
from trident_py.state import Location, StateFactory
from trident_py.testing import Crashing, FixedBatchSpout, LoggingBackingMap, MemoryMapState
from trident_py.windowing.keyed import KeyedWindow, MemoryWindow

ROW = Fields("word string", "n bigint")
MAPS = SqlMapState | CompactedTopicState | MemoryMapState.Factory | Crashing
PG, MY = "postgresql+psycopg://me:hush@", "mysql+pymysql://me:hush@"


def counts(url: str, table: str = "counts", **more: Any) -> SqlMapState:
    return SqlMapState.transactional(url, table, "word string", **more)


def compacted(bootstrap: str, topic: str = "counts") -> CompactedTopicState:
    return CompactedTopicState.transactional(bootstrap, topic, "word string")


def topology_of(*factories: Any, apart: bool = False) -> TridentTopology:
    """A topology with a state for each, of names of their own; ``apart``: each in a component of its own."""
    topology = TridentTopology()
    stream = topology.newStream("s", FixedBatchSpout(ROW, 2, ("a", 1)))
    for number, factory in enumerate(factories):
        if apart and number:
            stream = topology.newStream(f"s{number}", FixedBatchSpout(ROW, 2, ("a", 1)))
        name = f"state {number}"
        if isinstance(factory, MAPS) and "upsert" not in factory.kind:
            stream.groupBy("word").persistentAggregate(factory, Count(), "count", stateName=name)
        else:
            stream.partitionPersist(factory, ROW, RowUpdater(), stateName=name)
    return topology


SAME = [
    (counts("sqlite:////data/a.db"), counts("sqlite:////data/a.db")),
    (counts("sqlite:////data/a.db"), counts("sqlite:////data/x/../a.db")),
    (counts("sqlite:////data/a.db"), counts("sqlite:////data/a.db", "COUNTS")),
    (counts("sqlite:////data/a.db"), SqlMapState.opaque("sqlite:////data/a.db", "counts", "word string")),
    (counts("sqlite:////data/a.db"), Crashing(counts("sqlite:////data/a.db"), "commit", set())),
    (counts("sqlite:////data/a.db"), AppendState("sqlite:////data/a.db", "counts", ROW)),
    (counts("sqlite:////a.db", "rows_rejected"), AppendState("sqlite:////a.db", "rows", ROW, onBadRow="dead-letter")),
    (counts("sqlite:////a.db", "rows_held"), SequenceState("sqlite:////a.db", "rows", "word string", "n bigint", ROW)),
    (counts("sqlite:////a.db", "rows_staged"), BatchState("sqlite:////a.db", "rows", ROW)),
    (BatchState("sqlite:////a.db", "rows", ROW, "word"), BatchState("sqlite:////a.db", "rows", ROW, "word")),
    (AppendState("sqlite:////a.db", "rows", ROW), InsertIgnoreState("sqlite:////a.db", "rows", "word", ROW)),
    (counts(f"{PG}db/x"), counts(f"{PG}DB:5432/x")),
    (counts(f"{PG}localhost/x"), counts(f"{PG}127.0.0.1:5432/x")),
    (counts(f"{MY}localhost/x"), counts("mariadb+pymysql://you:other@127.0.0.1:3306/x")),
    (compacted("one:9092,two:9092"), compacted("TWO:9092")),
    (compacted("localhost:9092"), compacted("127.0.0.1:9092")),
    (compacted("one:9092"), TransactionalTopicState("one:9092", "counts")),
    (FileState("/data/rows"), FileState("/data/x/../rows")),
    (FileState("/data/rows"), FileState("/data/rows/old")),
    (FileState("s3://data/rows"), FileState("s3a://data/rows/old/er")),
    (FileState("hdfs://one:8020/rows"), FileState("hdfs://ONE:9000/rows/old")),
]  # fmt: skip
APART = [
    (counts("sqlite:////data/a.db"), counts("sqlite:////data/a.db", "others")),
    (counts("sqlite:////data/a.db"), counts("sqlite:////data/b.db")),
    (counts(f"{PG}db/x"), counts(f"{PG}db:5433/x")),
    (counts(f"{PG}db/x"), counts(f"{PG}db/y")),
    (counts(f"{PG}db/x"), counts(f"{PG}other/x")),
    (counts(f"{PG}db/x"), counts(f"{MY}db:5432/x")),
    (counts(f"{PG}db/x"), counts(f"{PG}db/x", "COUNTS")),
    (compacted("one:9092"), compacted("two:9092")),
    (compacted("one:9092"), compacted("one:9092", "others")),
    (MemoryMapState.Factory(), MemoryMapState.Factory()),
    (FileState("/data/rows"), FileState("/data/rows2")),
    (FileState("/data/a/rows"), FileState("/data/b/rows")),
    (FileState("s3://data/rows"), FileState("s3://other/rows/old")),
]
BESIDE_EACH_OTHER = [
    (AppendState("sqlite:////a.db", "rows", ROW), AppendState("sqlite:////a.db", "rows", ROW)),
    (InsertIgnoreState("sqlite:////a.db", "rows", "word", ROW), InsertIgnoreState("sqlite:////a.db", "rows", "word")),
    (BatchState("sqlite:////a.db", "rows", ROW), BatchState("sqlite:////a.db", "rows", ROW)),
    (SequenceState("sqlite:////a.db", "rows", "word string", "n bigint", ROW),) * 2,
    (TransactionalTopicState("one:9092", "log"), TopicState("one:9092", "log")),
]


@pytest.mark.parametrize("apart", [False, True])
@pytest.mark.parametrize("pair", SAME)
def test_two_states_over_one_place_are_refused(pair: tuple, apart: bool) -> None:
    for factories in (pair, pair[::-1]):
        with pytest.raises(DefinitionError, match=r"would both update (table|topic|folder) ") as told:
            topology_of(*factories, apart=apart).build()
        for words in ("'state 0'", "'state 1'", "merge the streams", "newStaticState"):
            assert words in str(told.value)
        assert "hush" not in str(told.value)
        assert "stateName" not in str(told.value)


def test_one_factory_of_a_memory_used_twice_is_refused() -> None:
    factory = MemoryMapState.Factory()
    with pytest.raises(DefinitionError, match="the memory of one factory used twice"):
        topology_of(factory, factory).build()


@pytest.mark.parametrize("pair", APART + BESIDE_EACH_OTHER)
def test_states_in_places_of_their_own_and_those_that_only_add_are_taken(pair: tuple) -> None:
    topology_of(*pair).build()


def test_a_link_to_a_file_is_that_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a.db").touch()
    (tmp_path / "link.db").symlink_to(tmp_path / "a.db")
    monkeypatch.chdir(tmp_path)
    for other in ("link.db", "./a.db"):
        with pytest.raises(DefinitionError, match="would both update table 'counts'"):
            topology_of(counts(f"sqlite:///{tmp_path}/a.db"), counts(f"sqlite:///{other}")).build()


def test_states_of_one_name_over_one_table_are_not_told_to_take_another_name() -> None:
    topology = TridentTopology()
    words = topology.newStream("s", FixedBatchSpout(ROW, 2, ("a", 1))).groupBy("word")
    for _ in range(2):
        words.persistentAggregate(counts("sqlite:////data/a.db"), Count(), "count")
    with pytest.raises(DefinitionError, match="two states, both named 'counts', would update table 'counts'") as told:
        topology.build()
    assert "another name does not help" in str(told.value)
    assert "stateName" not in str(told.value)


def test_a_state_that_is_only_asked_may_lie_where_another_one_is_updated() -> None:
    topology = topology_of(counts("sqlite:////data/a.db"))
    static = topology.newStaticState(counts("sqlite:////data/a.db"))
    asking = topology.newStream("asking", FixedBatchSpout(ROW, 2, ("a", 1)))
    asking.stateQuery(static, "word", MapGet(), "count")
    topology.build()


def kinds_of(factory: type) -> list[type]:
    return [each for child in factory.__subclasses__() for each in (child, *kinds_of(child))]


def test_every_state_that_ships_says_where_its_data_is() -> None:
    """What does not counts as kept in its object. A wrapper says what the wrapped one does."""
    root = Path(__file__).parents[1]
    files = [*root.glob("states/**/*.py"), *root.glob("trident_py/**/*.py")]
    for file in (file for file in files if "def makeState(" in file.read_text()):
        importlib.import_module(".".join(file.relative_to(root).with_suffix("").parts))
    ours = {each for each in kinds_of(StateFactory) if each.__module__.startswith(("states.", "trident_py."))}
    made = {each for each in ours if each.makeState is not StateFactory.makeState}
    says = {each for each in made if get_type_hints(each.location.fget)["return"] is Location}
    assert len(says) >= 16
    at_home = {MemoryWindow, LoggingBackingMap.Factory}
    assert made - says == {KeyedWindow, Crashing, StateFactoryOf} | at_home
    assert all(each.needs.home for each in at_home)


@pytest.mark.parametrize("field", ["stores", "names", "within"])
def test_a_text_is_no_set_of_places(field: str) -> None:
    sets: dict[str, Any] = {"stores": frozenset(["data"]), "names": frozenset(["files"]), "within": frozenset()}
    with pytest.raises(DefinitionError, match=rf"Location: {field} is one text; .*Location\(frozenset\(\["):
        Location(**{**sets, field: "data"})
