"""Partitioned spouts: the rules of Storm's two executors, over attempts, restarts and changing partitions."""

import contextlib
import os
from dataclasses import dataclass, field

import pytest

from trident_py.checkpoints.append_log import AppendLogStore
from trident_py.errors import FailedException, SpoutError
from trident_py.spouts import (
    IOpaquePartitionedTridentSpout,
    IPartitionedTridentSpout,
    ISpoutPartition,
    MemoryMetadataStore,
    WrongNumberOfValues,
)
from trident_py.tuples import TransactionAttempt

from .harness import Player, flat

CALLS: list = []
SOURCE: dict[str, list] = {}  # partition -> all its tuples; a batch takes the next two


@pytest.fixture(autouse=True)
def source():
    CALLS.clear()
    SOURCE.clear()
    SOURCE.update({"a": list("ABCDEFGH"), "b": list("stuvwxyz")})


@dataclass(frozen=True)
class Part(ISpoutPartition):
    name: str

    def getId(self):
        return self.name


class Emitting:
    def getOrderedPartitions(self, info):
        return [Part(name) for name in sorted(info)]

    def refreshPartitions(self, mine):
        CALLS.append(("refresh", [p.name for p in mine]))

    def read(self, collector, partition, start):
        end = min(start + 2, len(SOURCE[partition.name]))
        for value in SOURCE[partition.name][start:end]:
            collector.emit([value])
        return {"start": start, "end": end}


class NewEmitter(Emitting):
    def emitBatchNew(self, tx, collector, partitions, last):
        CALLS.append(("new", tuple(tx), {p.name: last[p] and last[p]["end"] for p in partitions}))
        return {p: self.read(collector, p, last[p]["end"] if last[p] else 0) for p in partitions}

    def reEmitPartitionBatch(self, tx, collector, partition, meta):
        CALLS.append(("again", tuple(tx), partition.name, meta))
        for value in SOURCE[partition.name][meta["start"] : meta["end"]]:
            collector.emit([value])


class OldEmitter(Emitting):
    """The methods of Storm up to 2.6."""

    def emitPartitionBatchNew(self, tx, collector, partition, last):
        CALLS.append(("old new", tuple(tx), partition.name, last and last["end"]))
        return self.read(collector, partition, last["end"] if last else 0)

    def emitPartitionBatch(self, tx, collector, partition, meta):
        CALLS.append(("old again", tuple(tx), partition.name))
        for value in SOURCE[partition.name][meta["start"] : meta["end"]]:
            collector.emit([value])


class OldOpaqueEmitter(Emitting):
    def emitPartitionBatch(self, tx, collector, partition, last):
        return self.read(collector, partition, last["end"] if last else 0)


class Killed(Exception):
    """Stands for the end of the driver."""


class Dying(MemoryMetadataStore):
    left = 99

    def put(self, path, txid, value):
        if self.left == 0:
            raise Killed
        self.left -= 1
        super().put(path, txid, value)


class Listing:
    def getPartitionsForBatch(self):
        return list(SOURCE)

    def isReady(self, txid):
        return True


@dataclass
class Transactional(IPartitionedTridentSpout):
    emitter: type = NewEmitter

    def getOutputFields(self):
        return "v"

    def getCoordinator(self, conf, context):
        return Listing()

    def getEmitter(self, conf, context):
        return self.emitter()


@dataclass
class Opaque(IOpaquePartitionedTridentSpout):
    emitter: type = NewEmitter
    conf: dict = field(default_factory=dict)

    def getOutputFields(self):
        return "v"

    def getCoordinator(self, conf, context):
        return Listing()

    def getEmitter(self, conf, context):
        return self.emitter()


def values(rows):
    return "".join(value for (value,) in flat(rows))


def calls(kind):
    return [call for call in CALLS if call[0] == kind]


