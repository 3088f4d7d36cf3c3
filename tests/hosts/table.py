"""The published tables of the stories on hosts, from the records of `rounds`: python -m hosts.table FILE..."""

from __future__ import annotations

import json
import sys
from collections import Counter, defaultdict
from pathlib import Path
from statistics import median
from typing import Any

from .kinds import KINDS
from .orders import SHAPES

STATES = tuple(dict.fromkeys(name for names in SHAPES.values() for name in names))
BETWEEN = "any"


def tables(stories: list[dict[str, Any]]) -> str:
    """By kind: how many, how long; and by kind and state: how many. Markdown."""
    return "\n\n".join([_summary(stories), _by_kind(stories), _by_state(stories)])


def _summary(stories: list[dict[str, Any]]) -> str:
    faults = sum(len(story["happened"]) for story in stories)
    lost, doubled = (sum(sum(one[at] for one in story["differences"]) for story in stories) for at in (1, 2))
    seeds = sorted({story["seed"] for story in stories})
    runs = sum(story["drivers"] for story in stories)
    replays = sum(story["replays"] for story in stories)
    return (
        f"{len(stories)} stories (seeds {_ranges(seeds)}), {faults} faults, {runs} drivers, {replays} replays of a "
        f"batch or a task: **lost {lost}, doubled {doubled}**."
    )


def _by_kind(stories: list[dict[str, Any]]) -> str:
    rows = [
        "| fault | faults | lost | doubled | seconds to the next committed batch: median | worst |",
        "|---|---|---|---|---|---|",
    ]
    for kind in KINDS:
        told = [(story, one) for story in stories for one in story["happened"] if one["kind"] == kind]
        if told:
            seconds = [one["seconds"] for _, one in told if one["seconds"] >= 0] or [0.0]
            hurt = {story["seed"]: story["differences"] for story, _ in told}.values()
            lost, doubled = (sum(each[at] for one in hurt for each in one) for at in (1, 2))
            rows.append(f"| {kind} | {len(told)} | {lost} | {doubled} | {median(seconds):.1f} | {max(seconds):.1f} |")
    return "\n".join(rows)


def _by_state(stories: list[dict[str, Any]]) -> str:
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    for story in stories:
        for one in story["happened"]:
            counts[one["kind"]][one["state"] or BETWEEN] += 1
    columns = [*STATES, BETWEEN]
    heading = " | ".join(["fault", *(f"`{name}`" for name in STATES), BETWEEN])
    rows = [f"| {heading} |", "|---" * (len(columns) + 1) + "|"]
    for kind in KINDS:
        if kind in counts:
            rows.append(f"| {kind} | " + " | ".join(str(counts[kind][name] or "") for name in columns) + " |")
    total: Counter[str] = sum(counts.values(), Counter())
    rows.append("| **all** | " + " | ".join(str(total[name]) for name in columns) + " |")
    return "\n".join(rows)


def _ranges(seeds: list[int]) -> str:
    """1, 2, 3, 7 -> 1-3, 7"""
    found: list[list[int]] = []
    for seed in seeds:
        if found and found[-1][-1] == seed - 1:
            found[-1][1:] = [seed]
        else:
            found.append([seed])
    return ", ".join("-".join(map(str, pair)) for pair in found)


if __name__ == "__main__":
    print(tables([json.loads(line) for name in sys.argv[1:] for line in Path(name).read_text().splitlines()]))
