"""What may measure where the time of a component's batches goes. The extra `profile` does."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any, ClassVar

from pyspark.sql import DataFrame, SparkSession

from ..engine.phases import PROFILE, BatchPhases, Seen, profile
from ..entry_points import load

PROFILERS = "trident_py.profilers"
"""The group of entry points that refer to a `Profiler`, made with how the descriptions of its jobs begin."""


class Profiler:
    """The profiler of a run without ``topology.profile``: it measures nothing. ``settings``: what the query's session
    needs."""

    settings: ClassVar[dict[str, str]] = {}

    def batch(self, query: Any, batch_id: int) -> AbstractContextManager[None]:
        """Stand around a call of foreachBatch."""
        return nullcontext()

    def begin(self, txid: int) -> None:
        """Called before each attempt of a batch."""

    def ran(self, txid: int, job: DataFrame) -> None:
        """Called after a job, with its frame."""

    def batches(self, spark: SparkSession, seen: Sequence[Seen]) -> list[BatchPhases]:
        """Return where the time of these batches went."""
        return []


def profiler_of(title: str, conf: Mapping[str, Any]) -> Profiler:
    """Return the profiler of a component. Raises DefinitionError if the conf asks for one that is missing."""
    profiler: Profiler = load(PROFILE, "profile", PROFILERS)(title) if profile(conf) else Profiler()
    return profiler
