"""The trace of a real run: what is in its store and its log after each start, in the form of the simulation's, judged
by the same `simulation.specification`.

    trace = Trace(url, folder, Readings(seed), last)
    trace.after(driver)     # whenever a start has ended, whatever its end
    trace.end()             # when the input is done

    StoryTrace(folder).look("killed")   # of the runs of `topology.build`

The store is read by a client that knows nothing of ours. Each moment is also a line of JSON in ``trace.jsonl``.
"""

from __future__ import annotations

import json
from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import sqlalchemy as sa
from simulation.numbered import APPLIED, HELD, SENDER
from simulation.specification import Look, Moment, judge_done, judge_moment, judge_numbers

from states.sql.rows.sequence.numbers import SenderRow
from trident_py.checkpoints.append_log import AppendLogStore
from trident_py.checkpoints.metadata_store import LOG
from trident_py.engine.startup import AGREEMENT

from . import story
from .forks import Driver
from .readings import Fold, Readings
from .stores import EXACT, MAPS, NAMES, TABLES, Urls, read, url_of

KINDS = {
    "rows": "insert-ignore", "trans": "transactional", "opaque": "opaque", "general": "opaque", "append": "append",
    "batch": "batch", "keyed": "batch", "sequence": "sequence",
}  # fmt: skip
_COLUMNS = {"transactional": "word, total, txid", "opaque": "word, total, txid, prev_total"}
ONCE = ("rows", "keyed", "sequence")


class Due(NamedTuple):
    """A tuple of the fold: the batch that brings it, and what is stored of it."""

    txid: int
    value: Any


Words = dict[Any, list[Due]]
"""The tuples of each word, or of each sender, in the order in which they come."""


class _Trace:
    """One run on one checkpoint, with all its starts."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.memory: dict[Any, Any] = {}
        self.told = 0
        self.newest: Moment | None = None

    def look(self, name: str, back: bool = False) -> None:
        """Judge what is there while no driver runs. ``back``: a place may have gone back. Raises Violation."""
        over, lineage = _logged(self.folder)
        over = max(over, 0 if back else self.told)
        moment = Moment(name, over, lineage, tuple(self._looks(over)), back)
        with (self.folder / "trace.jsonl").open("a") as lines:
            lines.write(json.dumps(moment._asdict() | {"states": [look._asdict() for look in moment.states]}) + "\n")
        judge_moment(moment, self.memory)
        self.newest = moment

    def end(self) -> None:
        """Judge what is there when the input is done."""
        assert self.newest is not None
        for look in self.newest.states:
            judge_done(look.counts)

    def _looks(self, over: int) -> Iterator[Look]:
        raise NotImplementedError


class Trace(_Trace):
    """The trace of the topology of `stores.build`, up to batch ``last``."""

    def __init__(self, urls: Urls, folder: Path, readings: Readings, last: int, only: Sequence[str] = EXACT) -> None:
        super().__init__(folder)
        self.urls, self.readings, self.last, self.only = urls, readings, last, only

    def after(self, driver: Driver, back: bool = False) -> None:
        """Judge what a start has left; what it has told counts too."""
        self.told = max([self.told, *(event[1] for event in driver.of("committed"))])
        event = driver.told[-1] if driver.told else ("started",)
        self.look(f"{' '.join(map(str, event[:2]))}, exit code {driver.process.exitcode}", back)

    def _looks(self, over: int) -> Iterator[Look]:
        for state in self.only:
            url, words = url_of(self.urls, state), self._words(state)
            if state == "sequence":
                judge_numbers(_numbers(url))
            counts = (
                _count_values(words, _values(url, state)) if state in MAPS else _count_rows(words, _rows(url, state))
            )
            yield _look(url, TABLES[state], KINDS[state], words, counts, over)

    def _words(self, state: str) -> Words:
        words: Words = defaultdict(list)
        known: set[str] = set()
        for txid in range(1, self.last + 1):
            if state in MAPS:
                for word in sorted({row[1] for row in self.readings.batch(txid)}):
                    words[word].append(Due(txid, Fold(self.readings, txid).sums()[word]))
                continue
            for row in self.readings.batch(txid):
                if state not in ONCE or row[0] not in known:
                    words[row[3]].append(Due(txid, row))
                    known.add(row[0])
        return words


class StoryTrace(_Trace):
    """The trace of the topology of `topology.build`: its maps, and its rows but for those of the drifting spout."""

    def _looks(self, over: int) -> Iterator[Look]:
        made = story.Fold()
        sums: Words = defaultdict(list)
        rows: Words = {}
        for txid in range(1, story.ONE_WORD + 1):
            made.add(txid, story.batch(txid))
            for word, value in made.now.items():
                if value[0] == txid:
                    sums[word[0]].append(Due(txid, (value[1], txid, value[2])))
            rows |= {row[0]: [Due(txid, row)] for row in story.batch(txid)}
        for state, kind in (("trans", "transactional"), ("opaque", "opaque")):
            url = f"sqlite:///{self.folder}/{state}.db"
            values = {word: tuple(value) for word, *value in _read(url, f"SELECT {_COLUMNS[kind]} FROM {state}")}
            yield _look(url, state, kind, sums, _count_values(sums, values), over)
        url = f"sqlite:///{self.folder}/rows.db"
        found = Counter(_read(url, "SELECT id, word, n FROM rows WHERE id LIKE 'r%'"))
        yield _look(url, "rows", "insert-ignore", rows, _count_rows(rows, found), over)


def _logged(folder: Path) -> tuple[int, str | None]:
    """Return the last batch that is over, and the checkpoint's lineage once it has agreed with the stores."""
    for component in folder.glob("check*/*/*"):
        log = AppendLogStore(component)
        record, agreed = log.get(LOG, 0), log.get(AGREEMENT, 0)
        log.close()
        if record is not None:
            return record["over"]["txid"] if record["over"] else 0, agreed and agreed["lineage"]
    return 0, None


