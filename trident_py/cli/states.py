"""The commands for states: `trident states`, `trident states --schema`, `trident states check FILE`.

Exit codes of check: 0 the states can start; 1 a finding would stop the start; 2 the file is wrong.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from typing import Any, Literal

import click

from ..entry_points import find
from ..errors import DefinitionError
from ..model.plan import Plan, ProcessorNode
from ..report.guarantees import find_declared_cell
from ..report.guarantees.matrix import cell
from ..topology.user_modules import NotFound
from ..topology.user_modules import states_loading as loading
from .display import now
from .targets import Target, leaving_no_trace

STOPS, WRONG = 1, 2
SPOUTS = ("transactional", "opaque", "non-transactional")


@click.group(invoke_without_command=True)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.option("--schema", is_flag=True, help="Print the JSON schema of the YAML file, for editors.")
@click.pass_context
def states(context: click.Context, as_json: bool, schema: bool) -> None:
    """List the installed types of states, with their guarantees and settings."""
    if context.invoked_subcommand is not None:
        return
    if schema:
        print(json.dumps(loading().schema(), indent=2))
        return
    records = [to_record(installed) for installed in loading().find_types().values()]
    print(json.dumps(records, indent=2) if as_json else "\n\n".join(map(describe_type, records)))


@click.command()
@click.argument("file", metavar="[FILE]", required=False)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def check(file: str | None, as_json: bool) -> None:
    """Check the store of each state in a states file or a topology file: what exists, and what would be created.

    Writes nothing. Without FILE: the trident.yml of this folder, or of the nearest one above it.
    """
    try:
        files = find("topology_files")
        if file is None or (files is not None and files.is_topology(file)):
            with leaving_no_trace():
                loaded = Target.of(file).load()
            looks = looks_of(loaded.topology.plan, loaded.hide)
        else:
            looks = loading().look(file)
    except (DefinitionError, NotFound) as error:
        print(f"error: {error}", file=sys.stderr)
        sys.exit(WRONG)
    sys.exit(show_looks(looks, "list" if as_json else "text"))


def looks_of(plan: Plan, hide: Callable[[str], str]) -> list[Any]:
    """Return the findings at the store of each state of a topology. Connects, and writes nothing."""
    used = [node.state for node in plan.nodes if isinstance(node, ProcessorNode) and node.state is not None]
    return [loading().look_at(state.name, state.factory, hide) for state in {use.id: use for use in used}.values()]


def show_looks(looks: list[Any], form: Literal["text", "list", "events"]) -> int:
    """Print the findings: as text, as a JSON list, or as a JSON event per line. Returns the exit code."""
    if form == "list":
        print(json.dumps(list(map(as_record, looks)), indent=2))
    for look in looks if form != "list" else ():
        print(describe_look(look) if form == "text" else json.dumps(as_event(look)))
    return STOPS if any(look.stops for look in looks) else 0


states.add_command(check)


def to_record(installed: Any) -> dict[str, Any]:
    """Return a type as a JSON object."""
    record = {"type": installed.name, "package": installed.package, "summary": installed.summary}
    if installed.settings is None:
        return record | {"problem": installed.problem}
    try:
        kinds = {kind: cells_of(installed.settings, kind) for kind in installed.settings.kinds}
    except DefinitionError as error:
        return record | {"problem": str(error)}
    return record | {"guarantees": kinds, "settings": settings(installed.settings)}


def cells_of(model: Any, kind: str) -> dict[str, Any]:
    """Return the guarantee with each kind of spout: the type's own, else that of the matrix."""
    declared = model.guarantees()
    return {spout: (find_declared_cell(model, declared, spout) or cell(spout, kind))._asdict() for spout in SPOUTS}


def settings(model: Any) -> list[dict[str, Any]]:
    """Return the keys of a type. Keys of nested mappings are joined with a dot."""
    schema = model.model_json_schema()
    return list(flatten(schema, schema.get("$defs", {}), ""))


def flatten(model: dict[str, Any], definitions: dict[str, Any], before: str) -> Any:
    for name, key in model.get("properties", {}).items():
        nested = definitions.get(key.get("$ref", "").rpartition("/")[2])
        if nested is not None:
            yield from flatten(nested, definitions, f"{before}{name}.")
            continue
        record: dict[str, Any] = {"key": before + name, "required": name in model.get("required", [])}
        yield record | {part: key[part] for part in ("description", "enum", "default") if key.get(part) is not None}


def describe_type(record: dict[str, Any]) -> str:
    """Return a type as text."""
    lines = [f"{record['type']} ({record['package']}): {record['summary']}"]
    if "problem" in record:
        return f"{record['type']} ({record['package']}): cannot be used: {record['problem']}"
    for kind, cells in record["guarantees"].items():
        lines.append(f"  kind {kind}")
        lines += [f"    {spout + ' spout:':25} {promise['guarantee']}" for spout, promise in cells.items()]
    width = max((len(setting["key"]) for setting in record["settings"]), default=0)
    lines += [f"  {setting['key']:{width}}  {sentence(setting)}" for setting in record["settings"]]
    return "\n".join(lines)


def sentence(setting: dict[str, Any]) -> str:
    """Return the description of a key, in one line."""
    choices = " | ".join(setting.get("enum", []))
    default = setting.get("default")
    shown = ", ".join(default) if isinstance(default, list) else default
    end = "required" if setting["required"] else "" if shown is None else f"default: {shown}"
    return ". ".join(part for part in (setting.get("description", ""), choices, end) if part)


def describe_look(look: Any) -> str:
    """Return the findings of one state as text."""
    findings = (f"  {finding.level + ':':8} {finding.text}" for finding in look.findings)
    return "\n".join([f"{look.name} ({look.type}): {look.state}", *findings])


def as_record(look: Any) -> dict[str, Any]:
    findings = [{"level": finding.level, "text": finding.text} for finding in look.findings]
    return {"state": look.name, "type": look.type, "stops": look.stops, "findings": findings}


def as_event(look: Any) -> dict[str, Any]:
    return {"event": "state", "time": now().isoformat(timespec="milliseconds"), **as_record(look)}
