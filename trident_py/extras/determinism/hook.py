"""What this extra adds to a run: the second run of sampled batches, and the comparison of held values at a start."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ...config import Config
from ...run.hooks import Hook, Kept, Start, StartInfo, TaskWatch
from .held_values import ComparedStart
from .recording import Checks
from .shadow_run import ShadowProcess


class DeterminismHook(Hook):
    """The determinism of users' operations, watched in a run."""

    def watch(self, conf: Mapping[str, Any], kept: Kept) -> TaskWatch | None:
        every = conf.get(Config.TOPOLOGY_DETERMINISM_CHECK)
        values = conf.get(Config.TOPOLOGY_ERROR_VALUES, True) is not False
        return None if every is None else Checks(every, values, kept(ShadowProcess))

    def wrap_start(self, start: Start, about: StartInfo) -> Start:
        return ComparedStart(start, about)
