"""Reports from the topology to the gateway's store that an event's batch is done."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from ...errors import StateError
from ...model.chunks import encodable
from ...model.requirements import Needs
from ...model.secrets import redact_url
from ...operations.base import TridentCollector
from ...state import Location, State, StateClass, StateFactory, StateUpdater
from ...tuples import Fields, TridentTuple
from .claims import REFUSED, SUCCEEDED, ClaimStore
from .stores import needs_of_store, store_of

_IDEMPOTENT = "a status only goes forward and the first outcome stands, so setting it again changes nothing"
_AGAIN = {
    "transactional": ("exactly once in effect", _IDEMPOTENT),
    "opaque": ("exactly once in effect", f"{_IDEMPOTENT}, in whichever batch the event comes"),
}
_stores: dict[tuple[str, str], ClaimStore] = {}
_opening = threading.Lock()


@dataclass(frozen=True, repr=False)
class ProcessedState(StateFactory):
    """Sets the status of events to ``processed`` in the store that the gateway at ``url`` uses.

        stream.partitionPersist(ProcessedState(url), ["fingerprint", "outcome"])

    ``fingerprint``: the field with an event's fingerprint (header ``fingerprint`` and key of its record). ``outcome``:
    the field with "succeeded" or "refused"; None: all have succeeded. ``table``: as in the gateway's settings.

    On replay: the status is set again, which changes nothing. The first outcome stands: a second outcome of the same
    event is that of its duplicate.

    An event that the store does not know (any more) is ignored and not counted.
    """

    url: str
    fingerprint: str = "fingerprint"
    outcome: str | None = None
    table: str = "trident_events"
    kind: ClassVar[str] = "processed"
    guarantees: ClassVar[dict[str, tuple[str, str]]] = _AGAIN

    def __post_init__(self) -> None:
        """Raise DefinitionError for the URL of an unknown store."""
        store_of(self.url, None, self.table)

    @property
    def state_type(self) -> StateClass:
        return Processed

    @property
    def own_updater(self) -> ProcessedUpdater:
        return ProcessedUpdater()

    @property
    def location(self) -> Location:
        return Location(frozenset([redact_url(self.url)]), frozenset([self.table]), "processed", self.table)

    @property
    def needs(self) -> Needs:
        return needs_of_store(self.url)

    def makeState(self, conf: dict, metrics: Any, partitionIndex: int, numPartitions: int) -> Processed:
        return Processed(self)

    def store(self) -> ClaimStore:
        """Return the store, opened once per process."""
        with _opening:
            key = (self.url, self.table)
            if key not in _stores:
                _stores[key] = store_of(self.url, None, self.table)
            return _stores[key]

    def __repr__(self) -> str:
        return f"ProcessedState({redact_url(self.url)!r}, {self.fingerprint!r}, outcome={self.outcome!r})"


class Processed(State):
    """One partition of a ProcessedState. Writes nothing before `commit`.

    On replay: the same events are set to processed again, which changes nothing.
    """

    def __init__(self, factory: ProcessedState) -> None:
        self.factory = factory
        self._waiting: list[tuple[str, str]] = []

    def beginCommit(self, txid: int | None) -> None:
        self._waiting = []

    def add(self, outcomes: Sequence[tuple[str, str]]) -> None:
        """Keep (fingerprint, outcome) pairs until `commit`, but for texts that no store can know."""
        self._waiting += [pair for pair in outcomes if encodable(pair[0]) and "\0" not in pair[0]]

    def commit(self, txid: int | None) -> Any:
        """Write the outcomes. Raises FailedException while the store is away: the batch is tried again."""
        self.factory.store().processed(self._waiting)
        return {"processed": len(self._waiting)}

    def rollback(self, txid: int | None) -> None:
        self._waiting = []


class ProcessedUpdater(StateUpdater):
    """Passes the events of a batch to a ProcessedState. Called on the executor; again on replay.

    Raises StateError for an outcome that is neither "succeeded" nor "refused", or a fingerprint that is not text.
    """

    def name_fields(self, factory: StateFactory) -> Fields:
        names = [factory.fingerprint, factory.outcome] if isinstance(factory, ProcessedState) else []
        return Fields.of_names(name for name in names if name is not None)

    def updateState(self, state: Processed, tuples: Sequence[TridentTuple], collector: TridentCollector) -> None:
        factory = state.factory
        state.add([(_text(row, factory.fingerprint), _outcome(row, factory.outcome)) for row in tuples])


def _text(row: TridentTuple, field: str) -> str:
    value = row.getValueByField(field)
    if isinstance(value, bytes):
        value = value.decode("utf-8", "replace")
    if not isinstance(value, str):
        raise StateError(f"field {field!r} holds {value!r}; it is the fingerprint of an event, a string")
    return value


def _outcome(row: TridentTuple, field: str | None) -> str:
    value = SUCCEEDED if field is None else row.getValueByField(field)
    if value not in (SUCCEEDED, REFUSED):
        raise StateError(f"field {field!r} holds {value!r}; an outcome is {SUCCEEDED!r} or {REFUSED!r}")
    return str(value)
