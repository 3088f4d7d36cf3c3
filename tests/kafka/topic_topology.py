"""A topology that writes readings into a topic, run in driver processes that are killed or stopped on the way."""

from __future__ import annotations

import json
import os
import signal
from collections import Counter
from dataclasses import dataclass
from typing import Any

from faults.forks import Driver, Start
from faults.readings import PARTITIONS, Fold, Readings
from faults.steps import Fault, InHalves, Stepped
from faults.stores import NAMES, Source
from topic_reading import read

from states.kafka import RowUpdater, TransactionalTopicState
from trident_py import TridentTopology

STATE = "topic"


@dataclass(frozen=True)
class TopicStart(Start):
    """One start of a driver; ``url`` names the brokers."""

    topic: str = ""
    one: bool = False
    settings: tuple[tuple[str, Any], ...] = ()

    def topology(self) -> Any:
        topology = TridentTopology()
        stream = topology.newStream("readings", Source(Readings(self.seed), self.last)).parallelismHint(PARTITIONS)
        factory: Any = TransactionalTopicState(
            self.url, self.topic, key="sender", value=NAMES.split(", "), oneTransaction=self.one, settings=self.settings
        )
        stream = stream.global_() if self.one else stream.partitionBy("sender")
        state = stream.partitionPersist(
            Stepped(STATE, factory), NAMES.split(", "), InHalves(RowUpdater()), stateName=STATE
        )
        if not self.one:
            state.parallelismHint(self.partitions)
        return topology.build()


def kill(step: str, txid: int, partition: int = 0) -> Fault:
    return Fault(step, STATE, txid, partition)


def ask(step: str, txid: int, partition: int = 0) -> Fault:
    return Fault(step, STATE, txid, partition, action="ask")


def killed(driver: Driver) -> bool:
    return driver.process.exitcode == -signal.SIGKILL


def wait_until_sent(bootstrap: str, topic: str) -> None:
    """Until records of a transaction that is not committed stand in the topic, open or aborted already."""
    for _ in range(600):
        if len(read(bootstrap, topic, "read_uncommitted")) > len(read(bootstrap, topic, ending=0)):
            return
    raise AssertionError("no transaction sends anything")


def stop(driver: Driver) -> None:
    os.kill(driver.process.pid, signal.SIGSTOP)  # type: ignore[arg-type]


def wake(driver: Driver) -> None:
    os.kill(driver.process.pid, signal.SIGCONT)  # type: ignore[arg-type]


def folded(last: int, seed: int = 1) -> Counter:
    """The records after so many batches, by a plain fold."""
    return Fold(Readings(seed), last).counted()


def rows(values: Any) -> Counter:
    """Records as rows of the fold."""
    names = NAMES.split(", ")
    return Counter(tuple(json.loads(value)[name] for name in names) for value in values)
