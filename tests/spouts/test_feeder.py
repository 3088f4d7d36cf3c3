"""Feeders: what the user's code feeds is one batch, kept until its success."""

import copy
import pickle
import subprocess
import sys
import threading

import cloudpickle
import pytest

from trident_py.errors import SpoutError
from trident_py.spouts import FeederBatchSpout, FeederCommitterBatchSpout

from .harness import Player, flat


def fed(*batches, kind=FeederBatchSpout):
    feeder = kind("v")
    for batch in batches:
        feeder.feed(batch, wait=False)
    return feeder


def feeding(feeder, batch):
    """Feeds from another thread; returns what happened there, and the thread."""
    outcome: list = []

    def feed():
        try:
            feeder.feed(batch, timeout=30)
            outcome.append("committed")
        except SpoutError as error:
            outcome.append(str(error))

    thread = threading.Thread(target=feed, daemon=True)
    thread.start()
    return outcome, thread


def until_ready(player, txid):
    waiting = threading.Event()
    while not player.coordination.ready(txid):
        waiting.wait(0.001)


@pytest.mark.parametrize("kind", [FeederBatchSpout, FeederCommitterBatchSpout])
def test_feed_blocks_until_the_success_of_its_batch(kind):
    feeder = kind("v")
    player = Player(feeder)
    outcome, thread = feeding(feeder, [("a",)])
    until_ready(player, 1)
    assert player.emit(1) == [[("a",)]]
    player.commit(1)
    assert outcome == []
    player.coordination.success(1)
    thread.join(30)
    assert outcome == ["committed"]


def test_each_feed_is_one_batch():
    player = Player(fed([("a",), ("b",)], [("c",)]))
    assert player.batch(1) + player.batch(2) == [[("a",), ("b",)], [("c",)]]


def test_tuples_are_dealt_round_robin_over_the_partitions_or_given_by_partition():
    player = Player(fed([(1,), (2,), (3,)], {1: [(4,)]}), partitions=2)
    assert player.batch(1) == [[(1,), (3,)], [(2,)]]
    assert player.batch(2) == [[], [(4,)]]


def test_a_partition_that_does_not_exist_is_refused():
    with pytest.raises(SpoutError, match="no partition 2; the feeder has 2"):
        Player(fed({2: [(4,)]}), partitions=2).emit(1)


def test_a_replay_has_the_same_tuples_and_takes_nothing_from_the_queue():
    player = Player(fed([("a",)], [("b",)]))
    assert player.emit(1) == player.emit(1, 1) == [[("a",)]]
    player.commit(1, 1)
    player.coordination.success(1)
    assert player.batch(2) == [[("b",)]]


def test_a_batch_that_was_described_is_ready_until_it_is_committed():
    player = Player(fed([("a",)]))
    player.coordination.initialize(1, 0)
    assert player.coordination.ready(1)
    assert not player.coordination.ready(2)


def test_a_feeder_waits_for_food_unless_told_not_to():
    feeder = fed()
    player = Player(feeder)
    assert not player.coordination.ready(1)
    feeder.setWaitToEmit(False)
    assert player.coordination.ready(1)
    assert player.batch(1) == [[]]


def test_a_closed_feeder_ends_when_all_is_emitted():
    feeder = fed([("a",)], [("b",)])
    feeder.close()
    assert [flat(batch) for batch in Player(feeder).to_end()] == [[("a",)], [("b",)]]


def test_an_open_feeder_never_ends():
    player = Player(fed([("a",)]))
    player.batch(1)
    assert not player.coordination.is_exhausted()


def test_a_closed_feeder_takes_nothing_more():
    feeder = fed()
    feeder.close()
    with pytest.raises(SpoutError, match="is closed"):
        feeder.feed([("a",)], wait=False)


def test_feed_gives_up_after_its_timeout_and_the_batch_stays_queued():
    feeder = fed()
    with pytest.raises(SpoutError, match=r"not committed within 0\.01 s"):
        feeder.feed([("a",)], timeout=0.01)
    assert Player(feeder).batch(1) == [[("a",)]]


def test_the_end_of_the_run_wakes_who_waits_and_the_next_run_emits_the_batch():
    feeder = FeederBatchSpout("v")
    player = Player(feeder)
    outcome, thread = feeding(feeder, [("a",)])
    until_ready(player, 1)
    player.emit(1)
    player.close()
    thread.join(30)
    assert "the run ended before" in outcome[0]
    with pytest.raises(SpoutError, match="start it again first"):
        feeder.feed([("b",)])
    assert Player(feeder).batch(1) == [[("a",)]]


def test_a_restart_in_this_process_replays_the_logged_txid_with_its_tuples():
    feeder = fed([(object,)], [("b",)])  # a value that JSON cannot hold
    first = Player(feeder)
    first.emit(1)
    first.close()
    again = Player(feeder, restored=first.logged)
    assert again.batch(1) == [[(object,)]]
    assert again.batch(2) == [[("b",)]]


def test_json_tuples_of_a_logged_txid_survive_the_process():
    first = Player(fed([("a", [1, None])], kind=Two))
    first.emit(1)
    again = Player(fed(kind=Two), restored=first.logged)  # another process has another feeder
    assert again.batch(1) == [[("a", [1, None])]]


class Two(FeederBatchSpout):
    def __init__(self, fields):
        super().__init__(["v", "w"])


def test_tuples_in_the_log_are_shared_among_fewer_partitions_after_a_restart():
    first = Player(fed([(n,) for n in range(6)]), partitions=3)
    first.emit(1)
    again = Player(fed(), restored=first.logged, partitions=2)
    assert sorted(flat(again.batch(1))) == [(n,) for n in range(6)]


def test_tuples_that_json_would_change_are_not_put_into_the_log():
    first = Player(fed([((1, 2),)], [(float("nan"),)], [({1: 2},)]))
    for txid in (1, 2, 3):
        first.batch(txid)
        assert first.logged[txid] == {"s0": {"here": True}}


def test_a_copy_in_this_process_is_the_feeder_itself():
    feeder = fed()
    for copied in (
        copy.deepcopy(feeder),
        feeder.snapshot(),
        pickle.loads(pickle.dumps(feeder)),
        pickle.loads(cloudpickle.dumps(feeder)),
    ):
        assert copied is feeder


def test_a_copy_in_another_process_is_inert():
    program = (
        "import pickle, sys; feeder = pickle.load(sys.stdin.buffer); print(feeder.getOutputFields())\n"
        "try: feeder.feed([(1,)])\n"
        "except Exception as error: print(error)"
    )
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", program], input=cloudpickle.dumps(fed([("a",)])), capture_output=True
    )
    assert done.stdout.decode().splitlines() == [
        "[v]",
        "feed: this is a copy of a feeder in another process; feed the original",
    ]


def test_what_is_no_list_of_tuples_is_refused_where_it_is_fed():
    with pytest.raises(SpoutError, match="'a' is not a tuple of values"):
        fed().feed(["a"], wait=False)
