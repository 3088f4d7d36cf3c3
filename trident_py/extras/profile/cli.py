"""What `trident profile` does: runs a topology for a number of batches, and prints where their time went."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any

import click

from ...checkpoints.batch_log import describe_driver, is_running
from ...checkpoints.hash_seed import own_order
from ...checkpoints.location import read_log
from ...checkpoints.uri_folder import find_folder
from ...cli.display import terminable
from ...cli.failures import run_guarded
from ...cli.run import RunCommand, cluster_on_spark, run_options
from ...cli.targets import Chosen
from ...config import Config
from ...engine.phases import PROFILE
from ...engine.program import compile_plan
from ...errors import LineageError, TopologyError
from ...local import LocalCluster
from ...model.context import with_context
from ...report.progress import RunningTopology
from .phases import PHASES
from .report import PhaseShare, Profile, batches_seen, profiles

POLL_SECONDS = 0.1
SHOWN = 0.00005  # seconds; what takes less is in the JSON only
MOST = 300  # batches; Spark forgets older jobs
COLUMNS = ("phase", "ms", "share", "who: what")
ON = {PROFILE: True}
OTHER_TABLE = (
    "A profile writes to its states as a run does, and begins at txid 1: let them name new tables or topics for it. "
    "Nothing was changed"
)
TAKEN = (
    "A profile would take it over and so end that run. Profile without --checkpoint, on new tables or topics; or stop "
    "the run first, and where nobody can see that it has ended, shut it out: trident txid fence. Nothing was changed"
)
NO_BATCH = "there was no new batch to measure; profile with --checkpoint NEW and a new table, or add input"


@click.command()
@run_options
@click.option("--batches", type=click.IntRange(1, MOST), default=30, show_default=True, help="Batches to measure.")
@click.option("--warm-up", type=click.IntRange(0, MOST), default=10, show_default=True, help="Batches before these.")
def profile(batches: int, warm_up: int, **options: Any) -> None:
    """Run a topology for some batches, and show where their time went. It writes to its states as `run` does.

    Without --checkpoint it begins at txid 1 and leaves no checkpoint. That of a topology file may be in use.
    """
    command = RunCommand.of(options)
    with terminable():
        sys.exit(run_guarded(lambda: run_profiled(command, batches, warm_up), command.full))


def run_profiled(command: RunCommand, batches: int, warm_up: int) -> int:
    """Run the topology for so many batches and print where their time went."""
    command.more.update(ON)
    name, loaded, conf = command.load()
    storage = loaded.storage if command.checkpoint else None  # a file's would be taken over from the driver that runs
    if storage is not None:
        _check_unowned(storage, name, loaded, conf)
    with LocalCluster(storage) if command.local else cluster_on_spark(storage) as cluster:
        running = command.submit(cluster, name, conf, loaded)
        with _advising(storage):
            found = measure(running, batches, warm_up)
        return tell_profiles(name, found, command.as_json)


def _check_unowned(storage: str, name: str, loaded: Chosen, conf: Config) -> None:
    """Raise LineageError if a driver has a checkpoint of the topology, and runs, or may run on another host."""
    context = with_context(conf, topology=name, run=f"{name}-profile", home=None)
    for program in compile_plan(loaded.topology.plan, context):
        log = read_log(storage, name, program.component, own_order, partial(find_folder, storage={}))
        if log.owner and (running := is_running(log.owner)) is not False:
            raise LineageError(f"the checkpoint {log.where} belongs to {describe_driver(log.owner, running)}. {TAKEN}")


@contextmanager
def _advising(checkpoint: str | None) -> Iterator[None]:
    """Of a table that another run writes, say what a profile can do: to go on there would be to write into it."""
    try:
        yield
    except TopologyError as error:
        if checkpoint is None and isinstance(error.__cause__, LineageError) and error.__cause__.finding:
            raise LineageError(f"{error.__cause__.finding}. {OTHER_TABLE}") from None
        raise


def measure(running: RunningTopology, batches: int, warm_up: int) -> list[Profile]:
    """Wait for so many batches and one more, or for the end of the run, and stop it. Spark reports a batch when it is
    over, which a stop may prevent. Of a shorter run, the second half counts.

    Raises TopologyError if the run failed. Called before the cluster ends.
    """
    wanted = warm_up + batches + 1
    while running.progress and batches_seen(running) < wanted and not running.awaitTermination(POLL_SECONDS):
        pass
    running.stop()
    running.awaitTermination()
    return profiles(running, batches, warm_up)


def tell_profiles(name: str, found: Sequence[Profile], as_json: bool) -> int:
    """Print the profiles as tables, or as JSON, and return the exit code: 1 if there was no batch to measure. Names the
    components without one."""
    tables = ["\n".join(lines(name, profile)) for profile in found if profile.batches]
    if as_json:
        print(json.dumps({"topology": name, "components": [in_json(profile) for profile in found]}, indent=2))
    elif tables:
        print("\n\n".join(tables))
    without = [f"{name}/{profile.component}" for profile in found if not profile.batches]
    for each in without if found else [name]:
        print(f"error: {each}: {NO_BATCH}", file=sys.stderr)
    return 0 if tables else 1


def in_json(profile: Profile) -> dict[str, Any]:
    """Return medians over the batches, and each batch; all in seconds."""
    rows = [row._asdict() for row in profile.rows()]
    batches = [
        {"txid": txid, "seconds": whole, "phases": {join_phase(*name): spent for name, spent in seconds.items()}}
        for txid, whole, seconds in profile.batches
    ]
    return {"component": profile.component, "seconds": profile.whole, "phases": rows, "batches": batches}


def join_phase(phase: str, of: str) -> str:
    return f"{phase}: {of}" if of else phase


def _before(rows: Sequence[PhaseShare]) -> list[str]:
    """Return the phase of the row before each."""
    return ["", *(row.phase for row in rows)][: len(rows)]


def lines(name: str, profile: Profile) -> list[str]:
    """Return the table of one component: its phases in the order of a batch."""
    head = f"{name}/{profile.component}: medians of {len(profile.batches)} batches"
    rows = [row for row in profile.rows() if abs(row.seconds) >= SHOWN]
    told = [PHASES[row.phase] if row.phase != before else "" for row, before in zip(rows, _before(rows), strict=True)]
    shown = [*rows, PhaseShare("whole batch", "", profile.whole, 1.0)]
    numbers = ((join_phase(row.phase, row.of), f"{1000 * row.seconds:.1f}", f"{row.share:.0%}") for row in shown)
    cells = [COLUMNS, *((*each, what) for each, what in zip(numbers, [*told, ""], strict=True))]
    width = max(len(row[0]) for row in cells)
    return [head, *(f"{a.ljust(width)}  {b:>8}  {c:>5}  {d}".rstrip() for a, b, c, d in cells)]
