"""Group rows: InsertIgnoreState against the servers' own bulk loads, side by side on one server."""

from __future__ import annotations

import random
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from .measure import measure
from .report import Figure, at_least, median

GROUP = "rows"
ROWS = 1_000_000
FEWER = 200_000
ROUNDS = 5
FIELDS = "k string", "n bigint", "x double", "t string"
TABLE = "(k VARCHAR(40) NOT NULL PRIMARY KEY, n BIGINT, x DOUBLE PRECISION, t VARCHAR(80))"


def values(rows: int) -> list[tuple]:
    """Rows of about 100 bytes in no order: the key is a fingerprint."""
    draw = random.Random(7)
    return [(f"{draw.getrandbits(128):032x}", i, draw.random(), f"a text of forty signs {i:018d}") for i in range(rows)]


def tuples(given: list[tuple]) -> Any:
    """The rows as both clusters hand them over: chunks of Arrow columns."""
    from trident_py.model.chunks import Chunk, TupleList
    from trident_py.tuples import Fields

    fields = Fields(*FIELDS)
    made = TupleList(fields)
    made.append(Chunk.of_rows(fields, given))
    return made


class Side:
    """What both sides of a comparison share: a server's connection and an empty table for each round."""

    def __init__(self, url: str, folder: str, rows: int) -> None:
        from states.sql.store import parse_url, store_of

        self.url = url
        self.store = store_of(parse_url(url))
        self.connection = self.store.take()
        self.given = values(rows)
        self.tuples = tuples(self.given)
        self.sorted = sorted(self.given)
        self.file = Path(folder) / "rows.tsv"
        self.file.write_text("".join(f"{k}\t{n}\t{x!r}\t{t}\n" for k, n, x, t in self.sorted))
        self.txid = 0

    def empty(self, *tables: str) -> None:
        exact = self.store.dialect.table_options(self.connection, True).get("mysql_collate")
        for table in tables:
            self.connection.execute(f'DROP TABLE IF EXISTS "{table}"')
            folds_nothing = f" CHARACTER SET utf8mb4 COLLATE {exact}" if exact else ""
            self.connection.execute(f'CREATE TABLE "{table}" {TABLE}{folds_nothing}')

    def state(self, **options: Any) -> Callable[..., dict]:
        """Writes the batch, or the given tuples, through `persist`, under the fence of a driver, under a new txid."""
        from states.sql import InsertIgnoreState, RowUpdater
        from trident_py.state import SILENT, persist

        factory = InsertIgnoreState(self.url, "ours", "k", FIELDS, **options)
        participant = factory.participant()
        conf: dict[str, Any] = {"topology.name": "bench", "trident.state.name": "rows", "trident.lineage": "one"}
        conf["trident.generation"] = participant.open(conf)
        participant.prepare(self.txid + 1, 0, 1)
        state = factory.makeState(conf, None, 0, 1)

        def write(given: Any = None) -> dict:
            self.txid += 1
            receipt: dict = persist(state, self.txid, RowUpdater(), given or self.tuples, SILENT)
            participant.publish(self.txid, 0, [receipt])
            return receipt

        return write

    def raw_load(self) -> None:
        """A ready, sorted file; PyMySQL sends it."""
        import pymysql
        from sqlalchemy import make_url

        url = make_url(self.url)
        connection = pymysql.connect(
            host=url.host, port=url.port, user=url.username, database=url.database, local_infile=True,
            ssl_disabled=True,
        )  # fmt: skip
        connection.cursor().execute(f"LOAD DATA LOCAL INFILE '{self.file}' IGNORE INTO TABLE raw CHARACTER SET utf8mb4")
        connection.commit()
        connection.close()

    def raw_copy(self) -> None:
        """A ready, sorted file; psycopg sends it."""
        with self.connection.raw.cursor() as cursor, cursor.copy("COPY raw FROM STDIN") as copy:
            with self.file.open("rb") as file:
                while block := file.read(1 << 18):
                    copy.write(block)

    def raw_executemany(self) -> None:
        """By hand: 10,000 rows at a time, as PyMySQL makes INSERTs of them, one commit."""
        self.connection.execute("START TRANSACTION")
        cursor = self.connection.raw.cursor()
        for at in range(0, len(self.given), 10_000):
            cursor.executemany(
                "INSERT IGNORE INTO raw (k, n, x, t) VALUES (%s, %s, %s, %s)", self.given[at : at + 10_000]
            )
        self.connection.execute("COMMIT")


def timed(work: Callable[[], Any]) -> float:
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