def _look(url: str, table: str, kind: str, words: Words, counts: list[list[int]], over: int) -> Look:
    look = Look(kind, counts, _ends(words, over))
    rows = _read(url, f"SELECT txid, lineage FROM trident_fence WHERE state = '{table}'")
    if not rows:
        return look
    ((txid, lineage),) = rows
    next_one = txid if kind == "batch" else txid + 1  # of which partitions may have committed
    return look._replace(described=(_ends(words, txid), _ends(words, next_one)), txid=txid, lineage=lineage)


def _ends(words: Words, txid: int) -> list[int]:
    """Return how far the batches up to this one reach. The last word is that of what the fold does not have."""
    return [*(bisect_right(of, txid, key=lambda due: due.txid) for of in words.values()), 0]


def _count_rows(words: Words, found: Counter[tuple]) -> list[list[int]]:
    left = Counter(found)
    counts = [[_take(left, due.value) for due in of] for of in words.values()]
    return [*counts, [2] * left.total()]


def _take(left: Counter[tuple], row: tuple) -> int:
    """Take one of the rows that are left, if there is one."""
    if not left[row]:
        return 0
    left[row] -= 1
    return 1


def _count_values(words: Words, found: dict[str, tuple]) -> list[list[int]]:
    counts = []
    for word, of in words.items():
        value = found.get(word)
        at = next((at for at, due in enumerate(of, 1) if value and due.value[: len(value)] == value), 0)
        counts.append([1] * at + [0] * (len(of) - at) if at or value is None else [2] * len(of))
    return [*counts, [2] * len(found.keys() - words.keys())]


def _values(url: str, state: str) -> dict[str, tuple]:
    text = f"SELECT {_COLUMNS[KINDS[state]]} FROM {TABLES[state]}"
    return {word: tuple(value) for word, *value in _read(url, text)}


def _rows(url: str, state: str) -> Counter[tuple]:
    found = Counter(_read(url, f"SELECT {NAMES} FROM {TABLES[state]}"))
    return found + Counter(_read(url, f"SELECT {NAMES} FROM in_order_held")) if state == "sequence" else found


def _numbers(url: str) -> dict[Any, Any]:
    """Return the senders and numbers as the simulation has them: from 0 on."""
    found: dict[Any, Any] = {}
    for table, kind in (("in_order", APPLIED), ("in_order_held", HELD)):
        found |= {(kind, (sender, place - 1)): 1 for sender, place in _read(url, f"SELECT sender, place FROM {table}")}
    for sender, last, held, missing in _read(url, 'SELECT sender, "last", held, missing FROM in_order_senders'):
        found[SENDER, (sender,)] = SenderRow(last - 1, held, missing)
    return found


def _read(url: str, text: str) -> list[tuple]:
    """Return the rows of a query; none if the first start has not made the table."""
    try:
        return read(url, text if not url.startswith(("mysql", "mariadb")) else text.replace('"', "`"))
    except (sa.exc.OperationalError, sa.exc.ProgrammingError) as error:
        if not any(words in str(error) for words in ("no such table", "doesn't exist", "does not exist")):
            raise
        return []