@pytest.mark.parametrize("emitter", [NewEmitter, OldEmitter])
def test_a_late_task_of_an_attempt_that_was_given_up_records_nothing(emitter):
    """It has emitted other tuples than the attempt that commits, behind which the next batch must begin."""
    player, late = Player(Transactional(emitter)), Player(Transactional(emitter))
    late.tasks[0, 0]._store = player.store
    SOURCE["b"] = []  # not there yet when the first attempt is emitted
    (descriptor,) = player.describe(1, attempt=0)
    player.describe(1, attempt=1)
    with pytest.raises(FailedException, match="was given up"):
        late._emit(descriptor, TransactionAttempt(1, 0))
    SOURCE["b"] = list("stuvwxyz")
    assert values(player.batch(1, attempt=1)) == "ABst"
    assert player.store.get("s0/user/b", 1) == {"start": 0, "end": 2}
    assert values(player.batch(2)) == "CDuv"


def test_of_two_tasks_of_one_attempt_that_emit_different_tuples_the_second_fails():
    """Spark may run a task twice at once. A replay emits what the first one has recorded."""
    player, other = Player(Transactional()), Player(Transactional())
    other.tasks[0, 0]._store = player.store
    (descriptor,) = player.describe(1)
    new, again = player.tasks[0, 0]._emitter.emitBatchNew, "AB"

    def emit_meanwhile(tx, collector, partitions, last):
        assert values(other._emit(descriptor, tx)) == again + "st"
        SOURCE["a"] = list("A")
        return new(tx, collector, partitions, last)

    player.tasks[0, 0]._emitter.emitBatchNew = emit_meanwhile
    with pytest.raises(FailedException, match="another task has emitted"):
        player._emit(descriptor, TransactionAttempt(1, 0))
    SOURCE["a"] = list("ABCDEFGH")
    assert values(player.batch(1, attempt=1)) == "ABst"


# Transactional


@pytest.mark.parametrize("emitter", [NewEmitter, OldEmitter])
def test_a_transactional_replay_emits_what_its_metadata_says(emitter):
    player = Player(Transactional(emitter))
    assert values(player.emit(1)) == "ABst"
    assert values(player.emit(1, 1)) == "ABst"
    player.batch(1, 2)
    assert values(player.batch(2)) == "CDuv"


@pytest.mark.parametrize("emitter", [NewEmitter, OldEmitter])
def test_transactional_metadata_is_stored_at_emit_and_survives_a_restart(emitter, tmp_path):
    first = Player(Transactional(emitter), store=AppendLogStore(tmp_path))
    first.batch(1)
    emitted = first.emit(2)  # and the process dies before the commit
    SOURCE["a"].append("later")
    again = Player(Transactional(emitter), store=AppendLogStore(tmp_path), restored=first.logged, committed=1)
    assert again.emit(2) == emitted
    again.batch(2, 1)
    assert values(again.batch(3)) == "EFwx"


def test_emit_new_gets_the_metadata_of_the_closest_earlier_txid_and_none_before_the_first():
    player = Player(Transactional())
    player.batch(1)
    player.batch(2)
    assert [call[2] for call in calls("new")] == [{"a": None, "b": None}, {"a": 2, "b": 2}]


def test_a_new_partition_does_not_leak_into_a_replayed_transactional_batch():
    player = Player(Transactional(), partitions=3)  # the third task would have only the new one
    player.emit(1)
    SOURCE["c"] = list("123")
    assert values(player.emit(1, 1)) == "ABst"
    player.batch(1, 2)
    assert values(player.batch(2)) == "CDuv12"


def test_the_partition_list_is_frozen_even_if_the_cluster_forgot_the_metadata_of_the_failed_attempt():
    player = Player(Transactional(), partitions=3)
    player.emit(1)
    player.logged.clear()
    SOURCE["c"] = list("123")
    assert values(player.emit(1, 1)) == "ABst"


@pytest.mark.parametrize("written", range(4))
@pytest.mark.parametrize("partitions", [1, 2])
@pytest.mark.parametrize("emitter", [NewEmitter, OldEmitter])
def test_a_driver_killed_between_two_partitions_metadata_loses_and_doubles_nothing(emitter, partitions, written):
    """Nothing of a partition without metadata was committed, so it waits for the next batch. The spout is not asked for
    a batch without metadata, with another number of tasks neither."""
    SOURCE["c"] = list("123456")
    store = Dying()
    first = Player(Transactional(emitter), store=store)
    found = values(first.batch(1))
    store.left = written
    with contextlib.suppress(Killed):
        first.emit(2)
    store.left = 99
    restarted = {"store": store, "restored": first.logged, "committed": 1}
    again = Player(Transactional(emitter), partitions=partitions, **restarted)
    found += "".join(values(again.batch(txid)) for txid in range(2, 7))
    assert sorted(found) == sorted("ABCDEFGH" + "stuvwxyz" + "123456")
    assert not [call for call in calls("again") if call[3] is None]


