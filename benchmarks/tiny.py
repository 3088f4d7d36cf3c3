"""Group tiny: a batch of one tuple in one process, with a durable checkpoint, beside its database transaction alone.

The transaction by hand follows the opaque rule and is committed, on the same connection settings. It has no fence, no
ledger and no checkpoint. What a batch takes beyond it is trident_py's own.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from states.sql import SqlMapState
from states.sql.store import parse_url, store_of
from trident_py import TridentTopology
from trident_py.operations.builtin import Count
from trident_py.testing import FixedBatchSpout

from .measure import MeasurementFailed, measure
from .ours import on_local, run
from .report import Figure, at_most, median
from .sql_maps import SERVERS
from .sqlite_updates import UPSERT

GROUP = "tiny"
BATCHES, WARM_UP, ROUNDS = 400, 100, 3
WORDS = 50
MOST = 2.0  # milliseconds beyond the transaction
TABLE = "CREATE TABLE counts (word VARCHAR(190) PRIMARY KEY, count BIGINT, txid BIGINT, prev_count BIGINT)"
ON_DUPLICATE = (
    "INSERT INTO counts (word, count, txid, prev_count) VALUES (?, ?, ?, NULL) ON DUPLICATE KEY UPDATE "
    "prev_count = IF(txid = VALUES(txid), prev_count, count), "
    "count = COALESCE(prev_count, 0) + VALUES(count), txid = VALUES(txid)"
)


@contextmanager
def store_for(kind: str) -> Iterator[str]:
    """The URL of a database of its own."""
    if kind in SERVERS:
        with SERVERS[kind]() as server:
            yield server.url
    else:
        with tempfile.TemporaryDirectory(prefix="trident-bench-") as folder:
            yield f"sqlite:///{folder}/counts.db"


def seconds(kind: str) -> dict[str, list[float]]:
    """The median of each round, ours and by hand in turn."""
    found: dict[str, list[float]] = {"ours": [], "by hand": []}
    with store_for(kind) as url:
        with store_of(parse_url(url)).reading() as connection:
            connection.execute(TABLE)
        for number in range(ROUNDS):
            found["by hand"].append(median(by_hand(kind, url, number)[WARM_UP:]))
            found["ours"].append(median(ours(url, f"ours{number}")[WARM_UP:]))
    return found


def ours(url: str, table: str) -> list[float]:
    state, topology = SqlMapState.opaque(url, table, "word string", "count bigint"), TridentTopology()
    words = topology.newStream("in", FixedBatchSpout("word string", 1, *((word,) for word in drawn())))
    words.groupBy("word").persistentAggregate(state, Count(), "count").parallelismHint(1)
    with on_local() as (cluster, _):
        found = run(cluster, topology).seconds
    check({key[0]: value.curr for key, value in state.stored().items()}, 1)
    return found


def by_hand(kind: str, url: str, number: int) -> list[float]:
    store, found = store_of(parse_url(url)), []
    upsert = ON_DUPLICATE if kind == "MariaDB" else UPSERT
    with store.reading() as connection:
        for txid, word in enumerate(drawn(), number * BATCHES + 1):
            before = time.perf_counter()
            store.begin(connection)
            connection.execute(upsert, (word, 1, txid))
            connection.execute("COMMIT")
            found.append(time.perf_counter() - before)
        check(dict(connection.execute("SELECT word, count FROM counts").fetchall()), number + 1)
    return found


def drawn() -> list[str]:
    return [f"word{number % WORDS}" for number in range(BATCHES)]


def check(counts: dict[str, int], times: int) -> None:
    if counts != {f"word{number}": times * BATCHES // WORDS for number in range(WORDS)}:
        raise MeasurementFailed(f"the counts are wrong: {counts}")


def figures() -> Iterator[Figure]:
    for kind in ("SQLite", *SERVERS):
        found = measure("tiny.seconds", kind)
        hand, batch = (1000 * median(found[side]) for side in ("by hand", "ours"))
        yield Figure(GROUP, f"{kind}: the transaction by hand", hand, "ms")
        yield Figure(GROUP, f"{kind}: a batch of one tuple", batch, "ms", "by hand", batch / hand)
        asked: Any = at_most(batch - hand, MOST, " ms")
        yield Figure(GROUP, f"{kind}: beyond the transaction", batch - hand, "ms", **asked)
