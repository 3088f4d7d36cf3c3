"""Topologies that promise more than they hold. Each is one mistake that people make."""

from __future__ import annotations

from pathlib import Path
from typing import Any, ClassVar

import sqlalchemy as sa

from states.sql import SqlMapState
from trident_py import TridentTopology
from trident_py.operations import Function, deterministic
from trident_py.operations.builtin import Sum
from trident_py.state import Location, State, StateFactory, StateUpdater

EXACT = dict.fromkeys(("transactional", "opaque"), ("exactly once", "it says so"))


def topology(spout: Any, add: Any) -> Any:
    made = TridentTopology()
    add(made.newStream("words", spout).parallelismHint(2))
    return made.build()


# -- a function with a side effect ------------------------------------------------------------------------------------


@deterministic
class Numbered(Function):
    """Numbers what it has seen, in a file: a replay goes on counting."""

    def __init__(self, file: str) -> None:
        self.file = Path(file)

    def execute(self, tuple: Any, collector: Any) -> None:
        seen = len(self.file.read_text()) if self.file.exists() else 0
        self.file.write_text("." * (seen + 1))
        collector.emit((seen,))


def numbering(spout: Any, store: str) -> Any:
    def add(stream: Any) -> None:
        numbered = stream.each("word", Numbered(f"{_folder(store)}/seen"), "number bigint")
        state = SqlMapState.transactional(store, "numbers", "word string", "total bigint")
        numbered.groupBy("word").persistentAggregate(state, "number", Sum(), "total").parallelismHint(2)

    return topology(spout, add)


@deterministic
class Mails(Function):
    """Sends something for each tuple, and changes nothing."""

    def __init__(self, file: str) -> None:
        self.file = Path(file)

    def execute(self, tuple: Any, collector: Any) -> None:
        with self.file.open("a") as file:
            file.write(".")
        collector.emit((1,))


def mailing(spout: Any, store: str) -> Any:
    def add(stream: Any) -> None:
        sent = stream.each("word", Mails(f"{_folder(store)}/seen"), "sent bigint")
        state = SqlMapState.transactional(store, "words", "word string", "total bigint")
        sent.groupBy("word").persistentAggregate(state, "sent", Sum(), "total").parallelismHint(2)

    return topology(spout, add)


def emails_of(store: str) -> int:
    """A reading that is no state: how often something has been sent."""
    file = Path(_folder(store)) / "seen"
    return len(file.read_text()) if file.exists() else 0


def _folder(store: str) -> str:
    return str(Path(str(sa.make_url(store).database)).parent)


# -- states of one's own ----------------------------------------------------------------------------------------------


class Adding(State):
    """Counts words in a table. Each class below commits in another wrong way."""

    def __init__(self, url: str, partition: int) -> None:
        self.engine, self.partition = sa.create_engine(url, poolclass=sa.NullPool), partition
        self.added: list[str] = []
        self.txid: int | None = None

    def beginCommit(self, txid: int | None) -> None:
        self.txid, self.added = txid, []

    def commit(self, txid: int | None) -> None:
        raise NotImplementedError

    def last(self, connection: Any) -> int:
        found = connection.execute(sa.text(f"SELECT txid FROM marks WHERE part = {self.partition}")).scalar()
        return int(found or 0)

    def write(self, connection: Any) -> None:
        for word in self.added:
            text = "INSERT INTO words VALUES (:word, 1, 0) ON CONFLICT (word) DO UPDATE SET n = words.n + 1"
            connection.execute(sa.text(text), {"word": word})

    def mark(self, connection: Any) -> None:
        text = "INSERT INTO marks VALUES (:part, :txid) ON CONFLICT (part) DO UPDATE SET txid = :txid"
        connection.execute(sa.text(text), {"part": self.partition, "txid": self.txid})


class Again(Adding):
    """Not idempotent: a replay is added again."""

    def commit(self, txid: int | None) -> None:
        with self.engine.begin() as connection:
            self.write(connection)


class InTwo(Adding):
    """Commits the data and its mark in two transactions."""

    def commit(self, txid: int | None) -> None:
        with self.engine.begin() as connection:
            if self.last(connection) == txid:
                return
        with self.engine.begin() as connection:
            self.write(connection)
        with self.engine.begin() as connection:
            self.mark(connection)


class MarkFirst(InTwo):
    """Marks the batch before it is written: a crash between the two loses it."""

    def beginCommit(self, txid: int | None) -> None:
        super().beginCommit(txid)
        with self.engine.begin() as connection:
            self.done = self.last(connection) == txid
            self.mark(connection)

    def commit(self, txid: int | None) -> None:
        if not self.done:
            with self.engine.begin() as connection:
                self.write(connection)


class MarkInMemory(Adding):
    """Knows what it has committed, as long as it lives."""

    done: int | None = None

    def commit(self, txid: int | None) -> None:
        if self.done != txid:
            with self.engine.begin() as connection:
                self.write(connection)
        self.done = txid


class MarkOfPartition(Adding):
    """Data and mark in one transaction. But with other partitions a batch is under other marks."""

    def commit(self, txid: int | None) -> None:
        with self.engine.begin() as connection:
            if self.last(connection) < (txid or 0):
                self.write(connection)
                self.mark(connection)


class Right(Adding):
    """The mark is kept with each word; an older batch is not added."""

    def commit(self, txid: int | None) -> None:
        with self.engine.begin() as connection:
            for word in sorted(set(self.added)):
                text = (
                    "INSERT INTO words VALUES (:word, :n, :txid) ON CONFLICT (word) "
                    "DO UPDATE SET n = words.n + :n, txid = :txid WHERE words.txid < :txid"
                )
                connection.execute(sa.text(text), {"word": word, "n": self.added.count(word), "txid": txid})


class Add(StateUpdater):
    def updateState(self, state: Any, tuples: Any, collector: Any) -> None:
        state.added += [tuple[0] for tuple in tuples]


class Words(StateFactory):
    """``guarantees``: it promises what its state may not hold."""

    guarantees: ClassVar[dict] = EXACT
    stateName: ClassVar[str] = "words"

    def __init__(self, url: str, state: type[Adding]) -> None:
        self.url, self.state = url, state

    @property
    def location(self) -> Location:
        return Location(frozenset([self.url]), frozenset(["words"]))

    def makeState(self, conf: dict, metrics: Any, partitionIndex: int, numPartitions: int) -> Adding:
        made = self.state(self.url, partitionIndex)
        with made.engine.begin() as connection:
            for table in ("words (word TEXT PRIMARY KEY, n INTEGER, txid INTEGER)",
                          "marks (part INTEGER PRIMARY KEY, txid INTEGER)"):  # fmt: skip
                connection.execute(sa.text(f"CREATE TABLE IF NOT EXISTS {table}"))
        return made

    def stored(self) -> dict:
        with sa.create_engine(self.url, poolclass=sa.NullPool).begin() as connection:
            return {(word,): n for word, n in connection.execute(sa.text("SELECT word, n FROM words"))}


def _into(state: type[Adding]) -> Any:
    def build(spout: Any, store: str) -> Any:
        def add(stream: Any) -> None:
            stream.partitionBy("word").partitionPersist(Words(store, state), ["word"], Add()).parallelismHint(2)

        return topology(spout, add)

    return build


again, in_two, mark_first = map(_into, (Again, InTwo, MarkFirst))
mark_in_memory, mark_of_partition, right = map(_into, (MarkInMemory, MarkOfPartition, Right))
