"""Home spouts, committers, several spouts in one component, and the coordination itself."""

import json
from dataclasses import dataclass, field

import pytest

from trident_py.errors import DefinitionError, FailedException, SpoutError
from trident_py.spouts import (
    FixedBatchSpout,
    IBatchSpout,
    ICommitterTridentSpout,
    IRichSpout,
    ITridentSpout,
    SparkSpout,
    check_spout,
    is_home,
    output_fields,
)

from .harness import Player, flat

CALLS: list = []


@pytest.fixture(autouse=True)
def calls():
    CALLS.clear()
    return CALLS


@dataclass
class Numbers(IBatchSpout):
    """Emits (partition, count of calls); remembers nothing."""

    fail: tuple = ()
    seen: int = 0

    def open(self, conf, context):
        self.context = context
        CALLS.append(("open", context.getPartitionIndex(), context.numPartitions()))

    def emitBatch(self, batchId, collector):
        self.seen += 1
        CALLS.append(("emit", batchId, tuple(self.context.transaction)))
        if tuple(self.context.transaction) in self.fail:
            raise FailedException("scripted")
        collector.emit([self.context.getPartitionIndex(), self.seen])

    def ack(self, batchId):
        CALLS.append(("ack", batchId))

    def close(self):
        CALLS.append(("close",))

    def getOutputFields(self):
        return ["partition", "seen"]


def test_a_batch_spout_is_opened_once_for_each_partition_and_each_has_its_own_instance():
    spout = Numbers()
    player = Player(spout, partitions=2)
    assert player.batch(1) == [[(0, 1)], [(1, 1)]]
    assert CALLS[:2] == [("open", 0, 2), ("open", 1, 2)]
    assert spout.seen == 0


def test_a_batch_spout_emits_again_on_every_attempt_with_the_same_batch_id():
    player = Player(Numbers())
    player.emit(1)
    player.emit(1, 1)
    assert [call for call in CALLS if call[0] == "emit"] == [("emit", 1, (1, 0)), ("emit", 1, (1, 1))]


def test_asking_twice_for_the_descriptors_of_one_attempt_emits_once():
    player = Player(Numbers())
    player.emit(1)
    player.coordination.descriptors(1, 0, player.logged[1])
    assert len([call for call in CALLS if call[0] == "emit"]) == 1


def test_a_batch_spout_is_acked_on_success_and_closed_at_the_end():
    player = Player(Numbers())
    player.batch(1)
    player.close()
    assert CALLS[-2:] == [("ack", 1), ("close",)]


def test_a_failed_exception_from_emit_batch_reaches_the_loop_and_the_replay_works():
    player = Player(Numbers(fail=((1, 0),)))
    with pytest.raises(FailedException, match="scripted") as error:
        player.emit(1)
    assert error.value.__notes__ == ["in spout 's0', txid 1, attempt 0"]
    assert player.emit(1, 1) == [[(0, 2)]]


def test_an_endless_spout_is_always_ready_and_never_exhausted():
    coordination = Player(Numbers()).coordination
    assert coordination.ready(1)
    assert not coordination.is_exhausted()


def test_is_exhausted_makes_a_batch_spout_finite():
    class Two(Numbers):
        def isExhausted(self):
            return self.seen >= 2

    assert len(Player(Two()).to_end()) == 2


def test_reported_errors_name_the_spout():
    class Reporting(Numbers):
        def emitBatch(self, batchId, collector):
            collector.reportError(ValueError("odd"))

    player = Player(Reporting())
    player.emit(1)
    assert player.reported == [("s0", "odd")]


# Several spouts in one component


def test_spouts_that_end_earlier_emit_empty_batches_until_all_have_ended():
    short, long = FixedBatchSpout("n", 1, (1,)), FixedBatchSpout("n", 1, (7,), (8,), (9,))
    assert Player(short, long).to_end() == [[[(1,)], [(7,)]], [[], [(8,)]], [[], [(9,)]]]


@dataclass
class Described(ITridentSpout):
    """Logs what its coordinator is asked; ready from a txid on."""

    ready: int = 1
    name: str = "x"

    def getOutputFields(self):
        return "v"

    def getCoordinator(self, txStateId, conf, context):
        return _Coordinator(self)

    def getEmitter(self, txStateId, conf, context):
        return _Emitter(self.name)


@dataclass
class _Coordinator:
    spout: Described
    metadata: dict = field(default_factory=dict)

    def initializeTransaction(self, txid, prevMetadata, currMetadata):
        CALLS.append((self.spout.name, txid, prevMetadata, currMetadata))
        return currMetadata or {"txid": txid, "pair": (1, 2)}

    def isReady(self, txid):
        return txid >= self.spout.ready

    def success(self, txid):
        CALLS.append(("success", self.spout.name, txid))

    def close(self):
        CALLS.append(("closed", self.spout.name))


@dataclass
class _Emitter:
    name: str

    def emitBatch(self, tx, coordinatorMeta, collector):
        collector.emit([json.dumps(coordinatorMeta)])

    def success(self, tx):
        CALLS.append(("emitter success", tuple(tx)))

    def close(self):
        CALLS.append(("emitter closed",))


