"""A topic, its marks or a checkpoint put back from a backup, removed or made anew: a start with any topic state tells.

Real brokers and real folders. What is lost when a user goes on nevertheless is counted record by record.
"""

from __future__ import annotations

import json
import shutil
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, TopicPartition
from confluent_kafka.admin import AdminClient
from faults.weak import Weak
from servers.waiting import soon
from topic_reading import read

from states.kafka import CompactedTopicState, RowUpdater, TopicState, TransactionalTopicState
from states.kafka.marks import MarkPlace
from trident_py import LocalCluster, Topology, TopologyError, TridentTopology
from trident_py.engine.program import compile_plan
from trident_py.engine.store_position import ACCEPT
from trident_py.errors import LineageError
from trident_py.extras.txid.components import component_of
from trident_py.extras.txid.rewind import rewind
from trident_py.kafka.clients import Cluster
from trident_py.model.context import with_context
from trident_py.operations.builtin import Sum
from trident_py.testing import FixedBatchSpout
from trident_py.tuples import Fields

pytestmark = pytest.mark.dear

SIZE, BACKUP, LATER, LAST = 20, 2, 4, 6
ROW = Fields("k string", "n bigint")
KEYED = {"key": "k string", "partitions": 2}
MAPS: dict[str, Callable[..., Any]] = {
    "non-transactional": CompactedTopicState.nonTransactional, "transactional": CompactedTopicState.transactional,
    "opaque": CompactedTopicState.opaque,
}  # fmt: skip
ROWS: dict[str, Callable[[str, str], Any]] = {
    "append": lambda at, topic: TransactionalTopicState(at, topic, value=["k", "n"], partitions=2),
    "plain": lambda at, topic: CompactedTopicState(at, topic, value="n bigint", **KEYED),
}
BLIND: dict[str, Callable[[str, str], Any]] = {
    "at least once": lambda at, topic: TopicState(at, topic, value=["k", "n"], partitions=2),
}
KINDS = [*ROWS, *MAPS]


def rows(*batches: int) -> list[tuple[str, int]]:
    """The tuples of these batches; batch 1 is the first."""
    return [(f"k{n % 7}", n) for batch in batches for n in range((batch - 1) * SIZE, batch * SIZE)]


@dataclass
class Place:
    """One topology over one topic, with its checkpoints."""

    kind: str
    broker: Any
    folder: Path
    topic: str

    def run(self, last: int, before: Callable[[str], None] | None = None, **conf: Any) -> None:
        """Up to this batch. ``before``: called before each call of the state's participant."""
        with LocalCluster(str(self.folder)) as cluster:
            running = cluster.submitTopology("t", conf, self.topology(last, before))
            assert running.awaitTermination(120)

    def take_back(self, txid: int) -> None:
        (program,) = compile_plan(self.topology(LAST).plan, with_context({}, topology="t", run="asks"))
        rewind(component_of(str(self.folder), program), txid)

    def topology(self, last: int, before: Callable[[str], None] | None = None) -> Topology:
        topology = TridentTopology()
        stream = topology.newStream("s", FixedBatchSpout(ROW, SIZE, *rows(*range(1, last + 1))))
        if self.kind in MAPS:
            factory = MAPS[self.kind](self.broker.bootstrap, self.topic, value="n bigint", **KEYED)
            factory = factory if before is None else Weak(factory, before)
            stream.groupBy("k").persistentAggregate(factory, "n", Sum(), "total", stateName="s").parallelismHint(2)
        else:
            factory = {**ROWS, **BLIND}[self.kind](self.broker.bootstrap, self.topic)
            factory = factory if before is None else Weak(factory, before)
            stream = stream.partitionBy("k")
            stream.partitionPersist(factory, ["k", "n"], RowUpdater(), stateName="s").parallelismHint(2)
        return topology.build()

    def refused(self, words: str, last: int = LAST) -> str:
        """The text of the refusal; it has changed nothing."""
        before = self.held()
        with pytest.raises(TopologyError, match=words) as told:
            self.run(last)
        assert isinstance(told.value.__cause__, LineageError)
        assert "Choose: (1) " in str(told.value) and "Nothing was changed" in str(told.value)
        assert self.held() == before
        return str(told.value)

    def held(self) -> Any:
        """What a reader finds: the records of an append, else the last value of each key."""
        found = read(self.broker.bootstrap, self.topic)
        if self.kind in ("append", "at least once"):
            return Counter((row["k"], row["n"]) for row in (json.loads(each.value or b"null") for each in found))
        return {_plain(each.key): _plain(each.value) for each in found}

    def expected(self, *batches: int) -> Any:
        """What it should hold after these batches."""
        if self.kind in ("append", "at least once"):
            return Counter(rows(*batches))
        sums: dict[Any, int] = {}
        for key, n in rows(*batches):
            sums[key] = sums.get(key, 0) + n if self.kind in MAPS else n
        return sums

    def holds(self, *batches: int) -> None:
        assert self.held() == self.expected(*batches)

    def settles(self, *batches: int) -> None:
        """All is there, and no transaction is on its way: a lone broker of Kafka 4.3 that dies then tells nobody."""
        marks = MarkPlace(Cluster.of(self.broker.bootstrap), self.topic, "t", "s")
        assert soon(lambda: not any(marks.is_pending(part) for part in ("driver", 0, 1)))
        assert soon(lambda: self.held() == self.expected(*batches))


