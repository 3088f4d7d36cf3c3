"""Runs a window on a cluster, batch by batch, with a clock and with failures."""

from __future__ import annotations

import uuid
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from semantics.support import Batches, run

from trident_py import Config, TridentTopology
from trident_py.operations import Aggregator
from trident_py.testing import Crashing, collect, failing
from trident_py.windowing import DurationWindow, MakesWindows, WindowConfig

from .naive import Batch, Windows


class Gather(Aggregator):
    """Emits the number of the window and its values."""

    def init(self, batchId: Any, collector: Any) -> list:
        return [batchId]

    def aggregate(self, value: list, tuple: Any, collector: Any) -> None:
        value.append(tuple[0])

    def complete(self, value: list, collector: Any) -> None:
        collector.emit([value[0], value[1:]])


@dataclass(frozen=True)
class CrashingStore(MakesWindows):
    """The window's state fails at a step of `persist` in these attempts."""

    inner: MakesWindows
    at: str
    when: frozenset[tuple[int, int]]
    how: str = "fail"

    def windowState(self, config: WindowConfig, name: str) -> Any:
        return Crashing(self.inner.windowState(config, name), at=self.at, when=set(self.when), how=self.how)


_DONE: dict[str, int] = {}


class Clock:
    """The clock of each batch: that of the first batch which is not done; each further attempt comes later by
    ``attempts_take``. ``done``: how many batches an earlier run has committed. Copies of it are one clock."""

    def __init__(self, batches: Sequence[Batch], attempts_take: int = 0, done: int = 0) -> None:
        self.times = [batch.clock for batch in batches]
        self.attempts_take = attempts_take
        self.name = uuid.uuid4().hex
        self.done(done)
        self.attempts: Counter[int] = Counter()

    def __call__(self) -> int:
        txid = min(_DONE[self.name], len(self.times) - 1)
        self.attempts[txid] += 1
        return self.times[txid] + (self.attempts[txid] - 1) * self.attempts_take

    def done(self, txid: int) -> None:
        _DONE[self.name] = txid


class Timed(Batches):
    """Tuples ``[time, value]``, each in the partition that its batch names. Tells the clock which batches are done."""

    def __init__(self, batches: Sequence[Batch], replays: Mapping[int, Batch], clock: Clock) -> None:
        super().__init__(["time", "value"], list(map(_rows, batches)))
        self.replays = {txid: _rows(batch) for txid, batch in replays.items()}
        self.kind = "opaque" if replays else "transactional"
        self.clock = clock

    def getCoordinator(self, txStateId: str, conf: dict, context: Any) -> Any:
        coordinator = super().getCoordinator(txStateId, conf, context)
        coordinator.success = self.clock.done
        return coordinator


def _rows(batch: Batch) -> list[list[Any]]:
    """Task k of n emits every n-th tuple, so partitions with fewer tuples are filled up; the topology drops those."""
    longest = max(map(len, batch.partitions))
    return [
        list(tuples[i]) if i < len(tuples) else [None, None] for i in range(longest) for tuples in batch.partitions
    ]


def windows(
    cluster: Any, config: WindowConfig, store: MakesWindows, batches: Sequence[Batch], *,
    replays: Mapping[int, Batch] | None = None, fail_behind: Sequence[tuple[int, int]] = (), attempts_take: int = 0,
    name: str | None = None, hint: int | None = None, done: int = 0,
    more: Mapping[str, Any] | None = None,
) -> tuple[dict[int, dict[int, Windows]], dict[int, list]]:  # fmt: skip
    """What the window emits, and the late tuples: as `naive.expected`."""
    clock = Clock(batches, attempts_take, done)
    topology = TridentTopology()
    stream = topology.newStream("timed", Timed(batches, replays or {}, clock))
    stream = stream.parallelismHint(hint or len(batches[0].partitions)).filter(["time"], _is_there)
    made = stream.window(config, store, ["value"], Gather(), ["number", "values"], windowFields=["start", "end"])
    collect(made, "windows").filter(["start"], failing(_any, set(fail_behind)))
    event_time = isinstance(config, DurationWindow) and config.timestampField is not None
    if event_time:
        collect(made.lateTuples(), "late")
    running = run(cluster, topology, Config({Config.TOPOLOGY_CLOCK: clock, **(more or {})}), name)
    found: dict[int, dict[int, Windows]] = {}
    for txid, parts in running.collected_by_partition("windows").items():
        for partition, rows in parts.items():
            found.setdefault(txid, {})[partition] = [(n, start, end, values) for n, values, start, end in rows]
    late = running.collected("late") if event_time else {}
    return found, {txid: sorted(value for _, value in rows) for txid, rows in late.items()}


def _is_there(time: Any) -> bool:
    return time is not None


def _any(*values: Any) -> bool:
    return True
