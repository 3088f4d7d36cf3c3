"""Runs for `small`, each in a process of its own (measure.py): word counts by size of the batch, and profiles."""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from states.sql import InsertIgnoreState, SqlMapState
from testbed.kafka_broker import KafkaBroker
from testbed.sql_servers import MariaDb
from trident_py import Fields, TridentTopology
from trident_py.extras.profile.cli import ON, in_json, measure
from trident_py.model.chunks import CHUNK_ROWS, Chunk
from trident_py.operations.builtin import Count
from trident_py.spouts import ITridentSpout
from trident_py.testing import MemoryMapState

from .kafka_by_hand import fill
from .kafka_ours import spout as kafka_spout
from .numbered import Numbered
from .ours import CONF, SPLITS, cluster_on, run
from .storm_runs import words as words_on_storm

SENTENCE = Fields("sentence string")
PARTITIONS = 2
PROFILED, WARM_UP = 40, 20


@cache
def sentences_of(path: str) -> pa.Array:
    return pq.read_table(path).column("sentence").combine_chunks()


def numbers_of(batch: int, size: int, total: int) -> Iterator[tuple[int, int]]:
    """The sentences of a batch, counted from 1, as ranges: it begins where the last one ended, and again at the end."""
    at = (batch - 1) * size % total
    while size:
        taken = min(size, total - at)
        yield at, at + taken
        at, size = 0, size - taken


class Sentences(ITridentSpout):
    """So many batches of sentences from a file, which each task keeps in memory."""

    kind = "transactional"

    class Emitter(ITridentSpout.Emitter):
        def __init__(self, path: str, size: int, task: int, tasks: int) -> None:
            self.path, self.size = path, size
            self.share = task * size // tasks, (task + 1) * size // tasks

        def emitChunks(self, tx: Any, coordinatorMeta: Any, wanted: Iterable[str] | None = None) -> Iterator[Chunk]:
            column = sentences_of(self.path)
            ranges = numbers_of(coordinatorMeta["batch"], self.size, len(column))
            batch = pa.concat_arrays([column[first:last] for first, last in ranges])
            for at in range(self.share[0], self.share[1], CHUNK_ROWS):
                part = batch[at : min(at + CHUNK_ROWS, self.share[1])]
                yield Chunk({"sentence": part}, len(part))

    def __init__(self, path: str, size: int, batches: int) -> None:
        self.path, self.size, self.batches = path, size, batches

    def getCoordinator(self, txStateId: str, conf: dict, context: Any) -> Any:
        return Numbered(self.batches)

    def getEmitter(self, txStateId: str, conf: dict, context: Any) -> Any:
        return self.Emitter(self.path, self.size, context.getPartitionIndex(), context.numPartitions())

    def getOutputFields(self) -> Fields:
        return SENTENCE


def counted(path: str, size: int, batches: int) -> dict[str, int]:
    """The counts after so many batches, by Arrow alone."""
    column = sentences_of(path)
    found: Counter[str] = Counter()
    cycles, rest = divmod(size * batches, len(column))
    for part, times in ((column, cycles), (column[:rest], 1)):
        for row in pc.value_counts(pc.list_flatten(pc.split_pattern(part, " "))).to_pylist():
            found[row["values"]] += times * row["counts"]
    return {word: count for word, count in found.items() if count}


def count_words(topology: TridentTopology, spout: Any, kind: str, state: Any) -> None:
    field = spout.getOutputFields()[0]
    words = topology.newStream("in", spout).parallelismHint(PARTITIONS).each(field, SPLITS[kind], Fields("word string"))
    counts = words.groupBy("word").persistentAggregate(state, Count(), "count")
    counts.parallelismHint(PARTITIONS)


def words(path: str, size: int, batches: int, kind: str, where: str) -> dict[str, Any]:
    """Seconds of each batch, and whether the counts at the end are right."""
    topology, state = TridentTopology(), MemoryMapState.Factory()
    count_words(topology, Sentences(path, size, batches), kind, state)
    with cluster_on(where) as cluster:
        seconds = run(cluster, topology).seconds
        found = {key[0]: value.curr for key, value in state.stored().items()}
    return {"seconds": seconds, "exact": found == counted(path, size, batches)}


def on_storm(path: str, size: int, batches: int, pending: int, tasks: int) -> dict[str, Any]:
    """The same on Storm, with so many batches in flight. As many more run behind those measured: Storm works on them in
    the time of these, and without them the last ones would seem to take none."""
    total = batches + pending
    with tempfile.TemporaryDirectory(prefix="trident-bench-") as folder:
        lines = Path(folder) / "sentences.txt"
        lines.write_text("\n".join(sentences_of(path).to_pylist()) + "\n")
        at, found = words_on_storm(str(lines), size, total, pending, tasks)
    laps = [later - earlier for earlier, later in zip([0.0, *at], at[:batches], strict=False)]
    return {"seconds": laps, "exact": found == counted(path, size, total)}


def profile_of_words(path: str, size: int, kind: str, where: str) -> list[dict[str, Any]]:
    topology = TridentTopology()
    count_words(topology, Sentences(path, size, 10 * PROFILED), kind, MemoryMapState.Factory())
    return profiled(topology, where)


def profile_of_kafka(path: str, size: int, where: str) -> list[dict[str, Any]]:
    """KafkaSpout, split, count into SqlMapState on MariaDB."""
    with KafkaBroker() as broker, MariaDb() as server:
        topic, total = broker.create_topic(partitions=PARTITIONS), size * (PROFILED + WARM_UP + 5)
        values = (value.encode() for value in sentences_of(path)[:total].to_pylist())
        fill(broker.bootstrap, topic, values, PARTITIONS)
        topology = TridentTopology()
        state = SqlMapState.opaque(server.url, "counts", "word string", "count bigint")
        count_words(topology, kafka_spout(broker.bootstrap, topic, size, "string"), "function", state)
        return profiled(topology, where)


def profile_of_states(path: str, size: int, where: str) -> list[dict[str, Any]]:
    """Three states on MariaDB: counts of words, one count of all sentences, the sentences as rows."""
    with MariaDb() as server:
        topology = TridentTopology()
        stream = topology.newStream("in", Sentences(path, size, 10 * PROFILED)).parallelismHint(PARTITIONS)
        words = stream.each("sentence", SPLITS["function"], Fields("word string")).groupBy("word")
        words.persistentAggregate(SqlMapState.opaque(server.url, "counts", "word string", "count bigint"), Count(), "n")
        stream.persistentAggregate(SqlMapState.opaque(server.url, "total", None, "count bigint"), Count(), "n")
        rows = InsertIgnoreState(server.url, "sentences", "sentence string")
        stream.partitionPersist(rows, "sentence").parallelismHint(PARTITIONS)
        return profiled(topology, where)


def profiled(topology: TridentTopology, where: str) -> list[dict[str, Any]]:
    """The phases of the component: name, median seconds and share of each; the last is the whole batch."""
    with cluster_on(where) as cluster:
        running = cluster.submitTopology("profiled", {**ON, **CONF.get(where, {})}, topology.build())
        (profile,) = map(in_json, measure(running, PROFILED, WARM_UP))
    return [*profile["phases"], {"phase": "whole batch", "of": "", "seconds": profile["seconds"], "share": 1.0}]
