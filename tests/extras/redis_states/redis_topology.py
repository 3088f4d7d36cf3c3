"""A topology that keeps readings in Redis in three kinds, and what Redis must hold: a plain fold of the input."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import redis as client
from faults.forks import Start
from faults.held import RowMapper
from faults.readings import PARTITIONS, Fold, Readings
from faults.steps import Fault, InHalves, Stepped
from faults.stores import NAMES, Source

from states.redis import RedisMapState, RedisState, RedisStateUpdater
from trident_py import TridentTopology
from trident_py.operations.builtin import Sum
from trident_py.state import MapCombinerAggStateUpdater

STATES = ("rows", "trans", "opaque")
FIELDS = NAMES.split(", ")


@dataclass(frozen=True)
class RedisStart(Start):
    """One start of a driver; ``url`` names the database, ``prefix`` the hashes."""

    prefix: str = ""
    kinds: tuple[str, ...] = STATES

    def hash(self, name: str) -> str:
        return f"{self.prefix}-{name}"

    def topology(self, wrap: Callable[[str, Any], Any] = Stepped) -> Any:
        topology = TridentTopology()
        stream = topology.newStream("readings", Source(Readings(self.seed), self.last)).parallelismHint(PARTITIONS)
        by_id, words = stream.partitionBy("id"), stream.groupBy("word").aggregate("n", Sum(), "total")
        for name in self.kinds:
            if name == "rows":
                updater: Any = InHalves(RedisStateUpdater(RowMapper(self.hash(name))))
                factory = wrap(name, RedisState(self.url, self.hash(name)))
                state = by_id.partitionPersist(factory, FIELDS, updater, stateName=name)
            else:
                make = {"trans": RedisMapState.transactional, "opaque": RedisMapState.opaque}[name]
                updater = InHalves(MapCombinerAggStateUpdater(Sum(), "word", "total"))
                grouped = words.partitionBy("word").parallelismHint(self.partitions)
                factory = wrap(name, make(self.url, self.hash(name)))
                state = grouped.partitionPersist(factory, ["word", "total"], updater, stateName=name)
            state.parallelismHint(self.partitions)
        return topology.build()

    def differences(self, last: int) -> dict[str, tuple[dict, dict]]:
        """For each hash that is not what the fold says: what is there, what should be. By a client of its own."""
        fold = Fold(Readings(self.seed), last)
        sums = fold.sums()
        expected: dict[str, dict] = {
            "rows": {key: list(row[1:]) for key, row in fold.by_id().items()},
            "trans": {word: [txid, total] for word, (total, txid, _) in sums.items()},
            "opaque": {word: [txid, total, prev] for word, (total, txid, prev) in sums.items()},
        }
        with client.Redis.from_url(self.url, decode_responses=True) as reader:
            found = {name: {key: json.loads(text) for key, text in reader.hgetall(self.hash(name)).items()}
                     for name in self.kinds}  # fmt: skip
        assert all(expected[name] for name in self.kinds)
        return {name: (found[name], expected[name]) for name in self.kinds if found[name] != expected[name]}


def kill(step: str, txid: int, partition: int = 0, state: str | None = None) -> Fault:
    return Fault(step, state or STATES[txid % 3], txid, partition)


def ask(step: str, txid: int, state: str | None = None, partition: int = 0) -> Fault:
    return Fault(step, state or STATES[txid % 3], txid, partition, action="ask")
