"""Scripted failures: a state, an operation or a spout that fails in the attempts that a test names."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Collection, Mapping
from typing import Any

from ..errors import DefinitionError, FailedException, TridentError
from ..model.context import RunContext
from ..model.requirements import Needs, needs_of
from ..spouts.inspection import method_of
from ..state import BatchParticipant, Location, Reading, State, StateClass, StateFactory, StateUpdater, participant_of
from ..state.roles import location_of
from ..tuples import Fields

When = Collection[tuple[int, int]] | Callable[..., Any]
POINTS = ("beginCommit", "update", "put", "commit", "afterCommit")
HOWS = ("fail", "error", "kill")
_WRITES = ("multiUpdate", "multiPut", "multiRemove", "update", "set")
_NO_WRITES = ("beginCommit", "commit", "rollback", "close", "cleanup")


class PlannedFailure:
    """When and how to fail: ``when`` is a set of (txid, attempt) or a callable of both."""

    def __init__(self, when: When, how: str = "fail") -> None:
        if how not in HOWS:
            raise DefinitionError(f"how={how!r}: it is one of {', '.join(HOWS)}")
        self.when = when
        self.how = how

    def check(self, attempt: tuple[int, int] | None, place: str) -> None:
        """Fail if this attempt is chosen: by FailedException, RuntimeError, or SIGKILL of the process."""
        if attempt is None or not self._wants(int(attempt[0]), int(attempt[1])):
            return
        text = f"asked by the test: {place} in txid {attempt[0]}, attempt {attempt[1]}"
        if self.how == "kill":
            os.kill(os.getpid(), signal.SIGKILL)
        raise FailedException(text) if self.how == "fail" else RuntimeError(text)

    def _wants(self, txid: int, attempt: int) -> bool:
        return bool(self.when(txid, attempt)) if callable(self.when) else (txid, attempt) in self.when


class Wrapper:
    """Passes on to the wrapped object what the wrapper does not define itself."""

    inner: Any

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or name == "inner":  # not set yet, while it is unpickled
            raise AttributeError(name)
        return getattr(self.inner, name)  # users wrap objects of any class


class Crashing(Wrapper, StateFactory):
    """A state factory whose states fail at a named point of chosen attempts.

    ``at``: ``beginCommit`` (begun, nothing written), ``update`` (in updateState, before the first write), ``put``
    (after a write), ``commit`` (writes are out, the state's own commit is not yet called), ``afterCommit`` (committed,
    but not yet reported). ``how``: ``fail`` raises FailedException (the batch is replayed), ``error`` raises
    RuntimeError (the run ends), ``kill`` sends SIGKILL to the state's process. ``partition``: only this partition
    fails.
    """

    def __init__(self, factory: Any, at: str, when: When, how: str = "fail", partition: int | None = None) -> None:
        if at not in POINTS:
            raise DefinitionError(f"at={at!r}: it is one of {', '.join(POINTS)}")
        self.inner = factory
        self.at = at
        self.failure = PlannedFailure(when, how)
        self.partition = partition

    @property
    def location(self) -> Location | None:
        return location_of(self.inner)

    @property
    def key_fields(self) -> Fields | None:
        return self.inner.key_fields if isinstance(self.inner, StateFactory) else None

    @property
    def state_type(self) -> StateClass | None:
        return self.inner.state_type if isinstance(self.inner, StateFactory) else None

    @property
    def row_fields(self) -> Fields:
        return self.inner.row_fields if isinstance(self.inner, StateFactory) else Fields()

    @property
    def refused_calls(self) -> Mapping[str, str]:
        return self.inner.refused_calls if isinstance(self.inner, StateFactory) else {}

    @property
    def own_updater(self) -> StateUpdater | None:
        return self.inner.own_updater if isinstance(self.inner, StateFactory) else None

    @property
    def needs(self) -> Needs:
        return needs_of(self.inner)

    @property
    def commits_apart(self) -> bool:
        return isinstance(self.inner, StateFactory) and self.inner.commits_apart

    @property
    def reading(self) -> Reading:
        return self.inner.reading if isinstance(self.inner, StateFactory) else super().reading

    def participant(self) -> BatchParticipant | None:
        """Return the driver side of the wrapped factory."""
        return participant_of(self.inner)

    def makeState(self, conf: dict, metrics: Any, partitionIndex: int, numPartitions: int) -> Any:
        state = self.inner.makeState(conf, metrics, partitionIndex, numPartitions)
        if self.partition is None or self.partition == partitionIndex:
            for name, method in _points(state, self.at).items():
                setattr(state, name, _Point(method, self, RunContext.of(conf).running))
        return state


def _points(state: State, at: str) -> dict[str, Callable[..., Any]]:
    """Return the methods that stand for this point. In a state that is not a map all public methods are writes."""
    if at in ("beginCommit", "commit", "afterCommit"):
        return {"beginCommit": state.beginCommit} if at == "beginCommit" else {"commit": state.commit}
    public = {name: method_of(state, name) for name in dir(state) if not name.startswith("_")}
    methods = {name: method for name, method in public.items() if method is not None and name not in _NO_WRITES}
    return {name: method for name, method in methods.items() if name in _WRITES} or methods


class _Point:
    """A state's method that fails before or after its work."""

    def __init__(self, method: Callable[..., Any], owner: Crashing, context: Any) -> None:
        self.method = method
        self.owner = owner
        self.context = context

    def __call__(self, *args: Any, **named: Any) -> Any:
        before = self.owner.at in ("update", "commit")
        if before:
            self._check()
        result = self.method(*args, **named)
        if not before:
            self._check()
        return result

    def _check(self) -> None:
        if self.context is None:
            raise TridentError("Crashing needs the running attempt, which the conf of makeState lacks")
        self.owner.failure.check(self.context.transaction, self.owner.at)
