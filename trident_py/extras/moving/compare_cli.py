"""The command `trident compare`.

Exit codes: 0 equal; 1 different; 2 not comparable, or the command is wrong.
"""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import click

from ...cli.failures import run_guarded
from ...cli.targets import traceback_option
from ...errors import DefinitionError, TridentError
from ...state import StateType
from .comparison import Comparison, NotComparable, Side, compare
from .divergence import Divergence, Rules, Version
from .source_options import KINDS, find_checkpoint, options_of, source_of, source_options, target_of
from .sources import ValueSource
from .storm_values import Rebase


@click.command("compare")
@click.argument("left")
@click.argument("right")
@click.option("--kind", type=click.Choice(KINDS), help="The kind of Storm's state.")
@source_options
@click.option("--checkpoint", metavar="DIR", help="Take Storm's values as `import state` does for this checkpoint.")
@click.option("--tolerance", type=click.FloatRange(min=0), default=0.0, help="By how much numbers may differ.")
@click.option("--ignore", "ignored", metavar="COLUMN", multiple=True, help="A value column that does not count.")
@click.option("--txids", is_flag=True, help="Compare the txids too, and the values before them.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@traceback_option
def compare_states(
    left: str, right: str, kind: str | None, split: str | None, checkpoint: str | None, accept_under_way: bool,
    tolerance: float, ignored: Sequence[str], txids: bool, as_json: bool, full: bool, **lay: Any,
) -> None:  # fmt: skip
    """Compare two states key by key: FILE:STATE of ours, or one of Storm's (redis://..., a SQLAlchemy URL, a dump)."""

    def body() -> int:
        with _not_comparable():
            sides = _sides_of((left, right), kind, lay, checkpoint, accept_under_way)
            result = compare(*sides, Rules(tolerance, txids), ignored, split)
        print(json.dumps(_as_json(sides, result), indent=2) if as_json else "\n".join(_describe(sides, result)))
        return 0 if result.first is None else 1

    sys.exit(run_guarded(body, full))


@contextmanager
def _not_comparable() -> Iterator[None]:
    """Inside, no error has the exit code of a difference."""
    try:
        yield
    except DefinitionError:
        raise
    except TridentError as error:
        raise NotComparable(str(error)) from error


def _sides_of(
    named: Sequence[str], kind: str | None, lay: Mapping[str, Any], checkpoint: str | None, accept: bool
) -> tuple[Side, Side]:
    """Return both sides. Raises UsageError for options that go with neither of them."""
    storms = [_is_storms(text) for text in named]
    fits = {name for text, is_storms in zip(named, storms, strict=True) if is_storms for name in options_of(text)}
    if wrong := [name for name, given in lay.items() if given and name not in fits]:
        raise click.UsageError(f"--{wrong[0].rstrip('_')} goes with neither side")
    if any(storms) != (kind is not None):
        raise click.UsageError("--kind says how Storm writes the values: name it if, and only if, a side is Storm's")
    if checkpoint and storms.count(True) != 1:
        raise click.UsageError("--checkpoint is for one side of Storm's and one of ours")
    opened = [_open(text, kind, lay) if storm else _open_ours(text) for text, storm in zip(named, storms, strict=True)]
    target = next((each[1].kind for each in opened if isinstance(each, tuple)), None)
    moved = find_checkpoint(checkpoint) if checkpoint else None
    sides = []
    for name, each in zip(("left", "right"), opened, strict=True):
        if isinstance(each, tuple):
            sides.append(Side.of_state(name, *each))
        else:
            rebase = None if moved is None or target is None else Rebase(each.kind, target, moved, accept)
            sides.append(Side.of_source(name, each, lay["value"], rebase))
    return sides[0], sides[1]


def _is_storms(text: str) -> bool:
    """Return whether it names one of Storm's; one of ours is FILE:STATE, and the file a YAML file."""
    return "://" in text or not text.rpartition(":")[0].endswith((".yaml", ".yml"))


def _open(source: str, kind: str | None, lay: Mapping[str, Any]) -> ValueSource:
    own = {name: given if name in options_of(source) else None for name, given in lay.items()}
    return source_of(source, StateType(kind), own, "")


def _open_ours(named: str) -> Any:
    try:
        return target_of(named, "")
    except DefinitionError:
        raise
    except TridentError as error:
        raise NotComparable(f"{named} cannot be read: {error}") from error


def _describe(sides: Sequence[Side], result: Comparison) -> list[str]:
    lines = [f"{side.name}: {side.shown}, {keys:,} keys" for side, keys in
             zip(sides, (result.left, result.right), strict=True)]  # fmt: skip
    lines.append(
        f"  {result.equal:,} equal, {result.different:,} different, {result.only_left:,} only left, "
        f"{result.only_right:,} only right"
    )
    if result.first is None:
        return lines
    both = (("left ", result.first.left), ("right", result.first.right))
    shown = [f"    {name}  {'no such key' if each is None else each.describe()}" for name, each in both]
    return [*lines, f"  first: key {list(result.first.key)!r}{_since(result.first)}", *shown]


def _since(first: Divergence) -> str:
    if first.txid is None:
        return ""
    return f", {'in' if first.exact else 'in or before'} batch {first.txid}"


def _as_json(sides: Sequence[Side], result: Comparison) -> dict[str, Any]:
    first = result.first
    return {
        "result": "equal" if first is None else "different",
        "left": {"where": sides[0].shown, "keys": result.left},
        "right": {"where": sides[1].shown, "keys": result.right},
        "equal": result.equal, "different": result.different,
        "only_left": result.only_left, "only_right": result.only_right,
        "first": None if first is None else {
            "key": _plain(first.key), "txid": first.txid, "exact": first.exact,
            "left": _version_json(first.left), "right": _version_json(first.right),
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
