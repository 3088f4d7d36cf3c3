"""LocalCluster: runs a topology in this process, without a JVM. The same tasks as on Spark, one after the other."""

from __future__ import annotations

import uuid
from contextlib import closing
from dataclasses import replace
from typing import Any

from . import home
from .checkpoints.kinds import LOCAL, require_kind
from .checkpoints.local import local_folder, open_checkpoint
from .context import with_context
from .drpc.functions import functions_of
from .errors import DefinitionError, LineageError, TridentError
from .phases import phase, profiled, start
from .run.batch_loop import BatchLoop
from .run.program import AttemptOutcome, BatchInfo, Program, compile_plan, descriptor_rows
from .run.progress import Requests, RunningTopology, kill, log
from .run.standing import Standing
from .run.task import run_attempt
from .run.worker_memory import end_run, task_for
from .spouts.coordination import Coordination, Descriptor
from .spouts.metadata import MetadataStore
from .topology import Topology
from .topology.topology import check_submission

IDLE_SECONDS = 0.005


class LocalCluster:
    """Runs topologies in this process, each component in its own thread. A context manager.

    ``checkpoints``: a folder. If given, txids and the spouts' metadata are kept in ``<checkpoints>/<topology name>/``,
    and a topology submitted again goes on where it stopped. Without it nothing is kept between runs. Raises
    DefinitionError for a URI.
    """

    def __init__(self, checkpoints: str | None = None) -> None:
        if checkpoints is not None and "://" in checkpoints:
            raise DefinitionError(
                f"checkpoints={checkpoints!r} is no path: LocalCluster keeps them in a folder of this machine. Name "
                "one, or use SparkCluster"
            )
        self.checkpoints = checkpoints
        self._running: list[LocalRunningTopology] = []

    def __enter__(self) -> LocalCluster:
        return self

    def __exit__(self, *exception: object) -> None:
        self.shutdown()

    def submitTopology(self, name: str, conf: dict | None, topology: Topology) -> RunningTopology:
        """Starts the topology and returns at once.

        Raises DefinitionError, before it starts anything, if the topology cannot run, if a setting is invalid, or if a
        state is below ``conf["topology.guarantee"]``; LineageError if the checkpoint is one of Spark. The logger
        ``trident_py`` logs the guarantees at INFO.
        """
        check_submission(name, conf, topology)
        run = f"{name}-{uuid.uuid4().hex[:12]}"
        settings = with_context(conf or {}, topology=name, run=run, home=None)
        programs = compile_plan(topology.plan, settings)
        for program in programs if self.checkpoints is not None else ():
            require_kind(local_folder(str(self.checkpoints), name, program.component), LOCAL)
        functions = functions_of(topology.plan, settings)
        running = LocalRunningTopology(name, run, programs, self.checkpoints, functions)
        if functions is not None:
            functions.begin(running, programs)
        self._running = [other for other in self._running if other.isOpen] + [running]
        running.start()
        return running

    def killTopology(self, name: str) -> None:
        """Stops a topology after its current attempt. Raises TridentError if none of this name is active."""
        kill(self._running, name)

    def killTopologyWithOpts(self, name: str, options: Any = None) -> None:
        """As `killTopology`; the options are ignored: a batch is never left in the middle."""
        kill(self._running, name)

    def shutdown(self) -> None:
        """Stops every topology that still runs."""
        for running in self._running:
            running.stop()
        self._running = []


class LocalRunningTopology(RunningTopology):
    """A topology that runs in this process: a thread for each component."""

    def __init__(
        self, name: str, run: str, programs: list[Program], checkpoints: str | None, requests: Requests | None
    ) -> None:
        super().__init__(name, [program.component for program in programs], requests)
        self.run = run
        self._programs = {program.component: program for program in programs}
        self._checkpoints = checkpoints

    def _run_component(self, component: str) -> None:
        LocalComponent(self._programs[component], self, self.run, self._checkpoints).run()

    def _clean_up(self) -> None:
        end_run(self.run)
        home.forget(self.run)


class LocalComponent:
    """One component: its coordination, its loop of batches, its tasks."""

    def __init__(self, program: Program, running: RunningTopology, run: str, checkpoints: str | None) -> None:
        self.running = running
        topology = program.conf["topology.name"]
        folder = None if checkpoints is None else local_folder(checkpoints, topology, program.component)
        self.checkpoint = open_checkpoint(folder, topology)
        self.store: MetadataStore = self.checkpoint.store
        self.program = replace(program, conf=with_context(program.conf, metadata=self.store))
        self.run_id = run

    def run(self) -> None:
        """Runs batch after batch until the spouts are exhausted or the run is stopped."""
        with closing(self.checkpoint):
            coordination = Coordination(self.program.spouts, self.program.conf, self.store, self._reported)
            try:
                self._run_batches(coordination)
                self.checkpoint.keep_order(inside=False)
            finally:
                coordination.close()

    def _run_batches(self, coordination: Coordination) -> None:
        loop = BatchLoop(self.program, coordination, self.running, self.run_id)
        loop.begun = self.checkpoint.begun
        txid, last = self._opened(loop), self.checkpoint.last()
        metadata, begun = None if last is None else last["metadata"], self.checkpoint.planned(txid + 1)
        coordination.restore(txid, metadata, begun)
        self.running.event(self.program.component, "started", txid, None)
        start(profiled(self.program.conf))
        while not self.running.stopping.is_set() and (begun or not coordination.exhausted(txid + 1)):
            with phase("checkpoint"):
                self.checkpoint.check()
            if not (begun or coordination.ready(txid + 1)):
                with phase("waiting"):
                    self.running.stopping.wait(IDLE_SECONDS)
                continue
            txid, begun = txid + 1, None
            with phase("driver rest"):
                metadata = loop.run(txid, self._execute, metadata)
            with phase("checkpoint"):
                self.checkpoint.over(txid, metadata)

    def _opened(self, loop: BatchLoop) -> int:
        """Opens the states and takes the checkpoint; returns the last committed txid. A start that is refused changes
        nothing, unless an older driver goes on meanwhile: then the checkpoint must be taken from it to compare."""
        try:
            loop.examine(self.checkpoint.standing(self.program))
        except LineageError:
            if not self.checkpoint.moved():
                raise
        self.checkpoint.take()
        standing = self.checkpoint.standing(self.program)
        txid = loop.open(standing).txid
        self._compare_order(standing)
        self.checkpoint.keep_order(inside=True)
        return txid

    def _compare_order(self, standing: Standing) -> None:
        """Warns if a process with another order of sets may have begun the next batch."""
        if standing.begun and self.checkpoint.other_order() is not None:
            txid = standing.committed + 1
            text = (
                f"a process with another hash seed may have begun batch {txid} and ended before its commit: results "
                "of your functions that depend on the order of a set, or on hash(), may differ now. Set "
                "PYTHONHASHSEED=0 for every start"
            )
            log.warning("%s", text)
            self.running.event(self.program.component, "reported", txid, None, text)

    def _reported(self, spout: str, error: BaseException) -> None:
        self.running.event(self.program.component, "reported", None, None, f"spout {spout}: {error!r}")

    def _execute(self, batch: BatchInfo, descriptors: list[Descriptor] | None) -> AttemptOutcome:
        """Runs one attempt of a batch in this process."""
        if descriptors is None:
            raise TridentError("LocalCluster needs the descriptors of every attempt")
        program = self.program
        with phase("task rest"):
            return run_attempt(
                program,
                lambda level, partition: task_for(program, level, partition, batch),
                batch,
                descriptor_rows(descriptors),
            )
