"""Disturbances of a run, and its recovery."""

from __future__ import annotations

import shutil
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from ...checkpoints.append_log import AppendLogStore
from ...checkpoints.metadata_store import LOG
from ...errors import TridentError
from ..proxy import CuttingProxy, commit_of
from .driver_process import CHECKPOINTS, NAME, Outcome, Run
from .drivers import KILLED, Drivers, Driving, was_hit
from .feed import Feed
from .kill_point import IN_STATE, LINE, FaultCase, KillPoint, Point

CUTS = ("before", "during", "lost", "after")
STARTS = 3
LATE = 0.3


class NotReached(TridentError):
    """A run did not come to the point at which it was to be disturbed."""


class NeverEnds(TridentError):
    """After the disturbance the run does not come to its end."""


@dataclass
class Trial:
    """One case at work: its folder, its store, its drivers. ``notes``: what else a report should say."""

    drivers: Drivers
    case: FaultCase
    feed: Feed
    folder: Path
    url: str
    cluster: str = "local"
    conf: tuple[tuple[str, Any], ...] = ()
    notes: list[str] = field(default_factory=list)
    _starts: int = 0

    def run(self, action: str = "", **more: Any) -> Run:
        """Return the next start. ``action``: what happens at the case's point."""
        self._starts += 1
        point = self.case.point if action else None
        wire = KillPoint(str(self.folder), point=point, action=action or "kill")
        made = Run(str(self.folder), self.url, self.feed, wire, self._starts, self.cluster, self.conf)
        return replace(made, **more)

    def disturb(self, action: str, **more: Any) -> Driving:
        """Return a start that is killed, or fails, at the case's point, and has ended. Raises NotReached."""
        driving = self.drivers.run(self.run(action, **more))
        self._check_hit(driving)
        return driving

    def hold(self, **more: Any) -> Driving:
        """Return a start that stands at the case's point. Raises NotReached."""
        driving = self.drivers.start(self.run("hold", **more))
        if not driving.until_hit():
            driving.wait()
            self._check_hit(driving)
        return driving

    def _check_hit(self, driving: Driving) -> None:
        if was_hit(self.folder):
            return
        outcome = driving.outcome
        ended = f" It ended by an error: {outcome.error}" if outcome is not None and outcome.error else ""
        raise NotReached(
            f"the undisturbed run came to {self.case.point}, this one did not: the same input takes another way "
            f"through the topology in each run.{ended}"
        )

    def to_its_end(self, **more: Any) -> Outcome:
        """Start the topology until it ends without an error. Raises NeverEnds."""
        errors: list[str] = []
        while len(errors) < STARTS:
            outcome = self.drivers.run(self.run(**more)).ending
            if not outcome.error:
                return outcome
            errors.append(outcome.error)
        raise NeverEnds(f"{STARTS} starts after the disturbance all failed, the last one with: {errors[-1]}")


def _kill(trial: Trial) -> Outcome:
    """Kill the process at the point, and start it again."""
    if trial.disturb("kill").wait() != KILLED:
        raise NotReached(f"the run was to die at {trial.case.point}, and did not")
    return trial.to_its_end()


def _fail(trial: Trial) -> Outcome:
    """Raise FailedException at the point: the same process replays the batch."""
    outcome = trial.disturb("fail").ending
    return trial.to_its_end() if outcome.error else outcome


def _other_content(trial: Trial) -> Outcome:
    """Kill; the replay has other content, as an opaque spout's may."""
    trial.disturb("kill", other=trial.case.point.txid, longer=True)
    return trial.to_its_end(longer=True)


def _other_partitions(trial: Trial) -> Outcome:
    """Kill; start again with one partition more everywhere. A refusal in words is an answer, too."""
    trial.disturb("kill")
    outcome = trial.drivers.run(trial.run(wider=True)).ending
    if not outcome.error:
        return outcome
    trial.notes.append(f"other partition counts are refused: {outcome.error}")
    return trial.to_its_end()


def _forget_batch(trial: Trial) -> Outcome:
    """Let the checkpoint lose its last committed batch: it is replayed although every state has it."""
    trial.disturb("kill")
    trial.to_its_end()
    forget(Path(trial.folder) / CHECKPOINTS / NAME)
    return trial.to_its_end()


def _two_drivers(trial: Trial) -> Outcome:
    """Stop a driver at the point, run another one to the end, then let the first continue."""
    zombie = trial.hold()
    trial.to_its_end(read=False)
    zombie.go_on()
    zombie.wait()
    return trial.to_its_end()


