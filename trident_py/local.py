"""LocalCluster: runs a topology in this process, without a JVM. The same tasks as on Spark, one after the other."""

from __future__ import annotations

import os
import uuid
from dataclasses import replace
from typing import Any

from . import home
from .canonical import SET_ORDER
from .context import with_context
from .drpc.functions import functions_of
from .errors import DefinitionError, TridentError
from .guarantees.table import trusted
from .guarantees.tracing import by_hash_seed
from .run.agreement import Seeded, Standing
from .run.batch_loop import BatchLoop
from .run.deciding import DECIDED
from .run.opening import SETTLED
from .run.program import AttemptOutcome, BatchInfo, Program, compile_plan, descriptor_rows
from .run.progress import Requests, RunningTopology, kill, log
from .run.task import run_attempt
from .run.worker_memory import end_run, task_for
from .spouts.coordination import Coordination, Descriptor
from .spouts.metadata import FileMetadataStore, MemoryMetadataStore, MetadataStore
from .topology import Topology
from .topology.topology import check_submission

IDLE_SECONDS = 0.005
ORDER = "order"


def _own_seed() -> str:
    """The PYTHONHASHSEED of this process; "" if it is random."""
    seed = os.environ.get("PYTHONHASHSEED", "")
    return seed if seed.isdigit() else ""


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
        state is below ``conf["topology.guarantee"]``. The logger ``trident_py`` logs the guarantees at INFO.
        """
        check_submission(name, conf, topology)
        run = f"{name}-{uuid.uuid4().hex[:12]}"
        settings = with_context(conf or {}, topology=name, run=run, home=None)
        programs = compile_plan(topology.plan, settings)
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
        folder = f"{checkpoints}/{program.conf['topology.name']}/{program.component}"
        self.store: MetadataStore = MemoryMetadataStore() if checkpoints is None else FileMetadataStore(folder)
        self.where = "in memory" if checkpoints is None else folder
        self.program = replace(program, conf=with_context(program.conf, metadata=self.store))
        self.run_id = run

    def run(self) -> None:
        """Runs batch after batch until the spouts are exhausted or the run is stopped."""
        coordination = Coordination(self.program.spouts, self.program.conf, self.store, self._reported)
        try:
            loop = BatchLoop(self.program, coordination, self.running, self.run_id)
            loop.begun = self._begun
            last = self.store.previous("batches", 2**62)
            standing = self._standing(last)
            txid = loop.open(standing).txid
            self._compare_order(standing)
            self._keep_order({"order": SET_ORDER, "seed": _own_seed()})
            metadata, begun = None if last is None else last["metadata"], self._planned(txid)
            coordination.restore(txid, metadata, begun)
            self.running.event(self.program.component, "started", txid, None)
            while not self.running.stopping.is_set() and (begun or not coordination.exhausted(txid + 1)):
                if not (begun or coordination.ready(txid + 1)):
                    self.running.stopping.wait(IDLE_SECONDS)
                    continue
                txid, begun = txid + 1, None
                metadata = loop.run(txid, self._execute, metadata)
                self._save(txid, metadata)
            self._keep_order(None)
        finally:
            coordination.close()

    def _standing(self, last: dict | None) -> Standing:
        """The content of the checkpoint before this start."""
        record, topology = self.store.get(SETTLED, 0), self.program.conf["topology.name"]
        if record is None:
            return Standing.new(self.where, topology)
        txid = record["base"] if last is None else last["txid"]
        begun = self.store.get("begun", txid + 1) is not None
        decided = self.store.get(DECIDED, txid + 1) is not None
        return Standing(self.where, topology, record, record["lineage"], txid, begun, decided, self._seeded(begun))

    def _planned(self, txid: int) -> dict | None:
        """The metadata of the batch after this txid, if that batch has begun and a spout has metadata of it."""
        begun = self.store.get("begun", txid + 1)
        return begun if begun is not None and any(value is not None for value in begun.values()) else None

    def _other_order(self) -> dict | None:
        """The record of a process with another hash seed that ended in the middle of a batch; None if there is none."""
        record: dict | None = self.store.get(ORDER, 0)
        return record if record is not None and record["order"] != SET_ORDER else None

    def _seeded(self, begun: bool) -> Seeded | None:
        other = self._other_order() if begun else None
        if other is None:
            return None
        operation = by_hash_seed(self.program.lowered.plan, trusted(self.program.conf))
        return Seeded(operation, other["seed"]) if operation else None

    def _compare_order(self, standing: Standing) -> None:
        """Warns if a process with another order of sets may have begun the next batch."""
        if standing.begun and self._other_order() is not None:
            txid = standing.committed + 1
            text = (
                f"a process with another hash seed may have begun batch {txid} and ended before its commit: results "
                "of your functions that depend on the order of a set, or on hash(), may differ now. Set "
                "PYTHONHASHSEED=0 for every start"
            )
            log.warning("%s", text)
            self.running.event(self.program.component, "reported", txid, None, text)

    def _keep_order(self, order: dict | None) -> None:
        """Records this process's order of sets while it may be in the middle of a batch; None after that."""
        if self.store.get(ORDER, 0) != order:
            self.store.put(ORDER, 0, order)

    def _begun(self, txid: int, metadata: dict) -> None:
        """Called before a batch is emitted. Records its metadata, because a restart must not change a batch that states
        may have written. If a state holds a batch without this record, another copy of the checkpoint wrote it."""
        if self.store.get("begun", txid) != metadata:
            self.store.put("begun", txid, metadata)
            self.store.cleanup_before("begun", txid)

    def _save(self, txid: int, metadata: dict) -> None:
        self.store.put("batches", txid, {"txid": txid, "metadata": metadata})
        self.store.cleanup_before("batches", txid)

    def _reported(self, spout: str, error: BaseException) -> None:
        self.running.event(self.program.component, "reported", None, None, f"spout {spout}: {error!r}")

    def _execute(self, batch: BatchInfo, descriptors: list[Descriptor] | None) -> AttemptOutcome:
        """Runs one attempt of a batch in this process."""
        if descriptors is None:
            raise TridentError("LocalCluster needs the descriptors of every attempt")
        program = self.program
        return run_attempt(
            program,
            lambda level, partition: task_for(program, level, partition, batch),
            batch,
            descriptor_rows(descriptors),
        )
