"""Random faults over every state and store, as many as you like: make faults SEED=7 ROUNDS=100 STORES=sqlite,kafka

Rounds run side by side, each with the seed that it prints. Each appends a JSON record to a file, of which
`faults.records` makes the table in docs/reliability.md. Exit code 1: something was lost or doubled, or a driver has
ended as none may, or a point at which a driver was to die was never reached. One round again: ROUNDS=1 SEED=its seed.

STORES=spark: each round is a run on Spark whose batches change between driver and jobs (`mixed`).
"""

from __future__ import annotations

import json
import multiprocessing
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import click

from .homes import STORES, home
from .mixed import on_spark
from .rounds import Round

CHUNK = 25
"""Rounds that one process runs on one store before it looks for others."""
MEMORY = Path("/dev/shm")
"""Where the files are: a killed process has lost nothing that it has written to a file there."""
Job = tuple[str, range]


@click.command()
@click.option("--seed", default=1, show_default=True, help="The first round's seed; the next has the next number.")
@click.option("--rounds", default=20, show_default=True, help="How many rounds on each store.")
@click.option("--stores", default=",".join(STORES), show_default=True, help="Which stores; also spark.")
@click.option("--processes", default=os.cpu_count(), show_default=True, help="How many rounds run side by side.")
@click.option("--records", default="build/faults.jsonl", show_default=True, help="Where the records are appended.")
def main(seed: int, rounds: int, stores: str, processes: int, records: str) -> None:
    """Random faults; a record of each round, and what was lost, doubled or never reached."""
    names = stores.split(",")
    if "spark" in names:
        names.remove("spark")
        print(on_spark(seed, rounds), flush=True)
    jobs = [
        (name, range(first, min(first + CHUNK, seed + rounds)))
        for first in range(seed, seed + rounds, CHUNK) for name in names
    ]  # fmt: skip
    Path(records).parent.mkdir(parents=True, exist_ok=True)
    made = []
    for record in side_by_side(jobs, processes):
        with Path(records).open("a") as file:
            file.write(json.dumps(record) + "\n")
        print(line(record), flush=True)
        made.append(record)
    bad = [record for record in made if record["lost"] or record["doubled"] or record["wrong"]]
    missing = unreached(made)
    for record in bad:
        print(f"WRONG: {again(record)}: {record['wrong'] or line(record)}", file=sys.stderr)
    for each in missing:
        print(f"NEVER REACHED: {each}", file=sys.stderr)
    sys.exit(1 if bad or missing else 0)


def side_by_side(jobs: Iterable[Job], processes: int) -> Iterator[dict[str, Any]]:
    """The records of all rounds, as they end. Processes that start processes of their own: no pool may."""
    context = multiprocessing.get_context("spawn")
    todo, done = context.Queue(), context.Queue()
    for job in (*jobs, *[None] * processes):
        todo.put(job)
    workers = [context.Process(target=work, args=(todo, done)) for _ in range(processes)]
    for worker in workers:
        worker.start()
    left = processes
    while left:
        record = done.get()
        if record is None:
            left -= 1
        else:
            yield record
    for worker in workers:
        worker.join()


def work(todo: Any, done: Any) -> None:
    """In a process of its own: one chunk of rounds after the other, each with a server of its own."""
    of = {"commit": commit_of_code(), "date": time.strftime("%Y-%m-%d")}
    main_module = sys.modules["__main__"]
    main_module.__spec__, main_module.__file__ = None, None  # or each forked driver would import it again
    try:
        while (job := todo.get()) is not None:
            store, seeds = job
            with home(store) as place:
                for seed in seeds:
                    done.put({**one(place, seed), **of})
    finally:
        done.put(None)


def one(place: Any, seed: int, batches: int | None = None) -> dict[str, Any]:
    with tempfile.TemporaryDirectory(prefix="faults-", dir=MEMORY if MEMORY.is_dir() else None) as folder:
        return Round(place, seed, batches).run(Path(folder))


def commit_of_code() -> str:
    """The commit of this checkout; with + if it is not what was committed."""
    here = Path(__file__).parent

    def git(*arguments: str) -> str:
        return subprocess.run(["git", "-C", here, *arguments], capture_output=True, text=True).stdout.strip()

    return git("rev-parse", "--short=9", "HEAD") + ("+" if git("status", "--porcelain", "-uno") else "")


def unreached(records: list[dict[str, Any]]) -> list[str]:
    """Points at which a driver was to die, and kinds of faults, whose turn it was and that no round has reached."""
    turns: set[tuple] = set()
    reached: set[tuple] = set()
    for record in records:
        store, turn = record["store"], record["turn"]
        turns |= {(store, *turn["point"]), (store, turn["kind"])}
        for fault in record["faults"]:
            reached |= {(store, fault["state"], fault["step"]), (store, fault["kind"])} if fault["reached"] else set()
    return sorted(": ".join(each) for each in turns - reached)


def line(record: dict[str, Any]) -> str:
    reached = sum(fault["reached"] for fault in record["faults"])
    return (
        f"{record['store']}, seed {record['seed']}: {reached} faults, {record['replays']} replays, "
        f"{record['rows']} rows checked: lost {record['lost']}, doubled {record['doubled']}, "
        f"undecided {record['undecided']}, {record['seconds']} s"
    )


def again(record: dict[str, Any]) -> str:
    return f"make faults STORES={record['store']} SEED={record['seed']} ROUNDS=1"


if __name__ == "__main__":
    main()
