"""Group maps: updates of an opaque map of 1M keys on MariaDB and PostgreSQL, Count in batches of 100k.

All ways get the same Arrow columns in turn, batch by batch, on one server: combined in the database, read-modify-
write, and one bulk upsert by hand. The last figure of each server is what ledger and fence cost.
"""

from __future__ import annotations

import io
import random
import time
from collections.abc import Callable, Iterator
from typing import Any

import pyarrow as pa
import pyarrow.csv as csv

from states.columns.values import Column
from states.sql import SqlMapState
from states.sql.store import parse_url, store_of
from testbed.sql_servers import MariaDb, PostgreSql
from trident_py.model.chunks import Chunk, TupleList
from trident_py.operations import CombinerAggregator
from trident_py.operations.builtin import Count
from trident_py.state import SILENT, MapCombinerAggStateUpdater, persist
from trident_py.tuples import Fields

from .measure import measure
from .report import Figure, at_least, at_most, median

GROUP = "SQL maps"
KEYS = 1_000_000
PER_BATCH = 100_000
BATCHES = 9
WARM_UP = 2
FIELDS = Fields("word string", "count bigint")
COLUMNS = [Column("word", "string"), Column("count", "bigint")]
SERVERS: dict[str, Callable[[], Any]] = {
    "MariaDB": lambda: MariaDb(innodb_buffer_pool_size="512M", innodb_log_file_size="512M"),
    "PostgreSQL": lambda: PostgreSql(fsync="on", shared_buffers="512MB", max_wal_size="4GB"),
}

MARIADB_BY_HAND = [
    "CREATE TEMPORARY TABLE new (word VARCHAR(190) COLLATE utf8mb4_nopad_bin PRIMARY KEY, count BIGINT)",
    "INSERT INTO hand (word, count, txid) SELECT word, count, {txid} FROM new ORDER BY word ON DUPLICATE KEY UPDATE "
    "prev_count = IF(txid = VALUES(txid), prev_count, hand.count), "
    "count = COALESCE(prev_count, 0) + VALUES(count), txid = VALUES(txid)",
    "DROP TEMPORARY TABLE new",
]
POSTGRESQL_BY_HAND = [
    'CREATE TEMP TABLE new (word TEXT COLLATE "C" PRIMARY KEY, count BIGINT)',
    "INSERT INTO hand AS t (word, count, txid) SELECT word, count, {txid} FROM new ORDER BY word "
    "ON CONFLICT (word) DO UPDATE SET txid = excluded.txid, "
    "prev_count = CASE WHEN t.txid = excluded.txid THEN t.prev_count ELSE t.count END, "
    "count = coalesce(CASE WHEN t.txid = excluded.txid THEN t.prev_count ELSE t.count END, 0) + excluded.count",
    "DROP TABLE new",
]


class CountInPython(CombinerAggregator):
    """Count as a user may write it, without its SQL: read, combined in Python, written."""

    init, zero = Count.init, Count.zero

    def combine(self, val1: int, val2: int) -> int:
        return val1 + val2


def batch(number: int) -> TupleList:
    """Distinct keys with a count each, as a partition of a topology gets them: chunks of Arrow columns."""
    chosen = random.Random(number).sample(range(KEYS), PER_BATCH)
    words = pa.array([f"word{key:07d}" for key in chosen])
    tuples = TupleList(FIELDS)
    tuples.append(Chunk({"word": words, "count": pa.array([1 + key % 5 for key in chosen])}, PER_BATCH))
    return tuples


def ways(kind: str) -> dict[str, list[float]]:
    """Seconds for each batch and way, on a server of its own."""
    with SERVERS[kind]() as server:
        aggregators = {"combined": Count(), "general": CountInPython(), "fenced": Count()}
        run: dict[str, Callable[[int, TupleList], Any]] = {}
        for name, agg in aggregators.items():
            run[name] = _state(filled(server.url, name), agg, fenced=name == "fenced")
        filled(server.url, "hand")
        run["hand"] = lambda txid, tuples: by_hand(kind, server.url, txid, tuples)
        seconds: dict[str, list[float]] = {name: [] for name in run}
        for txid in range(2, BATCHES + WARM_UP + 2):
            tuples = batch(txid)
            for name in random.Random(txid).sample(list(run), len(run)):
                began = time.perf_counter()
                run[name](txid, tuples)
                seconds[name].append(time.perf_counter() - began)
        seconds["ledger"] = ledgers_time(run["fenced"], run["combined"])
        _same(server.url)
    return {name: each[WARM_UP:] for name, each in seconds.items()}


