"""Topologies drawn from a small grammar: a spout of a kind, a filter, poison, and one to three states of a store.

    topology    spout [filter [poison]] state (1 to 3), in 1 to 3 partitions
    spout       transactional | opaque | files | coordinated | committer | kafka | gateway
    state       any of the store whose promise holds behind this spout; maps stand behind a groupBy

Most spouts emit known rows in each batch, so txids are compared as well. The opaque one emits another number of rows in
each try, from the last committed row on, and a known number in the end; a KafkaSpout what it finds.
"""

from __future__ import annotations

import logging
import random
import zlib
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from trident_py import TridentTopology
from trident_py.kafka import Json, KafkaSpout
from trident_py.operations import deterministic
from trident_py.report.guarantees import EXACTLY, IN_EFFECT
from trident_py.spouts import FileSpout, ICommitterTridentSpout, IOpaquePartitionedTridentSpout, ITridentSpout
from trident_py.state import MapCombinerAggStateUpdater
from trident_py.testing.faults.feed import OneForAll

from .cell_source import count_up
from .cell_topology import topic_of
from .file_rows import count_calls
from .forks import PRELOADED, Start
from .held import HELD, INPUT, TOPICS
from .letters import LETTERS, NAME
from .readings import PARTITIONS, Fold, Readings, Row
from .requests import answer, asked
from .steps import InHalves, Stepped
from .stores import ROW, Pairs, Source

READERS = ("kafka", "gateway")
"""A KafkaSpout; what it reads was written by a producer, or by the gateway for devices."""
SPOUTS = ("transactional", "opaque", "files", "coordinated", "committer", *READERS)
BISECT = (("topology.poison", "bisect"), ("topology.poison.attempts", 1))
PRELOADED[:] = ["faults.preloaded_drawn"]
LINES = 9
"""Lines of a batch of a file; records of each partition in a batch of a topic; rows of an opaque batch, on average."""
WORDS = 3


@dataclass(frozen=True)
class Drawn:
    """What a round has drawn. ``poison``: some rows fail, and are excluded; ``asked``: the map that answers DRPC
    requests, if one does."""

    store: str
    spout: str
    states: tuple[str, ...]
    partitions: int
    filtered: bool
    poison: bool
    asked: str = ""

    @property
    def known(self) -> bool:
        """Whether it is known which row comes in which batch."""
        return self.spout not in ("opaque", *READERS)

    @property
    def ends_later(self) -> bool:
        """Whether there may be more batches than drawn: a KafkaSpout makes smaller ones while brokers come and go."""
        return self.spout in READERS


def draw_topology(draw: random.Random, store: str, first: str) -> Drawn:
    """``first`` is one of the states; the spout and the other states are such that each keeps a promise."""
    spout = draw.choice(SPOUTS)
    while not promised(store, spout, first):
        spout = draw.choice(SPOUTS)
    others = [state for state in HELD[store] if state != first and promised(store, spout, state)]
    more = draw.sample(others, min(draw.randrange(3), len(others)))
    poison = spout in ("transactional", "coordinated") and draw.random() < 0.2
    drawn = Drawn(store, spout, (first, *more), draw.randrange(1, 4), draw.random() < 0.5, poison)
    maps = [state for state in drawn.states if HELD[store][state].combiner is not None and drawn.known]
    return replace(drawn, asked=draw.choice(["", *maps]))


def promised(store: str, spout: str, state: str) -> bool:
    """Whether the state is exact behind the spout. An append is not, behind one that sends another batch again. A
    KafkaSpout reads from the brokers of the states."""
    if spout in READERS:
        return store in TOPICS
    return spout != "opaque" or state not in ("append", "topic", "trans")


