"""SparkCluster: runs a topology on Spark, each component as one streaming query; StormSubmitter for a ported main."""

from __future__ import annotations

import logging
import uuid
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from ..checkpoints.location import Place, text_of
from ..config import Config
from ..drpc.functions import functions_of
from ..engine.execution_mode import check_execution_mode
from ..engine.phases import BatchPhases, Seen
from ..engine.program import Program, compile_plan
from ..entry_points import find, load
from ..errors import TridentError
from ..filesystems.tempdirs import own_folder
from ..model.context import with_context
from ..model.plan import Plan
from ..model.resources import closing_if_failed
from ..report.cluster import ClusterBase
from ..report.progress import Requests, RunningTopology, add_monitor
from ..rpc import service
from ..topology import Topology
from ..topology.topology import check_submission
from .checkpoint import Checkpoint, checkpoint_of
from .component import SparkComponent, active_runs
from .jobs import has_sources
from .launcher import is_alone, master_of
from .network import Homes
from .session import session_of


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


SCRATCH = "trident-queries-"

log = logging.getLogger("trident_py")
DOCTOR = "doctor"


class SparkCluster(ClusterBase):
    """Runs topologies on Spark. A context manager; `shutdown` stops every topology that still runs.

    ``spark=None`` uses the session of this process. If there is none, it makes one with the settings of spark-submit,
    PYSPARK_SUBMIT_ARGS or spark-defaults.conf, on ``local[*]`` if they name no master; the last cluster that uses it
    ends it at shutdown, with its Java process. A session that trident_py did not make is left as it is; one of Spark
    Connect is refused with TridentError.
    ``checkpoints``: the folder of the checkpoints, by topology name: a local path, or any URI of a file system that
    Spark's Hadoop has (docs/checkpoints.md). A topology submitted again under the same name goes on where it stopped.
    Without the folder nothing is kept.
    """

    def __init__(self, spark: SparkSession | None = None, checkpoints: Place | None = None) -> None:
        super().__init__()
        self._closing = ExitStack()
        self.checkpoints = text_of(checkpoints)
        self._scratch = self._closing.enter_context(own_folder(SCRATCH))
        try:
            self.spark = session_of(spark, self._closing)
        except BaseException:
            self._closing.close()
            raise
        self._homes: Homes | None = Homes()

    def submitTopology(
        self, name: str, conf: dict | None, topology: Topology, availableNow: bool = False
    ) -> RunningTopology:
        """Start the topology and return at once.

        ``availableNow``: the run also ends when no spout is ready, instead of waiting for more.
        Raises DefinitionError, before it starts anything, if the topology cannot run, if a setting is invalid, if a
        state is below ``conf["topology.guarantee"]``, or if a machine of the cluster lacks what the topology needs
        (``docs/doctor.md``). The logger ``trident_py`` logs the guarantees at INFO.
        """
        if self._homes is None:
            raise TridentError("this SparkCluster is shut down; create a new one")
        check_submission(name, conf, topology)
        on_workers = topology.plan.without_requests()
        check_execution_mode(on_workers, conf or {})
        self._check_machines(on_workers, conf or {})
        run = uuid.uuid4().hex
        workers_home = self._homes.for_workers(self.spark, on_workers, conf or {})
        settings = with_context(conf or {}, topology=name, run=run, home=workers_home)
        programs, begin_monitor = add_monitor(topology.plan, settings, compile_plan(topology.plan, settings))
        functions = functions_of(topology.plan, settings)
        checkpoints: list[Checkpoint] = []
        with closing_if_failed(checkpoints):  # each component closes its own
            for program in programs:
                checkpoints.append(self._checkpoint(name, run, program))
            running = SparkRunningTopology(self, name, run, programs, checkpoints, availableNow, functions)
            begin_monitor(running)
            if functions is not None:
                functions.begin(running, programs)
        return self._start(running)

    def examine(self, conf: dict | None, topology: Topology) -> Any:
        """Check what `submitTopology` checks on a cluster (``docs/doctor.md``), and starts nothing. Returns a `Health`
        of the extra ``doctor``; raises DefinitionError if that is missing."""
        doctor = load("SparkCluster.examine", DOCTOR)
        check_submission("examined", conf, topology)
        check_execution_mode(topology.plan.without_requests(), conf or {})
        return doctor.examine(self.spark, topology.plan.without_requests(), conf or {}, self.checkpoints, again=True)

    def _check_machines(self, plan: Plan, conf: Mapping[str, Any]) -> None:
        """Let the extra ``doctor`` check the machines of a cluster before a start. One machine has nothing to check."""
        if is_alone(master_of(self.spark)):
            return
        doctor = find(DOCTOR)
        if doctor is None:
            log.info("the machines are not checked before the start: the extra %r of trident-py is missing", DOCTOR)
        else:
            doctor.check_cluster(self.spark, plan, conf, self.checkpoints)

    def _checkpoint(self, name: str, run: str, program: Program) -> Checkpoint:
        component, scratch = program.component, self._scratch / run
        return checkpoint_of(self.spark, self.checkpoints, name, component, scratch, has_sources(program))

    def _shut_down(self) -> None:
        """End the home service and, as its last user, our own session."""
        super()._shut_down()
        if self._homes is not None:
            self._homes.close()
            self._homes = None
        self._closing.close()


class SparkRunningTopology(RunningTopology):
    """A topology on Spark: a thread and a query for each component.

    Raises DefinitionError, before it starts anything, if the topology cannot be sent to Spark's workers.
    """

    def __init__(
        self,
        cluster: SparkCluster,
        name: str,
        run: str,
        programs: list[Program],
        checkpoints: list[Checkpoint],
        available_now: bool,
        requests: Requests | None,
    ) -> None:
        super().__init__(name, [program.component for program in programs], requests)
        assert cluster._homes is not None
        self.run = run
        self._components = {
            program.component: SparkComponent(
                cluster.spark, cluster._homes.local, program, self, run, checkpoint, available_now
            )
            for program, checkpoint in zip(programs, checkpoints, strict=True)
        }
        active_runs.begin(run)

    def _run_component(self, component: str) -> None:
        self._components[component].run()

    def _clean_up(self) -> None:
        active_runs.end(self.run)
        service.forget(self.run)

    def phases_of(self, component: str, seen: Sequence[Seen]) -> list[BatchPhases]:
        return self._components[component].phases_of(seen)

    def _stop(self) -> None:
        for component in self._components.values():
            component.wake()