def filled(url: str, name: str) -> SqlMapState:
    """A table with all keys."""
    factory = SqlMapState.opaque(url, name, "word string", "count bigint")
    state = factory.makeState({}, None, 0, 1)
    for start in range(0, KEYS, PER_BATCH):
        state.beginCommit(1)
        state.multiPut([(f"word{key:07d}",) for key in range(start, start + PER_BATCH)], [1] * PER_BATCH)
        state.commit(1)
    return factory


def _state(factory: SqlMapState, agg: CombinerAggregator, fenced: bool) -> Callable[[int, TupleList], Any]:
    updater = MapCombinerAggStateUpdater(agg, "word", "count")
    conf: dict[str, Any] = {"topology.name": "bench", "trident.state.name": factory.table, "trident.lineage": "bench"}
    driver = factory.participant()
    if not fenced:
        plain = factory.makeState({}, None, 0, 1)
        return lambda txid, tuples: persist(plain, txid, updater, tuples, SILENT)
    conf |= {"trident.txid": 1, "trident.generation": None}  # the table was filled as batch 1
    conf["trident.generation"] = driver.open(conf)
    state = factory.makeState(conf, None, 0, 1)

    def run(txid: int, tuples: TupleList) -> None:
        driver.prepare(txid, 0, 1)
        receipt = persist(state, txid, updater, tuples, SILENT)
        driver.publish(txid, 0, [] if receipt is None else [receipt])

    return run


def ledgers_time(fenced: Callable[[int, TupleList], Any], plain: Callable[[int, TupleList], Any]) -> list[float]:
    """Seconds that each batch spends in its fence and ledger: without tuples a batch does nothing else."""
    nothing, seconds = TupleList(FIELDS), []
    for txid in range(BATCHES + WARM_UP + 2, 2 * (BATCHES + WARM_UP) + 2):
        began = time.perf_counter()
        fenced(txid, nothing)
        between = time.perf_counter()
        plain(txid, nothing)
        seconds.append(2 * between - began - time.perf_counter())
    return seconds


def by_hand(kind: str, url: str, txid: int, tuples: TupleList) -> None:
    """What a person writes who knows the server: one load, one statement, one transaction."""
    columns = pa.table({name: pa.chunked_array([chunk.columns[name] for chunk in tuples.chunks]) for name in FIELDS})
    sink = io.BytesIO()
    csv.write_csv(columns, sink, csv.WriteOptions(include_header=False, delimiter="\t", quoting_style="none"))
    store = store_of(parse_url(url))
    with store.writing() as connection:
        create, insert, drop = MARIADB_BY_HAND if kind == "MariaDB" else POSTGRESQL_BY_HAND
        connection.execute(create)
        if kind == "MariaDB":
            store.dialect.load(connection, "new", COLUMNS, [sink.getvalue()])  # type: ignore[attr-defined]
        else:
            with connection.raw.cursor() as cursor, cursor.copy("COPY new FROM STDIN") as copy:
                copy.write(sink.getvalue())
        connection.execute(insert.format(txid=txid))
        connection.execute(drop)


def _same(url: str) -> None:
    """All ways have stored the same."""
    with store_of(parse_url(url)).reading() as connection:
        text = "SELECT sum(count), sum(txid), sum(prev_count), count(*) FROM {}"
        names = ("combined", "general", "fenced", "hand")
        found = {tuple(connection.execute(text.format(name)).fetchone()) for name in names}
    if len(found) != 1:
        raise AssertionError(f"the ways differ: {found}")


def figures() -> Iterator[Figure]:
    for kind in SERVERS:
        found = {name: median(seconds) for name, seconds in measure("sql_maps.ways", kind).items()}
        rate = {name: PER_BATCH / seconds for name, seconds in found.items()}
        asked = kind == "MariaDB"
        yield Figure(GROUP, f"{kind}: bulk upsert by hand", rate["hand"], "updates/s")
        yield Figure(GROUP, f"{kind}: read-modify-write", rate["general"], "updates/s")
        for against, bar, label in (("general", 3.0, "read-modify-write"), ("hand", 0.8, "by hand")):
            ratio = rate["combined"] / rate[against]
            met: dict[str, Any] = at_least(ratio, bar) if asked else {}
            yield Figure(GROUP, f"{kind}: opaque Count", rate["combined"], "updates/s", label, ratio, **met)
        cost = 100 * found["ledger"] / found["fenced"]
        bar_of_cost: dict[str, Any] = at_most(cost, 2, " %") if asked else {}
        note = f"medians of batches without and with: {found['combined']:.3f} s, {found['fenced']:.3f} s"
        yield Figure(GROUP, f"{kind}: ledger and fence, of a batch", cost, "%", note=note, **bar_of_cost)