def test_any_ready_spout_starts_a_batch_and_all_coordinators_initialize():
    player = Player(Described(name="early"), Described(ready=5, name="late"))
    assert player.coordination.ready(1)
    player.emit(1)
    assert CALLS == [("early", 1, None, None), ("late", 1, None, None)]


def test_no_ready_spout_starts_no_batch():
    assert not Player(Described(ready=3)).coordination.ready(2)


def test_an_ended_spout_is_not_ready_even_if_it_says_so():
    player = Player(FixedBatchSpout("n", 1, (1,)), Described(ready=3))
    assert [player.coordination.ready(txid) for txid in (1, 2, 3)] == [True, False, True]


def test_the_coordinator_gets_the_previous_and_on_replay_the_current_metadata():
    player = Player(Described())
    player.batch(1)
    player.emit(2)
    player.emit(2, 1)
    one, two = {"txid": 1, "pair": [1, 2]}, {"txid": 2, "pair": [1, 2]}
    assert [call for call in CALLS if call[0] == "x"] == [
        ("x", 1, None, None),
        ("x", 2, one, None),
        ("x", 2, one, two),
    ]


def test_emitters_see_metadata_as_json_makes_it_from_the_first_attempt_on():
    player = Player(Described())
    first, replayed = player.emit(1), player.emit(1, 1)
    assert first == replayed == [[('{"txid": 1, "pair": [1, 2]}',)]]


def test_metadata_that_is_not_json_is_refused_naming_spout_and_txid():
    class Odd(Described):
        def getCoordinator(self, txStateId, conf, context):
            coordinator = _Coordinator(self)
            coordinator.initializeTransaction = lambda *a: {1, 2}
            return coordinator

    with pytest.raises(SpoutError, match=r"'s0', txid 1.*JSON"):
        Player(Odd()).emit(1)


def test_success_reaches_the_coordinator_and_with_the_next_batch_the_emitter():
    player = Player(Described())
    player.batch(1)
    assert ("success", "x", 1) in CALLS
    assert ("emitter success", (1, 0)) not in CALLS
    player.emit(2)
    assert CALLS.count(("emitter success", (1, 0))) == 1
    player.tasks[0, 0].success(2)
    player.tasks[0, 0].success(2)
    assert CALLS.count(("emitter success", (2, 0))) == 1


def test_a_failed_exception_after_the_commit_does_not_undo_it():
    class Late(Numbers):
        def ack(self, batchId):
            raise FailedException("too late")

    player = Player(Late(), Described())
    player.batch(1)
    assert ("success", "x", 1) in CALLS


def test_close_closes_every_spout_and_raises_the_first_error():
    class Stuck(Numbers):
        def close(self):
            raise OSError("stuck")

    player = Player(Stuck(), Numbers())
    with pytest.raises(OSError, match="stuck"):
        player.close()
    assert ("close",) in CALLS


def test_a_spout_that_fails_to_open_leaves_none_open():
    class Broken(Numbers):
        def open(self, conf, context):
            raise OSError("no door")

    with pytest.raises(OSError, match="no door"):
        Player(Numbers(), Broken())
    assert CALLS[-1] == ("close",)


def test_a_spout_whose_emitter_cannot_be_made_leaves_nothing_open():
    class Broken(Committer):
        def getEmitter(self, txStateId, conf, context):
            if context.getPartitionIndex() == 1:
                raise OSError("no door")
            return super().getEmitter(txStateId, conf, context)

    with pytest.raises(OSError, match="no door"):
        Player(Broken(), partitions=2)
    assert CALLS == [("emitter closed",), ("closed", "x")]


# Committers


class Committer(Described, ICommitterTridentSpout):
    def getEmitter(self, txStateId, conf, context):
        return _Committing(self.name)


class _Committing(_Emitter):
    def commit(self, attempt):
        CALLS.append(("commit", tuple(attempt)))
        if tuple(attempt) == (1, 0):
            raise FailedException("scripted")


def test_a_committer_commits_its_attempt_and_failing_it_fails_the_batch():
    player = Player(Committer())
    player.emit(1)
    with pytest.raises(FailedException, match="scripted"):
        player.commit(1)
    player.batch(1, 1)
    assert [call for call in CALLS if call[0] == "commit"] == [("commit", (1, 0)), ("commit", (1, 1))]
    assert CALLS[-1] == ("emitter success", (1, 1))


def test_a_commit_for_another_attempt_is_refused():
    player = Player(Committer())
    player.emit(1, 1)
    with pytest.raises(FailedException, match="Received commit for different transaction attempt 1:2"):
        player.commit(1, 2)


def test_committers_live_in_the_driver_process_and_other_emitters_in_the_tasks():
    assert is_home(Committer())
    assert not is_home(Described())


# IRichSpout


