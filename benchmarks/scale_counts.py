"""The rows and bytes of a batch, and what it asks a database, counted one by one: its tasks run here, without Spark."""

from __future__ import annotations

import gc
from collections.abc import Sequence
from contextlib import closing
from typing import Any

from states.sql.store import parse_url, store_of
from testbed.sql_servers import MariaDb
from trident_py.engine.program import BatchInfo, Row, compile_plan, descriptor_rows
from trident_py.engine.startup import participants_of
from trident_py.engine.worker_cache import end_run, run_level
from trident_py.model.context import with_context
from trident_py.spouts import Coordination, MemoryMetadataStore

from .scale_runs import counters, topology_of

PARTS = "SELECT count(*) FROM trident_part"


def counted(partitions: int, tuples: int) -> dict[str, float]:
    """What one batch sends and asks. The first batch, which makes the table and the connections, is not counted."""
    with MariaDb() as server:
        connection = store_of(parse_url(server.url)).take()
        try:
            with closing(Played(server.url, partitions, tuples)) as run:
                run.batch(1)
                before = counters(connection)
                found = run.tasks(2)
                found["ledger rows"] = connection.execute(PARTS).fetchone()[0]
                run.driver.publish(2, 0, [])
                after = counters(connection)
                found["ledger rows left"] = connection.execute(PARTS).fetchone()[0]
        finally:
            end_run("scale")
    stored = {name: after[name] - before[name] for name in after}
    return {**found, **stored, "statements": stored["statements"] - 2}  # those two were our own


class Played:
    """One run of the benchmark's topology. The driver's calls and the tasks come one after the other."""

    def __init__(self, url: str, partitions: int, tuples: int) -> None:
        conf = with_context({"topology.name": "scale"}, run="scale", metadata=MemoryMetadataStore())
        (self.program,) = compile_plan(topology_of(url, 1_000_000, tuples, partitions).plan, conf)
        self.coordination = Coordination(self.program.spouts, conf, MemoryMetadataStore())
        ((name, self.driver),) = participants_of(self.program).items()
        self.generations = {name: self.driver.open(with_context(conf, state=name, lineage="scale"))}

    def batch(self, txid: int) -> None:
        self.tasks(txid)
        self.driver.publish(txid, 0, [])

    def tasks(self, txid: int) -> dict[str, Any]:
        """A batch up to the commit of its tasks: what it sends."""
        program, batch = self.program, BatchInfo(txid, 0, "scale", self.generations, "scale", (txid - 1, 0))
        self.driver.prepare(txid, 0, program.partitions(program.level_count - 1))
        metadata = self.coordination.initialize(txid, 0)
        rows = list(descriptor_rows(self.coordination.descriptors(txid, 0, metadata)))
        found = {"property bytes": len(batch.to_json()), **sizes("descriptor", rows)}
        for level in range(program.level_count):
            entering, rows = rows, []
            for task in range(program.partitions(level)):
                arriving = [(tag, block) for target, tag, block in entering if target == task]
                rows += run_level(program, level, task, batch, arriving)
            if level < program.level_count - 1:
                found |= sizes("exchange", [row for row in rows if row[1] >= 0])
        return {**found, **sizes("report", rows)}

    def close(self) -> None:
        self.coordination.close()


def sizes(what: str, rows: Sequence[Row]) -> dict[str, int]:
    return {f"{what} rows": len(rows), f"{what} bytes": sum(len(block) for _, _, block in rows)}


def over_batches(batches: int, partitions: int) -> dict[str, list[float]]:
    """The same, of each of many batches, and what the process holds after it."""
    seen: dict[str, list[float]] = {}
    with MariaDb() as server:
        connection = store_of(parse_url(server.url)).take()
        try:
            with closing(Played(server.url, partitions, partitions)) as run:
                before = counters(connection)
                for txid in range(1, batches + 1):
                    sent = run.tasks(txid)
                    run.driver.publish(txid, 0, [])
                    run.coordination.success(txid)
                    after = counters(connection)
                    left = connection.execute(PARTS).fetchone()[0]
                    gc.collect()
                    sent |= {"statements": after["statements"] - before["statements"] - 1, "ledger rows left": left}
                    for name, value in {**sent, "objects": len(gc.get_objects())}.items():
                        seen.setdefault(name, []).append(value)
                    before = counters(connection)
        finally:
            end_run("scale")
    return seen
