"""What a table holds, measured against the journal: what is lost, doubled, or a mixture of two tries.

No trident_py here. A row of the spout is known by its name ``of``; a try of a batch is all that the journal has of
it. Every try of a batch but the last had failed, or nobody knew that it had not.
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd
import pyarrow as pa
import redis
from confluent_kafka import OFFSET_BEGINNING, Consumer, TopicPartition

from .cell_source import journal
from .stores import read

Applied = list[tuple[str, int]]
"""Row and number, as often as a table has them."""


class Verdict(NamedTuple):
    lost: list[str]
    doubled: list[str]
    mixed: list[int]
    """Batches whose rows have numbers of several tries."""
    strange: list[tuple[str, int]]
    """What no try has brought."""


class Tries:
    """The journal of a run: batch -> try -> row -> number."""

    def __init__(self, folder: Path) -> None:
        self.of: dict[int, dict[int, dict[str, int]]] = defaultdict(lambda: defaultdict(dict))
        self.words: dict[tuple[int, int, str], str] = {}
        self.whole: dict[int, dict[int, set[tuple]]] = defaultdict(lambda: defaultdict(set))
        for entry in journal(folder):
            self.whole[entry.txid][entry.tries].add(entry[2:])
            self.of[entry.txid][entry.tries][entry.of] = entry.n
            self.words[entry.txid, entry.tries, entry.of] = entry.word

    def differ(self) -> bool:
        """Whether any batch has come again with other content."""
        return any(len(set(map(frozenset, tries.values()))) > 1 for tries in self.whole.values())

    def verdict(self, applied: Applied, sent: set[str]) -> Verdict:
        found = Counter(of for of, _ in applied)
        brought = {pair for tries in self.of.values() for rows in tries.values() for pair in rows.items()}
        return Verdict(
            sorted(sent - found.keys()),
            sorted(of for of, count in found.items() if count > 1),
            [txid for txid in self.of if self._mixed(txid, applied)],
            [pair for pair in applied if pair not in brought],
        )

    def _mixed(self, txid: int, applied: Applied) -> bool:
        """Whether no single try has all of these numbers of the batch's rows."""
        tries = [set(rows.items()) for rows in self.of[txid].values()]
        there = set(applied) & set().union(*tries)
        return not any(there <= rows for rows in tries)

    def sent(self, spout: str) -> set[str]:
        """Every row that the spout has sent for good: without a gap, to where the last try of the last batch ends."""
        last = self.of[max(self.of)]
        ends = [last[max(last)]]
        if spout == "non-transactional":  # it moves on with every try
            ends = [rows for tries in self.of.values() for rows in tries.values()]
        upto: Counter[str] = Counter()
        for of in (of for rows in ends for of in rows):
            partition, number = of.split("-")
            upto[partition] = max(upto[partition], int(number) + 1)
        return {f"{partition}-{number}" for partition, count in upto.items() for number in range(count)}

    def sums(self) -> set[tuple[str, int]]:
        """Sum per word over the last try of every batch."""
        made: Counter[str] = Counter()
        for txid, tries in self.of.items():
            for of, n in tries[max(tries)].items():
                made[self.words[txid, max(tries), of]] += n
        return set(made.items())


def applied_rows(url: str, table: str) -> Applied:
    """Of a folder, what pandas finds there."""
    if url.startswith("file:"):
        frame = pd.read_parquet(Path(url.removeprefix("file://")) / table)
        return list(frame[["of", "n"]].itertuples(index=False, name=None))
    return [(of, n) for of, n in read(url, f"SELECT of, n FROM {table}")]


def applied_tuples(url: str, table: str) -> Applied:
    """The tuples in the blocks of a window's table, which are Arrow streams."""
    blocks = [bytes(data) for (data,) in read(url, f"SELECT data FROM {table} WHERE tuples > 0 AND part >= 0")]
    tables = [pa.ipc.open_stream(block).read_all() for block in blocks]
    return [(row["of"], row["n"]) for tuples in tables for row in tuples.to_pylist()]


def applied_records(url: str, table: str) -> Applied:
    """The last record of each key, by a client that knows nothing of ours."""
    if url.startswith("redis:"):
        return [(of, n) for of, n in texts(url, table).values()]
    last: dict[bytes, bytes] = {}
    consumer = Consumer({"bootstrap.servers": url.partition("#")[0], "group.id": "verdict", "log_level": 0,
                         "enable.partition.eof": True, "enable.auto.commit": False})  # fmt: skip
    topic = f"{url.partition('#')[2]}-{table}"
    ends = dict.fromkeys(consumer.list_topics(topic, 30).topics[topic].partitions, False)
    consumer.assign([TopicPartition(topic, partition, OFFSET_BEGINNING) for partition in ends])
    while not all(ends.values()):
        for message in consumer.consume(1000, 0.1):
            if message.error() is None:
                last[message.key()] = message.value()
            else:
                ends[message.partition()] = message.error().name() == "_PARTITION_EOF"
    consumer.close()
    return [(row["of"], row["n"]) for row in map(json.loads, last.values())]


def texts(url: str, table: str) -> dict[str, Any]:
    """The parsed texts of a hash in Redis, by a client that knows nothing of ours."""
    database, _, prefix = url.partition("#")
    with redis.Redis.from_url(database, decode_responses=True) as reader:
        return {name: json.loads(text) for name, text in reader.hgetall(f"{prefix}-{table}").items()}


def totals(url: str, table: str, kind: str) -> set[tuple[str, Any]]:
    """Word and total of a map."""
    if not url.startswith("redis:"):
        return set(read(url, f"SELECT word, total FROM {table}"))
    return {(word, value if kind == "non-transactional" else value[1]) for word, value in texts(url, table).items()}


def applied_words(url: str, kind: str) -> Applied:
    pairs = (entry.split("#") for _, total in totals(url, "listed", kind) for entry in total.split())
    return [(of, int(n)) for of, n in pairs]
