"""The commands `trident txid ls`, `show`, `watch`, `sql`, `fence` and `rewind`.

Exit codes: 0 the next start goes on; 1 it is refused, or waits for a store; 2 the command or the topology is wrong.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click
from rich.console import Console
from rich.live import Live
from rich.text import Text

from ...cli.display import now, terminable
from ...cli.failures import guard
from ...cli.targets import (
    add_options,
    is_states_file,
    name_option,
    settings_option,
    target_argument,
    traceback_option,
)
from ...errors import DefinitionError, TridentError
from .components import Component, components_of
from .evidence import ComponentEvidence
from .fence import shut_out
from .inspection import look
from .lines import about, driver, line, lines, ways_back
from .next_start import BEGINS, REFUSED, WAITS
from .rewind import check, list_kept
from .rewind import rewind as rewind_to
from .stores import lines_of, look_at_states
from .tables import write

FAILED = 1
_add_names = add_options(
    target_argument,
    click.option("--checkpoint", metavar="DIR", help="Folder or URI that stores txids; default: checkpoints."),
    name_option,
    settings_option,
    traceback_option,
)
"""What names the components; a command gets it as ``**named``."""


@click.group()
def txid() -> None:
    """See what checkpoint and states remember of each txid, with the driver alive or dead; shut drivers out; go back.

    In place of a topology you may name the folder of a checkpoint; then no state is asked.
    """


@txid.command()
@_add_names
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@guard
def ls(as_json: bool, **named: Any) -> int:
    """List what log and states have of the last batches, and what the next start will do. Changes nothing.

    A file of states, in place of a topology, is enough to see what their stores have, and who owns them.
    """
    if is_states_file(target := named["target"]):
        return _show_states(target, as_json)
    found = [look(component) for component in components_of(**named)]
    print(json.dumps([asdict(each) for each in found], indent=2) if as_json else "\n\n".join(map(_text, found)))
    return exit_code(found)


@txid.command()
@click.argument("txid", type=click.IntRange(min=1))
@_add_names
@guard
def show(txid: int, **named: Any) -> int:
    """Show what log and states have of one batch. Changes nothing."""
    for component in components_of(**named):
        print("\n".join(about(look(component), component.read(), txid)))
    return 0


@txid.command()
@click.argument("file", type=click.Path(path_type=Path))
@_add_names
@guard
def sql(file: Path, **named: Any) -> int:
    """Write what `ls` has into a new SQLite file: the tables components, states and batches."""
    place = file.absolute()  # a topology file is loaded in its own folder
    if place.exists():
        raise click.UsageError(f"{file} is there already; name a file that is not")
    write(place, [look(component) for component in components_of(**named)])
    return 0


@txid.command()
@_add_names
@click.option("--every", type=click.FloatRange(0.05, 86_400), default=2.0, show_default=True, help="Seconds.")
@guard
def watch(every: float, **named: Any) -> int:
    """List again and again; where stdout is no terminal, a line for each change. Changes nothing."""
    with terminable():
        components = components_of(**named)
        return _watch_live(components, every) if sys.stdout.isatty() else _watch_lines(components, every)


@txid.command()
@_add_names
@click.option("--yes", is_flag=True, help="Do not ask.")
@guard
def fence(yes: bool, **named: Any) -> int:
    """Shut every running driver out, as a start does, and run no batch. The next start goes on."""
    return _fence(components_of(**named), yes)


@txid.command()
@_add_names
@click.option("--to", type=click.IntRange(min=0), metavar="TXID", help="The batch behind which it will go on.")
@click.option("--component", help="Which one, if the topology has several; each counts its own txids.")
@click.option("--dry-run", is_flag=True, help="Say where it can go back to; change nothing.")
@click.option("--yes", is_flag=True, help="Do not ask.")
@guard
def rewind(to: int | None, component: str | None, dry_run: bool, yes: bool, **named: Any) -> int:
    """Take checkpoint and states back to how they were after a batch. Every running driver is shut out; the next start
    emits the batches after it again. A rewind that was killed is finished by the same command."""
    chosen = _choose(components_of(**named), component)
    if to is None and not dry_run:
        raise click.UsageError("name the batch: --to TXID; --dry-run lists those that it can go back to")
    return _show_ways_back(chosen, to) if dry_run or to is None else _rewind(chosen, to, yes)


def _show_states(file: str, as_json: bool) -> int:
    states = look_at_states(file)
    print(json.dumps([asdict(each) for each in states], indent=2) if as_json else "\n".join(lines_of(file, states)))
    return FAILED if any(state.error for state in states) else 0


def exit_code(found: Sequence[ComponentEvidence]) -> int:
    return FAILED if any(each.next.kind in (REFUSED, WAITS) for each in found) else 0


def _text(found: ComponentEvidence) -> str:
    return "\n".join(lines(found))


def _try(show: Callable[[ComponentEvidence], str], component: Component) -> str:
    """Return what is shown of a component; why it cannot be read now, as while its checkpoint's store is away."""
    try:
        return show(look(component))
    except DefinitionError:
        raise
    except TridentError as error:
        return f"{component.shown}: cannot be read now: {error}"