def test_a_tasks_metadata_is_durable_in_one_step(tmp_path, monkeypatch):
    store, synced = AppendLogStore(tmp_path), []
    player = Player(Transactional(), store=store)
    player.batch(1)
    player.describe(2)
    monkeypatch.setattr(os, "fdatasync", synced.append)
    player.emit(2)
    assert len(synced) == 1
    monkeypatch.undo()
    store.close()


def test_an_old_emitter_skips_a_partition_without_metadata_once_a_later_txid_has_some():
    player = Player(Transactional(OldEmitter))
    player.batch(1)
    player.emit(2)
    player.emit(3)
    player.store.remove("s0/user/b", 2)
    assert values(player.emit(2, 1)) == "CD"


def test_every_num_tasks_th_partition_belongs_to_a_task():
    SOURCE["c"] = list("123456")
    assert [values([rows]) for rows in Player(Transactional(), partitions=2).batch(1)] == ["AB12", "st"]
    assert calls("refresh") == [("refresh", ["a", "c"]), ("refresh", ["b"])]


def test_refresh_comes_only_when_the_partitions_changed():
    player = Player(Transactional())
    player.batch(1)
    player.batch(2)
    SOURCE["c"] = list("12")
    player.batch(3)
    assert calls("refresh") == [("refresh", ["a", "b"]), ("refresh", ["a", "b", "c"])]


def test_a_task_without_partitions_emits_nothing():
    assert [len(rows) for rows in Player(Transactional(), partitions=3).batch(1)] == [2, 2, 0]


def test_an_emit_that_fails_stores_nothing_and_the_replay_is_new():
    class Failing(NewEmitter):
        def emitBatchNew(self, tx, collector, partitions, last):
            if tx.attemptId == 0:
                raise FailedException("not now")
            return super().emitBatchNew(tx, collector, partitions, last)

    player = Player(Transactional(Failing))
    with pytest.raises(FailedException):
        player.emit(1)
    assert player.store.paths("") == []
    assert values(player.emit(1, 1)) == "ABst"


def test_success_cleans_up_what_is_older_and_a_missing_success_loses_nothing():
    player = Player(Transactional(), conf={"topology.txid.kept": 0})
    for txid in (1, 2, 3):
        player.emit(txid)
        player.commit(txid)
    player.coordination.success(3)  # those of 1 and 2 got lost
    assert [player.store.get("s0/user/a", txid) is None for txid in (1, 2, 3)] == [True, True, False]
    assert values(player.batch(4)) == "GHyz"


def test_a_row_of_the_wrong_length_from_a_task_is_refused_at_emit():
    class Wide(NewEmitter):
        def emitBatchNew(self, tx, collector, partitions, last):
            collector.emit(["x", "y"])

    with pytest.raises(WrongNumberOfValues, match=r"'s0'.*Expected 1 fields but got 2 fields.*\['x', 'y'\]"):
        Player(Transactional(Wide)).emit(1)


def test_metadata_that_is_not_json_is_refused_naming_the_partition():
    class Odd(NewEmitter):
        def emitBatchNew(self, tx, collector, partitions, last):
            return {p: object() for p in partitions}

    with pytest.raises(SpoutError, match="s0/user/a"):
        Player(Transactional(Odd)).emit(1)


def test_metadata_for_a_partition_of_nobody_is_refused():
    class Odd(NewEmitter):
        def emitBatchNew(self, tx, collector, partitions, last):
            return {"zebra": 1}

    with pytest.raises(SpoutError, match="'zebra'; the partitions of this task are: a, b"):
        Player(Transactional(Odd)).emit(1)


