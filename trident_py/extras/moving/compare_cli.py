"""The command `trident compare`.

Exit codes: 0 equal; 1 different; 2 not comparable, or the command is wrong.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

import click

from ...cli.failures import guard
from ...cli.targets import name_option, settings_option, traceback_option
from .comparison import Comparison, Side
from .divergence import Divergence, Version
from .divergent_batch import BatchOptions, ShownTuples
from .sides import ComparisonOptions, side_options


@click.command("compare")
@click.argument("left")
@click.argument("right")
@side_options
@click.option(
    "--checkpoint",
    metavar="DIR",
    help="Take Storm's values as `import state` does for this checkpoint; with --topology: that of its run.",
)
@click.option("--topology", metavar="FILE|MODULE:build", help="Show the tuples of the batch in which a key diverged.")
@name_option
@settings_option
@click.option("--tuples", type=click.IntRange(min=1), default=10, show_default=True, help="So many of them.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@traceback_option
@guard
def compare_states(as_json: bool, topology: str | None, tuples: int, **options: Any) -> int:
    """Compare two sides key by key: FILE:STATE of ours, one of Storm's states (redis://..., a SQLAlchemy URL, a dump),
    or rows: a table, CSV, JSON lines, Parquet."""
    checkpoint = options.pop("checkpoint") if topology else None
    batch = BatchOptions(topology, checkpoint, options.pop("name"), options.pop("settings"), tuples)
    compared = ComparisonOptions.of(options)
    sides, result = compared.compare()
    shown = batch.show(compared, sides, result.first) if result.first else None
    if as_json:
        print(json.dumps(_as_json(sides, result, shown), indent=2))
    else:
        print("\n".join([*_describe(sides, result), *_describe_tuples(result.first, shown)]))
    return 0 if result.first is None else 1


def _describe(sides: Sequence[Side], result: Comparison) -> list[str]:
    lines = [f"{side.name}: {side.shown}, {keys:,} keys" for side, keys in
             zip(sides, (result.left, result.right), strict=True)]  # fmt: skip
    lines.append(
        f"  {result.equal:,} equal, {result.different:,} different, {result.only_left:,} only left, "
        f"{result.only_right:,} only right"
    )
    if result.first is None:
        return lines
    if result.only_null:
        lines.append(f"  {result.only_null:,} on one side only with the value null, no key in a compacted topic")
    both = (("left ", result.first.left), ("right", result.first.right))
    shown = [f"    {name}  {'no such key' if each is None else each.describe()}" for name, each in both]
    return [*lines, f"  first: key {list(result.first.key)!r}{_since(result.first)}", *shown]


def _describe_tuples(first: Divergence | None, batch: ShownTuples | None) -> list[str]:
    if first is None or batch is None:
        return []
    if batch.count is None:
        return [f"  the tuples of its batch are not known: {batch.unknown}"]
    chosen = batch.unknown or "those of the key:"
    more = ["    and more (--tuples)"] if batch.more else []
    told = [f"    its source tells: {text}" for text in batch.told]
    tuples = f"{batch.count:,} tuple{'' if batch.count == 1 else 's'}"
    unsure = "" if first.exact else " (an earlier one, not shown, may be it)"
    head = f"  batch {first.txid} of {batch.component}{unsure}: {tuples}; {chosen}"
    return [head, *(f"    {text}" for text in batch.shown), *more, *told]


def _since(first: Divergence) -> str:
    if first.txid is None:
        return ""
    return f", {'in' if first.exact else 'in or before'} batch {first.txid}"


def _as_json(sides: Sequence[Side], result: Comparison, batch: ShownTuples | None) -> dict[str, Any]:
    first = result.first
    return {
        "result": "equal" if first is None else "different",
        "left": {"where": sides[0].shown, "keys": result.left},
        "right": {"where": sides[1].shown, "keys": result.right},
        "equal": result.equal, "different": result.different,
        "only_left": result.only_left, "only_right": result.only_right, "only_null": result.only_null,
        "first": None if first is None else {
            "key": _plain(first.key), "txid": first.txid, "exact": first.exact,
            "left": _version_json(first.left), "right": _version_json(first.right),
            "tuples": batch and asdict(batch),
        },
    }  # fmt: skip


def _version_json(version: Version | None) -> Any:
    if version is None:
        return None
    before = {"before": _plain(version.before)} if version.remembers else {}
    return {"value": _plain(version.value), "txid": version.txid, **before}


def _plain(value: Any) -> Any:
    """Return the value for JSON; as a text if JSON does not have it."""
    if isinstance(value, Mapping):
        return {str(name): _plain(part) for name, part in value.items()}
    if isinstance(value, (list, tuple)):
        return list(map(_plain, value))
    known = value is None or isinstance(value, (str, int)) or (isinstance(value, float) and math.isfinite(value))
    return value if known else str(value)
