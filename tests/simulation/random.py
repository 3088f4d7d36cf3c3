"""Schedules that are drawn, beyond the bounds of the exhaustive run: more faults, more drivers, further back.

A schedule that breaks a rule is shrunk to the fewest choices and printed with the command that runs it again.
"""

from __future__ import annotations

import argparse
import logging
import multiprocessing
import shlex
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from random import Random

from .schedules import Found, as_text, from_text, replay, shrink, try_schedule
from .specification import ALL, Cell
from .world import DENIALS, Bounds, Option, World

BOUNDS = Bounds(faults=6, drivers=3, back=(1, 2, 3, 5, 8))
MORE_KINDS = DENIALS | {"fail", "list"}
TURNS = frozenset(["wake", "deliver"])  # what becomes of a driver that sleeps, and of a request that is under way


@dataclass
class Drawing:
    """Draws a schedule, and notes its choices. ``seldom``: of so many points, one is not as usual."""

    random: Random
    seldom: int
    choices: dict[int, int] = field(default_factory=dict)
    at: int = 0

    def __call__(self, world: World, place: str, name: str, options: list[Option]) -> int:
        option = 0 if self.random.randrange(self.seldom) else self.random.randrange(len(options))
        if option:
            self.choices[self.at] = option
        self.at += 1
        return option


def draw(seed: int, number: int, cells: list[Cell] | None = None) -> Found | int:
    """Run a schedule that the seed and its number determine. Returns a digest of its choices if no rule is broken."""
    random = Random(f"{seed}/{number}")
    cell = random.choice(ALL if cells is None else cells)
    drawing = Drawing(random, random.choice((3, 6, 12, 24)))
    kinds = sorted((BOUNDS.kinds | (MORE_KINDS if cells is None else frozenset())) - TURNS)
    bounds = BOUNDS._replace(kinds=TURNS | {*random.sample(kinds, random.randint(1, 4))})  # few kinds meet more often
    world = try_schedule(cell, drawing, bounds)
    if world.violation is not None:
        return Found(cell, drawing.choices, str(world.violation), number, bounds)
    return hash((cell, bounds, tuple(sorted(drawing.choices.items()))))


def draw_until(
    seed: int, first: int, step: int, most: int | None, until: float | None
) -> tuple[int, set[int], Found | None]:
    """Run every ``step``-th schedule. Returns how many, the digests of different ones, and one that breaks a rule."""
    logging.disable(logging.CRITICAL)
    different: set[int] = set()
    for count, number in enumerate(_numbers(first, step)):
        if (most is not None and count >= most) or (until is not None and time.time() > until):
            return count, different, None
        found = draw(seed, number)
        if isinstance(found, Found):
            return count + 1, different, shrink(found)
        different.add(found)
    raise AssertionError


def _numbers(first: int, step: int) -> Iterator[int]:
    while True:
        yield first
        first += step


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--seed", type=int, default=1)
    arguments.add_argument("--seconds", type=float, default=60)
    arguments.add_argument("--processes", type=int, default=2)
    arguments.add_argument("--cell", type=int, help="its number, to run one schedule again")
    arguments.add_argument("--choices", default="", help="of that schedule")
    arguments.add_argument("--kinds", nargs="*", help="of its faults")
    given = arguments.parse_args()
    logging.disable(logging.CRITICAL)
    if given.cell is not None:
        bounds = BOUNDS._replace(kinds=frozenset(given.kinds or BOUNDS.kinds | MORE_KINDS))
        world = replay(ALL[given.cell], from_text(given.choices), bounds)[1]
        print(Found(ALL[given.cell], from_text(given.choices), str(world.violation), 1, bounds))
        raise SystemExit(world.violation is not None)
    raise SystemExit(_run(given.seed, given.seconds, given.processes))


def _run(seed: int, seconds: float, processes: int) -> int:
    until = time.time() + seconds
    with multiprocessing.get_context("fork").Pool(processes) as pool:
        jobs = [(seed, first, processes, None, until) for first in range(processes)]
        results = pool.starmap(draw_until, jobs, chunksize=1)
    count = sum(count for count, _, _ in results)
    different = len(set().union(*(digests for _, digests, _ in results)))
    hourly = f"{different * 3600 / seconds:,.0f} an hour"
    print(f"seed {seed}: {count} schedules in {seconds:.0f} s, {different} different, {hourly}")
    broken = [found for _, _, found in results if found is not None]
    for found in broken:
        print(f"{found}\nagain: {shlex.join(arguments_of(found))}")
    return len(broken)


def arguments_of(found: Found) -> list[str]:
    """Return what runs the schedule again."""
    choices = as_text(found.choices)
    return ["--cell", str(ALL.index(found.cell)), "--choices", choices, "--kinds", *sorted(found.bounds.kinds)]


if __name__ == "__main__":
    main()
