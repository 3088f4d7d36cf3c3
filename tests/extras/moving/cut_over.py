"""Cut-overs at random moments: real Storm is killed in the middle of a word count, and we go on.

    make cut-overs SEED=1 ROUNDS=20

Several topologies run in one Storm (LocalCluster, SIGKILL of its whole process), on one Kafka, one Redis and one
ZooKeeper, which live on. Each of them is a round: then come `trident import offsets`, `trident import state` and a run
here to the end; every key is compared with the fold of all sentences. With ``--reverse`` (REVERSE=1) one thing is made
wrong in each round, an offset, a value or a txid, and `trident compare` must find it.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, redirect_stdout
from dataclasses import dataclass
from io import StringIO
from pathlib import Path
from typing import Any

import redis
from confluent_kafka import KafkaException, Producer

import states
from testbed import service
from testbed.kafka_broker import KafkaBroker
from testbed.redis_server import RedisServer
from testbed.storm import StormWords, ZooKeeper, dump
from trident_py import LocalCluster
from trident_py.cli import trident
from trident_py.errors import TridentError
from trident_py.extras.moving.checkpoint import find_moved
from trident_py.extras.txid.components import components_in
from trident_py.state.roles import StoredValues

HERE = Path(__file__).parent
WORDS = [f"w{number}" for number in range(40)]
PATIENCE = 300.0  # seconds; Storm takes ten of them, but beside other work it may take minutes
PATIENT = {"broker.session.timeout.ms": 60_000}  # of a broker that gets no processor for a while
TOGETHER = 4  # topologies in one Storm


@dataclass(frozen=True)
class Round:
    """What a seed draws. ``kind``: of the state; ``into``: where its values go; ``watched``: whether the kill follows
    a write of the state at once, so that a batch is likely to be under way."""

    seed: int
    kind: str
    into: str
    hash: str
    partitions: int
    tasks: int
    pending: int
    rows: int
    sentences: tuple[str, ...]
    delay: float
    watched: bool

    @classmethod
    def draw(cls, seed: int) -> Round:
        by = random.Random(seed)
        sentences = [" ".join(by.choices(WORDS, k=by.randint(1, 4))) for _ in range(by.randint(200, 500))]
        return cls(
            seed, by.choice(["opaque", "opaque", "opaque", "transactional"]), by.choice(["sqlite", "redis", "place"]),
            by.choice(["", "counts"]), by.randint(1, 3), by.randint(1, 3), by.choice([1, 1, 3]), by.randint(2, 8),
            tuple(sentences), by.uniform(0, 1.5), by.random() < 0.6,
        )  # fmt: skip

    @property
    def fold(self) -> dict[str, int]:
        return Counter(word for sentence in self.sentences for word in sentence.split(" "))


@dataclass(frozen=True)
class Servers:
    kafka: KafkaBroker
    redis: RedisServer
    zookeeper: ZooKeeper

    @classmethod
    @contextmanager
    def running(cls) -> Iterator[Servers]:
        with KafkaBroker(**PATIENT) as kafka, RedisServer(appendfsync="no") as server, ZooKeeper() as zookeeper:
            yield cls(kafka, server, zookeeper)


@dataclass(frozen=True)
class Placed:
    """A round as one topology of a Storm: its topic, and its database of the Redis."""

    round: Round
    topic: str
    database: int

    def url(self, servers: Servers) -> str:
        return servers.redis.url.removesuffix("0") + str(self.database)

    def options(self, servers: Servers) -> dict[str, Any]:
        one = self.round
        return {
            "name": f"words{self.database}", "zookeeper": servers.zookeeper.port, "kafka": servers.kafka.bootstrap,
            "topic": self.topic, "root": f"-{self.topic}", "redis": servers.redis.port, "database": self.database,
            "hash": one.hash, "kind": one.kind, "pending": one.pending, "tasks": one.tasks, "rows": one.rows,
            "delay": 1,
        }  # fmt: skip

    def texts(self, servers: Servers) -> dict[bytes, bytes]:
        """What the state holds now, in Storm's bytes."""
        client = redis.from_url(self.url(servers))
        if self.round.hash:
            return dict(client.hgetall(self.round.hash))
        names = [name for name in client.scan_iter() if not name.startswith(b"trident:")]
        texts = client.mget(names) if names else []
        return {name: text for name, text in zip(names, texts, strict=True) if text is not None}

    def values(self, servers: Servers) -> list[bytes]:
        return list(self.texts(servers).values())


