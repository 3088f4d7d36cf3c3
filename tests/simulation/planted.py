"""Plants each bug in turn, and counts after how many schedules the exhaustive and the random run find it.

A child process loads the mutated source; the file on the disk stays as it is. A bug that the simulated world has no
place for names the test that must fail with it. A bug that nothing finds is a hole.
"""

from __future__ import annotations

import argparse
import importlib
import importlib.machinery
import importlib.util
import json
import logging
import multiprocessing
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).parent.parent.parent
BUGS = Path(__file__).with_name("planted_bugs.txt")
CELLS = [("opaque", "opaque", False), ("batch", "opaque", True), ("transactional", "transactional", False),
         ("opaque", "partitioned", True), ("append", "transactional", False), ("batch", "partitioned", False),
         ("insert-ignore", "partitioned", True), ("non-transactional", "transactional", False),
         ("sequence", "opaque", False), ("sequence with gaps", "opaque", True), ("window before batch", "opaque", True),
         ("window before opaque", "transactional", False),
         ("window by time before append", "transactional", False)]  # fmt: skip
"""The cells in which bugs are sought: each kind of state, each kind of spout, both kinds of ledger."""
CELLS_BY_NAME = {
    "queried": [("queried opaque", "opaque", False)],
    "in place": [("opaque in place", "opaque", False), ("transactional in place", "transactional", False)],
}
"""Those of bugs whose names begin so."""
PAIRS = [("die", "other"), ("lost", "other"), ("late", "deliver", "other"), ("start", "wake"), ("die", "back"),
         ("die", "refuse"), ("die", "lost"), ("log back", "other")]  # fmt: skip
"""The kinds of faults of which two are tried together, before two of any kind."""
TWO = "batch beside opaque"
AIMED = [
    (("opaque", "partitioned", False), ("list", "lost"), 2),
    (("opaque", "sparse", False), ("back",), 1), (("batch", "opaque", False), ("refuse", "deny"), 1),
    ((TWO, "opaque", False), ("die", "lost", "late", "other", "deliver", "refuse", "deny"), 1),
    (("transactional", "transactional", False), ("log back", "other"), 2),
    (("transactional", "transactional", False), ("lost", "other"), 2),
    (("transactional", "transactional", False), ("die", "other"), 2),
    (("opaque", "opaque", False), ("lost", "other"), 2), (("opaque", "opaque", True), ("late", "deliver", "other"), 2),
    (("batch", "opaque", False), ("die", "refuse"), 2), (("opaque", "opaque", True), ("start", "wake"), 2),
    ((TWO, "opaque", False), ("die", "lost"), 2),
    (("append", "transactional", False), ("fail",), 1),
    (("window by time before append", "transactional", False), ("jump", "lost"), 1),
]  # fmt: skip
"""Cells with the kinds of faults, and how many of them, that a bug in a rule for these needs."""


END = ("write", "end the batch in the ledger")
SCRIPTS: list[Any] = [
    (("opaque", "opaque", True), [("task", "commit partition 0", "late"), ("spout", "end of 1", "other"),
                                  (*END, "go"), ("log", "log log 0", "deliver")]),
    (("opaque", "opaque", False), [("task", "commit partition 1", "die"), ("spout", "end of 1", "other"),
                                   (*END, "back")]),
    (("transactional", "transactional", False), [
        ("task", "commit partition 0", "die"), ("read", "ask the ledger", "log back"), ("spout", "end of 1", "other")]),
    (("append", "transactional", False), [
        ("log", "log component 0", "power"), ("read", "read the row", "log back 3"),
        ("write", "note the owner", "log back 5")]),
    (("opaque", "opaque", True), [
        (*END, "late"), ("spout", "end of 1", "other"), ("write", "begin the batch in the ledger", "deliver")]),
    (("batch", "opaque", False), [(*END, "late"), (*END, "refuse"), ("log", "log decided 1", "deliver")]),
    (("batch", "opaque", False), [("log", "log decided 1", "die"), (*END, "refuse")]),
    (("opaque", "transactional", True), [
        ("task", "commit partition 0", "twice"), (*END, "go"), ("task", "commit partition 0", "back 1"),
        ("task", "commit partition 1", "deliver")]),
    (("transactional", "transactional", False), [
        ("task", "commit partition 1", "late"), ("task", "commit partition 0", "back 3")]),
]  # fmt: skip
"""Schedules of so many choices that the exhaustive run does not reach them soon."""


