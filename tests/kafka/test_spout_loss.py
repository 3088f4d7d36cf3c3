"""KafkaSpout where Kafka does not keep what it had: compacted topics, deleted records, topics made anew."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import pytest
from confluent_kafka import Producer
from spout_support import (
    Player,
    add_partitions,
    again,
    delete,
    delete_records,
    eventually,
    produce,
    recreate,
    values,
    when_ready,
)

from trident_py.checkpoints.metadata_store import MemoryMetadataStore
from trident_py.cli.display import is_no_event
from trident_py.errors import SpoutError
from trident_py.kafka import KafkaSpout
from trident_py.kafka.batches import TopicPosition
from trident_py.kafka.offsets import Judge, View, settle
from trident_py.kafka.topic_metadata import Watch

COMPACTED = {"cleanup_policy": "compact", "segment_ms": 100, "min_cleanable_dirty_ratio": 0.01}


@pytest.fixture
def play(kafka: Any) -> Iterator[Callable[..., Player]]:
    made: list[Player] = []

    def start(topics: Any = None, **options: Any) -> Player:
        run = {name: options.pop(name) for name in ("partitions", "store", "restored", "committed") if name in options}
        options = {"fields": "value", "value": "string", "maxRecordsPerBatch": 3, **options}
        made.append(Player(KafkaSpout(kafka.bootstrap, topics, **options), **run))
        return made[-1]

    yield start
    for player in made:
        player.close()


@pytest.fixture
def topic(kafka: Any) -> str:
    """Ten records "0" to "9"."""
    made: str = kafka.create_topic()
    produce(kafka, made, map(str, range(10)))
    return made


def restarted(play: Any, player: Player, txid: int, **options: Any) -> Player:
    """A new driver with new tasks on the checkpoint of one that has committed up to txid."""
    name = next(iter(player.infos[0].spout.topics))
    return play(name, store=player.store, restored=player.logged, committed=txid, **options)


def refused(player: Player, txid: int) -> str:
    """What the run ends with."""
    eventually(lambda: player.coordination.ready(txid))
    with pytest.raises(SpoutError) as raised:
        player.batch(txid)
    return str(raised.value)


# Compacted topics


def test_a_compacted_topic_is_refused_by_a_transactional_spout(kafka: Any, play: Any) -> None:
    topic = kafka.create_topic(**COMPACTED)
    produce(kafka, topic, ["a"], key="k")
    told = refused(play(topic), 1)
    assert f"topic {topic} is compacted" in told and 'kind="opaque"' in told


def test_a_topic_that_matches_later_and_is_compacted_is_refused_too(kafka: Any, play: Any) -> None:
    name = kafka.create_topic()
    player = play(pattern=f"{name}.*")
    produce(kafka, name, ["a"])
    assert values(when_ready(player, 1)) == ["a"]
    kafka.create_topic(f"{name}-c", **COMPACTED)
    assert f"topic {name}-c is compacted" in refused(player, 2)


def test_an_opaque_spout_reads_a_compacted_topic_while_it_is_compacted(kafka: Any, play: Any) -> None:
    topic = kafka.create_topic(**COMPACTED, delete_retention_ms=100)
    producer = Producer({"bootstrap.servers": kafka.bootstrap, "linger.ms": 0})
    player = play(topic, kind="opaque", fields=["key", "value"], key="string", maxRecordsPerBatch=50)
    latest: dict[str, str] = {}
    written, txid = 0, 0

    def cleaned() -> bool:
        fresh = play(topic, kind="opaque", endingOffsets="latest", maxRecordsPerBatch=10**6)
        return not fresh.coordination.is_exhausted(1) and len(values(fresh.batch(1))) < written

    while written < 200 or not cleaned():
        for n in range(50):
            producer.produce(topic, f"{written + n}", f"{n % 5}", 0)
        producer.flush()
        written += 50
        txid += 1
        latest |= dict(row for part in when_ready(player, txid) for row in part)
    while player.coordination.ready(txid + 1):
        txid += 1
        latest |= dict(row for part in player.batch(txid) for row in part)
    assert latest == {str(n % 5): str(written - 5 + n % 5) for n in range(5)}
    assert player.reported == []


# Records that were deleted


def test_deleted_records_end_a_transactional_run(kafka: Any, play: Any, topic: str) -> None:
    player = play(topic)
    assert values(player.batch(1)) == ["0", "1", "2"]
    delete_records(kafka, topic, 5)
    told = refused(restarted(play, player, 1), 2)
    assert f"topic {topic}, partition 0: offsets 3 to 4 were deleted before they were read" in told
    assert 'kind="opaque"' in told


def test_an_opaque_spout_goes_on_behind_deleted_records_and_reports_them_once(
    kafka: Any, play: Any, topic: str
) -> None:
    player = play(topic, kind="opaque")
    assert values(player.batch(1)) == ["0", "1", "2"]
    delete_records(kafka, topic, 5)
    after = restarted(play, player, 1, kind="opaque")
    assert values(after.batch(2)) == ["5", "6", "7"]
    assert values(after.batch(3)) == ["8", "9"]
    ((spout, told),) = after.reported
    assert spout == "s0" and "offsets 3 to 4 were deleted" in told


def test_a_batch_whose_records_are_gone_is_not_emitted_again_by_a_transactional_spout(
    kafka: Any, play: Any, topic: str
) -> None:
    player = play(topic)
    player.emit(1)
    delete_records(kafka, topic, 2)
    with pytest.raises(SpoutError, match="offsets 0 to 2 must be read again, but the log begins at 2"):
        player.emit(1, 1)
    with pytest.raises(SpoutError, match="offsets 0 to 1 are lost: the log goes from 2 to 10"):
        emitted(play(topic), player.logged[1])


def test_an_opaque_replay_has_what_is_left_of_its_range_and_the_next_batch_follows(
    kafka: Any, play: Any, topic: str
) -> None:
    player = play(topic, kind="opaque")
    assert values(player.emit(1)) == ["0", "1", "2"]
    delete_records(kafka, topic, 2)
    assert values(again(player, 1)) == ["2"]
    delete_records(kafka, topic, 5)
    assert values(again(player, 1)) == []
    player.commit(1)
    assert values(restarted(play, player, 1, kind="opaque").batch(2)) == ["5", "6", "7"]


def emitted(player: Player, metadata: dict) -> list:
    """What a task emits for a batch, without asking its coordinator."""
    (descriptor,) = player.coordination.descriptors(1, 1, metadata)
    from trident_py.tuples import TransactionAttempt

    return player._emit(descriptor, TransactionAttempt(1, 1))


# Topics that are gone, or made anew


def test_a_topic_made_anew_ends_a_transactional_run(kafka: Any, play: Any, topic: str) -> None:
    player = play(topic)
    player.batch(1)
    recreate(kafka, topic)
    produce(kafka, topic, [f"new {n}" for n in range(20)])
    assert f"topic {topic} was deleted and recreated" in refused(player, 2)
    assert f"topic {topic} was deleted and recreated" in refused(restarted(play, player, 1), 2)


def test_an_opaque_spout_reads_a_topic_made_anew_from_its_beginning(kafka: Any, play: Any, topic: str) -> None:
    player = play(topic, kind="opaque")
    assert values(player.batch(1)) == ["0", "1", "2"]
    recreate(kafka, topic, partitions=2)
    produce(kafka, topic, ["a", "b"])
    produce(kafka, topic, ["c"], partition=1)
    assert sorted(values(when_ready(player, 2))) == ["a", "b", "c"]
    assert any("recreated" in told for _, told in player.reported)


def test_a_batch_of_a_topic_that_was_made_anew_is_never_emitted_with_records_of_the_new_one(
    kafka: Any, play: Any, topic: str
) -> None:
    opaque, transactional = play(topic, kind="opaque"), play(topic)
    opaque.emit(1)
    transactional.emit(1)
    recreate(kafka, topic)
    produce(kafka, topic, ["a", "b", "c", "d"])
    with pytest.raises(SpoutError, match="belonged to a topic that is gone"):
        transactional.emit(1, 1)
    assert values(opaque.emit(1, 1)) == []
    assert values(again(opaque, 1)) == []
    opaque.commit(1)
    assert values(opaque.batch(2)) == ["a", "b", "c"]


def test_a_topic_that_is_gone_ends_a_transactional_run(kafka: Any, play: Any, topic: str) -> None:
    player = play(topic)
    player.batch(1)
    delete(kafka, topic)
    after = restarted(play, player, 1)
    assert f"topic {topic} is gone" in refused(after, 2)


def test_an_opaque_spout_goes_on_without_a_topic_that_is_gone(kafka: Any, play: Any, topic: str) -> None:
    other = kafka.create_topic()
    player = play([topic, other], kind="opaque")
    player.batch(1)
    delete(kafka, topic)
    eventually(lambda: not player.coordination.ready(2) and player.reported)
    produce(kafka, other, ["x"])
    assert values(when_ready(player, 2)) == ["x"]
    assert list(player.logged[2]["s0"]) == [other]


def empty(kafka: Any, topic: str) -> None:
    delete_records(kafka, topic, 10)


def has_nothing(player: Player) -> bool:
    return not (player.coordination.ready(2) or player.coordination.is_pending())


@pytest.mark.parametrize("lose", [delete, recreate, empty], ids=["gone", "anew", "deleted records"])
def test_a_loss_is_reported_once_even_if_no_batch_comes_before_the_next_start(
    kafka: Any, play: Any, topic: str, lose: Any
) -> None:
    player = play(topic, kind="opaque")
    player.batch(1)
    lose(kafka, topic)
    for told in (1, 0, 0):
        player = restarted(play, player, 1, kind="opaque")
        eventually(partial(has_nothing, player))
        assert len(player.reported) == told, player.reported
    assert refused(restarted(play, player, 1), 2), "a transactional spout does not go on behind it"


def test_a_topic_that_comes_back_and_goes_again_is_another_loss(caplog: pytest.LogCaptureFixture) -> None:
    told: list[Any] = []
    judge = Judge("s", True, told.append, MemoryMetadataStore())
    for at in (5, 5, 7):
        settle({"t": TopicPosition("id", [at])}, View({}, {}, {}), lambda loss: judge(loss._replace(passing=False)))
    assert len(told) == len(caplog.records) == 2
    assert not any(map(is_no_event, caplog.records)), "the display tells the event, and stderr would tell it again"


def test_a_replay_of_a_topic_that_is_not_to_be_seen_waits_before_it_judges(
    kafka: Any, play: Any, topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    player, seen = play(topic), Watch.topics
    player.emit(1)
    views = iter([{}, {}])
    monkeypatch.setattr(Watch, "topics", lambda watch: next(views, None) or seen(watch))
    assert values(player.emit(1, 1)) == ["0", "1", "2"]


def test_one_replay_is_enough_to_tell_that_a_topic_is_gone(kafka: Any, play: Any, topic: str) -> None:
    """Replays come up to ten seconds apart, so none can count on the one before to have seen the topic missing."""
    opaque, transactional = play(topic, kind="opaque"), play(topic)
    opaque.emit(1)
    transactional.emit(1)
    delete(kafka, topic)
    with pytest.raises(SpoutError, match="offsets 0 to 2 belonged to a topic that is gone"):
        transactional.emit(1, 9)
    assert values(opaque.emit(1, 9)) == []


def test_a_partition_more_changes_nothing_for_the_others(kafka: Any, play: Any, topic: str) -> None:
    player = play(topic, partitions=2)
    first = player.batch(1)
    add_partitions(kafka, topic, 3)
    assert again(player, 1, 2) == first
    assert values(restarted(play, player, 1, partitions=2).batch(2)) == ["3", "4", "5"]
