"""Commits side by side: which may run so, that they do, and what is left of those that fail."""

from __future__ import annotations

import os
import threading
from collections.abc import Sequence
from concurrent.futures import Future
from typing import Any

import pytest
from semantics.support import Batches, run

from states.sql import InsertIgnoreState, SqlMapState
from trident_py import FailedException, Fields, LocalCluster, TridentTopology
from trident_py.config import Config
from trident_py.engine.lowering import lower
from trident_py.engine.parallel_commit import await_commit, can_commit_concurrently, start_commits
from trident_py.operations import Aggregator
from trident_py.operations.builtin import Count, MapGet
from trident_py.state import State, StateFactory, StateUpdater

SERVER = "mysql+pymysql://nobody@127.0.0.1:9/none"


class Meeting(StateFactory):
    """States that commit only when all of them do. Counts how many commit at a time."""

    def __init__(self, size: int = 1, apart: bool = True) -> None:
        self.apart = apart
        self.barrier = threading.Barrier(size)
        self.lock = threading.Lock()
        self.now = self.most = 0
        self.committed: list[tuple[int, int]] = []
        self.fails: set[tuple[int, int]] = set()

    @property
    def commits_apart(self) -> bool:
        return self.apart

    def makeState(self, conf: dict, metrics: Any, partitionIndex: int, numPartitions: int) -> Met:
        return Met(self, partitionIndex)

    def __deepcopy__(self, memo: Any) -> Meeting:
        return self


class Met(State):
    """On replay: commits again, which the test counts."""

    def __init__(self, owner: Meeting, partition: int) -> None:
        self.owner, self.partition = owner, partition

    def beginCommit(self, txid: int | None) -> None:
        with self.owner.lock:
            self.owner.now += 1
            self.owner.most = max(self.owner.most, self.owner.now)

    def commit(self, txid: int | None) -> None:
        self.owner.barrier.wait(20)
        with self.owner.lock:
            self.owner.now -= 1
            assert txid is not None
            if (txid, self.partition) in self.owner.fails:
                self.owner.fails.remove((txid, self.partition))
                raise FailedException("as the test says")
            self.owner.committed.append((txid, self.partition))


class Nothing(StateUpdater):
    """Writes nothing."""

    calls_only_states = True  # type: ignore[assignment]

    def updateState(self, state: Any, tuples: Sequence[Any], collector: Any) -> None:
        return


def persist(conf: dict, *factories: StateFactory, partitions: int = 1) -> None:
    """Two batches into each state, with a tuple for every partition."""
    topology = TridentTopology()
    rows = [(n,) for n in range(partitions)]
    stream = topology.newStream("s", Batches("n bigint", [rows, rows]))
    for factory in factories:
        stream.partitionBy("n").partitionPersist(factory, Fields("n"), Nothing()).parallelismHint(partitions)
    with LocalCluster() as cluster:
        assert run(cluster, topology, conf).exception is None


def test_states_and_partitions_of_a_batch_commit_side_by_side() -> None:
    states = [Meeting(), Meeting(), Meeting()]
    states[1].barrier = states[2].barrier = states[0].barrier = threading.Barrier(6)
    persist({}, *states, partitions=2)
    assert all(sorted(state.committed) == [(1, 0), (1, 1), (2, 0), (2, 1)] for state in states)


@pytest.mark.parametrize("conf", [{Config.TOPOLOGY_COMMIT_THREADS: 1}, {}, {Config.TOPOLOGY_DETERMINISM_CHECK: 1}])
def test_they_commit_one_after_the_other_where_they_may_not_or_must_not(conf: dict) -> None:
    state = Meeting(apart=bool(conf))
    persist(conf, state, partitions=3)
    assert state.most == 1 and len(state.committed) == 6


@pytest.mark.parametrize(("partitions", "meet"), [(2, 2), (6, 1)])
def test_no_more_commit_at_a_time_than_the_conf_says(partitions: int, meet: int) -> None:
    state = Meeting(meet)
    persist({Config.TOPOLOGY_COMMIT_THREADS: 2}, state, partitions=partitions)
    assert meet <= state.most <= 2 and len(state.committed) == 2 * partitions


def test_a_commit_that_fails_is_replayed_when_the_others_have_ended() -> None:
    states = [Meeting(), Meeting()]
    states[0].fails = {(1, 1), (2, 0)}
    persist({}, *states, partitions=2)
    assert sorted(states[0].committed) == [(1, 0), (1, 0), (1, 1), (2, 0), (2, 1), (2, 1)]
    assert sorted(states[1].committed) == sorted([(txid, part) for txid in (1, 2) for part in (0, 1)] * 2)
    assert states[0].now == states[1].now == 0


