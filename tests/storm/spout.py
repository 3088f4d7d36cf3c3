"""The spout of a case: batches by txid, other ones where a replay is asked to differ."""

from __future__ import annotations

from typing import Any

from trident_py.spouts import ITridentSpout

from .ops import Script
from .requests import Requests


class CaseSpout(ITridentSpout):
    """Batch i is txid i; task i of n emits every n-th tuple. It ends after ``count`` batches."""

    def __init__(self, name: str, spec: dict, count: int, script: Script, requests: Requests | None = None) -> None:
        self.name = name
        self.spec = spec
        self.count = count
        self.script = script
        self.requests = requests
        self.kind = spec.get("kind", "transactional")

    def getCoordinator(self, txStateId: str, conf: dict, context: Any) -> Any:
        return CaseCoordinator(self.name, self.count, self.requests)

    def getEmitter(self, txStateId: str, conf: dict, context: Any) -> Any:
        return CaseEmitter(self, conf, context.getThisTaskIndex(), context.numPartitions())

    def getComponentConfiguration(self) -> dict | None:
        return None

    def getOutputFields(self) -> Any:
        return self.spec["fields"]


class CaseCoordinator(ITridentSpout.BatchCoordinator):
    def __init__(self, spout: str, count: int, requests: Requests | None) -> None:
        self.spout = spout
        self.count = count
        self.requests = requests

    def initializeTransaction(self, txid: int, prevMetadata: Any, currMetadata: Any) -> int:
        return txid

    def isReady(self, txid: int) -> bool:
        return (self.requests is None or self.requests.may_start(txid)) and txid <= self.count

    def success(self, txid: int) -> None:
        if self.requests is not None:
            self.requests.succeeded(self.spout, txid)

    def isExhaustedAt(self, txid: int) -> bool:
        return txid > self.count


class CaseEmitter(ITridentSpout.Emitter):
    def __init__(self, spout: CaseSpout, conf: dict, index: int, tasks: int) -> None:
        self.spout = spout
        self.conf = conf
        self.index = index
        self.tasks = tasks

    def emitBatch(self, tx: Any, coordinatorMeta: Any, collector: Any) -> None:
        batches, replays = self.spout.spec["batches"], self.spout.spec.get("replayBatches") or {}
        batch = batches[tx.txid - 1] if tx.txid <= len(batches) else []
        if tx.attemptId > 0:
            batch = replays.get(str(tx.txid), batch)
        for values in batch[self.index :: self.tasks]:
            collector.emit(values)
        if self.index == 0:
            self.spout.script.check("spout", tx, self.spout.name, self.conf)
