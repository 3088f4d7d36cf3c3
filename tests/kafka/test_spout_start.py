"""Where KafkaSpout begins, which topics and partitions it finds, and how it ends."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from spout_support import (
    Player,
    add_partitions,
    all_of,
    commit,
    decided,
    eventually,
    produce,
    transaction,
    transactional,
    values,
    when_ready,
)

from trident_py.checkpoints.append_log import AppendLogStore
from trident_py.errors import SpoutError
from trident_py.kafka import Consumed, KafkaSpout, consumed, partitions_of_task
from trident_py.model.context import CurrentBatch
from trident_py.tuples import TransactionAttempt


@pytest.fixture
def play(kafka: Any) -> Iterator[Callable[..., Player]]:
    """``play(topics, **options)``: an endless run of a spout, as strings."""
    made: list[Player] = []

    def start(topics: Any = None, **options: Any) -> Player:
        run = {name: options.pop(name) for name in ("partitions", "store", "restored", "committed") if name in options}
        options = {"fields": "value", "value": "string", **options}
        made.append(Player(KafkaSpout(kafka.bootstrap, topics, **options), **run))
        return made[-1]

    yield start
    for player in made:
        player.close()


@pytest.fixture
def topic(kafka: Any) -> str:
    """Five records "0" to "4", a second apart."""
    made: str = kafka.create_topic(retention_ms=-1)
    for n in range(5):
        produce(kafka, made, [str(n)], timestamp=1_000 * (n + 1))
    return made


@pytest.mark.parametrize(
    "options, expected",
    [
        ({}, "01234"),
        ({"firstPollOffsetStrategy": "EARLIEST"}, "01234"),
        ({"firstPollOffsetStrategy": "UNCOMMITTED_EARLIEST", "groupId": "nobody"}, "01234"),
        ({"firstPollOffsetStrategy": "TIMESTAMP", "startTimestamp": 2_500}, "234"),
        ({"firstPollOffsetStrategy": "TIMESTAMP", "startTimestamp": 3_000}, "234"),
        ({"firstPollOffsetStrategy": "TIMESTAMP", "startTimestamp": 9_000}, ""),
        ({"firstPollOffsetStrategy": "LATEST"}, ""),
        ({"firstPollOffsetStrategy": "UNCOMMITTED_LATEST", "groupId": "nobody"}, ""),
    ],
    ids=str,
)
def test_a_new_checkpoint_begins_where_the_strategy_says(
    kafka: Any, play: Any, topic: str, options: dict, expected: str
) -> None:
    player = play(topic, **options)
    assert "".join(values(player.batch(1))) == expected
    produce(kafka, topic, ["new"])
    assert values(when_ready(player, 2)) == ["new"]


@pytest.mark.parametrize("strategy, there", [("UNCOMMITTED_EARLIEST", "01234"), ("UNCOMMITTED_LATEST", "")])
def test_the_offsets_of_the_group_count_where_there_are_some(
    kafka: Any, play: Any, topic: str, strategy: str, there: str
) -> None:
    other = kafka.create_topic()
    produce(kafka, other, ["a", "b"])
    commit(kafka, f"group-{topic}", {(topic, 0): 3})
    options = {"groupId": f"group-{topic}", "firstPollOffsetStrategy": strategy}
    assert values(play(topic, **options).batch(1)) == ["3", "4"]
    begun = play([topic, other], **options).batch(1)
    assert sorted(values(begun)) == sorted(["3", "4", *(["a", "b"] if there else [])])
    ignored = play(topic, groupId=f"group-{topic}", firstPollOffsetStrategy="EARLIEST")
    assert values(ignored.batch(1)) == list("01234")


def test_a_restart_goes_on_where_the_checkpoint_is_whatever_the_strategy(kafka: Any, play: Any, topic: str) -> None:
    first = play(topic, maxRecordsPerBatch=2)
    assert values(first.batch(1)) == ["0", "1"]
    for strategy in ("EARLIEST", "LATEST", "UNCOMMITTED_LATEST"):
        options = {"firstPollOffsetStrategy": strategy, "maxRecordsPerBatch": 2}
        again = play(topic, store=first.store, restored=first.logged, committed=1, **options)
        assert values(again.batch(2)) == ["2", "3"]


def test_a_restart_before_the_first_batch_begins_where_the_first_start_did(
    kafka: Any, play: Any, topic: str, tmp_path: Any
) -> None:
    first = play(topic, store=AppendLogStore(tmp_path), firstPollOffsetStrategy="LATEST")
    assert not first.coordination.ready(1)
    produce(kafka, topic, ["while it was down"])
    second = play(topic, store=AppendLogStore(tmp_path), firstPollOffsetStrategy="LATEST")
    assert values(when_ready(second, 1)) == ["while it was down"]


def test_new_partitions_are_read_from_their_beginning(kafka: Any, play: Any, topic: str) -> None:
    player = play(topic, firstPollOffsetStrategy="LATEST", partitions=2)
    assert values(player.batch(1)) == []
    add_partitions(kafka, topic, 3)
    produce(kafka, topic, ["p1"], partition=1)
    produce(kafka, topic, ["p2"], partition=2)
    read: list[str] = []
    for txid in (2, 3):
        if len(read) < 2:
            read += values(when_ready(player, txid))
    assert sorted(read) == ["p1", "p2"]


def test_a_pattern_finds_topics_that_come_later_and_no_others(kafka: Any, play: Any) -> None:
    name = kafka.create_topic()
    player = play(pattern=f"{name}-a.*", firstPollOffsetStrategy="LATEST")
    assert not player.coordination.ready(1)
    for suffix in ("-a1", "-b1", "-a2"):
        kafka.create_topic(name + suffix)
        produce(kafka, name + suffix, [suffix])
    read: list[str] = []
    for txid in (1, 2, 3):
        if len(read) < 2:
            read += values(when_ready(player, txid))
    assert sorted(read) == ["-a1", "-a2"]
    assert not player.coordination.ready(4)


def test_a_topic_that_is_not_there_ends_the_run_with_its_name(kafka: Any, play: Any) -> None:
    player = play("trident-nowhere")
    eventually(lambda: player.coordination.ready(1))
    with pytest.raises(SpoutError, match=r"no topic trident-nowhere at .*; create it, or use pattern="):
        player.batch(1)


def test_latest_as_the_end_means_when_the_run_began(kafka: Any, play: Any, topic: str) -> None:
    player = play(topic, endingOffsets="latest", maxRecordsPerBatch=2)
    assert not player.coordination.is_exhausted(1)
    produce(kafka, topic, ["later"])
    add_partitions(kafka, topic, 2)
    produce(kafka, topic, ["later"], partition=1)
    assert all_of(player) == [["0", "1"], ["2", "3"], ["4"]]
    assert play(kafka.create_topic(), endingOffsets="latest").to_end() == []


def test_an_end_that_is_reached_stays_reached_after_a_restart(kafka: Any, play: Any, topic: str) -> None:
    first = play(topic, endingOffsets="latest")
    assert all_of(first) == [list("01234")]
    again = play(topic, endingOffsets="latest", store=first.store, restored=first.logged, committed=1)
    eventually(lambda: again.coordination.is_exhausted(2))


# Consumed offsets, for a state that commits them


def sharing(player: Any, txid: int) -> dict:
    """The conf of a state in a task of this txid."""
    batch = CurrentBatch()
    batch.transaction = TransactionAttempt(txid, 0)
    batch.shared = json.loads(json.dumps(player.coordination.share(txid)))
    return {"trident.context": batch}


def test_the_consumed_offsets_of_a_batch_are_there_while_it_runs(kafka: Any, play: Any, topic: str) -> None:
    other = kafka.create_topic(partitions=2)
    produce(kafka, other, ["x"] * 3, partition=1)
    options = {"groupId": "g", "shareOffsets": True, "maxRecordsPerBatch": 6}
    player = play([topic, other], partitions=2, **options)
    read = dict.fromkeys([(topic, 0), (other, 0), (other, 1)], 0)
    for txid in (1, 2):
        rows = player.batch(txid)
        batch = consumed(sharing(player, txid), "s0", txid)
        assert batch.group == "g"
        ends = {(name, p): end for name, entries in batch.offsets.items() for p, end in entries.items()}
        assert sum(ends.values()) - sum(read.values()) == len(values(rows))
        read = ends
        for task in range(2):
            mine = partitions_of_task(batch, task, 2)
            emitted = rows[task]
            assert {"x"} >= {value for (value,) in emitted} or (topic, 0) in mine
        shared = [partitions_of_task(batch, task, 2) for task in range(2)]
        assert shared[0] | shared[1] == ends and not set(shared[0]) & set(shared[1])
    assert read == {(topic, 0): 5, (other, 0): 0, (other, 1): 3}
    with pytest.raises(SpoutError, match="shareOffsets=True"):
        consumed(sharing(player, 2), "s0", 1)  # a batch that is over


def test_a_replay_shares_the_same_offsets(kafka: Any, play: Any, topic: str) -> None:
    player = play(topic, groupId="g", shareOffsets=True, maxRecordsPerBatch=2)
    player.emit(1)
    first = consumed(sharing(player, 1), "s0", 1)
    player.emit(1, 1)
    assert consumed(sharing(player, 1), "s0", 1) == first == Consumed("g", {topic: {0: 2}})


# Backlog


def test_the_backlog_is_what_waits_behind_the_last_batch(kafka: Any, play: Any, topic: str) -> None:
    other = kafka.create_topic(partitions=2)
    transaction(transactional(kafka, other), other, ["x"], partition=1)
    decided(kafka, other, 2)
    player = play([topic, other], maxRecordsPerBatch=4)
    assert player.coordination.backlog() == {}
    player.batch(1)
    first = player.coordination.backlog()["s0"]
    assert sum(first.values()) == 5 + 2 - 4, "the mark of a transaction takes an offset"
    assert set(first) == {f"{topic}-0", f"{other}-0", f"{other}-1"}
    player.batch(2)
    assert player.coordination.backlog()["s0"] == {f"{topic}-0": 0, f"{other}-0": 0, f"{other}-1": 0}


def test_a_spout_that_waits_can_be_asked_at_any_pace(kafka: Any, play: Any, topic: str) -> None:
    player = play(topic)
    player.batch(1)
    begun = time.monotonic()
    for _ in range(10_000):
        player.coordination.ready(2)
        player.coordination.is_exhausted(2)
    assert time.monotonic() - begun < 10
