"""FixedBatchSpout: batches are a function of the txid."""

import copy

import pytest

from trident_py.errors import DefinitionError
from trident_py.spouts import FixedBatchSpout, WrongNumberOfValues, partitions_of

from .harness import Player, flat

FIVE = [(n,) for n in range(5)]


def spout(*tuples, size=3):
    return FixedBatchSpout("n", size, *(tuples or FIVE))


def test_batches_have_at_most_the_maximum_and_end_with_the_tuples():
    assert [len(flat(b)) for b in Player(spout()).to_end()] == [3, 2]


def test_a_cycling_spout_never_ends_and_never_wraps_inside_a_batch():
    player = Player(spout().setCycle(True))
    assert [len(player.batch(txid)[0]) for txid in range(1, 7)] == [3, 2, 3, 2, 3, 2]
    assert not player.coordination.is_exhausted()


def test_without_cycle_batches_behind_the_end_are_empty():
    player = Player(spout())
    assert [player.batch(txid) for txid in (1, 2, 3)][2] == [[]]


def test_a_replay_has_the_same_tuples():
    player = Player(spout())
    assert player.emit(1) == player.emit(1, 1) == player.emit(1, 2)


def test_after_a_restart_at_txid_n_batch_n_comes():
    first = Player(spout())
    first.batch(1)
    again = Player(spout(), restored=first.logged, committed=1)
    assert not again.coordination.is_exhausted()
    assert again.batch(2) == [[(3,), (4,)]]
    assert again.coordination.is_exhausted()


def test_a_restart_behind_the_end_runs_no_empty_batch():
    first = Player(spout())
    first.to_end()
    again = Player(spout(), restored=first.logged, committed=2)
    assert again.coordination.is_exhausted()
    assert not again.coordination.ready(3)


def test_no_tuples_end_at_once():
    assert Player(FixedBatchSpout("n", 1)).to_end() == []


def test_it_has_one_partition_however_many_are_wanted():
    assert partitions_of(spout(), 4) == 1
    assert Player(spout(), partitions=2).batch(1) == [FIVE[:3], []]


def test_set_cycle_acts_on_the_declaration_not_on_what_was_taken_before():
    declared = spout()
    taken = declared.snapshot()
    declared.setCycle(True)
    assert taken.isExhaustedAt(3)
    assert not copy.deepcopy(declared).isExhaustedAt(3)


@pytest.mark.parametrize("row", [(1, 2), (), "x"])
def test_a_row_of_the_wrong_length_is_refused_at_emit_naming_spout_and_row(row):
    class Bad(FixedBatchSpout):
        def batch(self, txid):
            return [row]

    with pytest.raises(WrongNumberOfValues, match="s0") as error:
        Player(Bad("n k", 1, (1,)) if row == "x" else Bad(["n"], 1, (1,))).emit(1)
    assert repr(row) in str(error.value)
    assert isinstance(error.value, ValueError)


def test_the_message_of_a_wrong_row_is_storms():
    with pytest.raises(WrongNumberOfValues, match="Expected 1 fields but got 2 fields"):
        Player(spout((1, 2))).emit(1)


def test_a_bare_value_is_refused_when_the_spout_is_made():
    with pytest.raises(DefinitionError, match="write Values"):
        FixedBatchSpout("n", 1, "the cow")


@pytest.mark.parametrize("size", [0, -1, 2.5, True, None])
def test_a_batch_size_below_one_is_refused(size):
    with pytest.raises(DefinitionError, match="maxBatchSize"):
        FixedBatchSpout("n", size, (1,))


def test_untyped_values_arrive_as_they_are():
    values = [(1, 1.0), (True, "1"), (None, {"a": [1]}), (b"x", (1, 2))]
    rows = Player(FixedBatchSpout(["a", "b"], 10, *values)).batch(1)[0]
    assert rows == values
    assert [type(v) for row in rows for v in row] == [type(v) for row in values for v in row]
