"""One cut-over with many keys, and how long each command of it takes.

    make cut-overs KEYS=1000000

Storm counts the words of a topic, each of which comes once, into a hash of Redis. (A second time it would fail: its
`Count` cannot add to the Integer that its JSON gives back for a key outside of its cache.) It is killed when nearly all
keys are there, and each word is sent once more. Then come the commands of docs/moving.md, into an opaque map in
MariaDB, and a run here to the end. Every key must have been counted twice.
"""

from __future__ import annotations

import json
import os
import random
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import redis
from confluent_kafka import Producer
from cut_over import PATIENCE, Placed, Round, Servers, call, compare, run_to_end

import states
from testbed.sql_servers import MariaDb
from testbed.storm import StormWords
from trident_py.errors import TridentError

TOPIC, HASH, PARTITIONS = "many-words", "counts", 2
WORDS, ROWS = 50, 400  # of a sentence, and the sentences that a poll brings
MOMENT = 0.9  # of the keys are in Redis when Storm is killed


def send(servers: Servers, keys: int, seed: int) -> None:
    """Send each word once, in an order that the seed draws."""
    producer = Producer({"bootstrap.servers": servers.kafka.bootstrap, "log_level": 0, "enable.idempotence": True})
    words = [f"word{number:07d}" for number in range(keys)]
    random.Random(seed).shuffle(words)
    for number, first in enumerate(range(0, keys, WORDS)):
        producer.produce(TOPIC, " ".join(words[first : first + WORDS]), partition=number % PARTITIONS)
        producer.poll(0)
    producer.flush()


def run_storm(servers: Servers, keys: int) -> int:
    """Let Storm count until nearly all keys are there, and kill it; return how many there are."""
    one = Round(0, "opaque", "mariadb", HASH, PARTITIONS, 2, 1, ROWS, (), 0, False)
    options = Placed(one, TOPIC, 0).options(servers) | {"delay": 0}
    client: Any = redis.from_url(servers.redis.url)
    with StormWords(options) as storm:
        end = time.monotonic() + 6 * PATIENCE
        while client.hlen(HASH) < MOMENT * keys:
            if time.monotonic() > end:
                raise TridentError(f"Storm wrote {client.hlen(HASH)} keys:\n{storm.log[-3000:]}")
            time.sleep(0.2)
        storm.kill()
    return int(client.hlen(HASH))


def timed(told: dict[str, Any], name: str, work: Callable[[], Any]) -> Any:
    start = time.monotonic()
    done = work()
    told[name] = round(time.monotonic() - start, 1)
    return done


def move(servers: Servers, url: str, folder: Path, told: dict[str, Any]) -> list[int]:
    """Do as a person does, with the time of each command; return the counts at the end."""
    place = {"type": "sql-map", "kind": "opaque", "url": url, "table": "counts", "key": "word string"}
    states_file, checkpoints = folder / "states.yaml", str(folder / "checkpoints")
    states_file.write_text(json.dumps({"states": {"counts": place | {"value": "count bigint"}}}))
    os.environ |= {
        "WORDS_KAFKA": servers.kafka.bootstrap, "WORDS_TOPIC": TOPIC, "WORDS_KIND": "opaque", "WORDS_MOST": str(ROWS),
        "WORDS_STATES": str(states_file),
    }  # fmt: skip
    behind = ["--checkpoint", checkpoints]
    storm = ["--zookeeper", servers.zookeeper.hosts, "--root", f"/transactional-{TOPIC}"]
    taken = [servers.redis.url, "--hash", HASH, "--kind", "opaque", *behind]
    timed(told, "import offsets", lambda: call("import", "offsets", "moved_words:build", *storm, *behind))
    into = ["--into", f"{states_file}:counts"]
    timed(told, "import state", lambda: call("import", "state", "--from", *taken, *into))
    found = timed(told, "compare", lambda: compare(taken[0], f"{states_file}:counts", *taken[1:], "--txids"))
    told["compared"] = found["result"]
    timed(told, "txid ls", lambda: call("txid", "ls", "moved_words:build", *behind))
    timed(told, "run to the end", lambda: run_to_end(folder))
    return [value[1] for value in states.load(str(states_file))["counts"].stored().values()]


def cut_over(keys: int, folder: Path) -> dict[str, Any]:
    """Return the seconds of each command, what `trident compare` said, and how many keys are wrong at the end."""
    told: dict[str, Any] = {"keys": keys}
    with Servers.running() as servers, MariaDb(innodb_buffer_pool_size=1 << 30) as database:
        servers.kafka.create_topic(TOPIC, partitions=PARTITIONS)
        send(servers, keys, seed=1)
        told["keys in Storm"] = run_storm(servers, keys)
        send(servers, keys, seed=2)
        found = move(servers, database.url, folder, told)
    return told | {"wrong": keys - sum(1 for value in found if value == 2)}


def main(keys: int) -> int:
    with tempfile.TemporaryDirectory() as folder:
        told = cut_over(keys, Path(folder))
    print(json.dumps(told))
    return 1 if told["wrong"] or told["compared"] != "equal" else 0


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1])))