@dataclass(frozen=True)
class Verdict:
    """How a round ended. ``differ``: the keys whose count is not that of the fold; ``txid``: the last one that Storm
    had committed; ``under_way``: whether a batch had begun, and how many keys had it already."""

    round: Round
    differ: dict[str, tuple[int | None, int | None]]
    txid: int
    under_way: bool
    touched: int
    topic: str
    output: str
    seconds: float

    @property
    def wrong(self) -> bool:
        return bool(self.differ)

    def line(self) -> str:
        one = self.round
        told = {"seed": one.seed, "kind": one.kind, "into": one.into, "txid": self.txid, "under_way": self.under_way,
                "touched": self.touched, "differ": len(self.differ), "seconds": round(self.seconds, 1)}  # fmt: skip
        return json.dumps(told)


@dataclass(frozen=True)
class Discovery:
    """How a round ended that made a ``mistake``. ``before`` and ``after`` it: what `trident compare` said; ``first``:
    the key that it must name, if it is known."""

    round: Round
    topic: str
    mistake: str
    before: dict[str, Any]
    after: dict[str, Any]
    first: str | None
    differ = output = ""

    @property
    def wrong(self) -> bool:
        named = self.after["first"] and self.after["first"]["key"]
        found = self.after["result"] == "different" and (self.first is None or named == [self.first])
        return not found or self.before["result"] != "equal"

    def line(self) -> str:
        one = self.round
        return json.dumps({"seed": one.seed, "kind": one.kind, "into": one.into, "mistake": self.mistake,
                           "found": not self.wrong, "different": self.after["different"],
                           "only": self.after["only_left"] + self.after["only_right"],
                           "first": self.after["first"]})  # fmt: skip


End = Callable[[Servers, Placed, Path], Verdict | Discovery]


def run_rounds(servers: Servers, rounds: Sequence[Round], folder: Path, end: End) -> Iterator[Verdict | Discovery]:
    """Let Storm run, and kill it; then for each topology: move, go on here, compare."""
    redis.from_url(servers.redis.url).flushall()
    placed = [Placed(one, f"lines-{one.seed}-{os.getpid()}", number) for number, one in enumerate(rounds)]
    for each in placed:
        servers.kafka.create_topic(each.topic, partitions=each.round.partitions)
        _send(servers.kafka, each.topic, each.round)
    with StormWords(*(each.options(servers) for each in placed)) as storm:
        _wait_for_moment(servers, placed, storm)
        storm.kill()
    for each in placed:
        yield end(servers, each, folder / str(each.round.seed))


def go_on(servers: Servers, placed: Placed, folder: Path) -> Verdict:
    began, one = time.monotonic(), placed.round
    folder.mkdir()
    touched = [json.loads(text)[0] for text in placed.values(servers)]
    output = move(servers, placed, folder)
    moved = next(filter(None, map(find_moved, components_in(folder / "checkpoints"))))
    found = run_to_end(folder)
    keys = sorted(found.keys() | one.fold.keys())
    differ = {key: (one.fold.get(key), found.get(key)) for key in keys if one.fold.get(key) != found.get(key)}
    reached = sum(1 for txid in touched if txid > moved.committed)
    return Verdict(
        one, differ, moved.committed, moved.under_way, reached, placed.topic, output, time.monotonic() - began
    )


