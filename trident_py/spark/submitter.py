"""StormSubmitter: the last line of a ported ``main``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ..config import Config
from ..report.progress import RunningTopology
from ..topology import Topology
from .cluster import SparkCluster


class StormSubmitter:
    """Runs a topology on the cluster of this process, as spark-submit names it.

    The driver is this process: Storm's method returns once the cluster has the topology, this one when the run has
    ended. To run several topologies in one process, use `SparkCluster`.
    """

    @staticmethod
    def submitTopology(
        name: str, conf: dict | None, topology: Topology, opts: Any = None, progressListener: Any = None
    ) -> RunningTopology:
        """Run the topology until its spouts end or the process is stopped, and return the ended run.

        Checkpoints are in the folder or URI ``conf["topology.checkpoints"]``; by default in ``checkpoints`` where the
        process runs. ``opts`` and ``progressListener`` are ignored. Raises what ``SparkCluster.submitTopology`` and
        ``awaitTermination`` raise.
        """
        checkpoints = (conf or {}).get(Config.TOPOLOGY_CHECKPOINTS) or str(Path("checkpoints").absolute())
        with SparkCluster(checkpoints=checkpoints) as cluster:
            running = cluster.submitTopology(name, conf, topology)
            running.awaitTermination()
            return running

    submitTopologyWithProgressBar = submitTopology
