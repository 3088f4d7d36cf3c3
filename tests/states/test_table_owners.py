"""A table has one owner across topologies: noted in the store itself before the first batch is written."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from contracts.crashing import Driver

from states.sql import AppendState, BatchState, InsertIgnoreState, RowUpdater, SequenceState, SqlMapState
from trident_py import Fields, LocalCluster, TridentTopology
from trident_py.errors import StateError, TopologyError, ZombieError
from trident_py.operations.builtin import Count, MapGet, Sum
from trident_py.state import MapCombinerAggStateUpdater
from trident_py.testing import FeederBatchSpout, FixedBatchSpout, collect
from trident_py.tuples import TridentTuple

pytestmark = pytest.mark.dear

ROW = Fields("word string", "n bigint")
WORDS = [("a", 1), ("b", 2), ("a", 3)]
REPLACE = "topology.owner.replace"


def counts(url: str, table: str = "counts", kind: str = "transactional") -> SqlMapState:
    make = {"transactional": SqlMapState.transactional, "plain": SqlMapState.nonTransactional}[kind]
    return make(url, table, "word string", "n bigint")


def driver(factory: Any, topology: str, state: str = "s", **more: Any) -> Driver:
    updater = MapCombinerAggStateUpdater(Sum(), "word", "n") if isinstance(factory, SqlMapState) else RowUpdater()
    names = {"topology.name": topology, "trident.state.name": state}
    return Driver(factory, updater, f"lineage-{topology}-{state}", **names, **more)


def rows(*values: tuple) -> list[TridentTuple]:
    return [TridentTuple.of(["word", "n"], each) for each in values]


@pytest.mark.parametrize("kind", ["transactional", "plain"])
def test_a_table_of_another_topology_is_refused_before_anything_is_written(database: str, kind: str) -> None:
    factory = counts(database, kind=kind)
    one = driver(factory, "one")
    one.batch(rows(*WORDS[:2]), 1, of=1)
    before = factory.stored()
    for name in (("two", "s"), ("one", "other")):
        with pytest.raises(StateError) as told:
            driver(factory, *name)
        setting = f"conf[\"{REPLACE}\"] = 'one/s'"
        for words in ("table 'counts'", "'s' of topology 'one'", "merge", setting, "newStaticState"):
            assert words in str(told.value)
        assert "stateName" not in str(told.value)
    assert factory.stored() == before
    one.batch(rows(("a", 1)), 2, of=1)
    driver(factory, "one").batch(rows(("a", 1)), 3, of=1)


def test_on_the_command_line_the_setting_is_told_as_it_is_written_there(tmp_path: Path) -> None:
    factory = counts(f"sqlite:///{tmp_path}/a.db")
    driver(factory, "one").batch(rows(("a", 1)), 1, of=1)
    with pytest.raises(StateError, match=r"start with --set topology\.owner\.replace=one/s$"):
        driver(factory, "two", **{"trident.command.line": True})


def test_of_two_topologies_that_start_together_on_a_new_table_one_writes(database: str) -> None:
    """Both have found nothing; the first batch of the one comes before that of the other."""
    factory = counts(database)
    one, two = driver(factory, "one"), driver(factory, "two")
    one.batch(rows(*WORDS[:2]), 1, of=1)
    before = factory.stored()
    with pytest.raises(StateError, match="'s' of topology 'one'"):
        two.run(rows(*WORDS[:2]), 1, of=1)
    assert factory.stored() == before
    one.batch(rows(("c", 5)), 2, of=1)
    assert {key: value.value for key, value in factory.stored().items()} == {("a",): 1, ("b",): 2, ("c",): 5}


def test_a_start_that_wrote_nothing_owns_nothing(database: str) -> None:
    driver(counts(database), "one")
    driver(counts(database), "two").batch(rows(("a", 1)), 1, of=1)
    with pytest.raises(StateError, match="'s' of topology 'two'"):
        driver(counts(database), "one")


def test_an_owner_may_be_replaced_and_writes_no_more(database: str) -> None:
    factory = counts(database, kind="plain")
    old = driver(factory, "one")
    old.batch(rows(("a", 1)), 1, of=1)
    with pytest.raises(StateError, match="'s' of topology 'one'"):
        driver(factory, "two", **{REPLACE: "another/s"})
    new = driver(factory, "two", **{REPLACE: "one/s"})
    new.batch(rows(("a", 1)), 1, of=1)
    with pytest.raises(ZombieError, match="newer one with generation"):
        old.run(rows(("a", 1)), 2, of=1)
    with pytest.raises(StateError, match="'s' of topology 'two'"):
        driver(factory, "one")
    driver(factory, "two", **{REPLACE: "one/s"}).batch(rows(("a", 1)), 2, of=1)  # the setting means nothing now
    assert factory.stored() == {("a",): 3}


def test_a_topology_with_several_tables_is_renamed_with_one_setting(database: str) -> None:
    tables = ("counts", "others")
    for table in tables:
        driver(counts(database, table), "old", table).batch(rows(("a", 1)), 1, of=1)
    with pytest.raises(StateError, match="state 'counts' of topology 'old'"):
        driver(counts(database, "counts"), "new", "counts")
    told = {REPLACE: "old/counts"}
    driver(counts(database, "counts"), "new", "counts", **told, **{"topology.txid.base": 1})
    with pytest.raises(StateError) as refused:
        driver(counts(database, "others"), "new", "others", **told)
    assert f"conf[\"{REPLACE}\"] = ['old/counts', 'old/others']" in str(refused.value)
    with pytest.raises(StateError, match=r"--set 'topology.owner.replace=\[\"old/counts\", \"old/others\"\]'"):
        driver(counts(database, "others"), "new", "others", **told, **{"trident.command.line": True})
    for table in tables:
        names = [f"old/{table}" for table in tables]
        new = driver(counts(database, table), "new", table, **{REPLACE: names, "topology.txid.base": 1})
        new.batch(rows(("a", 1)), 2, of=1)
        assert {key: value.value for key, value in counts(database, table).stored().items()} == {("a",): 2}


def sharing(url: str) -> dict[str, Any]:
    return {
        "append": AppendState(url, "rows", ROW),
        "insert-ignore": InsertIgnoreState(url, "rows", "word", ROW),
        "batch": BatchState(url, "rows", ROW),
        "sequence": SequenceState(url, "rows", "word string", "n bigint", ROW),
    }


@pytest.mark.parametrize("kind", ["append", "insert-ignore", "batch", "sequence"])
def test_states_that_only_add_rows_may_share_a_table_with_their_like(database: str, kind: str) -> None:
    factory = sharing(database)[kind]
    one, two = driver(factory, "one"), driver(factory, "two")
    one.batch(rows(("a", 1)), 1, of=1)
    two.batch(rows(("b", 1)), 1, of=1)
    one.batch(rows(("c", 1)), 2, of=1)
    two.batch(rows(("c", 1)), 2, of=1)
    assert len(factory.stored()) == 3
    with pytest.raises(StateError, match="of topology 'one'"):
        driver(counts(database, "rows"), "three")
    for other in (each for name, each in sharing(database).items() if name != kind):
        with pytest.raises(StateError, match="of topology 'one'"):
            driver(other, "three")


def test_a_table_of_its_own_name_in_other_letters_is_the_same_table_where_the_database_says_so(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/a.db"
    driver(counts(url), "one").batch(rows(("a", 1)), 1, of=1)
    with pytest.raises(StateError, match="'s' of topology 'one'"):
        driver(counts(url, "COUNTS"), "two")


def test_a_file_under_another_name_is_the_same_file(tmp_path: Path) -> None:
    driver(counts(f"sqlite:///{tmp_path}/a.db"), "one").batch(rows(("a", 1)), 1, of=1)
    (tmp_path / "link.db").symlink_to(tmp_path / "a.db")
    with pytest.raises(StateError, match="'s' of topology 'one'"):
        driver(counts(f"sqlite:///{tmp_path}/link.db"), "two")


# -- whole topologies


def counting(spout: Any, factory: Any) -> Any:
    topology = TridentTopology()
    topology.newStream("s", spout).groupBy("word").persistentAggregate(factory, Count(), "n", stateName="counts")
    return topology.build()


def test_two_topologies_at_once_on_one_new_table_lose_nothing_that_was_committed(database: str) -> None:
    factory = counts(database)
    with LocalCluster() as cluster:
        spouts = [FeederBatchSpout("word") for _ in range(2)]
        for spout in spouts:
            for _ in range(5):
                spout.feed([["a"], ["b"]], wait=False)
            spout.close()
        running = [cluster.submitTopology(f"t{n}", {}, counting(spout, factory)) for n, spout in enumerate(spouts)]
        failed = [each for each in running if error_of(each) is not None]
    assert len(failed) == 1
    assert "update one table" in str(failed[0].exception) or "of topology" in str(failed[0].exception)
    assert {key: value.value for key, value in factory.stored().items()} == {("a",): 5, ("b",): 5}


def error_of(running: Any) -> TopologyError | None:
    try:
        running.awaitTermination(60)
    except TopologyError as error:
        return error
    return None


def test_another_topology_may_ask_a_table_that_it_does_not_own(database: str) -> None:
    factory = counts(database)
    with LocalCluster() as cluster:
        spout = FixedBatchSpout("word", 3, ("a",), ("b",), ("a",))
        assert cluster.submitTopology("owner", {}, counting(spout, factory)).awaitTermination(60)
        topology = TridentTopology()
        asked = topology.newStream("s", FixedBatchSpout("word", 2, ("a",), ("b",)))
        asked = asked.stateQuery(topology.newStaticState(factory), "word", MapGet(), "count")
        collect(asked.project(["word", "count"]), "answers")
        running = cluster.submitTopology("asker", {}, topology.build())
        assert running.awaitTermination(60)
    assert Counter(row for each in running.collected("answers").values() for row in each) == {("a", 2): 1, ("b", 1): 1}