def make_mistake(servers: Servers, placed: Placed, folder: Path) -> Discovery:
    """Move, with a mistake that the seed draws; and compare, without it and with it."""
    folder.mkdir()
    one, by = placed.round, random.Random(placed.round.seed)
    mistake = by.choice(["offset", "value", "txid"] if one.kind == "opaque" else ["value", "txid"])
    copy = folder / "storm.jsonl"
    values = placed.texts(servers).items()
    copy.write_text("".join(json.dumps({"key": key.decode(), "text": text.decode()}) + "\n" for key, text in values))
    nodes = folder / "nodes.jsonl" if mistake == "offset" else None
    if nodes is not None:
        found = dump(servers.zookeeper.hosts, f"/transactional-{placed.topic}")
        nodes.write_text("".join(json.dumps(node) + "\n" for node in _shift_offset(found, one, by)))
    move(servers, placed, folder, nodes)
    state = f"{os.environ['WORDS_STATES']}:counts"
    storms = (str(copy), state, "--kind", one.kind, "--checkpoint", str(folder / "checkpoints"), "--txids")
    before = compare(*storms)
    if nodes is None:
        first = _spoil(states.load(os.environ["WORDS_STATES"])["counts"].open_values(), mistake, by)
        return Discovery(one, placed.topic, mistake, before, compare(*storms), first)
    run_to_end(folder)
    fold = folder / "fold.jsonl"
    fold.write_text("".join(json.dumps({"key": key, "value": count}) + "\n" for key, count in one.fold.items()))
    after = compare(str(fold), state, "--kind", "non-transactional")
    return Discovery(one, placed.topic, mistake, before, after, None)


def _shift_offset(nodes: list[dict[str, Any]], one: Round, by: random.Random) -> list[dict[str, Any]]:
    """Return the nodes with another last offset of one partition: one less, or one more if there is a record."""
    spouts = [node for node in nodes if "/user/" in node["path"] and "lastOffset" in node["data"]]
    metas = {node["path"]: json.loads(node["data"]) for node in spouts}
    partition = by.choice(sorted({path.rpartition("/")[0] for path, meta in metas.items() if meta["lastOffset"] >= 0}))
    mine = {path: meta for path, meta in metas.items() if path.startswith(f"{partition}/")}
    last = max(meta["lastOffset"] for meta in mine.values())
    more = last + 1 < len(one.sentences) // one.partitions
    step = by.choice([-1, 1]) if more else -1
    shifted = {path: json.dumps(meta | {"lastOffset": meta["lastOffset"] + step}) for path, meta in mine.items()}
    return [node | {"data": shifted.get(node["path"], node["data"])} for node in nodes]


def _spoil(values: StoredValues, mistake: str, by: random.Random) -> str:
    """Change one value, or its txid. Return its key."""
    key, stored = by.choice(sorted(values.rows(), key=lambda row: tuple(row[0])))
    txid, value, *rest = stored
    changed = (txid, value + 1) if mistake == "value" else (txid + 1, value)
    values.put([key], [type(stored)(*changed, *rest)])
    return str(key[0])


def compare(*arguments: str) -> dict[str, Any]:
    return dict(json.loads(call("compare", *arguments, "--json", codes=(0, 1))))


def _send(kafka: KafkaBroker, topic: str, one: Round) -> None:
    """Send each sentence once: a client that is not idempotent sends again what a slow broker has not answered."""
    producer = Producer({"bootstrap.servers": kafka.bootstrap, "log_level": 0, "enable.idempotence": True})
    for number, sentence in enumerate(one.sentences):
        producer.produce(topic, sentence, partition=number % one.partitions)
    producer.flush()


def _wait_for_moment(servers: Servers, placed: Sequence[Placed], storm: StormWords) -> None:
    """Wait until all topologies have written, then for the drawn time; if the first one is watched, until it writes
    again."""
    end, first = time.monotonic() + PATIENCE, placed[0]
    while not all(each.values(servers) for each in placed):
        if time.monotonic() > end:
            raise TridentError(f"Storm wrote nothing:\n{storm.log[-3000:]}")
        time.sleep(0.02)
    time.sleep(first.round.delay)
    before, end = first.values(servers), time.monotonic() + 1
    while first.round.watched and first.values(servers) == before and time.monotonic() < end:
        pass


