"""LocalCluster: runs a topology in this process, without a JVM. The same tasks as on Spark, one after the other."""

from __future__ import annotations

import uuid
from functools import partial

from .checkpoints.batch_log import BatchLog
from .checkpoints.hash_seed import own_order
from .checkpoints.location import Place, open_log, text_of
from .checkpoints.uri_folder import open_folder
from .drpc.functions import functions_of
from .engine.component import ComponentRun
from .engine.phases import phase, profile, start
from .engine.program import AttemptOutcome, BatchInfo, Program, compile_plan, descriptor_rows
from .engine.task import run_attempt
from .engine.worker_cache import end_run, task_for
from .filesystems.uris import Storage, check_storage, naming
from .model.context import with_context
from .model.resources import closing_if_failed
from .report.cluster import ClusterBase
from .report.progress import Requests, RunningTopology, add_monitor
from .rpc import service
from .spouts.coordination import Descriptor
from .topology import Topology
from .topology.topology import check_submission


class LocalCluster(ClusterBase):
    """Runs topologies in this process, each component in its own thread. A context manager.

    ``checkpoints``: a local folder, or a URI in HDFS or S3 (docs/checkpoints.md). If given, txids and the spouts'
    metadata are kept in ``<checkpoints>/<topology name>/``, and a topology submitted again goes on where it stopped,
    also one that has run on Spark. Without it nothing is kept between runs. ``storage``: settings for the URI's store,
    such as address and credentials (docs/files.md).
    """

    def __init__(self, checkpoints: Place | None = None, storage: Storage | None = None) -> None:
        super().__init__()
        self.checkpoints = text_of(checkpoints)
        with naming("checkpoints"):
            check_storage([] if self.checkpoints is None else [self.checkpoints], storage or {})
        self._open_folder = partial(open_folder, storage=storage or {})

    def submitTopology(self, name: str, conf: dict | None, topology: Topology) -> RunningTopology:
        """Start the topology and return at once.

        Raises DefinitionError, before it starts anything, if the topology cannot run, if a setting is invalid, or if a
        state is below ``conf["topology.guarantee"]``; TridentError if the place of the checkpoint cannot be used. The
        logger ``trident_py`` logs the guarantees at INFO.
        """
        check_submission(name, conf, topology)
        run = f"{name}-{uuid.uuid4().hex[:12]}"
        settings = with_context(conf or {}, topology=name, run=run, home=None)
        programs, begin_monitor = add_monitor(topology.plan, settings, compile_plan(topology.plan, settings))
        functions = functions_of(topology.plan, settings)
        logs: list[BatchLog] = []
        with closing_if_failed(logs):  # each component closes its own
            for program in programs:
                logs.append(self._log_of(program))
            running = LocalRunningTopology(name, run, programs, logs, functions)
            begin_monitor(running)
            if functions is not None:
                functions.begin(running, programs)
        return self._start(running)

    def _log_of(self, program: Program) -> BatchLog:
        name = program.conf["topology.name"]
        return open_log(self.checkpoints, name, program.component, own_order, self._open_folder)


class LocalRunningTopology(RunningTopology):
    """A topology that runs in this process: a thread for each component."""

    def __init__(
        self, name: str, run: str, programs: list[Program], logs: list[BatchLog], requests: Requests | None
    ) -> None:
        super().__init__(name, [program.component for program in programs], requests)
        self.run = run
        self._components = {program.component: (program, log) for program, log in zip(programs, logs, strict=True)}

    def _run_component(self, component: str) -> None:
        program, log = self._components[component]
        with ComponentRun(program, program.spouts, log, self, self.run) as batches:
            batches.open()
            start(profile(program.conf))
            while batches.await_next():
                batches.run_next(partial(_execute, batches.program))

    def _clean_up(self) -> None:
        end_run(self.run)
        service.forget(self.run)


def _execute(program: Program, batch: BatchInfo, descriptors: list[Descriptor]) -> AttemptOutcome:
    """Run one attempt of a batch in this process. ``program``: with the store of the spouts' metadata in its conf."""
    rows = descriptor_rows(descriptors)
    with phase("task rest"):
        return run_attempt(program, lambda level, part: task_for(program, level, part, batch), batch, rows)
