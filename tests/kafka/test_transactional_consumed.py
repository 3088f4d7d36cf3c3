"""Read-process-write: the spout's consumed offsets in the state's transaction, as consumer-group tools show them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer
from topic_reading import group_offsets, read

from states.kafka import RowUpdater, TransactionalTopicState
from trident_py import Fields, LocalCluster, TridentTopology
from trident_py.errors import DefinitionError, TopologyError
from trident_py.kafka import KafkaSpout
from trident_py.operations import Filter, Function
from trident_py.testing import FixedBatchSpout


class Doubled(Function):
    def execute(self, tuple: Any, collector: Any) -> None:
        collector.emit([tuple[0] * 2])


class Odd(Filter):
    def isKeep(self, tuple: Any) -> bool:
        return int(tuple[0]) % 2 == 1


class Chain:
    """Numbers in a topic, through a function, into another topic."""

    def __init__(self, kafka: Any, partitions: int) -> None:
        self.bootstrap, self.partitions = kafka.bootstrap, partitions
        self.source, self.target = (kafka.create_topic(partitions=partitions) for _ in range(2))
        self.group = f"group-{self.source}"
        self.numbers = 0

    def feed(self, count: int) -> None:
        producer = Producer({"bootstrap.servers": self.bootstrap})
        for number in range(self.numbers, self.numbers + count):
            producer.produce(self.source, str(number), partition=number % self.partitions)
        assert producer.flush(30) == 0
        self.numbers += count

    def spout(self) -> Any:
        return KafkaSpout(
            self.bootstrap, self.source, value="string", fields="value", groupId=self.group, shareOffsets=True,
            maxRecordsPerBatch=20, endingOffsets="latest",
        )  # fmt: skip

    def run(self, folder: Path, parallel: int = 1, **options: Any) -> None:
        topology = TridentTopology()
        stream = topology.newStream("numbers", self.spout()).parallelismHint(parallel)
        stream = stream.each("value", Doubled(), "doubled string").project("doubled")
        factory = TransactionalTopicState(self.bootstrap, self.target, consumed="numbers", **options)
        stream.partitionPersist(factory, "doubled", RowUpdater())
        with LocalCluster(str(folder)) as cluster:
            assert cluster.submitTopology("chain", {}, topology.build()).awaitTermination(60)

    def holds(self) -> None:
        found = Counter((each.value or b"").decode() for each in read(self.bootstrap, self.target))
        assert found == Counter(str(number) * 2 for number in range(self.numbers))
        ends = Counter(number % self.partitions for number in range(self.numbers))
        expected = {(self.source, each): ends[each] for each in ends}
        assert group_offsets(self.bootstrap, self.group, self.source) == expected


@pytest.fixture(params=[1, 3])
def chain(request: pytest.FixtureRequest, kafka: Any) -> Iterator[Chain]:
    yield Chain(kafka, request.param)


@pytest.mark.parametrize("parallel", [1, 2])
def test_the_group_stands_where_the_written_records_end(chain: Chain, tmp_path: Path, parallel: int) -> None:
    """Also with several partitions: each commits what its own task has read."""
    for count in (70, 5):
        chain.feed(count)
        chain.run(tmp_path, parallel)
        chain.holds()


def test_one_transaction_holds_all_of_it(chain: Chain, tmp_path: Path) -> None:
    chain.feed(50)
    chain.run(tmp_path, oneTransaction=True)
    chain.holds()


def test_a_transaction_that_fails_moves_no_offset(kafka: Any, tmp_path: Path) -> None:
    chain = Chain(kafka, 1)
    chain.feed(10)
    chain.run(tmp_path)
    producer = Producer({"bootstrap.servers": chain.bootstrap})
    producer.produce(chain.source, "x" * 600_000)  # twice as long it is no record
    assert producer.flush(30) == 0
    with pytest.raises(TopologyError, match="MSG_SIZE_TOO_LARGE"):
        chain.run(tmp_path)
    chain.holds()


def test_a_batch_without_records_moves_the_offsets_with_the_next_one(kafka: Any, tmp_path: Path) -> None:
    chain = Chain(kafka, 1)
    chain.feed(40)
    topology = TridentTopology()
    stream = topology.newStream("numbers", chain.spout()).filter("value", Odd())
    factory = TransactionalTopicState(chain.bootstrap, chain.target, consumed="numbers")
    stream.partitionPersist(factory, "value", RowUpdater())
    with LocalCluster(str(tmp_path)) as cluster:
        assert cluster.submitTopology("chain", {}, topology.build()).awaitTermination(60)
    assert len(read(chain.bootstrap, chain.target)) == 20
    assert group_offsets(chain.bootstrap, chain.group, chain.source) == {(chain.source, 0): 40}


# -- where it can stand


def stream_of(topology: TridentTopology, name: str = "s") -> Any:
    return topology.newStream(name, FixedBatchSpout(Fields("v string"), 2, ("a",)))


def persisted(stream: Any, **options: Any) -> Any:
    return stream.partitionPersist(TransactionalTopicState("h:1", "t", **options), "v", RowUpdater())


def test_one_partition_or_no_exchange_is_needed() -> None:
    topology = TridentTopology()
    persisted(stream_of(topology).parallelismHint(2).partitionBy("v"), consumed="s").parallelismHint(3)
    with pytest.raises(DefinitionError) as told:
        topology.build()
    for words in ("consumed='s'", "3 partitions tuples change their partition", "oneTransaction=True"):
        assert words in str(told.value)


def test_the_allowed_places_are_allowed() -> None:
    for place in (
        lambda stream: persisted(stream.parallelismHint(2), consumed="s"),
        lambda stream: persisted(stream.parallelismHint(2).global_(), consumed="s", oneTransaction=True),
        lambda stream: persisted(stream.partitionBy("v"), consumed="s"),
    ):
        topology = TridentTopology()
        place(stream_of(topology))
        topology.build()


def test_a_stream_that_does_not_feed_the_state_is_refused() -> None:
    topology = TridentTopology()
    stream_of(topology, "other")
    persisted(stream_of(topology), consumed="other")
    with pytest.raises(DefinitionError, match=r"names the stream 'other', which does not feed it; .* before it: s"):
        topology.build()


def test_one_transaction_insists_on_one_partition() -> None:
    topology = TridentTopology()
    state = persisted(stream_of(topology).parallelismHint(4).shuffle(), oneTransaction=True)
    state.parallelismHint(4)
    topology.build()
    assert state.use.required_partitions == 1


def test_a_spout_that_shares_no_offsets_is_told(kafka: Any, tmp_path: Path) -> None:
    topology = TridentTopology()
    factory = TransactionalTopicState(kafka.bootstrap, kafka.create_topic(), consumed="s")
    stream_of(topology).partitionPersist(factory, "v", RowUpdater())
    with LocalCluster() as cluster, pytest.raises(TopologyError, match="shareOffsets=True"):
        cluster.submitTopology("t", {}, topology.build()).awaitTermination(60)
