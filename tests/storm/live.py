"""Runs fresh random cases through real Storm Trident and through trident_py and prints those that differ.

    python -m tests.storm.live 1000 some-seed [--theirs | --shapes] [--spark] [--skip N]

from the project's root. The cases are those of `everything`; with --shapes those of `wider`, with --theirs the oracle's
own. --skip leaves out the first N of the seed. Needs the oracle in ../shared/oracle or further up. What Storm cannot do
at all is left out (`unanswered`), what differs on purpose is excused (`replays`): both are counted, by their reason.
"""

from __future__ import annotations

import json
import logging
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from . import everything, oracle, replays, wider
from .compare import diff
from .interpreter import on_spark, run

Case = dict[str, Any]
AT_ONCE = {False: 500, True: 20}
"""Cases that the oracle is asked at once, in process and on Spark; then a line says how far the run is."""


class Tally:
    """What a run of cases has found."""

    def __init__(self) -> None:
        self.compared = 0
        self.about: Counter[str] = Counter()
        self.left_out: Counter[str] = Counter()
        self.excused: Counter[str] = Counter()
        self.wrong: dict[str, dict[str, Any]] = {}

    def lines(self) -> Iterator[str]:
        yield f"{self.compared} compared: {len(self.wrong)} differ"
        for title, counted in (("with", self.about), ("left out", self.left_out), ("excused in part", self.excused)):
            yield from (f"   {title} {what}: {count}" for what, count in sorted(counted.items()))


class Ran(NamedTuple):
    """A case that was run twice over: there and here."""

    case: Case
    storm: dict[str, Any]
    ours: dict[str, Any]


def own_shapes(count: int, seed: str, skip: int = 0) -> list[Case]:
    return [wider.make(seed, number) for number in range(skip, skip + count)]


def all_operations(count: int, seed: str, skip: int = 0) -> list[Case]:
    return [everything.make(seed, number) for number in range(skip, skip + count)]


def unanswered(storm: dict[str, Any]) -> str | None:
    """Storm waits for ever, or cannot build what it lets define: both are in docs/differences.md."""
    error = storm["error"] or {"class": "", "message": ""}
    if error["class"] == "timeout":
        return "Storm waits for ever"
    return "no such vertex in graph (Storm cannot build it)" if error["message"] == "no such vertex in graph" else None


def differing(
    count: int, seed: str, cluster: Any, folder: Path, draw: Callable[..., list[Case]] = all_operations, skip: int = 0
) -> Tally:
    """Compares so many cases of the seed."""
    tally, at_once = Tally(), AT_ONCE[on_spark(cluster)]
    for done in range(0, count, at_once):
        some = min(at_once, count - done)
        _some(draw(some, seed, skip + done), cluster, folder, tally)
        print(f"{time.strftime('%H:%M:%S')} {done + some}: {next(tally.lines())}", file=sys.stderr, flush=True)
    return tally


def _some(cases: list[Case], cluster: Any, folder: Path, tally: Tally) -> None:
    disturbed = []
    for case, storm in zip(cases, oracle.ask(cases, folder), strict=True):
        if reason := unanswered(storm):
            tally.left_out[reason] += 1
            continue
        tally.compared += 1
        tally.about.update(subjects(case))
        ran = Ran(case, storm, run(case, cluster))
        if replays.disturbed(*ran):
            disturbed.append(ran)
        else:
            _note(tally, ran, diff(*ran))
    calm = [replays.calm(ran.case, ran.ours) for ran in disturbed]
    for ran, storm in zip(disturbed, oracle.ask(calm, folder) if calm else (), strict=True):
        tally.excused.update(replays.Parts(*ran).excused())
        _note(tally, ran, replays.differs(ran.case, ran.storm, storm, ran.ours))


def _note(tally: Tally, ran: Ran, found: dict[str, Any]) -> None:
    if replays.asks_what_failed(ran.case, ran.ours, found):
        tally.excused[replays.ASKED] += 1
    elif found:
        print(f"{ran.case['name']} differs in {', '.join(found)}", file=sys.stderr, flush=True)
        errors = ran.storm["error"], ran.ours["error"]
        tally.wrong[ran.case["name"]] = {"case": ran.case, "differs": found, "errors": errors}


def subjects(case: Case) -> Iterator[str]:
    """What the case is about, of what a run counts."""
    window = any(step["op"] in replays.WINDOWS for step in case["steps"])
    asked, fails = bool(case.get("drpc")), bool(case.get("fail"))
    spread = any(spout.get("partitions", 1) > 1 for spout in case["spouts"].values())
    found = {"windows": window, "DRPC requests": asked, "failures": fails, "several partitions": spread}
    yield from (name for name, there in found.items() if there)
    if window and asked and fails:
        yield "windows, DRPC requests and failures in one"


def main(arguments: list[str]) -> int:
    if "--spark" in arguments:
        from trident_py import SparkCluster as Cluster
    else:
        from trident_py import LocalCluster as Cluster
    logging.getLogger("trident_py").setLevel(logging.ERROR)
    skip = int(arguments.pop(arguments.index("--skip") + 1)) if "--skip" in arguments else 0
    count, seed = [argument for argument in arguments if not argument.startswith("--")]
    draw = own_shapes if "--shapes" in arguments else oracle.fresh if "--theirs" in arguments else all_operations
    with tempfile.TemporaryDirectory() as folder, Cluster() as cluster:
        tally = differing(int(count), seed, cluster, Path(folder), draw, skip)
    for name, found in tally.wrong.items():
        print(name, json.dumps(found["case"]))
        print("   errors in Storm and here:", *found["errors"])
        for part, (storm, ours) in found["differs"].items():
            print(f"   {part}\n      Storm {json.dumps(storm)[:700]}\n      here  {json.dumps(ours)[:700]}")
    print(f"seed {seed!r}, {count} cases:", *tally.lines(), sep="\n")
    return 1 if tally.wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