@dataclass(frozen=True)
class Input:
    """The rows that arrive at the states, made from a seed."""

    seed: int
    last: int
    drawn: Drawn

    def batch(self, txid: int) -> list[Row]:
        return [row for row in self.sent(txid) if self.judge(row[0]) == "keep"]

    def letters(self) -> list[str]:
        """The ids of the rows that are excluded, as often as they are sent."""
        sent = [row[0] for txid in range(1, self.last + 1) for row in self.sent(txid)]
        return [id for id in sent if self.judge(id) == "poison"]

    def sent(self, txid: int) -> list[Row]:
        if self.drawn.spout == "files":
            return [line(number) for number in range((txid - 1) * LINES, txid * LINES)]
        if not self.drawn.known:
            numbers = range(self.last * LINES) if txid == 1 else range(0)
            return [numbered_row(partition, number) for partition in range(PARTITIONS) for number in numbers]
        return Readings(self.seed).batch(txid)

    def judge(self, id: str) -> str:
        """keep, drop (every seventh of a sender or a file), or poison."""
        if self.drawn.poison and zlib.crc32(f"{self.seed}{id}".encode()) % 50 == 0:
            return "poison"
        dropped = self.drawn.filtered and int(id.rpartition("-")[2]) % 7 == 3
        return "drop" if dropped else "keep"

    def pairs(self) -> Iterator[list[tuple[str, int]]]:
        """Word and number of each row, batch by batch."""
        for txid in range(1, self.last + 1):
            yield [(word, n) for _, word, n, *_ in self.batch(txid)]

    def fold(self) -> Fold:
        return Fold(self, self.last)  # type: ignore[arg-type]


def compare(drawn: Drawn, name: str, url: str, fold: Fold) -> Pairs:
    """What a state holds and what it must hold; without txids, where nobody knows them."""
    held = HELD[drawn.store][name]
    pairs = held.pairs(url, fold)
    if held.combiner is None or drawn.known:
        return pairs

    def plain(rows: Counter) -> Counter:
        return Counter({row[:2]: n for row, n in rows.items()})

    return [(plain(found), plain(expected)) for found, expected in pairs]


def line(number: int) -> Row:
    return f"line-{number}", f"w{number % 5}", number % 97, f"s{number % 2}", number // 2 + 1


def numbered_row(partition: int, number: int) -> Row:
    """Any six in a row have every word, also without every seventh."""
    return f"p{partition}-{number}", f"w{number % WORDS}", number % 97, f"s{partition}", number + 1


@deterministic
class Judging:
    """The filter of a drawn topology."""

    def __init__(self, rows: Input) -> None:
        self.rows = rows

    def __call__(self, id: str) -> bool:
        judged = self.rows.judge(id)
        if judged == "poison":
            raise ValueError(f"{id} is poison")
        return judged == "keep"


@dataclass(frozen=True)
class Other(OneForAll, IOpaquePartitionedTridentSpout):
    """Opaque: each try of a batch has another number of rows; the last batch has the rest."""

    last: int
    folder: str

    def getOutputFields(self) -> Any:
        return ROW

    def emitBatchNew(self, tx: Any, collector: Any, partitions: Sequence[int], lastPartitionMeta: dict) -> dict:
        made = {}
        for partition in partitions:
            start = lastPartitionMeta[partition] or 0
            made[partition] = self._end(tx.txid, start, count_up(self.folder, f"{tx.txid}-{partition}"))
            for number in range(start, made[partition]):
                collector.emit(numbered_row(partition, number))
        return made

    def _end(self, txid: int, start: int, tries: int) -> int:
        """At least six, and as many are left for each batch that follows."""
        if txid == self.last:
            return self.last * LINES
        wanted = start + (6, 12, 9)[(txid + tries) % 3]
        return min(wanted, self.last * LINES - 6 * (self.last - txid))


class Coordinated(ITridentSpout):
    """Its coordinator says which batch of the readings the emitters emit."""

    kind = "transactional"

    def __init__(self, readings: Readings, last: int) -> None:
        self.readings, self.last = readings, last

    def getOutputFields(self) -> Any:
        return ROW

    def getCoordinator(self, txStateId: str, conf: dict, context: Any) -> Any:
        return Counts(self.last)

    def getEmitter(self, txStateId: str, conf: dict, context: Any) -> Any:
        return Emits(self.readings, context.getPartitionIndex())


