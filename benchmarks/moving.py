"""Group moving: a million of Storm's opaque values from a hash of Redis into an opaque map in MariaDB, beside a script
by hand that neither re-bases txids nor compares what it has written."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

from .bulk_rows import timed
from .measure import measure
from .report import Figure, at_least, median

GROUP = "moving"
KEYS = 1_000_000
ROUNDS = 3
PART = 50_000


def filled(client: Any) -> None:
    """Store what Storm's OPAQUE serializer writes: [currTxid, curr, prev]."""
    for first in range(0, KEYS, PART):
        numbers = range(first, first + PART)
        client.hset("counts", mapping={f"word {n:07d}": json.dumps([6 + n % 3, n + 1, n or None]) for n in numbers})


def imported(url: str, database: str) -> None:
    from states.sql import SqlMapState
    from trident_py.extras.moving.checkpoint import Moved
    from trident_py.extras.moving.sources import RedisSource
    from trident_py.extras.moving.state_import import import_values
    from trident_py.state import StateType

    source = RedisSource(url, "counts", StateType.OPAQUE)
    state = SqlMapState.opaque(database, "counts", "word string", "count bigint")
    result = import_values(source, state.open_values(), Moved(8, 8), None, False, lambda keys: None)
    result.check("the state")
    assert result.count == KEYS, result


def by_hand(url: str, connection: Any, folder: Path) -> None:
    """Read page by page, write a file, load it."""
    import redis

    client: Any = redis.from_url(url)
    file, at = folder / "counts.tsv", None
    with file.open("w") as rows:
        while at != 0:
            at, page = client.hscan("counts", at or 0, None, PART)
            for word, text in page.items():
                txid, curr, prev = json.loads(text)
                rows.write(f"{word.decode()}\t{txid}\t{curr}\t{json.dumps(prev)}\n")
    with closing(connection.cursor()) as cursor:
        cursor.execute("CREATE TABLE raw (word VARCHAR(250) PRIMARY KEY, txid BIGINT, curr BIGINT, prev VARCHAR(40))")
        cursor.execute(f"LOAD DATA LOCAL INFILE '{file}' INTO TABLE raw")
    connection.commit()


def sides() -> dict[str, list[float]]:
    """Both ways in turn, each into a database of its own: seconds."""
    import redis
    from sqlalchemy import create_engine

    from testbed.redis_server import RedisServer
    from testbed.sql_servers import MariaDb

    found: dict[str, list[float]] = {"ours": [], "by hand": []}
    with (
        tempfile.TemporaryDirectory() as folder,
        RedisServer(appendfsync="everysec") as store,
        MariaDb(innodb_buffer_pool_size=1 << 30) as server,
    ):
        filled(redis.from_url(store.url))
        for _ in range(ROUNDS):
            found["ours"].append(timed(lambda: imported(store.url, server.create_database())))
            engine = create_engine(server.create_database(), connect_args={"local_infile": True})
            with closing(engine.raw_connection()) as raw:
                found["by hand"].append(timed(lambda: by_hand(store.url, raw, Path(folder))))
    return found


def figures() -> Iterator[Figure]:
    found = measure("moving.sides")
    hand, ours = KEYS / median(found["by hand"]), KEYS / median(found["ours"])
    yield Figure(GROUP, "HSCAN and LOAD DATA by hand", hand, "keys/s")
    yield Figure(GROUP, "import state, compared", ours, "keys/s", "by hand", ours / hand, **at_least(ours, 100_000))  # type: ignore[arg-type]
