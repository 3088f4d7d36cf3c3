"""What windows emit: compared with a plain fold over all batches, under failures and replays."""

from __future__ import annotations

import datetime
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from semantics.support import Batches, run

from states.sql import SqlMapState, SqlWindowsStoreFactory
from trident_py import Config, LocalCluster, TridentTopology
from trident_py.errors import DefinitionError, StateError, TopologyError
from trident_py.model.chunks import Chunk
from trident_py.model.context import RunContext
from trident_py.operations.builtin import Count, Sum
from trident_py.testing import collect
from trident_py.windowing import Duration as D
from trident_py.windowing import (
    DurationWindow,
    InMemoryWindowsStoreFactory,
    SlidingCountWindow,
    SlidingDurationWindow,
    TumblingCountWindow,
    TumblingDurationWindow,
    WindowConfig,
)
from trident_py.windowing.keyed import KeyedBacking, KeyedWindow
from trident_py.windowing.state import _times
from trident_py.windowing.store import Block
from trident_py.windowing.triggers import NEVER, Head, by_time

from .naive import Batch, expected
from .stores import DictStore, DictStoreFactory
from .stories import stories
from .support import CrashingStore, Gather, windows

STORES: dict[str, Any] = {"memory": InMemoryWindowsStoreFactory, "keys and values": DictStoreFactory}


@pytest.fixture(scope="module")
def cluster() -> Any:
    with LocalCluster() as cluster:
        yield cluster


@given(stories(), st.sampled_from(list(STORES)))
def test_windows_are_those_of_a_plain_fold_whatever_fails(cluster: Any, story: Any, store: str) -> None:
    config, made, replays, at, attempts = story
    crashing = CrashingStore(STORES[store](), at, frozenset(attempts))
    final = [replays.get(txid, batch) for txid, batch in enumerate(made, 1)]
    assert windows(cluster, config, crashing, made, replays=replays) == expected(config, final)


@given(stories(), st.sampled_from(list(STORES)))
def test_a_failure_behind_a_window_changes_nothing(cluster: Any, story: Any, store: str) -> None:
    config, made, _replays, _at, attempts = story
    found, wanted = windows(cluster, config, STORES[store](), made, fail_behind=attempts), expected(config, made)
    assert found == wanted