class Plant(NamedTuple):
    """A bug: one text of a file, by another one. ``test``: the one that must fail, if it is not sought by schedules."""

    name: str
    file: str
    test: str
    old: str
    new: str


def read_plants() -> list[Plant]:
    plants = []
    for text in BUGS.read_text().removesuffix("\n").split("\n== ")[1:]:
        name, _, rest = text.partition("\nin ")
        place, _, rest = rest.partition("\n<<<\n")
        file, _, test = place.partition("\nby ")
        old, _, new = rest.partition("\n>>>\n")
        plants.append(Plant(name, file, test, old, new))
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


CELLS_OF: list[Any] = []
"""Those in which the bug at hand is sought: of a bug in a kind of states, the cells of that kind."""


def _cells_for(plant: Plant) -> list[Any]:
    kind, colon, _ = plant.name.partition(":")
    if not colon:
        return CELLS
    return CELLS_BY_NAME.get(kind) or [cell for cell in CELLS if cell[0].startswith(kind)]


def seek(number: int, exhaustive: int, random: int, faults: int, first: int = 0) -> dict[str, Any]:
    """Run in a child that has loaded nothing of the product: look for one bug. The numbers are the most schedules."""
    began, test = time.perf_counter(), PLANTS[number].test
    if test:
        failed = find_failing_test(number, [test])
        return {"number": number, "test": failed, "seconds": time.perf_counter() - began}
    plant(number)
    logging.disable(logging.CRITICAL)
    CELLS_OF[:] = _cells_for(PLANTS[number])
    of_all = _seek_exhaustively(exhaustive, faults, first)
    drawn = _seek_by_chance(random)
    return {"number": number, "exhaustive": of_all, "random": drawn, "seconds": time.perf_counter() - began}


SUITES = [
    "tests/test_recovery.py", "tests/test_publishing.py", "tests/spouts/test_partitioned.py",
    "tests/spouts/test_coordination.py", "tests/states/test_append.py", "tests/states/test_batch.py",
    "tests/states/test_sql_map.py", "tests/states/test_sequence.py", "tests/windowing",
    "tests/faults/test_gone_back.py", "tests/faults/test_lineage.py", "tests/faults/test_restored_stores.py",
    "tests/faults/test_wrong_stores.py", "tests/faults/test_every_state.py", "tests/faults/test_recovery.py",
    "tests/faults/test_file_state.py",
]  # fmt: skip
"""Real suites, the quickest first, of which those tests run that need no server and no Spark."""
NEAR = {
    "states/sql": ["tests/states/test_sequence.py"],
    "trident_py/checkpoints": ["tests/checkpoints"],
    "trident_py/engine": ["tests/test_local.py", "tests/test_transactions.py", "tests/test_parallel_commit.py"],
    "trident_py/extras/txid": ["tests/extras/txid"],
    "trident_py/spouts": ["tests/spouts"],
    "trident_py/state": ["tests/states/test_state_maps.py", "tests/states/test_own_updaters.py"],
    "trident_py/windowing": ["tests/windowing"],
}
"""Those that run first for a bug in a folder."""
NO_SERVER = "not (mariadb or mysql or postgresql or redis or kafka)"
PYTEST = [
    sys.executable, "-m", "pytest", "-q", "-x", "--assert=plain", "--timeout", "120", "-p", "no:cacheprovider",
]  # fmt: skip
"""With asserts of its own, pytest loads all modules of who brings a plugin for it, which we do: without the bug."""
STARTING = "import os, simulation.planted as planted\nplanted.plant(int(os.environ['TRIDENT_PLANTED']))\n"


def plant(number: int) -> None:
    """Let this process load the mutated source."""
    sys.meta_path.insert(0, _Finder(PLANTS[number]))


def seek_in_suites(number: int) -> str | None:
    """Return the first test of the real suites that fails with the bug."""
    near = [suite for folder, first in NEAR.items() if PLANTS[number].file.startswith(folder) for suite in first]
    suites = [*near, *(suite for suite in SUITES if suite not in near)]
    return find_failing_test(number, ["-m", "not spark and not whole", "-k", NO_SERVER, *suites])


