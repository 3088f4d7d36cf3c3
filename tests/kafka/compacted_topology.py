"""A topology that keeps readings in compacted topics of three kinds, and what the topics must hold: a plain fold."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from compacted_reading import headers, latest
from faults.forks import Start
from faults.readings import PARTITIONS, Fold, Readings
from faults.steps import Fault, InHalves, Stepped
from faults.stores import NAMES, Source

from states.kafka import CompactedTopicState, RowUpdater
from trident_py import TridentTopology
from trident_py.operations.builtin import Sum
from trident_py.state import MapCombinerAggStateUpdater

STATES = ("rows", "trans", "opaque")
FIELDS = NAMES.split(", ")


@dataclass(frozen=True)
class CompactedStart(Start):
    """One start of a driver; ``url`` names the brokers, ``prefix`` the topics."""

    prefix: str = ""
    settings: tuple[tuple[str, Any], ...] = ()
    kinds: tuple[str, ...] = STATES

    def topic(self, name: str) -> str:
        return f"{self.prefix}-{name}"

    def topology(self) -> Any:
        topology = TridentTopology()
        stream = topology.newStream("readings", Source(Readings(self.seed), self.last)).parallelismHint(PARTITIONS)
        by_id, words = stream.partitionBy("id"), stream.groupBy("word").aggregate("n", Sum(), "total")
        more = {"settings": dict(self.settings), "partitions": 2}
        for name in self.kinds:
            if name == "rows":
                factory = CompactedTopicState(self.url, self.topic(name), "id string", FIELDS[1:], **more)
                state = by_id.partitionPersist(Stepped(name, factory), FIELDS, InHalves(RowUpdater()), stateName=name)
            else:
                make = {"trans": CompactedTopicState.transactional, "opaque": CompactedTopicState.opaque}[name]
                wrapped = Stepped(name, make(self.url, self.topic(name), "word string", "total bigint", **more))
                updater = InHalves(MapCombinerAggStateUpdater(Sum(), "word", "total"))
                grouped = words.partitionBy("word").parallelismHint(self.partitions)
                state = grouped.partitionPersist(wrapped, ["word", "total"], updater, stateName=name)
            state.parallelismHint(self.partitions)
        return topology.build()

    def differences(self, last: int) -> dict[str, tuple[dict, dict]]:
        """For each topic that is not what the fold says: what is there, what should be."""
        fold = Fold(Readings(self.seed), last)
        sums = fold.sums()
        expected: dict[str, dict] = {
            "rows": {key: dict(zip(FIELDS[1:], row[1:], strict=True)) for key, row in fold.by_id().items()},
            "trans": {word: (total, txid, None) for word, (total, txid, _) in sums.items()},
            "opaque": sums,
        }
        pairs = {name: (self.found(name), expected[name]) for name in self.kinds}
        return {name: pair for name, pair in pairs.items() if pair[0] != pair[1]}

    def found(self, name: str) -> dict[str, Any]:
        """Every key and value, with txid and value before, by a plain consumer."""
        made: dict[str, Any] = {}
        for key, record in latest(self.url, self.topic(name)).items():
            value, told = json.loads(record.value or b"null"), headers(record)
            if name != "rows":
                prev = told.get("trident-prev")
                value = (value, int(told["trident-txid"] or 0), None if prev is None else json.loads(prev))
            made[key.decode()] = value
        return made


def kill(step: str, txid: int, partition: int = 0, state: str | None = None) -> Fault:
    return Fault(step, state or STATES[txid % 3], txid, partition)


def ask(step: str, txid: int, state: str | None = None) -> Fault:
    return Fault(step, state or STATES[txid % 3], txid, 0, action="ask")
