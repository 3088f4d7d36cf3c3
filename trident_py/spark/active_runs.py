"""The runs of this driver process that have not ended. Each job carries the list, so workers can drop the others."""

from __future__ import annotations

import json
import threading


class ActiveRuns:
    """The active runs, as JSON with a number that rises with each change. Thread safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._runs: set[str] = set()
        self._number = 0

    def begin(self, run: str) -> None:
        """Called before the first job of the run."""
        with self._lock:
            self._runs.add(run)
            self._number += 1

    def end(self, run: str) -> None:
        """Called when the run starts no job any more."""
        with self._lock:
            self._runs.discard(run)
            self._number += 1

    def to_json(self) -> str:
        with self._lock:
            return json.dumps([self._number, sorted(self._runs)])


active_runs = ActiveRuns()