@given(st.lists(st.lists(st.integers(0, 40) | st.sampled_from((-(10**4), 10**4)), min_size=1, max_size=4)), st.data())
def test_no_more_windows_end_than_the_tuples_can_fill(blocks: list[list[int]], data: Any) -> None:
    length = data.draw(st.integers(1, 12))
    config = DurationWindow(length, data.draw(st.integers(1, length)))
    heads = [Head(n, 0, 0, len(block), NEVER, min(block), max(block), "") for n, block in enumerate(blocks)]
    found = list(by_time(config, heads, data.draw(st.sampled_from((0, 20, 10**5))), lambda head: blocks[head.txid]))
    assert len(found) <= sum(map(len, blocks)) * -(-length // config.slidingLength)


@pytest.mark.parametrize("value", [1 << 63, -(1 << 70), pytest.param(10**5000, id="long"), True, "now", None])
def test_what_is_no_time_is_refused_in_words(value: Any) -> None:
    config = TumblingDurationWindow.of(D.seconds(1)).withTimestampField("time")
    with pytest.raises(StateError, match=r"'time' of a window is .*; it must be milliseconds"):
        _times(config, Chunk({"time": [0, value]}, 2))


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
@pytest.mark.parametrize("zone", ["UTC", "Europe/Berlin", "America/Sao_Paulo", None])
def test_a_time_is_its_instant_whatever_its_zone(unit: str, zone: str | None) -> None:
    """Each quarter of an hour of 2018, when the clocks of both zones went forward and back, and of a day of 1900."""
    seconds = [*range(1_514_764_800, 1_546_300_800, 900), *range(-2_208_988_800, -2_208_902_400, 900)]
    each, less = {"s": (1, 0), "ms": (1_000, 0), "us": (10**6, 1), "ns": (10**9, 1)}[unit]
    column = pa.array([second * each - less for second in seconds], pa.timestamp(unit)).cast(pa.timestamp(unit, zone))
    config = DurationWindow(1_000, 1_000).withTimestampField("time")
    found = _times(config, Chunk({"time": column}, len(column)))
    assert found.to_pylist() == [second * 1_000 - less for second in seconds]


def test_tuples_of_several_batches_meet_in_one_window(cluster: Any) -> None:
    made = [Batch([[(0, value) for value in values]]) for values in ([1, 2], [3, 4, 5], [6, 7, 8, 9, 10, 11, 12])]
    found, _ = windows(cluster, SlidingCountWindow.of(5, 2), InMemoryWindowsStoreFactory(), made)
    shown = [values for parts in found.values() for _, _, _, values in parts[0]]
    assert shown == [[1, 2], [1, 2, 3, 4], [2, 3, 4, 5, 6], [4, 5, 6, 7, 8], [6, 7, 8, 9, 10], [8, 9, 10, 11, 12]]


def test_a_window_of_a_duration_ends_with_the_first_batch_after_it(cluster: Any) -> None:
    made = [Batch([[(0, "a")]], 1_000), Batch([[(0, "b")]], 9_999), Batch([[(0, "c")]], 10_000), Batch([[]], 25_000)]
    config = TumblingDurationWindow.of(D.seconds(10))
    found, _ = windows(cluster, config, InMemoryWindowsStoreFactory(), made)
    assert found == {3: {0: [(1, 0, 10_000, ["a", "b"])]}, 4: {0: [(2, 10_000, 20_000, ["c"])]}}


@pytest.mark.parametrize("half", [D.milliseconds(500), D.of(500), datetime.timedelta(milliseconds=500)])
def test_a_window_may_be_given_in_milliseconds(cluster: Any, half: Any) -> None:
    made = [Batch([[(0, "a")]], 499), Batch([[(0, "b")]], 500), Batch([[]], 1_000)]
    found, _ = windows(cluster, TumblingDurationWindow.of(half), InMemoryWindowsStoreFactory(), made)
    assert found == {2: {0: [(1, 0, 500, ["a"])]}, 3: {0: [(2, 500, 1_000, ["b"])]}}


@pytest.mark.parametrize("length", [0.5, 1.0, True, "1", None])
def test_a_duration_is_a_whole_number_of_milliseconds(length: Any) -> None:
    with pytest.raises(DefinitionError, match="whole number of milliseconds"):
        DurationWindow(10, 10, "time", length).validate()
    for make in (D, D.of, D.milliseconds):
        with pytest.raises(DefinitionError, match="whole number of milliseconds"):
            make(length)


def test_a_timedelta_is_a_whole_number_of_milliseconds() -> None:
    for part in (datetime.timedelta(microseconds=1_500), datetime.timedelta(days=1, microseconds=1)):
        with pytest.raises(DefinitionError, match="whole number of milliseconds"):
            TumblingDurationWindow.of(part)
        with pytest.raises(DefinitionError, match="whole number of milliseconds"):
            TumblingDurationWindow.of(D.seconds(1)).withTimestampField("time").withLag(part)


def test_a_time_of_numpy_is_the_number_that_it_holds(cluster: Any) -> None:
    config = TumblingDurationWindow.of(D.of(10)).withTimestampField("time")
    made = [Batch([[(np.int64(3), "a"), (np.datetime64(4, "ms"), "b")]]), Batch([[(np.int64(30), "c")]]), Batch([[]])]
    found, _ = windows(cluster, config, InMemoryWindowsStoreFactory(), made)
    assert found == {3: {0: [(1, 0, 10, ["a", "b"])]}}


@pytest.mark.parametrize("now", [1.5, None, "1", datetime.datetime(2026, 1, 1)])
def test_a_clock_tells_whole_milliseconds(cluster: Any, now: Any) -> None:
    topology = TridentTopology()
    stream = topology.newStream("s", Batches("n", [[(1,)], [(2,)]]))
    stream.tumblingWindow(D.of(10), InMemoryWindowsStoreFactory(), "n", Sum(), "sum")
    with pytest.raises(TopologyError, match=r"topology.clock returned .*; it returns whole milliseconds since 1970"):
        run(cluster, topology, {Config.TOPOLOGY_CLOCK: lambda: now})
    run(cluster, topology, {Config.TOPOLOGY_CLOCK: lambda: np.int64(5)})


def test_late_tuples_go_to_a_stream_of_their_own(cluster: Any) -> None:
    config = SlidingDurationWindow.of(D.of(10), D.of(10)).withTimestampField("time").withLag(D.of(5))
    made = [Batch([[(1, "a"), (17, "b")]]), Batch([[(11, "late"), (12, "c")]]), Batch([[(40, "d")]]), Batch([[]])]
    found, late = windows(cluster, config, InMemoryWindowsStoreFactory(), made)
    assert late == {2: ["late"]}
    assert found == {2: {0: [(1, 0, 10, ["a"])]}, 4: {0: [(2, 10, 20, ["b", "c"])]}}


def test_the_watermark_is_that_of_all_partitions(cluster: Any) -> None:
    config = TumblingDurationWindow.of(D.of(10)).withTimestampField("time")
    made = [Batch([[(3, "a")], [(30, "b")]]), Batch([[], [(31, "c")]])]
    found, _ = windows(cluster, config, InMemoryWindowsStoreFactory(), made)
    assert found == {2: {0: [(1, 0, 10, ["a"])]}}


@pytest.mark.parametrize("tuples", [[(0, "c")], []])
def test_a_replay_by_a_later_clock_emits_the_windows_of_the_first_attempt(cluster: Any, tuples: list) -> None:
    """The partition has committed at 9 s; the replay comes at 19 s, when the first window would have ended."""
    config = TumblingDurationWindow.of(D.seconds(10))
    crashing = CrashingStore(InMemoryWindowsStoreFactory(), "afterCommit", frozenset([(2, 0)]))
    made = [Batch([[(0, "a")]], 1_000), Batch([tuples], 9_000), Batch([[]], 30_000)]
    found, _ = windows(cluster, config, crashing, made, attempts_take=10_000)
    assert found == {3: {0: [(1, 0, 10_000, ["a", *(value for _, value in tuples)])]}}


BY = TumblingDurationWindow.of(D.of(6))


@pytest.mark.parametrize("other", [
    SlidingCountWindow.of(7, 6), SlidingCountWindow.of(6, 3), BY, BY.withTimestampField("time")
])  # fmt: skip
@pytest.mark.parametrize("store", ["memory", "keys and values", "sql"])
def test_the_tuples_of_a_window_enter_no_other_one(tmp_path: Path, store: str, other: WindowConfig) -> None:
    kept = (STORES | {"sql": lambda: SqlWindowsStoreFactory(f"sqlite:///{tmp_path}/w.db", "w")})[store]()
    config, made = TumblingCountWindow.of(6), [Batch([[(n, n) for n in range(5)]], 1) for _ in range(3)]
    with LocalCluster(str(tmp_path)) as cluster:
        windows(cluster, config, kept, made[:1], name="w")
        told = f"of 6 tuples every 6.*has one of {other.shown}.*Define the window as before"
        with pytest.raises(TopologyError, match=told):
            windows(cluster, other, kept, made[:2], name="w", done=1)
        found, _ = windows(cluster, SlidingCountWindow.of(6, 6), kept, made[:2], name="w", done=1)
    assert found == {2: {0: [(1, 0, 6, [0, 1, 2, 3, 4, 0])]}}


@pytest.mark.parametrize("store", list(STORES))
def test_the_tuples_of_a_topology_enter_no_window_of_another_one(tmp_path: Path, store: str) -> None:
    kept, config = STORES[store](), TumblingCountWindow.of(2)
    made = [Batch([[(0, n)]]) for n in range(2)]
    with LocalCluster(str(tmp_path)) as cluster:
        windows(cluster, config, kept, made[:1], name="one")
        told = r"'window1' has the tuples of topology 'one', and this is topology 'two'.* stateName .*'tu\|window1\|of'"
        with pytest.raises(TopologyError, match=told):
            windows(cluster, config, kept, made[:1], name="two")
        assert windows(cluster, config, kept, made, name="one", done=1)[0] == {2: {0: [(1, 0, 2, [0, 1])]}}


def test_a_new_run_begins_with_empty_windows_and_its_own_time(cluster: Any) -> None:
    """The memory outlives a run without a checkpoint, and its txids begin anew."""
    kept, config = InMemoryWindowsStoreFactory(), TumblingDurationWindow.of(D.milliseconds(10))
    for start in (0, 1000):
        made = [Batch([[(0, n)]], start + 4 * n) for n in range(4)]
        assert windows(cluster, config, kept, made, name="w") == expected(config, made)


def test_a_store_of_an_older_version_goes_on_and_belongs_to_its_topology(tmp_path: Path) -> None:
    """It has noted the definition alone."""
    kept, made, key = DictStoreFactory(), [Batch([[(0, n)]]) for n in range(2)], "tu|window1|of"
    with LocalCluster(str(tmp_path)) as cluster:
        windows(cluster, TumblingCountWindow.of(2), kept, made[:1], name="one")
        values = kept.create({}).values
        definition, _ = values[key]
        values[key] = definition
        found, _ = windows(cluster, TumblingCountWindow.of(2), kept, made, name="one", done=1)
    assert found == {2: {0: [(1, 0, 2, [0, 1])]}}
    assert values[key] == [definition, "one"]


NAMES = st.text("a|%0", min_size=1, max_size=5)
TOKEN = "0123456789012345"


@given(NAMES, NAMES | st.sampled_from(["|0", "|of", "|0|of", f"|0|{TOKEN}", f"|0|{TOKEN}|0", "%7C0"]), st.booleans())
def test_windows_of_any_two_names_share_a_store_and_no_key(name: str, more: str, apart: bool) -> None:
    store, names = DictStore({}), (name, more if apart and more != name else name + more)

    def opened(name: str, partition: int) -> KeyedBacking:
        window = KeyedWindow(TumblingCountWindow.of(9), name, DictStoreFactory(number=-1))
        backing = KeyedBacking(store, window, partition, 2, RunContext())
        backing.begin(1)
        return backing

    both = [(name, partition) for name in names for partition in (0, 1)]
    for of in both:
        opened(*of).write([Block(Head(1, 0, 0, 1, 0, 0, 0, TOKEN), repr(of).encode())], [])
    written = dict(store.values)
    assert len(written) == 2 + 2 * len(both)  # of each window its definition; of each partition its list and its block
    store.put(f"tu|{name}|0|{TOKEN[::-1]}", b"left by a process that was killed")
    for of in both:
        assert (found := opened(*of)).data(found.heads()) == [repr(of).encode()]
    assert store.values == written


@pytest.mark.parametrize("store", ["memory", "keys and values", "sql"])
def test_an_aggregator_that_reads_a_further_field_is_refused_before_a_tuple_enters(tmp_path: Path, store: str) -> None:
    kept = (STORES | {"sql": lambda: SqlWindowsStoreFactory(f"sqlite:///{tmp_path}/w.db", "w")})[store]()

    def go_on(fields: list[str], batches: int) -> list:
        topology = TridentTopology()
        stream = topology.newStream("s", Batches(["a", "b"], [[[n, n]] for n in range(batches)]))
        collect(stream.tumblingWindow(4, kept, fields, Gather(), ["number", "values"]), "made")
        with LocalCluster(str(tmp_path)) as cluster:
            return run(cluster, topology, Config(), "fields").collected("made")

    go_on(["a"], 2)
    with pytest.raises(TopologyError, match=r"the window reads b, which its tuples of batch 2 do not have: .* with a"):
        go_on(["a", "b"], 3)
    assert go_on(["a"], 4) == {4: [(1, [0, 1, 2, 3])]}


def test_storm_3280_a_run_that_stops_and_goes_on_keeps_the_tuples_of_its_windows(tmp_path: Path) -> None:
    """Storm's windows lose their tuples when a worker restarts. Here the second run finds those of the first."""
    store, config = InMemoryWindowsStoreFactory(), SlidingCountWindow.of(5, 2)
    made = [Batch([[(0, value) for value in range(txid * 3, txid * 3 + 3)]]) for txid in range(6)]
    found: dict = {}
    for done, count in ((0, 2), (2, 3), (3, 6)):
        with LocalCluster(str(tmp_path)) as cluster:
            found |= windows(cluster, config, store, made[:count], name="goes-on", done=done)[0]
    assert found == expected(config, made)[0]


@pytest.mark.parametrize("config", [SlidingCountWindow.of(3, 1), TumblingDurationWindow.of(D.seconds(1))])
@pytest.mark.parametrize(("partitions", "aggregator"), [(1, Gather()), (2, Gather()), (2, Sum())])
def test_what_is_behind_a_window_is_told_if_the_order_of_its_tuples_matters(
    config: WindowConfig, partitions: int, aggregator: Any
) -> None:
    """Behind an exchange of several partitions a replay brings the same tuples in another order."""
    topology = TridentTopology()
    stream = topology.newStream("s", Batches(["k", "v"], [])).parallelismHint(partitions).partitionBy("k")
    made = stream.window(config, ["v"], aggregator, ["r"])
    made.groupBy("r").persistentAggregate(SqlMapState.transactional("sqlite:///t.db", "t", "r bigint"), Count(), "n")
    window, behind = topology.guarantees()
    assert window.guarantee == "exactly once"
    steady = partitions == 1 or (isinstance(aggregator, Sum) and isinstance(config, DurationWindow))
    assert behind.guarantee == ("exactly once" if steady else "wrong")
    assert ("no fixed order" in behind.reason) == (not steady)


def test_the_second_run_of_a_checked_batch_enters_no_window_twice() -> None:
    made = [Batch([[(0, n + txid * 4) for n in range(4)]]) for txid in range(3)]
    with LocalCluster() as cluster:
        conf = {"topology.determinism.check": 1}
        config = SlidingCountWindow.of(5, 2)
        found, _ = windows(cluster, config, InMemoryWindowsStoreFactory(), made, more=conf)
    assert found == expected(config, made)[0]


def test_late_tuples_keep_the_types_of_the_stream() -> None:
    config = TumblingDurationWindow.of(D.of(10)).withTimestampField("time")
    stream = TridentTopology().newStream("s", Batches(["time bigint", "value string"], []))
    late = stream.window(config, None, Count(), "n").lateTuples()
    assert late.getOutputFields().types == {"time": "bigint", "value": "string"}
    with pytest.raises(DefinitionError, match="no other stream has late tuples"):
        stream.lateTuples()


def test_a_drpc_stream_has_no_windows() -> None:
    topology = TridentTopology()
    topology.newDRPCStream("f").window(SlidingCountWindow.of(2, 1), None, Count(), "n")
    with pytest.raises(DefinitionError, match="DRPC"):
        topology.build()
