"""What every cluster has: the topologies that it runs, and how they end with it."""

from __future__ import annotations

import threading
from typing import Any, Self

from ..errors import TridentError
from ..model.resources import fill_standard_streams
from .progress import RunningTopology, inside_run


class ClusterBase:
    """The topologies that a cluster runs. A context manager: its end raises the error of a run that nobody has asked
    for, unless the block raises another one."""

    def __init__(self) -> None:
        fill_standard_streams()
        self._running: list[RunningTopology] = []
        self._ending = threading.Lock()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        self._stop()
        raised = None if error is not None else next((each.tell() for each in self._untold()), None)
        self.shutdown()
        if raised is not None:
            raise raised

    def _stop(self) -> None:
        for running in self._running:
            running.stop()

    def _untold(self) -> list[RunningTopology]:
        """Return the runs that have failed, and whose error nobody has asked for."""
        return [each for each in self._running if not each.isActive and each.is_untold]

    def _start(self, running: RunningTopology) -> RunningTopology:
        self._running = [other for other in self._running if other.isOpen or other.is_untold] + [running]
        running.start()
        return running

    def killTopology(self, name: str) -> None:
        """Stop a topology after its current attempt. An error of it that nobody has asked for is logged, or raised if
        it had failed before. Raises TridentError if none of this name is active, or answers requests after its end."""
        there = [each for each in self._running if each.isOpen]
        found = [each for each in there if each.name == name]
        for each in found:
            each.stop()
            if not each.isActive:
                each.log_untold()
        if not found:
            failed = next((each for each in self._untold() if each.name == name), None)
            if failed is not None:
                raise failed.tell()
            active = ", ".join(each.name for each in there) or "none"
            raise TridentError(f"killTopology: no topology {name!r} is active on this cluster; active: {active}")

    def killTopologyWithOpts(self, name: str, options: Any = None) -> None:
        """Stop as `killTopology`; the options are ignored: a batch is never left in the middle."""
        self.killTopology(name)

    def shutdown(self) -> None:
        """Stop every topology that still runs, and log the errors that nobody has asked for. In a listener it returns
        at once, and the cluster ends after them."""
        self._stop()
        if inside_run.depth:
            threading.Thread(target=self.shutdown, name="trident-shutdown").start()
            return
        for running in self._untold():
            running.log_untold()
        with self._ending:
            self._shut_down()

    def _shut_down(self) -> None:
        """Called when every topology has ended. Clusters override it that have more to end."""
        self._running = []