def test_a_partition_that_cannot_be_a_key_is_refused_with_the_remedy():
    @dataclass
    class Loose:
        name: str

    class Odd(NewEmitter):
        def getOrderedPartitions(self, info):
            return [Loose(name) for name in info]

    with pytest.raises(SpoutError, match="frozen dataclass"):
        Player(Transactional(Odd)).emit(1)


# Opaque


def position(player, partition, txid):
    return (player.store.get("s0/positions", txid) or {}).get(partition)


@pytest.mark.parametrize("emitter", [NewEmitter, OldOpaqueEmitter])
def test_an_opaque_replay_starts_from_the_last_committed_metadata_and_may_differ(emitter):
    player = Player(Opaque(emitter))
    player.batch(1)
    assert values(player.emit(2)) == "CDuv"
    SOURCE["a"][2] = "!"
    assert values(player.emit(2, 1)) == "!Duv"
    player.commit(2, 1)
    assert values(player.batch(3)) == "EFwx"


def test_opaque_metadata_counts_only_once_committed():
    player = Player(Opaque())
    player.emit(1)
    assert player.store.paths("") == []
    player.commit(1)
    assert position(player, "a", 1) == {"start": 0, "end": 2}


def test_an_opaque_batch_that_was_committed_but_not_ended_is_emitted_from_the_txid_before(tmp_path):
    first = Player(Opaque(), store=AppendLogStore(tmp_path))
    first.batch(1)
    first.emit(2)
    first.commit(2)  # and the process dies before the cluster knows
    again = Player(Opaque(), store=AppendLogStore(tmp_path), restored=first.logged, committed=1)
    SOURCE["a"][2:4] = "12"
    assert values(again.emit(2)) == "12uv"
    again.commit(2)
    assert position(again, "a", 2) == {"start": 2, "end": 4}
    assert values(again.batch(3)) == "EFwx"


def test_an_opaque_spout_is_asked_for_its_partitions_again_on_replay():
    player = Player(Opaque())
    player.emit(1)
    SOURCE["c"] = list("123")
    assert values(player.emit(1, 1)) == "ABst12"


def test_partitions_that_are_gone_lose_what_a_failed_commit_wrote_for_this_txid():
    player = Player(Opaque(), partitions=2)
    player.batch(1)
    player.emit(2)
    player.commit(2)  # the batch fails behind this
    del SOURCE["b"]
    player.emit(2, 1)
    player.commit(2, 1)
    assert position(player, "b", 2) == position(player, "b", 1) == {"start": 0, "end": 2}
    assert position(player, "a", 2) == {"start": 2, "end": 4}


def test_a_commit_writes_one_line_however_many_partitions_there_are(tmp_path):
    SOURCE.update({f"p{i}": list("12345678") for i in range(30)})
    player = Player(Opaque(), partitions=8, store=AppendLogStore(tmp_path))
    player.batch(1)
    before = len((tmp_path / "journal").read_bytes().splitlines())
    player.batch(2)
    added = (tmp_path / "journal").read_bytes().splitlines()[before:]
    assert len(added) == 1 and b"s0/positions" in added[0]
    again = Player(Opaque(), partitions=8, store=AppendLogStore(tmp_path), restored=player.logged, committed=2)
    assert values(again.emit(3)).count("56") == 30


def test_positions_that_an_older_version_kept_apart_are_found(tmp_path):
    store = AppendLogStore(tmp_path)
    store.put("s0/user/a", 1, {"start": 0, "end": 2})
    store.put("s0/user/a", 2, {"start": 2, "end": 4})
    store.put("s0/user/b", 1, {"start": 0, "end": 2})
    player = Player(Opaque(), store=store, restored={1: {"s0": ["a", "b"]}}, committed=1)
    assert values(player.emit(2)) == "CDuv"  # batch 2 was written, but not committed
    player.commit(2)
    assert values(player.emit(2, 1)) == "CDuv"
    player.commit(2, 1)
    player.coordination.success(2)
    assert values(player.batch(3)) == "EFwx"


