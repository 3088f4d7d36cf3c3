"""A spout that is always ready is named once."""

from __future__ import annotations

import logging
from typing import Any

import pytest

from trident_py import Fields, LocalCluster, TridentTopology
from trident_py.engine.empty_batches import INTERVAL, MOST, EmptyBatches
from trident_py.spouts import IBatchSpout


class Quiet(IBatchSpout):
    """Emits once in so many batches, and ends."""

    def __init__(self, every: int, batches: int) -> None:
        self.every, self.batches = every, batches

    def getOutputFields(self) -> Fields:
        return Fields("n")

    def emitBatch(self, batchId: int, collector: Any) -> None:
        if batchId % self.every == 0:
            collector.emit([batchId])

    def isExhaustedAt(self, txid: int) -> bool:
        return txid > self.batches


def warnings(spout: IBatchSpout, conf: dict, caplog: pytest.LogCaptureFixture) -> list[str]:
    topology = TridentTopology()
    topology.newStream("numbers", spout)
    with caplog.at_level(logging.WARNING), LocalCluster() as cluster:
        running = cluster.submitTopology("quiet", conf, topology.build())
        assert running.awaitTermination(60)
    told = [event.reason for event in running.events if event.kind == "reported"]
    assert told == [record.getMessage() for record in caplog.records]
    return [str(text) for text in told]


def test_a_spout_that_is_always_ready_is_named_once(caplog: pytest.LogCaptureFixture) -> None:
    (text,) = warnings(Quiet(10_000, 3 * MOST), {"topology.txid.kept": 30}, caplog)
    assert text.startswith("spout numbers was ready 100 times in a row without a tuple, in ")
    assert "(topology.txid.kept is 30)" in text and "isReady" in text


def test_one_that_emits_now_and_then_is_usual(caplog: pytest.LogCaptureFixture) -> None:
    assert warnings(Quiet(MOST - 1, 3 * MOST), {}, caplog) == []


@pytest.mark.parametrize(("seconds", "told"), [(INTERVAL / 2, True), (INTERVAL * 2, False)])
def test_one_that_is_no_faster_than_storms_is_usual(seconds: float, told: bool) -> None:
    batches = EmptyBatches(20)
    said = [text for at in range(3 * MOST) if (text := batches.add(0, "numbers", at * seconds))]
    assert len(said) == told