@dataclass
class Rich(IRichSpout):
    """A queue of messages; a failed one goes back to the end."""

    messages: list
    opened: bool = False

    def declareOutputFields(self, declarer):
        declarer.declare(["m"])

    def open(self, conf, context, collector):
        CALLS.append(("open",))
        self.collector = collector

    def activate(self):
        CALLS.append(("activate",))

    def nextTuple(self):
        if self.messages:
            message = self.messages.pop(0)
            self.collector.emit([message], messageId=message)

    def ack(self, msgId):
        CALLS.append(("ack", msgId))

    def fail(self, msgId):
        CALLS.append(("fail", msgId))
        self.messages.append(msgId)


def test_a_rich_spout_opens_at_its_first_batch_and_is_never_activated():
    player = Player(Rich(["a"]))
    assert CALLS == []
    player.batch(1)
    assert CALLS == [("open",), ("ack", "a")]


def test_a_rich_spouts_batch_is_limited_by_the_setting():
    player = Player(Rich(list("abcde")), conf={"topology.spout.max.batch.size": 2})
    assert [len(flat(player.batch(txid))) for txid in (1, 2, 3)] == [2, 2, 1]


def test_a_rich_spouts_batch_has_at_most_1000_calls_without_the_setting():
    assert len(flat(Player(Rich(list(range(1500)))).batch(1))) == 1000


def test_an_idle_rich_spout_is_asked_as_rarely_in_later_batches_as_in_the_first():
    @dataclass
    class Counting(Rich):
        def nextTuple(self):
            CALLS.append("next")
            super().nextTuple()

    player = Player(Counting(list(range(50))))
    player.batch(1)
    CALLS.clear()
    player.batch(2)
    assert CALLS.count("next") == 2  # Storm's counter over all batches would allow 50


def test_message_ids_are_acked_on_success_and_not_before():
    player = Player(Rich(["a", "b"]))
    player.emit(1)
    player.commit(1)
    assert ("ack", "a") not in CALLS
    player.coordination.success(1)
    assert CALLS[-2:] == [("ack", "a"), ("ack", "b")]


def test_on_re_emission_the_ids_are_failed_first_and_a_new_batch_is_drawn():
    player = Player(Rich(["a", "b"]), conf={"topology.spout.max.batch.size": 1})
    assert player.emit(1) == [[("a",)]]
    assert player.emit(1, 1) == [[("b",)]]
    assert CALLS == [("open",), ("fail", "a")]
    player.commit(1, 1)
    player.coordination.success(1)
    assert CALLS[-1] == ("ack", "b")
    assert player.batch(2) == [[("a",)]]


def test_a_later_success_acks_what_a_missing_one_left():
    player = Player(Rich(["a", "b"]), conf={"topology.spout.max.batch.size": 1})
    player.emit(1)
    player.emit(2)
    player.coordination.success(2)
    assert CALLS[-2:] == [("ack", "a"), ("ack", "b")]


# What a spout is


@pytest.mark.parametrize("thing", [None, 7, [("a",)], object()])
def test_what_is_no_spout_is_refused_with_the_list_of_spouts(thing):
    with pytest.raises(DefinitionError, match="a spout is one of: IBatchSpout, ITridentSpout"):
        check_spout(thing)


def test_a_class_instead_of_an_instance_is_refused():
    with pytest.raises(DefinitionError, match=r"Numbers is a class.*Numbers\(\.\.\.\)"):
        check_spout(Numbers)


def test_a_spout_without_fields_is_refused():
    class Bare(IBatchSpout):
        pass

    with pytest.raises(DefinitionError, match=r"Bare\.getOutputFields"):
        output_fields(Bare())


def test_a_spout_that_cannot_be_copied_is_refused_with_the_remedy():
    spout = Numbers()
    spout.file = open(__file__)  # noqa: SIM115, PTH123
    with spout.file, pytest.raises(DefinitionError, match=r"open connections in open\(\)"):
        spout.snapshot()


def test_every_spout_says_its_kind():
    assert (Numbers().kind, Rich([]).kind, Described().kind) == ("non-transactional",) * 3
    assert FixedBatchSpout("n", 1).kind == "transactional"
    assert SparkSpout("kafka", schema="value binary", kind="opaque").kind == "opaque"


# SparkSpout


def test_a_spark_spout_knows_its_fields_from_the_schema_or_from_what_is_named():
    by_schema = SparkSpout("json", {"path": "x"}, schema="a INT, b: DECIMAL(10, 2), c struct<x:int,y:int>")
    assert output_fields(by_schema).declarations() == ["a int", "b decimal(10,2)", "c"]
    assert output_fields(SparkSpout("rate", {}, "value bigint")).declarations() == ["value bigint"]


def test_a_spark_spout_without_fields_or_with_an_unknown_kind_is_refused():
    with pytest.raises(DefinitionError, match="fields and schema are missing"):
        SparkSpout("rate")
    with pytest.raises(DefinitionError, match="no kind 'exactly-once'"):
        SparkSpout("rate", {}, "value", kind="exactly-once")


def test_a_spark_spout_has_no_coordination_of_ours():
    with pytest.raises(DefinitionError, match="SparkCluster only"):
        Player(SparkSpout("rate", {}, "value"))