def _plain(data: bytes | None) -> Any:
    """A key or value of one column, as JSON or text."""
    made = json.loads(data or b"null") if (data or b"")[:1] in (b"{", b"[") or (data or b"").isdigit() else None
    if made is None:
        return (data or b"").decode()
    return next(iter(made.values())) if isinstance(made, dict) else made


def all_to(last: int) -> range:
    return range(1, last + 1)


@dataclass
class Cycle:
    """A broker whose folder was put back to an older one."""

    broker: Any
    folder: Path
    places: dict[str, Place] = field(default_factory=dict)
    offsets_alone: dict[str, str] = field(default_factory=dict)

    def place(self, name: str, kind: str) -> Place:
        made = Place(kind, self.broker, self.folder / name.replace(" ", "-"), f"topic-{name.replace(' ', '-')}")
        self.places[name] = made
        return made

    @property
    def data(self) -> Path:
        return Path(self.broker.folder) / "data"


@pytest.fixture(scope="module")
def broker(own_kafka_of_module: Callable[..., Any]) -> Any:
    return own_kafka_of_module()


def names(test: pytest.Item) -> tuple[str, str]:
    """The place that a test of `restored` looks at: its name, and its kind."""
    assert isinstance(test, pytest.Function)
    kind = test.callspec.params["kind"]
    return (f"{kind} with its checkpoint" if test.function is WITH_CHECKPOINT else kind), kind


