"""A state whose driver's side fails at one of its calls: it raises, or its process dies, or it is held there."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from trident_py.errors import StateError
from trident_py.state import BatchParticipant, Remembered, StateFactory
from trident_py.state.participants import participant_of

RAISED = "the state says no"


def raises(at: str) -> Callable[[str], None]:
    """Fails at this call."""

    def fails(call: str) -> None:
        if call == at:
            raise StateError(RAISED)

    return fails


def dies(at: str) -> Callable[[str], None]:
    def fails(call: str) -> None:
        if call == at:
            os.kill(os.getpid(), signal.SIGKILL)

    return fails


@dataclass(frozen=True)
class Weak(StateFactory):
    """``before(call)`` is called on the driver before each call of the participant; "opened" is after `open`."""

    factory: Any
    before: Callable[[str], None]

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") or name in ("factory", "before"):
            raise AttributeError(name)
        return getattr(self.factory, name)

    @property
    def location(self) -> Any:
        return self.factory.location

    def makeState(self, *args: Any) -> Any:
        return self.factory.makeState(*args)

    def participant(self) -> BatchParticipant:
        inner = participant_of(self.factory)
        assert inner is not None
        return WeakParticipant(inner, self.before)

    def __reduce__(self) -> Any:
        """Tasks get the state alone: what fails here is the driver's side."""
        return _same, (self.factory,)


def _same(factory: Any) -> Any:
    return factory


class WeakParticipant(BatchParticipant):
    def __init__(self, inner: BatchParticipant, before: Callable[[str], None]) -> None:
        self.inner, self.before, self.decides = inner, before, inner.decides

    def remembered(self, conf: dict) -> Remembered | None:
        self.before("remembered")
        return self.inner.remembered(conf)

    def open(self, conf: dict) -> int:
        self.before("open")
        generation = self.inner.open(conf)
        self.before("opened")
        return generation

    def prepare(self, txid: int, attempt: int, numPartitions: int) -> None:
        self.before("prepare")
        self.inner.prepare(txid, attempt, numPartitions)

    def publish(self, txid: int, attempt: int, receipts: Any) -> None:
        self.before("publish")
        self.inner.publish(txid, attempt, receipts)

    def abort(self, txid: int, attempt: int) -> None:
        self.inner.abort(txid, attempt)

    def give_up(self, txid: int) -> bool:
        return self.inner.give_up(txid)


class Quiet(Weak):
    """It does not say what it remembers, as a participant that has not written the method."""

    def participant(self) -> BatchParticipant:
        return QuietParticipant(super().participant(), self.before)


class QuietParticipant(WeakParticipant):
    remembered = BatchParticipant.remembered