def test_a_partition_that_reports_nothing_keeps_its_position():
    player = Player(Opaque())
    player.batch(1)
    gone = SOURCE.pop("b")
    player.batch(2)
    SOURCE["b"] = gone
    assert values(player.batch(3)) == "EFuv"


def test_a_retried_task_reports_once_more_and_nothing_is_lost():
    player = Player(Opaque())
    player.emit(1)
    lost = player.reports
    assert values(player.emit(1)) == "ABst"  # the engine ran the task of the same attempt again
    player.coordination.commit(1, 0, [None, *player.reports])
    assert lost == player.reports
    assert values(player.batch(2)) == "CDuv"


# What travels with the descriptors of an opaque spout


def payloads(player, txid, attempt=0):
    metadata = player.coordination.initialize(txid, attempt)
    return [descriptor.payload for descriptor in player.coordination.descriptors(txid, attempt, metadata)]


def test_a_batch_sends_each_position_once_and_a_replay_sends_all_to_all():
    player = Player(Opaque(), partitions=2)
    player.batch(1)
    ends = {"a": {"start": 0, "end": 2}, "b": {"start": 0, "end": 2}}
    assert [payload["last"] for payload in payloads(player, 2)] == [{"a": ends["a"]}, {"b": ends["b"]}]
    assert [payload["last"] for payload in payloads(player, 2, 1)] == [ends, ends]


def test_all_positions_are_sent_when_the_partitions_have_changed():
    player = Player(Opaque(), partitions=2)
    player.batch(1)
    SOURCE["0"] = list("12")
    assert [sorted(payload["last"]) for payload in payloads(player, 2)] == [["a", "b"], ["a", "b"]]
    assert values(player.emit(2)) == "12uvCD"
    player.batch(2)
    assert [sorted(payload["last"]) for payload in payloads(player, 3)] == [["0", "b"], ["a"]]


class Wandering(NewEmitter):
    """Deals the partitions in turn, whatever the list says."""

    turn = 0

    def getPartitionsForTask(self, task, tasks, ordered):
        return ordered[(task + Wandering.turn) % tasks :: tasks]


def test_a_partition_that_moves_although_the_list_is_the_same_is_a_replay():
    player = Player(Opaque(Wandering), partitions=2)
    player.batch(1)
    Wandering.turn = 1
    for task in player.tasks.values():
        task._payloads = []  # as in another process
    with pytest.raises(FailedException, match="'b' has moved to another task"):
        player.emit(2)
    assert values(player.emit(2, 1)) == "uvCD"
    player.commit(2, 1)
    assert [sorted(payload["last"]) for payload in payloads(player, 3)] == [["b"], ["a"]]
    Wandering.turn = 0


def after_a_commit_that_nobody_heard_of():
    """Batch 2 has written its metadata; then the driver died. Another one begins."""
    player = Player(Opaque())
    player.batch(1)
    player.emit(2)
    player.commit(2)
    return Player(Opaque(), store=player.store, restored=player.logged, committed=1)


def test_a_batch_that_is_described_again_but_not_emitted_keeps_its_metadata():
    """A state has decided it, so the driver only publishes it."""
    player = after_a_commit_that_nobody_heard_of()
    payloads(player, 2)
    player.coordination.success(2)
    assert values(player.emit(3)) == "EFwx"


def test_a_batch_that_is_emitted_again_begins_before_the_metadata_that_its_last_try_has_written():
    player = after_a_commit_that_nobody_heard_of()
    SOURCE["a"] = list("AB")
    assert values(player.batch(2)) == "uv"
    assert position(player, "a", 2) == {"start": 2, "end": 2}
    assert values(player.emit(3)) == "wx"


def test_a_partition_that_the_last_try_had_and_this_one_has_not_keeps_its_place_before_the_batch():
    player = after_a_commit_that_nobody_heard_of()
    kept = SOURCE.pop("a")
    assert values(player.batch(2)) == "uv"
    SOURCE["a"] = kept
    assert values(player.emit(3)) == "CDwx"


def test_metadata_of_a_try_goes_if_the_next_one_has_none():
    player = after_a_commit_that_nobody_heard_of()
    SOURCE.clear()
    player.batch(2)
    assert player.store.get("s0/positions", 2) is None
