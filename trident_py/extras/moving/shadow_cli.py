"""The command `trident shadow`: the ported topology runs beside Storm's, and is compared with it as it goes.

Exit codes: 0 the last comparison found both equal; 1 it did not; 2 the command is wrong, or ours would not be apart.
"""

from __future__ import annotations

import re
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from ...cli.display import terminable
from ...cli.failures import run_guarded
from ...cli.run import RunCommand, run_options
from ...config import Config
from ...errors import DefinitionError
from ...kafka import KafkaSpout
from ...model.plan import Plan, SpoutNode
from ...model.requirements import needs_of
from ...report.progress import RunningTopology
from ...state.roles import location_of
from .shadow_comparison import ShadowComparison
from .sides import OURS, ComparisonOptions, side_options
from .source_options import state_of

MARK = "shadow"
PLACES = ("left", "right", "key_map")  # options that name a file


@dataclass(frozen=True)
class ShadowCommand(RunCommand):
    """Runs a topology of which all that it writes is called a shadow."""

    options: Any = None
    agreement: Any = None

    def submit(self, cluster: Any, name: str, conf: Config, loaded: Any) -> RunningTopology:
        check_apart(loaded.topology.plan, self.options, loaded.storage or "")
        self.agreement.look(None)
        return super().submit(cluster, name, conf, loaded)

    def follow(self, running: RunningTopology, name: str) -> int:
        with self.agreement.follow(running):
            code = super().follow(running, name)
        return code or int(not self.agreement.equal)


def check_apart(plan: Plan, options: ComparisonOptions, checkpoint: str) -> None:
    """Raise DefinitionError unless every place that the topology writes has the word in its name, and Storm's has not:
    two names of one server then make no difference."""
    _check_name(checkpoint, f"the checkpoint {checkpoint}")
    places = {use.name: use.factory for _, use in plan.updates()}
    for name, factory in places.items():
        location = location_of(factory)
        if location is None and not needs_of(factory).home:
            raise DefinitionError(f"state {name!r}: {factory!r} does not say where its data is, so it may be Storm's")
        for each in location.names if location else ():
            _check_name(each, f"state {name!r}, {location.shown if location else ''},")
    for node in plan.nodes:
        if isinstance(node, SpoutNode) and isinstance(node.spout, KafkaSpout) and node.spout.shareOffsets:
            _check_name(node.spout.groupId or "", f"the group of spout {node.spout_id!r}")
    if (named := next((each for each in _names_of_left(options) if MARK in each.lower()), None)) is not None:
        raise DefinitionError(f"the left side, {named}, has {MARK!r} in its name: it must be Storm's")
    if options.form_of(options.right) != OURS:
        raise DefinitionError(f"the right side, {options.right}, must be FILE:STATE, a state of the topology")
    if (right := location_of(state_of(options.right, ""))) not in map(location_of, places.values()):
        raise DefinitionError(f"the topology does not write {right.shown if right else options.right}, the right side")


def _check_name(name: str, what: str) -> None:
    if MARK not in name.rstrip("/").rpartition("/")[2].lower():
        raise DefinitionError(
            f"{what} could be that of production: a shadow run writes only into tables, hashes, topics and folders "
            f"with {MARK!r} in their names. Nothing was written"
        )


def _names_of_left(options: ComparisonOptions) -> list[str]:
    if options.form_of(options.left) != OURS:
        return [each for each in (options.lay["hash_"], options.lay["table"]) if each]
    location = location_of(state_of(options.left, ""))
    return sorted(location.names) if location else []


SQLITE = re.compile(r"(sqlite(?:\+\w+)?:///)([^/:?].*)")  # a file of this folder


def _make_whole(named: str) -> str:
    """Return the name of a side or a file as it is found from another folder, too: that of a topology file becomes
    the current one."""
    if (found := SQLITE.fullmatch(named)) is not None:
        return f"{found[1]}{Path(found[2]).absolute()}"
    return named if "://" in named else str(Path(named).absolute())


@click.command()
@run_options
@click.argument("left")
@click.argument("right")
@side_options
@click.option("--every", type=click.FloatRange(0.01, 86_400), default=10.0, help="Seconds between comparisons.")
@click.option("--times", type=click.IntRange(min=1), default=3, help="In so many comparisons a key stays different.")
@click.option("--lines", type=click.Path(path_type=Path), default=Path("shadow.jsonl"), help="Keeps all comparisons.")
@click.option("--picture", type=click.Path(path_type=Path), help="An HTML page: agreement and lag over time.")
def shadow(every: float, times: int, lines: Path, picture: Path | None, **options: Any) -> None:
    """Run a topology beside Storm's, into states of its own, and compare LEFT, Storm's state, with RIGHT, FILE:STATE.

    The folder of checkpoints is shadow-checkpoints. Ends with the topology's spouts, or by Ctrl-C.
    """
    checkpoint = options.pop("checkpoint")
    options |= {name: _make_whole(named) for name in PLACES if (named := options[name]) is not None}
    compared = ComparisonOptions.of(options)
    quiet = options["as_json"]
    agreement = ShadowComparison(compared, every, times, lines.absolute(), picture and picture.absolute(), quiet)
    place = checkpoint or str(Path(f"{MARK}-checkpoints").absolute())
    command = ShadowCommand.of({**options, "checkpoint": place, "options": compared, "agreement": agreement})
    with terminable(), command.open_lines():
        sys.exit(run_guarded(command, command.full))