class FailsOnce(Aggregator):
    """Fails when it gives the first result of all."""

    failed = threading.Event()

    def init(self, batchId: Any, collector: Any) -> None:
        return

    def aggregate(self, value: None, tuple: Any, collector: Any) -> None:
        return

    def complete(self, value: None, collector: Any) -> None:
        if not self.failed.is_set():
            self.failed.set()
            raise FailedException("as the test says")
        collector.emit((1,))


def test_what_fails_before_a_commit_in_its_stage_keeps_only_that_commit_from_beginning() -> None:
    state, topology = Meeting(), TridentTopology()
    stream = topology.newStream("s", Batches("n bigint", [[(0,), (1,)], [(0,), (1,)]])).partitionBy("n")
    counts = stream.partitionAggregate(Fields("n"), FailsOnce(), Fields("m")).parallelismHint(2)
    counts.partitionPersist(state, Fields("m"), Nothing()).parallelismHint(2)
    with LocalCluster() as cluster:
        assert run(cluster, topology).exception is None
    assert sorted(state.committed) == [(1, 0), (1, 0), (1, 1), (2, 0), (2, 1)]


class Own(Count):
    """A topology's own combiner."""


def counted(url: str, combiner: Any = None, use: Any = None) -> TridentTopology:
    topology = TridentTopology()
    stream = topology.newStream("s", Batches("w string", []))
    factory = SqlMapState.opaque(url, "counts", "w string", "n bigint")
    state = stream.groupBy("w").persistentAggregate(factory, combiner or Count(), "n")
    if use is not None:
        use(stream, state)
    return topology


def new_values(stream: Any, state: Any) -> None:
    state.newValuesStream().peek(print)


def queried(stream: Any, state: Any) -> None:
    stream.stateQuery(state, "w", MapGet(), "n")


def queried_in_a_circle(stream: Any, state: Any) -> None:
    """The update and its queries are stages of their own, see `Staging`."""
    factory = SqlMapState.opaque(SERVER, "others", "w string", "m bigint")
    found = stream.stateQuery(state, "w", MapGet(), "n").groupBy("w")
    others = found.persistentAggregate(factory, Count(), "m")
    others.newValuesStream().stateQuery(state, "w", MapGet(), "k")


def apart(topology: TridentTopology) -> list[bool]:
    plan = topology.build().plan
    lowered = [lower(part, plan) for part in plan.components()]
    stages = [(one.plan, stage) for one in lowered for level in one.levels for stage in level if stage.commits]
    return [can_commit_concurrently(plan, stage) for plan, stage in stages]


def test_only_a_state_on_a_server_commits_apart_and_none_that_calls_or_feeds_others() -> None:
    assert apart(counted(SERVER)) == [True]
    assert apart(counted("sqlite:///counts.db")) == [False]
    assert apart(counted(SERVER, Own())) == [False]
    for use in (new_values, queried, queried_in_a_circle):
        assert set(apart(counted(SERVER, use=use))) == {False}


def test_rows_of_a_spout_commit_apart() -> None:
    topology = TridentTopology()
    stream = topology.newStream("s", Batches("w string", []))
    stream.partitionPersist(InsertIgnoreState(SERVER, "rows", "w string", ["w"]), Fields("w"))
    assert apart(topology) == [True]


def test_whoever_waits_is_interrupted_only_when_the_commit_has_ended() -> None:
    class Interrupted(Future):
        def result(self, timeout: float | None = None) -> Any:
            threading.Timer(0.05, self.set_result, [None]).start()
            raise KeyboardInterrupt

    begun: Any = Interrupted()
    with pytest.raises(KeyboardInterrupt):
        await_commit(begun)
    assert begun.done()


def test_a_forked_child_has_threads_of_its_own() -> None:
    class Task:
        def __init__(self) -> None:
            self.done: list[Future] = []

        def concurrent_stages(self) -> list[Any]:
            return [None, None]

        def begin_commit(self, stage: Any, pool: Any) -> None:
            self.done.append(pool.submit(os.getpid))

    task = Task()
    start_commits([task], {})
    assert task.done[0].result(20) == os.getpid()
    child = os.fork()
    if not child:
        start_commits([task], {})
        os._exit(0 if task.done[1].result(20) == os.getpid() else 1)
    assert os.waitpid(child, 0)[1] == 0