def move(servers: Servers, placed: Placed, folder: Path, nodes: Path | None = None) -> str:
    """Do as a person does: import the offsets, from a live ZooKeeper or the dump of its nodes, then the state. Returns
    what was printed."""
    one, topic, url = placed.round, placed.topic, placed.url(servers)
    os.environ |= {
        "WORDS_KAFKA": servers.kafka.bootstrap, "WORDS_TOPIC": topic, "WORDS_KIND": one.kind,
        "WORDS_STATES": write_states(url, one, folder),
    }  # fmt: skip
    checkpoints = str(folder / "checkpoints")
    where = ["--dump", str(nodes)] if nodes else ["--zookeeper", servers.zookeeper.hosts]
    zookeeper = [*where, "--root", f"/transactional-{topic}"]
    told = call("import", "offsets", "moved_words:build", "--checkpoint", checkpoints, *zookeeper)
    source = ["--from", url, "--kind", one.kind, *(["--hash", one.hash] if one.hash else [])]
    target = ["--in-place"] if one.into == "place" else ["--into", f"{os.environ['WORDS_STATES']}:counts"]
    match = [] if one.hash else ["--match", "w*"]
    return told + call("import", "state", *source, *match, *target, "--checkpoint", checkpoints)


def write_states(url: str, one: Round, folder: Path) -> str:
    place = {"type": "redis-map", "kind": one.kind, "url": url}
    if one.into == "place":
        place |= {"hash": one.hash} if one.hash else {}
    elif one.into == "redis":
        place["hash"] = "moved"
    else:
        file = f"sqlite:///{folder}/words.db"
        place = {"type": "sql-map", "kind": one.kind, "url": file, "table": "counts", "key": "word string"}
        place["value"] = "count bigint"
    definitions = folder / "states.yaml"
    definitions.write_text(json.dumps({"states": {"counts": place}}))
    return str(definitions)


def call(*arguments: str, codes: Sequence[int] = (0,)) -> str:
    """Run a command in this process; raise AssertionError with what it said if it fails."""
    out = StringIO()
    with redirect_stdout(out):
        try:
            trident(list(arguments), prog_name="trident")
        except SystemExit as ended:
            assert ended.code in codes, f"trident {' '.join(arguments)} ended with {ended.code}:\n{out.getvalue()}"
    return out.getvalue()


def run_to_end(folder: Path) -> dict[str, int]:
    """Run the ported topology until it has read all; return its counts."""
    import moved_words

    topology = moved_words.build().build()
    cluster = LocalCluster(str(folder / "checkpoints"))
    cluster.submitTopology("moved_words", {}, topology).awaitTermination(PATIENCE)
    stored = states.load(os.environ["WORDS_STATES"])["counts"].stored()
    return {key[0]: value[1] for key, value in stored.items()}


def _report(servers: Servers, seeds: Sequence[int], end: End) -> int:
    """Print a line for each round; return how many are wrong. A Storm that does not start is said, and
    its rounds do not count."""
    wrong = 0
    with tempfile.TemporaryDirectory() as folder:
        try:
            for verdict in run_rounds(servers, list(map(Round.draw, seeds)), Path(folder), end):
                print(verdict.line(), flush=True)
                if verdict.wrong:
                    wrong += 1
                    print(json.dumps(dump(servers.zookeeper.hosts, f"/transactional-{verdict.topic}")))
                    print(verdict.output, verdict.differ, flush=True)
        except (TridentError, KafkaException) as error:
            print(json.dumps({"seeds": list(seeds), "did not start": str(error)[:200]}), flush=True)
    return wrong


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--seed", type=int, default=1)
    options.add_argument("--rounds", type=int, default=20)
    options.add_argument("--reverse", action="store_true")
    given = options.parse_args()
    sys.path.insert(0, str(HERE))
    wrong = 0
    end, service.PATIENCE = given.seed + given.rounds, PATIENCE
    finish = make_mistake if given.reverse else go_on
    with Servers.running() as servers:
        for first in range(given.seed, end, TOGETHER):
            wrong += _report(servers, range(first, min(first + TOGETHER, end)), finish)
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
