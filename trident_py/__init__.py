"""trident_py: Apache Storm Trident's programming model and exactly-once semantics on Spark, in Python."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .config import Config
from .drpc import LocalDRPC
from .errors import (
    DefinitionError,
    DRPCExecutionException,
    FailedException,
    MissingValueError,
    ReportedFailedException,
    TopologyError,
    TridentError,
)
from .local import LocalCluster
from .neighbour import check_states
from .replaced import absent
from .run.progress import RunningTopology
from .topology import GroupedStream, JoinOutFieldsMode, JoinType, Stream, Topology, TridentState, TridentTopology
from .tuples import Fields, TransactionAttempt, TridentTuple, Values

if TYPE_CHECKING:
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


def __getattr__(name: str) -> Any:
    """What runs on Spark is loaded when it is asked for: LocalCluster needs no pyspark."""
    if name in ("SparkCluster", "StormSubmitter"):
        from . import spark

        return vars(spark)[name]
    raise absent(__name__, name)
