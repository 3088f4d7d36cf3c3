"""How many bytes the states of a run take in their stores: asked beside the run, and only when somebody looks."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterable, Mapping
from threading import Thread

from ...state import StateFactory
from ...state.participants import participant_of

log = logging.getLogger("trident_py")

RENEWED = 60.0  # seconds


class StateSizes:
    """The sizes by state, None for what is not known. Each store is asked in a thread of its own, at most once a
    minute: one that is away delays nobody."""

    def __init__(self, factories: Mapping[str, StateFactory]) -> None:
        self._factories = factories
        self._asked: dict[str, tuple[float, Thread]] = {}
        self.known: dict[str, int | None] = {}

    def look(self, opened: Iterable[str], seconds: float = 0.0) -> None:
        """Ask again for the states that are due, of those that the run has opened, and wait so long for answers."""
        until = time.monotonic() + seconds
        for name in [name for name in opened if self._is_due(name)]:
            thread = Thread(target=self._ask, args=(name,), name=f"trident-size-{name}", daemon=True)
            self._asked[name] = time.monotonic(), thread
            thread.start()
        for _, thread in list(self._asked.values()):
            thread.join(max(0.0, until - time.monotonic()))

    def _is_due(self, name: str) -> bool:
        if name not in self._asked:
            return True
        at, thread = self._asked[name]
        return time.monotonic() - at > RENEWED and not thread.is_alive()

    def _ask(self, name: str) -> None:
        try:
            participant = participant_of(self._factories[name])
            self.known[name] = None if participant is None else participant.measure_size()
        except Exception as error:  # of whatever store: the page shows no size
            self.known[name] = None
            log.debug("the size of state %s is not known: %s", name, error)