class Counts(ITridentSpout.BatchCoordinator):
    def __init__(self, last: int) -> None:
        self.last = last

    def initializeTransaction(self, txid: int, prevMetadata: Any, currMetadata: Any) -> Any:
        return [(0 if prevMetadata is None else prevMetadata[0]) + 1] if currMetadata is None else currMetadata

    def isReady(self, txid: int) -> bool:
        return txid <= self.last

    def isExhaustedAt(self, txid: int) -> bool:
        return txid > self.last


class Emits(ITridentSpout.Emitter):
    def __init__(self, readings: Readings, partition: int) -> None:
        self.readings, self.partition = readings, partition

    def emitBatch(self, tx: Any, coordinatorMeta: Any, collector: Any) -> None:
        for row in self.readings.part(coordinatorMeta[0], self.partition):
            collector.emit(row)


class Committing(Coordinated, ICommitterTridentSpout):
    """The same, whose emitters take part in the commit: each writes down what it has committed."""

    def __init__(self, readings: Readings, last: int, folder: str) -> None:
        super().__init__(readings, last)
        self.folder = folder

    def getEmitter(self, txStateId: str, conf: dict, context: Any) -> Any:
        return Commits(self.readings, context.getPartitionIndex(), Path(self.folder))


class Commits(Emits):
    def __init__(self, readings: Readings, partition: int, folder: Path) -> None:
        super().__init__(readings, partition)
        self.folder = folder

    def commit(self, attempt: Any) -> None:
        with (self.folder / f"committed-{self.partition}").open("a") as file:
            file.write(f"{attempt.txid}\n")


@dataclass(frozen=True, kw_only=True)
class DrawnStart(Start):
    """One start of a driver with a drawn topology."""

    drawn: Drawn

    @property
    def input(self) -> Input:
        return Input(self.seed, self.last, self.drawn)

    def topology(self) -> Any:
        logging.getLogger("trident_py").setLevel(logging.ERROR)  # each poisoned row is a warning
        count_calls()
        topology = TridentTopology()
        first = topology.newStream("readings", self._spout()).parallelismHint(PARTITIONS)
        stream = first
        if self.drawn.filtered or self.drawn.poison:
            stream = stream.filter("id", Judging(self.input))
        for name in self.drawn.states:
            made = self._persist(stream, name)
            if name == self.drawn.asked:
                answer(topology, made)
        if self.drawn.poison:
            first.deadLetters().partitionPersist(LETTERS[self.drawn.store].make(self.url), stateName=NAME)
        for each in () if (self.folder / self.checkpoints).exists() else topology.guarantees():
            assert each.guarantee in (EXACTLY, IN_EFFECT), each
        return topology.build()

    def beside(self, pipe: Any) -> AbstractContextManager[None]:
        return asked(self.input.fold().sums(), pipe) if self.drawn.asked else nullcontext()

    def _spout(self) -> Any:
        readings, folder = Readings(self.seed), str(self.folder)
        if self.drawn.spout == "files":
            return FileSpout(f"{folder}/in-*.csv", ROW, batchSize=LINES)
        if self.drawn.spout in READERS:
            form = {"fields": "value", "value": Json(ROW), "endingOffsets": "latest"}
            return KafkaSpout(*topic_of(self.url, INPUT), maxRecordsPerBatch=PARTITIONS * LINES, **form)
        made = {"transactional": Source, "coordinated": Coordinated}.get(self.drawn.spout)
        if made is not None:
            return made(readings, self.last)
        return Other(self.last, folder) if self.drawn.spout == "opaque" else Committing(readings, self.last, folder)

    def _persist(self, stream: Any, name: str) -> Any:
        held, hint = HELD[self.drawn.store][name], self.drawn.partitions
        if held.persist is not None:
            return held.persist(stream, self.url, name).parallelismHint(hint)
        factory = Stepped(name, held.make(self.url))
        if held.combiner is not None:
            words = stream.groupBy("word").aggregate("n", held.combiner, "total").partitionBy("word")
            updater = InHalves(MapCombinerAggStateUpdater(held.combiner, "word", "total"))
            made = words.parallelismHint(hint).partitionPersist(factory, ["word", "total"], updater, stateName=name)
        else:
            updater = InHalves(held.updater())
            made = stream.partitionBy("sender").partitionPersist(factory, ROW.names, updater, stateName=name)
        return made.parallelismHint(hint)
