"""Random stories on hosts of their own, for as long as you want: python -m hosts.rounds --seed 1 --stories 30

Each story is a fresh database and a run in which hosts die, are cut off, slowed and stopped. The seed draws the same
faults again. Exit code 1: something was lost or doubled, or a run hung.
"""

from __future__ import annotations

import json
import random
import sys
import time
from collections.abc import Callable
from math import inf
from pathlib import Path

import click

from .kinds import PROFILES, drawn
from .lab import Lab
from .orders import SHAPES, order_of
from .story import Hung, Story, Told

BATCHES = 24
TURNS = (
    "crowded", "one try", "speculation", "plain", "allocation", "decommission", "crowded", "plain",
)  # fmt: skip


def play(
    lab: Lab, seed: int, shape: str, store: str, profile: str, only: tuple[str, ...] = (), last: int = BATCHES
) -> Told:
    """One story. Raises Hung."""
    draw = random.Random(f"hosts/{seed}")
    states = tuple(sorted(draw.sample(SHAPES[shape], 3), key=SHAPES[shape].index))
    order = order_of(lab, f"story{seed}", shape, store, seed, last, states, profile == "hdfs")
    planned = drawn(draw, last, order.states, profile, only)
    order = order.standing(one.place for one in planned if one.place is not None)
    told = Told(order.name, seed, store, shape, profile, last)
    return Story(lab, order, planned, told).run()


@click.command()
@click.option("--seed", default=1, show_default=True)
@click.option("--stories", default=10, show_default=True, help="At most so many.")
@click.option("--minutes", default=inf, help="No story begins later.")
@click.option("--stores", default="mariadb,postgresql", show_default=True)
@click.option("--shapes", default=",".join(SHAPES), show_default=True, help="Which topologies (orders.py).")
@click.option("--batches", default=BATCHES, show_default=True, help="How many batches a story has.")
@click.option("--profile", type=click.Choice([*PROFILES]), help="Only stories with these settings of Spark.")
@click.option("--kind", "kinds", multiple=True, help="Only these kinds of faults.")
@click.option("--records", type=click.Path(path_type=Path), default=Path("build/host-faults.jsonl"), show_default=True)
def main(
    seed: int, stories: int, minutes: float, stores: str, shapes: str, batches: int, profile: str | None,
    kinds: tuple[str, ...], records: Path,
) -> None:  # fmt: skip
    """Runs stories and writes what came of each as a line of JSON."""
    records.parent.mkdir(parents=True, exist_ok=True)
    names, forms, until = stores.split(","), shapes.split(","), time.monotonic() + 60 * minutes
    left, bad = list(range(seed, seed + stories)), 0
    while left and time.monotonic() < until:
        with Lab([*names, *(["kafka"] if {*forms} & {"kafka", "opaque"} else [])]) as lab:
            fine = True
            while fine and left and time.monotonic() < until:
                number = left.pop(0)
                store, shape = names[number % len(names)], forms[number // len(names) % len(forms)]
                under = profile or TURNS[number % len(TURNS)]
                fine = _told(lambda at=(number, shape, store, under): play(lab, *at, kinds, batches), number, records)
                bad += not fine
    sys.exit(1 if bad else 0)


def _told(story: Callable[[], Told], number: int, records: Path) -> bool:
    """Plays a story and writes what came of it. False if something was lost or doubled, or if it hung."""
    try:
        told = story()
    except Hung as hung:
        left = records.with_name(f"hung-{number}.txt")
        left.write_text(str(hung))
        print(f"seed {number} HUNG: {str(hung)[:300]}\nevidence: {left}", file=sys.stderr, flush=True)
        return False
    with records.open("a") as file:
        file.write(json.dumps(told.record()) + "\n")
    print(_line(told), flush=True)
    return not told.differences


def _line(told: Told) -> str:
    waits = sorted(one.seconds for one in told.happened)
    worst = f", worst {waits[-1]:.1f} s" if waits else ""
    return (
        f"seed {told.seed} {told.shape} {told.store} {told.profile}: {len(told.happened)} faults{worst}, "
        f"{told.replays} replays, {told.drivers} drivers, {told.seconds:.0f} s, "
        f"different: {told.differences}, errors: {told.errors}"
    )


if __name__ == "__main__":
    main()
