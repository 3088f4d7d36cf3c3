"""`trident states` lists the installed types of states, with their guarantees and settings."""

from __future__ import annotations

import json
from typing import Any

import click

from ...cli.check import check
from ...errors import DefinitionError
from ...report.guarantees import find_declared_cell
from ...report.guarantees.matrix import cell
from ...topology.user_modules import states_loading as loading

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
