"""`trident txid rewind` with a real Kafka: the records of later batches come again, each once."""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from spout_support import produce, recreate

from states.sql import AppendState, RowUpdater
from states.sql.store import close_stores
from trident_py import LocalCluster, TopologyError, TridentTopology
from trident_py.engine.program import compile_plan
from trident_py.extras.txid.components import Component, component_of
from trident_py.extras.txid.rewind import rewind
from trident_py.kafka import KafkaSpout
from trident_py.model.context import with_context

SIZE, BACK = 10, 2


@pytest.fixture(autouse=True)
def closed() -> Iterator[None]:
    yield
    close_stores()


class Run:
    """A topic with two partitions, read into rows that know their batch."""

    def __init__(self, broker: Any, folder: Path, kind: str) -> None:
        self.broker, self.folder, self.kind = broker, folder, kind
        self.topic = broker.create_topic(partitions=2)
        self.sent = 0

    def send(self, count: int) -> None:
        for partition in range(2):
            values = (f"{partition}-{n}" for n in range(self.sent, self.sent + count))
            produce(self.broker, self.topic, values, partition)
        self.sent += count

    def topology(self) -> Any:
        topology = TridentTopology()
        spout = KafkaSpout(
            self.broker.bootstrap, self.topic, value="string", fields="value", kind=self.kind,
            maxRecordsPerBatch=SIZE, endingOffsets="latest",
        )  # fmt: skip
        rows = AppendState(f"sqlite:///{self.folder}/rows.db", "records", columns=["value string"], txid="batch")
        topology.newStream("records", spout).partitionPersist(rows, "value", RowUpdater()).parallelismHint(2)
        return topology.build()

    def go_on(self) -> None:
        with LocalCluster(str(self.folder / "checkpoints")) as cluster:
            assert cluster.submitTopology("read", {}, self.topology()).awaitTermination(60)

    def back(self, txid: int) -> list[str]:
        close_stores()
        conf = with_context({}, topology="read", run="read-asks", home=None)
        (program,) = compile_plan(self.topology().plan, conf)
        component: Component = component_of(str(self.folder / "checkpoints"), program, {})
        return rewind(component, txid)

    def rows(self) -> dict[int, Counter[str]]:
        """By batch."""
        found: dict[int, Counter[str]] = {}
        with sqlite3.connect(self.folder / "rows.db") as store:
            for value, txid in store.execute("SELECT value, batch FROM records"):
                found.setdefault(txid, Counter())[value] += 1
        return found

    def check(self) -> None:
        """Each record that was sent is there once."""
        once = Counter(f"{partition}-{n}" for partition in range(2) for n in range(self.sent))
        assert sum(self.rows().values(), Counter()) == once


@pytest.mark.parametrize("kind", ["transactional", "opaque"])
def test_a_run_that_went_back_reads_the_records_of_later_batches_again(kafka: Any, tmp_path: Path, kind: str) -> None:
    run = Run(kafka, tmp_path, kind)
    run.send(3 * SIZE)
    run.go_on()
    before = run.rows()
    assert sorted(before) == [*range(1, 7)]
    assert run.back(BACK) == ["records"]
    assert run.rows() == {txid: before[txid] for txid in range(1, BACK + 1)}
    run.send(SIZE)  # which were not there when those batches were made
    run.go_on()
    run.check()
    assert run.back(7) == ["records"] and run.back(6) == ["records"]
    run.go_on()
    run.check()


@pytest.mark.parametrize("kind", ["transactional", "opaque"])
def test_a_topic_that_has_lost_the_later_records_is_told_after_a_rewind_too(
    kafka: Any, tmp_path: Path, kind: str
) -> None:
    run = Run(kafka, tmp_path, kind)
    run.send(3 * SIZE)
    run.go_on()
    run.back(BACK)
    recreate(kafka, run.topic, 2)
    if kind == "opaque":
        run.go_on()
        assert sorted(run.rows()) == [*range(1, BACK + 1)]
    else:
        with pytest.raises(TopologyError, match="was deleted and recreated; earlier batches read the old one"):
            run.go_on()