def both(side: Side, raw: Callable[[], Any], rounds: int) -> dict[str, list[float]]:
    """The raw way and ours in turn, each also with the rows there: seconds."""
    found: dict[str, list[float]] = {"raw": [], "ours": [], "raw again": [], "ours again": []}
    for number in range(rounds):
        side.empty("raw", "ours")
        write = side.state()
        ways = [("raw", raw), ("ours", write)]
        for name, way in ways if number % 2 else ways[::-1]:
            found[name].append(timed(way))
        found["raw again"].append(timed(raw if raw != side.raw_copy else lambda: None))
        found["ours again"].append(timed(write))
        side.txid = 0
        counted = [side.connection.execute(f'SELECT count(*) FROM "{t}"').fetchone()[0] for t in ("raw", "ours")]
        assert counted == [len(side.given)] * 2, counted
        side.connection.execute("DELETE FROM trident_part")
        side.connection.execute("DELETE FROM trident_fence")
    return found


def served(kind: str, **options: Any) -> Any:
    from testbed.sql_servers import MariaDb, MySql

    return {"MariaDB": MariaDb, "MySQL": MySql}[kind](innodb_buffer_pool_size=1 << 30, **options)


def mysql_load(rows: int, rounds: int, kind: str = "MariaDB") -> dict[str, list[float]]:
    with tempfile.TemporaryDirectory() as folder, served(kind) as server:
        side = Side(server.url, folder, rows)
        return both(side, side.raw_load, rounds)


def mysql_rows(rows: int, rounds: int, kind: str = "MariaDB") -> dict[str, list[float]]:
    with tempfile.TemporaryDirectory() as folder, served(kind, local_infile=0) as server:
        side = Side(server.url, folder, rows)
        return both(side, side.raw_executemany, rounds)


def postgresql_copy(rows: int, rounds: int) -> dict[str, list[float]]:
    from testbed.sql_servers import PostgreSql

    with tempfile.TemporaryDirectory() as folder, PostgreSql(fsync="on", shared_buffers="512MB") as server:
        side = Side(server.url, folder, rows)
        return both(side, side.raw_copy, rounds)


def variants(rows: int, rounds: int) -> dict[str, list[float]]:
    """A table that can refuse more than a key, and what is asked beyond "ignore": all rows new, half, none."""
    found: dict[str, list[float]] = {}
    with tempfile.TemporaryDirectory() as folder, served("MariaDB") as server:
        side = Side(server.url, folder, rows)
        half = tuples(side.given[::2])
        for _ in range(rounds):
            for name, options, check in (
                ("a plain table", {}, False), ("a CHECK", {}, True), ("onConflict=fail", {"onConflict": "fail"}, False),
                ("onBadRow=dead-letter", {"onBadRow": "dead-letter"}, False),
            ):  # fmt: skip
                for before, known in ((None, "all rows new"), (half, "half of the rows known")):
                    side.empty("ours")
                    if check:
                        side.connection.execute('ALTER TABLE "ours" ADD CHECK (n >= 0)')
                    write = side.state(**options)
                    if before is not None:
                        write(before)
                    found.setdefault(f"{name}, {known}", []).append(timed(write))
                    if before is None:
                        found.setdefault(f"{name}, again", []).append(timed(write))
                    side.txid = 0
                    side.connection.execute("DELETE FROM trident_part")
                    side.connection.execute("DELETE FROM trident_fence")
    return found


def compared(name: str, raw: str, found: dict[str, list[float]], rows: int, bar: float) -> Iterator[Figure]:
    """Ratios are of medians; both sides ran in turn on one server."""
    hand, ours = median(found["raw"]), median(found["ours"])
    yield Figure(GROUP, raw, rows / hand, "rows/s")
    yield Figure(GROUP, name, rows / ours, "rows/s", raw, hand / ours, **at_least(hand / ours, bar))  # type: ignore[arg-type]
    again = median(found["ours again"])
    yield Figure(
        GROUP, f"{name}, replay", rows / again, "rows/s", "its first time", ours / again, **at_least(ours / again, 1.0)  # type: ignore[arg-type]
    )  # fmt: skip


def figures() -> Iterator[Figure]:
    for kind in ("MariaDB", "MySQL"):
        found = measure("bulk_rows.mysql_load", ROWS, ROUNDS, kind)
        yield from compared(f"{kind}: InsertIgnoreState", "LOAD DATA LOCAL IGNORE of a sorted file", found, ROWS, 0.85)
        found = measure("bulk_rows.mysql_rows", FEWER, ROUNDS, kind)
        yield from compared(f"{kind} without local files", "executemany 10,000 by hand", found, FEWER, 0.9)
    found = measure("bulk_rows.postgresql_copy", ROWS, ROUNDS)
    yield from compared("PostgreSQL: InsertIgnoreState", "COPY of a sorted file", found, ROWS, 0.9)
    found = measure("bulk_rows.variants", FEWER, 3)
    for name, seconds in found.items():
        plain = median(found["a plain table, " + name.rpartition(", ")[2]])
        yield Figure(GROUP, name, FEWER / median(seconds), "rows/s", "a plain table", plain / median(seconds))
