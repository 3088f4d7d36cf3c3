"""Every schedule at small bounds. A state that was met before, with as many faults left, is not followed again."""

from __future__ import annotations

import argparse
import gc
import json
import logging
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any

from .schedules import Choices, Found, as_text, try_schedule
from .specification import ALL, Cell
from .world import Bounds, Option, World

BOUNDS = Bounds(
    faults=2, drivers=2,
    kinds=frozenset(["die", "power", "lost", "late", "twice", "start", "wake", "back", "log back", "deliver", "other"]),
    reduced=True,
)  # fmt: skip


KEPT = Path(__file__).with_name("exhausted.jsonl")
"""What cells have shown, a line each, so that they can be run in pieces."""


@dataclass
class Exploring:
    """Takes the choices of a schedule, then goes on as usual until a state is known."""

    choices: Choices
    known: dict[int, int]
    widths: list[int] = field(default_factory=list)

    def __call__(self, world: World, place: str, name: str, options: list[Option]) -> int:
        at = len(self.widths)
        last = max(self.choices, default=-1)
        if at > last:
            state = hash((world.digest(), place, name))
            if self.known.get(state, -1) >= world.left:
                world.stop()
                return 0
            self.known[state] = world.left
        self.widths.append(len(options))
        return self.choices.get(at, 0)


@dataclass
class Explored:
    """What one cell has shown. ``ends``: what is there at the end of a schedule, as numbers."""

    cell: Cell
    schedules: int = 0
    states: int = 0
    done: bool = False
    found: Found | None = None
    ends: set[int] = field(default_factory=set)

    def __str__(self) -> str:
        ended = "all" if self.done else "not all"
        return f"{self.cell}: {self.schedules} schedules, {self.states} states, {ended}" + (
            f"\nBROKEN: {self.found}" if self.found else ""
        )


def explore(cell: Cell, bounds: Bounds = BOUNDS, most: int | None = None) -> Explored:
    """Run all schedules of a cell, those of fewest faults first, until a rule is broken. ``most``: how many."""
    explored, known = Explored(cell), {}  # type: ignore[var-annotated]
    for choices, widths in islice(_schedules(bounds), most):
        choosing = Exploring(choices, known)
        world = try_schedule(cell, choosing, bounds)
        widths += choosing.widths
        explored.schedules += 1
        if not world.cut:
            explored.ends.add(hash((*(store.digest for store in world.stores), str(world.refused))))
        if world.violation is not None:
            explored.found = Found(cell, choices, str(world.violation), explored.schedules, bounds)
            break
    else:
        explored.done = most is None or explored.schedules < most
    explored.states = len(known)
    return explored


def _schedules(bounds: Bounds) -> Iterator[tuple[Choices, list[int]]]:
    """Yield each schedule as its choices, and a list for the caller to put in how many options each point had."""
    level: list[tuple[dict[int, int], list[int]]] = [({}, [])]
    yield level[0]
    while level:
        following: list[tuple[dict[int, int], list[int]]] = []
        for choices, widths in level:
            for at in range(max(choices, default=-1) + 1, len(widths)):
                for option in range(1, widths[at]):
                    following.append(({**choices, at: option}, []))
                    yield following[-1]
        level = [(choices, widths) for choices, widths in following if widths]


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--faults", type=int, default=2)
    arguments.add_argument("--cell", type=int, nargs="*", help="numbers; those whose results are kept are left out")
    arguments.add_argument("--most", type=int, help="schedules of each cell; the results are not kept")
    arguments.add_argument("--table", action="store_true", help="print the results that are kept, and run nothing")
    given = arguments.parse_args()
    if given.table:
        print("\n".join(map(_row, _kept())))
        return
    logging.disable(logging.CRITICAL)
    gc.freeze()
    gc.set_threshold(50_000)
    over = {(line["cell"], line["faults"]) for line in _kept()}
    for number, cell in enumerate(ALL):
        if (given.cell is None or number in given.cell) and (str(cell), given.faults) not in over:
            line = json.dumps(_run(number, cell, given.faults, given.most))
            print(line, flush=True)
            if given.most is None:
                with KEPT.open("a") as file:
                    file.write(line + "\n")


def _kept() -> list[dict[str, Any]]:
    return [json.loads(line) for line in KEPT.read_text().splitlines()]


def _run(number: int, cell: Cell, faults: int, most: int | None) -> dict[str, Any]:
    """Run a cell, and return what it has shown."""
    commit = subprocess.run(["git", "describe", "--always", "--dirty"], capture_output=True, text=True, check=True)
    began = time.process_time()
    explored = explore(cell, BOUNDS._replace(faults=faults), most)
    found = explored.found
    return {
        "number": number, "cell": str(cell), "faults": faults, "commit": commit.stdout.strip(),
        "schedules": explored.schedules, "states": explored.states, "seconds": round(time.process_time() - began),
        "all": explored.done, "broken": found and f"{found.told}; choices {as_text(found.choices)}",
    }  # fmt: skip


def _row(line: dict[str, Any]) -> str:
    counts = " | ".join(f"{line[name]:,}" for name in ("schedules", "states", "seconds"))
    return f"| {line['number']}: {line['cell']} | {line['faults']} | {counts} | {line['broken'] or 'no'} |"


if __name__ == "__main__":
    main()
