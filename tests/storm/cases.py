"""The recorded cases, each with what real Storm Trident did with it.

141 made by hand and 1,000 random ones came with the oracle; 1,442 go systematically through operations,
aggregators, state kinds, failures and arity slips; 600 random ones (`shapes`) are about the order of updates and
queries of states in a batch, 400 (`wider`) draw every operation, 25 (`drpc`) are about requests, 203 (`everything`)
have windows, and requests while batches are replayed. Those at which Storm hangs are left out. Of an error the results
tell the processor and the code that raised it too, read off the stack (not in `everything`).
"""

from __future__ import annotations

import gzip
import json
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from trident_py.tuples import declare

DATA = Path(__file__).parents[1] / "data" / "storm"


class Recorded(NamedTuple):
    case: dict[str, Any]
    result: dict[str, Any]

    @property
    def name(self) -> str:
        return self.case["name"]


def _lines(name: str) -> list[Any]:
    with gzip.open(DATA / name, "rt") as lines:
        return [json.loads(line) for line in lines]


@cache
def handmade() -> list[Recorded]:
    return [Recorded(entry["case"], entry["result"]) for entry in _lines("handmade.jsonl.gz")]


@cache
def systematic() -> list[Recorded]:
    return [Recorded(entry["case"], entry["result"]) for entry in _lines("systematic.jsonl.gz")]


@cache
def shapes() -> list[Recorded]:
    return [Recorded(entry["case"], entry["result"]) for entry in _lines("shapes.jsonl.gz")]


@cache
def wider() -> list[Recorded]:
    return [Recorded(entry["case"], entry["result"]) for entry in _lines("wider.jsonl.gz")]


@cache
def drpc() -> list[Recorded]:
    """Requests: queries over several partitions, branches, joins, aggregates, several functions, what is refused."""
    return [Recorded(entry["case"], entry["result"]) for entry in _lines("drpc.jsonl.gz")]


STRANGE = ("", " ", "first name", "a.b", " k", "birth date", "Größe", "x,y", "`", "*")
"""Names of fields that Storm takes as any others."""


def renamed(recorded: Recorded) -> Recorded:
    """The case with strange names for its fields, which change nothing of what Storm gives."""
    new: dict[str, str] = {}

    def name(old: str) -> str:
        return new.setdefault(old, STRANGE[len(new)] if len(new) < len(STRANGE) else f"{old} {len(new)}.")

    def walk(part: Any, key: str = "") -> Any:
        if isinstance(part, dict):
            return {key: walk(value, key) for key, value in part.items()}
        if isinstance(part, list):
            return [walk(value, key) for value in part]
        if part is None or key not in ("fields", "out", "inFields", "joinFields", "sort"):
            return part
        return name(part) if key == "sort" else declare(name(part))

    spouts = {
        spout: {**given, "fields": walk(given["fields"], "fields")} for spout, given in recorded.case["spouts"].items()
    }
    case = {**recorded.case, "spouts": spouts, "steps": walk(recorded.case["steps"])}
    sinks = {sink: list(map(name, fields)) for sink, fields in recorded.result["sinkFields"].items()}
    return Recorded(case, {**recorded.result, "sinkFields": sinks})


class Everything(NamedTuple):
    """``undisturbed``: what Storm gave without the failures of a case with windows, else None."""

    case: dict[str, Any]
    result: dict[str, Any]
    undisturbed: dict[str, Any] | None


@cache
def everything() -> list[Everything]:
    return [Everything(**entry) for entry in _lines("everything.jsonl.gz")]


@cache
def random() -> list[Recorded]:
    pairs = zip(_lines("cases.jsonl.gz"), _lines("results.jsonl.gz"), strict=True)
    return [Recorded(case, result) for case, result in pairs]