def find_failing_test(number: int, chosen: list[str]) -> str | None:
    """Return the first of these tests that fails with the bug, which each of its processes loads as it starts."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "sitecustomize.py").write_text(STARTING)
        path = os.pathsep.join([folder, str(ROOT), str(ROOT / "tests")])
        environment = os.environ | {"PYTHONPATH": path, "TRIDENT_PLANTED": str(number)}
        ran = subprocess.run([*PYTEST, *chosen], cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    failed = re.search(r"^FAILED (\S+)", ran.stdout, re.MULTILINE)
    return failed[1] if failed else None


STAGES = ["start", "one", "written", "aimed", "pairs", "two"]


def _seek_exhaustively(most: int, faults: int, first: int = 0) -> list[Any] | None:
    for stage in STAGES[first : 4 if faults < 2 else len(STAGES)]:
        found = _seek_in(stage, most)
        if found is not None:
            return found
    return None


def _seek_in(stage: str, most: int) -> list[Any] | None:
    """Try one stage. The number that is returned counts from its first schedule, or from that of what is aimed."""
    from .exhaustive import explore

    if stage == "written":
        return _seek_as_written()
    tried = 0
    for cell, bounds in _tries(stage):
        if tried >= most:
            break
        try:
            explored = explore(cell, bounds, most - tried)
        except AssertionError as error:  # with the bug, a run never leaves what this beginning needs
            return [tried + 1, str(cell), str(error), stage]
        tried += explored.schedules
        if explored.found is not None:
            count = explored.schedules if stage == "aimed" else tried
            return [count, str(explored.found.cell), explored.found.told, stage]
    return None


def _seek_as_written() -> list[Any] | None:
    from .schedules import MANY, Written, try_schedule
    from .specification import Cell
    from .world import DENIALS

    for number, (cell, lines) in enumerate(SCRIPTS, 1):
        world = try_schedule(Cell(*cell), Written(lines), MANY._replace(kinds=MANY.kinds | DENIALS))
        if world.violation is not None:
            return [number, str(Cell(*cell)), str(world.violation), "written"]
    return None


def _tries(stage: str) -> Iterator[tuple[Any, Any]]:
    """Yield the cells and bounds of a stage: the beginnings without a fault, one fault of any kind, what is aimed, two
    faults of pairs of kinds, two of any kind."""
    from .exhaustive import BOUNDS
    from .specification import OTHER_BEGINNINGS, TAKEN_BACK, Cell

    if stage == "aimed":
        for cell, kinds, count in AIMED:
            yield Cell(*cell), BOUNDS._replace(faults=count, kinds=frozenset(kinds))
    elif stage == "pairs":
        for kinds in PAIRS:
            yield from ((Cell(*cell), BOUNDS._replace(kinds=frozenset(kinds))) for cell in CELLS_OF)
    else:
        bounds = BOUNDS._replace(faults={"start": 0, "one": 1}.get(stage, 2))
        cells = [*OTHER_BEGINNINGS, *TAKEN_BACK] if stage == "start" else [Cell(*it) for it in CELLS_OF]
        yield from ((cell, bounds) for cell in cells)


def _seek_by_chance(most: int) -> list[Any] | None:
    from .random import draw
    from .schedules import Found
    from .specification import Cell

    for number in range(most):
        found = draw(1, number, [Cell(*cell) for cell in CELLS_OF])
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
    arguments.add_argument("--real", type=int, help="seek every so many-th bug in the real suites instead")
    arguments.add_argument("--json", help="a file for the results")
    given = arguments.parse_args()
    for each in PLANTS:
        mutated(each)
    wanted = [number for number, plant in enumerate(PLANTS) if given.only is None or re.search(given.only, plant.name)]
    if given.real:
        for number in wanted[:: given.real]:
            print(f"| {PLANTS[number].name} | {seek_in_suites(number) or '**no**'} |", flush=True)
        return
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
            missed += not any(result.get(way) for way in ("exhaustive", "random", "test"))
            print(line(result), flush=True)
    if given.json:
        Path(given.json).write_text(json.dumps(results))
    print(f"\n{len(wanted) - missed} of {len(wanted)} found")
    raise SystemExit(missed > 0)


def line(result: dict[str, Any]) -> str:
    plant = PLANTS[result["number"]]
    if plant.test:
        return f"| {plant.name} | `{plant.file}` | {'`' + plant.test + '`' if result['test'] else '**no**'} | – |"
    found, drawn = result["exhaustive"], result["random"]
    stage = f" ({found[3]})" if found and found[3] != "one" else ""
    counts = f"{found[0]:,}{stage}" if found else "**no**", f"{drawn[0]:,}" if drawn else "**no**"
    return f"| {plant.name} | `{plant.file}` | {' | '.join(counts)} |"


if __name__ == "__main__":
    main()
