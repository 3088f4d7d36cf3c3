"""`trident check FILE` or `MODULE:build`: what the store of each state says before a start.

Exit codes: 0 the states can start; 1 a finding would stop the start; 2 the file is wrong.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, Literal

import click

from ..model.plan import Plan, ProcessorNode
from ..topology.user_modules import states_loading as loading
from .display import now
from .failures import guard
from .targets import Target, is_states_file, leaving_no_trace, target_argument

STOPS = 1


@click.command()
@target_argument
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@guard
def check(target: str | None, as_json: bool) -> int:
    """Check the store of each state in a states file or of a topology: what exists, and what would be created.

    Writes nothing. `trident explain` shows what is guaranteed. Without FILE: the trident.yml of this folder, or of the
    nearest one above it.
    """
    return show_looks(_looks_at(target), "list" if as_json else "text")


def _looks_at(target: str | None) -> list[Any]:
    if is_states_file(target):
        return loading().look(target)
    with leaving_no_trace():
        loaded = Target.of(target).load()
    return looks_of(loaded.topology.plan, loaded.hide)


def looks_of(plan: Plan, hide: Callable[[str], str]) -> list[Any]:
    """Return the findings at the store of each state of a topology. Connects, and writes nothing."""
    used = [node.state for node in plan.nodes if isinstance(node, ProcessorNode) and node.state is not None]
    updated = {state.id for _, state in plan.updates()}
    return [
        loading().look_at(state.name, state.factory, hide, queried=state.id not in updated)
        for state in {use.id: use for use in used}.values()
    ]


def show_looks(looks: list[Any], form: Literal["text", "list", "events"]) -> int:
    """Print the findings: as text, as a JSON list, or as a JSON event per line. Returns the exit code."""
    if form == "list":
        print(json.dumps(list(map(as_record, looks)), indent=2))
    for look in looks if form != "list" else ():
        event = {"event": "state", "time": now().isoformat(timespec="milliseconds"), **as_record(look)}
        print(describe_look(look) if form == "text" else json.dumps(event))
    return STOPS if any(look.stops for look in looks) else 0


def describe_look(look: Any) -> str:
    """Return the findings of one state as text."""
    findings = (f"  {finding.level + ':':8} {finding.text}" for finding in look.findings)
    return "\n".join([f"{look.name} ({look.type}): {look.state}", *findings])


def as_record(look: Any) -> dict[str, Any]:
    findings = [{"level": finding.level, "text": finding.text} for finding in look.findings]
    return {"state": look.name, "type": look.type, "stops": look.stops, "findings": findings}