def _cut(when: str) -> Callable[[Trial], Outcome]:
    """Cut the connection around the COMMIT that comes after the point."""

    def cut(trial: Trial) -> Outcome:
        with proxy_to(trial.url) as proxy:
            driving = trial.hold(store=proxy.through(trial.url))
            proxy.cut_on(commit_of(trial.url), when)
            driving.go_on()
            driving.wait()
            outcome = driving.ending
            if not proxy.cuts:
                raise NotReached(f"after {trial.case.point} no COMMIT was sent through the URL that build got")
        return trial.to_its_end() if outcome.error else outcome

    return cut


def _late_commit(trial: Trial) -> Outcome:
    """Hold COMMIT in the network; its driver dies. While the next one replays the batch, it arrives."""
    with proxy_to(trial.url) as proxy:
        driving = trial.hold(store=proxy.through(trial.url))
        proxy.cut_on(commit_of(trial.url), "held")
        driving.go_on()
        if not proxy.wait(1):
            raise NotReached(f"after {trial.case.point} no COMMIT was sent through the URL that build got")
        driving.kill()
        driving.wait()
        timer = threading.Timer(LATE, proxy.deliver)
        timer.start()
        trial.to_its_end(read=False)
        timer.join()
        return trial.to_its_end()


@contextmanager
def proxy_to(url: str) -> Iterator[CuttingProxy]:
    from sqlalchemy import make_url

    where = make_url(url)
    with CuttingProxy(str(where.host), int(where.port or (5432 if url.startswith("postgresql") else 3306))) as proxy:
        yield proxy


def forget(checkpoint: Path) -> None:
    """Remove the last committed batch of every component from a checkpoint: it has started and is not committed."""
    for folder in checkpoint.iterdir():
        store = AppendLogStore(folder)
        record = store.get(LOG, 0)
        over = record["over"]
        before = {**over, "txid": over["txid"] - 1, "metadata": None}
        store.put(LOG, 0, {**record, "over": before, "begun": {**over, "order": None}})
        store.close()


@dataclass(frozen=True)
class Fault:
    """A way to disturb. ``steps``: where it makes sense. ``restarts``: memory is lost by it. ``once``: at one point of
    each step and state, not in each partition. ``plain``: txids of values may differ afterwards."""

    disturb: Callable[[Trial], Outcome]
    steps: tuple[str, ...]
    restarts: bool = True
    once: bool = True
    plain: bool = False
    needs_proxy: bool = False
    needs_opaque: bool = False


_DRIVER = ("described", "recorded", "processed", "decided", "publish", "published", "over")
_TASKS = ("emit", *IN_STATE)
_CUT = Fault(_fail, ("written", "publish"), needs_proxy=True)
FAULTS: dict[str, Fault] = {
    "kill": Fault(_kill, ("opened", *_DRIVER, *_TASKS, LINE), once=False),
    "fail": Fault(_fail, ("recorded", "processed", *_TASKS, "publish"), restarts=False, once=False),
    "content": Fault(_other_content, ("emit", *IN_STATE, "processed", "decided", "publish", "published"), plain=True,
                     needs_opaque=True),
    "partitions": Fault(_other_partitions, ("committed", "processed", "published")),
    "forget": Fault(_forget_batch, ("over",)),
    "zombie": Fault(_two_drivers, ("recorded", "emit", "begin", "processed", "publish", "over")),
    **{f"cut-{when}": replace(_CUT, disturb=_cut(when)) for when in CUTS},
    "late": Fault(_late_commit, ("written",), needs_proxy=True),
}  # fmt: skip
"""How a run can be disturbed, by the name in reports."""


def cases(store: str, points: Sequence[Point], *, proxied: bool, opaque: bool, memory_only: bool) -> list[FaultCase]:
    """Return every disturbance at every point where it applies; of the batches that reach a point, the middle one."""
    middle = {}
    for point in points:
        same = [other for other in points if other.is_like(point)]
        middle[replace(point, txid=0)] = same[len(same) // 2]
    made = []
    for name, fault in FAULTS.items():
        if (fault.needs_proxy and not proxied) or (fault.needs_opaque and not opaque):
            continue
        if memory_only and fault.restarts:
            continue
        seen = set()
        for point in middle.values():
            one = (point.step, point.name)
            if point.step in fault.steps and not (fault.once and one in seen):
                seen.add(one)
                made.append(FaultCase(store, name, point))
    return made


def carry_out(trial: Trial) -> Outcome:
    """Disturb the run as the case says. Returns its end. Raises NotReached, NeverEnds."""
    try:
        return FAULTS[trial.case.fault].disturb(trial)
    finally:
        shutil.rmtree(trial.folder, ignore_errors=True)
