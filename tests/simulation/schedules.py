"""A schedule as text, its replay, and the fewest choices that show the same."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from .specification import Cell, judge_end
from .topology import run_schedule
from .world import Bounds, Choose, Option, Violation, World

Choices = Mapping[int, int]
"""At which point which option was taken. At all other points, the request was answered as usual."""


class Found(NamedTuple):
    """A schedule that breaks a rule. ``after``: how many were tried."""

    cell: Cell
    choices: Choices
    told: str
    after: int
    bounds: Bounds

    def __str__(self) -> str:
        return f"{self.cell}: {self.told}\n  choices: {as_text(self.choices)}\n" + "\n".join(
            f"  driver {driver}, {place} ({name}): {' '.join(map(str, option))}"
            for driver, place, name, option in replay(self.cell, self.choices, self.bounds)[1].taken
        )


def as_text(choices: Choices) -> str:
    return " ".join(f"{at}:{option}" for at, option in sorted(choices.items())) or "none"


def from_text(text: str) -> dict[int, int]:
    return {int(at): int(option) for at, _, option in (each.partition(":") for each in text.split() if ":" in each)}


@dataclass
class Replaying:
    """Takes the given choices, and counts the points."""

    choices: Choices
    widths: list[int] = field(default_factory=list)

    def __call__(self, world: World, place: str, name: str, options: list[Option]) -> int:
        at = len(self.widths)
        self.widths.append(len(options))
        return min(self.choices.get(at, 0), len(options) - 1)


@dataclass
class Written:
    """Takes the choices that are written, in this order: at which place and request, which option. ``option``: its
    kind, perhaps with its number; "go" only waits for the request."""

    lines: Sequence[tuple[str, str, str]]
    at: int = 0

    def __call__(self, world: World, place: str, name: str, options: list[Option]) -> int:
        if self.at == len(self.lines) or (place, name) != self.lines[self.at][:2]:
            return 0
        kind = self.lines[self.at][2]
        names = [(option[0], f"{option[0]} {option[1]}") for option in options]
        chosen = next((at for at, name in enumerate(names) if kind in name and (at or kind == "go")), None)
        self.at += chosen is not None
        return chosen or 0


def try_schedule(cell: Cell, choose: Choose, bounds: Bounds) -> World:
    """Run a schedule and judge its end too."""
    world = run_schedule(cell, choose, bounds)
    if world.violation is None and not world.cut:
        try:
            judge_end(cell, world)
        except Violation as error:
            world.violation = error
    return world


MANY = Bounds(faults=50, drivers=4, back=(1, 2, 3, 5, 8))


def replay(cell: Cell, choices: Choices, bounds: Bounds) -> tuple[Replaying, World]:
    choosing = Replaying(choices)
    return choosing, try_schedule(cell, choosing, bounds)


def shrink(found: Found, breaks: Callable[[World], bool] = lambda world: world.violation is not None) -> Found:
    """Leave out choices as long as a rule stays broken."""
    choices, told = dict(found.choices), found.told
    shrunk = True
    while shrunk:
        shrunk = False
        for at in sorted(choices, reverse=True):
            fewer = {other: option for other, option in choices.items() if other != at}
            world = replay(found.cell, fewer, found.bounds)[1]
            if breaks(world):
                choices, told, shrunk = fewer, str(world.violation), True
                break
    return found._replace(choices=choices, told=told)