def _watch_live(components: Sequence[Component], every: float) -> int:
    with Live(console=Console(highlight=False), auto_refresh=False) as live:
        while True:
            live.update(Text("\n\n".join(_try(_text, component) for component in components)), refresh=True)
            time.sleep(every)


def _watch_lines(components: Sequence[Component], every: float) -> int:
    before: dict[str, str] = {}
    while True:
        for component in components:
            told = _try(line, component)
            if before.get(component.shown) != told:
                print(f"{now():%H:%M:%S}Z {told}", flush=True)
            before[component.shown] = told
        time.sleep(every)


def _fence(components: Sequence[Component], yes: bool) -> int:
    if any(component.program is None for component in components):
        raise click.UsageError("a fence is raised in the states too: name the topology, with --checkpoint")
    found = {component.shown: look(component) for component in components}
    for shown, evidence in found.items():
        print(f"{shown}: the driver is {driver(evidence)}")
    for shown, evidence in found.items():
        if evidence.next.kind in (REFUSED, BEGINS):
            why = "there is no checkpoint yet" if evidence.next.kind == BEGINS else evidence.next.sentence
            print(f"{shown}: {why}. Nothing was changed", file=sys.stderr)
            return FAILED
    if not yes and not _confirm("Shut out every driver that runs?"):
        print("nothing was changed", file=sys.stderr)
        return FAILED
    for component in components:
        raised = [f"{state} has generation {number}" for state, number in shut_out(component).items()]
        print("; ".join([f"{component.shown}: older drivers are shut out", *raised]))
        found[component.shown] = look(component)
        print(f"  the next start {found[component.shown].next.sentence}")
    return FAILED if any(evidence.next.kind == REFUSED for evidence in found.values()) else 0


def _choose(components: Sequence[Component], name: str | None) -> Component:
    named = [component for component in components if name in (None, component.name)]
    if len(named) != 1:
        names = ", ".join(component.name for component in components)
        raise click.UsageError(f"each component counts its own txids; choose one with --component: {names}")
    if named[0].program is None:
        raise click.UsageError("states go back, too: name the topology, with --checkpoint")
    return named[0]


def _show_ways_back(component: Component, to: int | None) -> int:
    kept, start = list_kept(component), look(component).next
    if start.kind in (REFUSED, BEGINS):
        print(f"{component.shown}: the next start {start.sentence}", file=sys.stderr)
        return FAILED
    if to is not None:
        check(component, component.read(), to)
        print(f"{component.shown} can go back from txid {kept[0].txid} to {to}; nothing was changed")
        return 0
    print("\n".join(ways_back(component, kept)))
    return 0


def _rewind(component: Component, to: int, yes: bool) -> int:
    print(f"{component.shown}: the driver is {driver(look(component))}")
    if not yes and not _confirm(f"Shut it out, and undo every batch after txid {to}?"):
        print("nothing was changed", file=sys.stderr)
        return FAILED
    states = rewind_to(component, to)
    print(f"{component.shown} is back at txid {to}, with {', '.join(states) or 'no state'}")
    print(f"  the next start {look(component).next.sentence}")
    return 0


def _confirm(question: str) -> bool:
    try:
        return click.confirm(question)
    except click.Abort:  # nobody is there to answer
        return False
