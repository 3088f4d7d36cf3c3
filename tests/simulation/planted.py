"""Plants each bug in turn, and counts after how many schedules the exhaustive and the random run find it.

A child process loads the mutated source; the file on the disk stays as it is. A bug that neither run finds is a hole.
"""

from __future__ import annotations

import argparse
import importlib
import importlib.machinery
import importlib.util
import json
import logging
import multiprocessing
import re
import sys
import time
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).parent.parent.parent
BUGS = Path(__file__).with_name("planted_bugs.txt")
CELLS = [("opaque", "opaque", False), ("batch", "opaque", True), ("transactional", "transactional", False),
         ("opaque", "partitioned", True), ("append", "transactional", False), ("batch", "partitioned", False),
         ("insert-ignore", "partitioned", True), ("non-transactional", "transactional", False)]  # fmt: skip
"""The cells in which bugs are sought: each kind of state, each kind of spout, both kinds of ledger."""
PAIRS = [("die", "other"), ("late", "deliver", "other"), ("start", "wake"), ("die", "back")]
"""The kinds of faults of which two are tried together, before two of any kind."""


class Plant(NamedTuple):
    """A bug: one text of a file, by another one."""

    name: str
    file: str
    old: str
    new: str


def read_plants() -> list[Plant]:
    plants = []
    for text in BUGS.read_text().removesuffix("\n").split("\n== ")[1:]:
        name, _, rest = text.partition("\nin ")
        file, _, rest = rest.partition("\n<<<\n")
        old, _, new = rest.partition("\n>>>\n")
        plants.append(Plant(name, file, old, new))
    return plants


PLANTS = read_plants()


class _Mutating(importlib.machinery.SourceFileLoader):
    """Loads a module with another text."""

    text = ""

    def get_code(self, fullname: str) -> Any:
        return compile(self.text, self.path, "exec")


class _Finder:
    def __init__(self, plant: Plant) -> None:
        self.path, self.text = ROOT / plant.file, mutated(plant)

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
        spec = importlib.machinery.PathFinder.find_spec(name, path)
        if spec is None or spec.origin is None or Path(spec.origin) != self.path:
            return None
        loader = _Mutating(name, spec.origin)
        loader.text = self.text
        return importlib.util.spec_from_file_location(name, spec.origin, loader=loader)


def mutated(plant: Plant) -> str:
    text = (ROOT / plant.file).read_text()
    if text.count(plant.old) != 1:
        raise ValueError(f"{plant.name}: {plant.file} has {text.count(plant.old)} times {plant.old!r}")
    return text.replace(plant.old, plant.new)


def seek(number: int, exhaustive: int, random: int, faults: int, first: int = 0) -> dict[str, Any]:
    """Run in a child that has loaded nothing of the product: look for one bug. The numbers are the most schedules."""
    sys.meta_path.insert(0, _Finder(PLANTS[number]))  # type: ignore[arg-type]
    logging.disable(logging.CRITICAL)
    began = time.perf_counter()
    of_all = _seek_exhaustively(exhaustive, faults, first)
    drawn = _seek_by_chance(random)
    return {"number": number, "exhaustive": of_all, "random": drawn, "seconds": time.perf_counter() - began}


def _seek_exhaustively(most: int, faults: int, first: int = 0) -> list[Any] | None:
    from .exhaustive import BOUNDS, explore
    from .specification import Cell

    tried = 0
    pairs = [BOUNDS._replace(kinds=frozenset(pair)) for pair in PAIRS]
    for bounds in [BOUNDS._replace(faults=1), *pairs, BOUNDS][first : faults + len(PAIRS) * (faults > 1)]:
        for cell in CELLS:
            if tried >= most:
                return None
            explored = explore(Cell(*cell), bounds, most - tried)
            tried += explored.schedules
            if explored.found is not None:
                return [tried, str(explored.found.cell), explored.found.told]
    return None


def _seek_by_chance(most: int) -> list[Any] | None:
    from .random import draw
    from .schedules import Found
    from .specification import Cell

    for number in range(most):
        found = draw(1, number, [Cell(*cell) for cell in CELLS])
        if isinstance(found, Found):
            return [number + 1, str(found.cell), found.told]
    return None


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--exhaustive", type=int, default=12_000, help="schedules of the exhaustive run")
    arguments.add_argument("--random", type=int, default=4_000, help="schedules of the random run")
    arguments.add_argument("--faults", type=int, default=2)
    arguments.add_argument("--first", type=int, default=0, help="1: begin the exhaustive run with pairs of faults")
    arguments.add_argument("--only", help="a pattern of the names")
    arguments.add_argument("--processes", type=int, default=2)
    arguments.add_argument("--json", help="a file for the results")
    given = arguments.parse_args()
    for each in PLANTS:
        mutated(each)
    wanted = [number for number, plant in enumerate(PLANTS) if given.only is None or re.search(given.only, plant.name)]
    importlib.import_module("pyarrow.compute")  # once, before the fork
    context = multiprocessing.get_context("fork")
    print("| planted bug | file | exhaustive | random |\n|---|---|---|---|", flush=True)
    missed, results = 0, []
    with context.Pool(given.processes, maxtasksperchild=1) as pool:
        limits = given.exhaustive, given.random, given.faults, given.first
        jobs = [pool.apply_async(seek, (number, *limits)) for number in wanted]
        for job in jobs:
            result = job.get()
            results.append(result)
            missed += result["exhaustive"] is None and result["random"] is None
            print(line(result), flush=True)
    if given.json:
        Path(given.json).write_text(json.dumps(results))
    print(f"\n{len(wanted) - missed} of {len(wanted)} found")
    raise SystemExit(missed > 0)


def line(result: dict[str, Any]) -> str:
    plant = PLANTS[result["number"]]
    counts = [f"{result[run][0]:,}" if result[run] else "**no**" for run in ("exhaustive", "random")]
    return f"| {plant.name} | `{plant.file}` | {' | '.join(counts)} |"


if __name__ == "__main__":
    main()
