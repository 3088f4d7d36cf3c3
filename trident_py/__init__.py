"""trident_py: Apache Storm Trident's programming model and exactly-once semantics on Spark, in Python."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .config import Config
from .entry_points import answer
from .errors import (
    DefinitionError,
    DRPCExecutionException,
    FailedException,
    MissingValueError,
    ReportedFailedException,
    TopologyError,
    TridentError,
)
from .state.package_check import check_states
from .topology import GroupedStream, JoinOutFieldsMode, JoinType, Stream, Topology, TridentState, TridentTopology
from .tuples import Fields, TransactionAttempt, TridentTuple, Values

if TYPE_CHECKING:
    from .drpc import LocalDRPC
    from .local import LocalCluster
    from .report.progress import RunningTopology
    from .spark import SparkCluster, StormSubmitter

__all__ = [
    "Config",
    "DRPCExecutionException",
    "DefinitionError",
    "FailedException",
    "Fields",
    "GroupedStream",
    "JoinOutFieldsMode",
    "JoinType",
    "LocalCluster",
    "LocalDRPC",
    "MissingValueError",
    "ReportedFailedException",
    "RunningTopology",
    "SparkCluster",
    "StormSubmitter",
    "Stream",
    "Topology",
    "TopologyError",
    "TransactionAttempt",
    "TridentError",
    "TridentState",
    "TridentTopology",
    "TridentTuple",
    "Values",
]

__version__ = "0.1.0"

check_states()


if not TYPE_CHECKING:
    # What runs a topology: building one needs no loop, and LocalCluster no pyspark.
    __getattr__ = answer(
        __name__,
        {
            "LocalCluster": "local",
            "LocalDRPC": "drpc",
            "RunningTopology": "report.progress",
            "SparkCluster": "spark",
            "StormSubmitter": "spark",
        },
    )