@pytest.fixture(scope="module")
def restored(broker: Any, request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Cycle:
    """All kinds ran to batch 8, and the broker's folder is that of batch 4. Before that only its marks were.

    The kinds are those that the tests of this run look at.
    """
    cycle = Cycle(broker, tmp_path_factory.mktemp("restored"))
    tests = [each for each in request.session.items if "restored" in getattr(each, "fixturenames", ())]
    for name, kind in dict.fromkeys(map(names, tests)):
        cycle.place(name, kind).run(BACKUP)
        cycle.places[name].settles(*all_to(BACKUP))
    back_up(cycle)
    for place in cycle.places.values():
        shutil.copytree(place.folder, place.folder.with_name(place.folder.name + "-old"))
        place.run(LATER)
    cycle.broker.stop()
    put_back(cycle, "__consumer_offsets-*")
    cycle.broker.start()
    for kind in (each for each in KINDS if each in cycle.places):
        cycle.offsets_alone[kind] = cycle.places[kind].refused("has the batches up to")
        cycle.places[kind].holds(*all_to(LATER))
    cycle.broker.stop()
    put_back(cycle, "*")
    cycle.broker.start()
    return cycle


def back_up(cycle: Cycle) -> None:
    """A copy of the broker's folder in one moment, as a snapshot of its disk is."""
    cycle.broker.freeze()
    shutil.copytree(cycle.data, cycle.folder / "backup")
    cycle.broker.thaw()


def put_back(cycle: Cycle, pattern: str) -> None:
    """These of the broker's folders and files, as they were."""
    for now in cycle.data.glob(pattern):
        shutil.rmtree(now) if now.is_dir() else now.unlink()
    for old in (cycle.folder / "backup").glob(pattern):
        target = cycle.data / old.name
        shutil.copytree(old, target) if old.is_dir() else shutil.copy2(old, target)


@pytest.mark.parametrize("kind", KINDS)
def test_a_topic_put_back_from_a_backup_is_refused_and_going_on_loses_what_is_said(restored: Cycle, kind: str) -> None:
    place = restored.places[kind]
    place.holds(*all_to(BACKUP))
    told = place.refused(rf"has the batches up to {BACKUP}, the checkpoint .* has committed batch {LATER}")
    for words in (
        f"topic {place.topic!r}", f"restore the store as it was after batch {LATER}", f"'s@{BACKUP}:{LATER}'",
        f"a copy of the checkpoint of the same age, of batch {BACKUP}", "new table or topic",
    ):  # fmt: skip
        assert words in told
    place.run(LAST, **{ACCEPT: f"s@{BACKUP}:{LATER}"})
    place.holds(*all_to(BACKUP), *range(LATER + 1, LAST + 1))  # 40 of 120 records are missing
    place.run(LAST + 1)


@pytest.mark.parametrize("kind", KINDS)
def test_a_topic_put_back_with_a_checkpoint_that_is_as_old_goes_on_exactly(restored: Cycle, kind: str) -> None:
    place = restored.places[f"{kind} with its checkpoint"]
    place.refused(rf"has the batches up to {BACKUP}, the checkpoint .* has committed batch {LATER}")
    shutil.rmtree(place.folder)
    place.folder.with_name(place.folder.name + "-old").rename(place.folder)
    place.run(LAST)
    place.holds(*all_to(LAST))


WITH_CHECKPOINT = test_a_topic_put_back_with_a_checkpoint_that_is_as_old_goes_on_exactly


@pytest.mark.parametrize("kind", KINDS)
def test_marks_put_back_alone_are_refused(restored: Cycle, kind: str) -> None:
    assert f"has the batches up to {BACKUP}, the checkpoint" in restored.offsets_alone[kind]


@pytest.mark.parametrize("kind", BLIND)
def test_a_state_that_keeps_no_txids_does_not_notice(restored: Cycle, kind: str) -> None:
    """As docs/kafka.md says."""
    place = restored.places[kind]
    place.run(LAST)
    place.holds(*all_to(BACKUP), *range(LATER + 1, LAST + 1))


@pytest.mark.parametrize("kind", KINDS)
def test_a_checkpoint_one_batch_older_than_the_topic_is_refused(broker: Any, tmp_path: Path, kind: str) -> None:
    """With the checkpoint of today it goes on."""
    place = Place(kind, broker, tmp_path / "checkpoints", f"older-{kind}")
    place.run(BACKUP)
    shutil.copytree(place.folder, tmp_path / "old")
    place.run(BACKUP + 1)
    place.folder.rename(tmp_path / "new")
    shutil.copytree(tmp_path / "old", place.folder)
    place.refused(rf"has batch {BACKUP + 1}; the checkpoint .* has committed batch {BACKUP}")
    shutil.rmtree(place.folder)
    (tmp_path / "new").rename(place.folder)
    place.run(LAST)
    place.holds(*all_to(LAST))


@pytest.mark.parametrize("kind", ["append", pytest.param("opaque", marks=pytest.mark.whole)])
def test_a_broker_put_back_under_a_driver_ends_the_run_and_a_rewind_gives_it_what_it_lacks(
    broker: Any, tmp_path: Path, kind: str
) -> None:
    """Its producers' records are refused, since the broker misses those before; the marks then tell why. The next run
    in this process reads the topic anew, also if an error of this one still refers to its copy."""
    place = Place(kind, broker, tmp_path / "checkpoints", f"back-{kind}")
    cycle = Cycle(broker, tmp_path)
    published: list[str] = []
    over: set[int] = set()

    def restored(call: str) -> None:
        published.extend([call] if call == "publish" else [])
        complete = len(published)
        if call != "prepare" or complete in over:  # a batch whose commit the restart has failed is prepared again
            return
        over.add(complete)
        if complete == 2:
            place.settles(1, 2)
            back_up(cycle)
        elif complete == 5:
            cycle.broker.stop()
            put_back(cycle, "*")
            cycle.broker.start()

    with pytest.raises(TopologyError, match="its last complete batch is 2, and this driver has completed batch 5"):
        place.run(6, restored)
    place.holds(1, 2)
    place.refused(r"has the batches up to 2, the checkpoint .* has committed batch 5")
    place.take_back(2)
    place.run(LAST)
    place.holds(*all_to(LAST))


@pytest.mark.parametrize("marks", ["forgotten", "there"])
@pytest.mark.parametrize("kind", KINDS)
def test_a_topic_deleted_and_made_anew_is_refused(broker: Any, tmp_path: Path, kind: str, marks: str) -> None:
    """Brokers forget the marks a moment after the topic; those of a restored offsets topic are there."""
    place = Place(kind, broker, tmp_path / "checkpoints", f"anew-{kind}-{marks}")
    place.run(BACKUP)
    kept = committed(place) if marks == "there" else {}
    admin = AdminClient({"bootstrap.servers": broker.bootstrap, "log_level": 0})
    admin.delete_topics([place.topic], operation_timeout=30)[place.topic].result(30)
    policy = "delete" if kind == "append" else "compact"
    broker.create_topic(place.topic, partitions=2, cleanup_policy=policy)
    for group, offset in kept.items():
        consumer = Consumer({"bootstrap.servers": broker.bootstrap, "group.id": group, "log_level": 0})
        consumer.commit(offsets=[offset], asynchronous=False)
        consumer.close()
    told = place.refused("knows nothing of this state", LATER)
    assert f"'s@0:{BACKUP}'" in told
    place.run(LATER, **{ACCEPT: f"s@0:{BACKUP}"})
    place.holds(*range(BACKUP + 1, LATER + 1))


def committed(place: Place) -> dict[str, TopicPartition]:
    """The marks of the state, by group."""
    found = {}
    for part in ("0", "1", "driver"):
        group = f"trident/t/s/{part}"
        consumer = Consumer({"bootstrap.servers": place.broker.bootstrap, "group.id": group, "log_level": 0})
        (found[group],) = consumer.committed([TopicPartition(place.topic, 0)], 30)
        consumer.close()
    return {group: offset for group, offset in found.items() if offset.offset >= 0}


@pytest.mark.parametrize("part", ["0", "1", "driver"])
def test_a_mark_that_was_removed_is_told(broker: Any, tmp_path: Path, part: str) -> None:
    """It reads as if the partition had written nothing, and a batch half written would be there twice."""
    place = Place("append", broker, tmp_path / "checkpoints", f"marks-{part}")
    place.run(BACKUP)
    admin = AdminClient({"bootstrap.servers": broker.bootstrap, "log_level": 0})
    group = f"trident/t/s/{part}"
    admin.delete_consumer_groups([group])[group].result(30)
    place.refused("knows nothing of this state" if part == "driver" else f"the mark of partition {part} is gone", LATER)
    place.run(LATER, **{ACCEPT: f"s@0:{BACKUP}"})
    place.holds(*all_to(LATER))
