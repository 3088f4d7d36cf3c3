"""The kinds of faults of a campaign: where each may happen, and what happens there.

A kind that is not done by the driver itself holds it at a step of a batch, does its work, and lets it go on or kills
it. What a fault leaves behind for the next start, as a store that must be refused, stands in ``round.ahead``.
"""

from __future__ import annotations

import os
import shutil
import signal
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from trident_py.checkpoints.append_log import JOURNAL

from .forks import Driver, run
from .held import TOPICS
from .inputs import write
from .steps import STEPS

if TYPE_CHECKING:
    from .homes import Home
    from .rounds import Round

BETWEEN = ("begin", "committed", "publish", "published")
"""Steps of a state at which no transaction is open."""
AT_COMMIT = (*STEPS[:4], "publish")
OF_THE_DRIVER = ("described", "recorded", "over")
LATE = 0.1
COORDINATORS = ("coordinator", "marks")
"""Of a partition's transactions, and of the group that holds its mark."""
START = "start"
"""No step of a batch: the server dies before the driver starts, and comes back meanwhile."""
AWAY = {"server killed", "server killed before a start", "leader killed", "coordinator killed", "broker frozen"}
"""Kinds after which a server may be away for longer than a start waits."""


CUTS = ("before", "during", "lost", "after")
UNREACHABLE = {*AWAY, "disk full", "connection cut", "COMMIT comes late", *(f"cut at COMMIT, {when}" for when in CUTS)}
"""Kinds after which a request may fail."""


@dataclass(frozen=True)
class Kind:
    """``action``: see `steps.Fault`. ``there``: whether a store has it. ``act``: what the test does. ``ends``: it is
    the last one of a start. ``waits``: it comes about when the client next sends a COMMIT.
    ``last``: the driver lives on behind it, and nothing else may happen to it."""

    there: Callable[[Home], bool]
    steps: tuple[str, ...] = (*STEPS, *OF_THE_DRIVER)
    action: str = "ask"
    act: Callable[[Round, Any], None] | None = None
    ends: bool = True
    waits: bool = False
    last: bool = False
    weight: int = 1


def _everywhere(home: Home) -> bool:
    return True


def _served(home: Home) -> bool:
    return home.server is not None


def _alone(home: Home) -> bool:
    return _served(home) and home.kind != "brokers"


def _replicated(home: Home) -> bool:
    return home.kind == "brokers"


def _kill_in_the_log(round: Round, driver: Driver) -> None:
    """The log loses its last lines: what a disk costs that has said they are safe, and has not written them."""
    driver.close()
    files = list((round.folder / "checkpoints").glob(f"*/*/{JOURNAL}"))
    kept = {file: file.read_bytes() for file in files}
    for file, content in kept.items():
        lines = content.splitlines(keepends=True)
        gone = round.draw.randrange(1, 6)
        file.write_bytes(b"".join(lines[: max(1, len(lines) - gone)]))

    def put_back() -> None:
        for file, content in kept.items():
            file.write_bytes(content)

    round.may_be_refused("the log", put_back)


def _log_goes_back(round: Round, driver: Driver) -> None:
    """The checkpoint is the one of an earlier start."""
    driver.close()
    now = round.folder / "checkpoints"
    newest = now.rename(round.folder / f"newest-{round.starts}")
    earlier = round.draw.choice(round.copies)
    if earlier.exists():
        shutil.copytree(earlier, now)

    def put_back() -> None:
        shutil.rmtree(now, ignore_errors=True)
        newest.rename(now)

    round.may_be_refused("the log", put_back)


def _crossed(round: Round, driver: Driver) -> None:
    """The log of a run on another store, and this store."""
    driver.close()
    folder = round.folder / "other"
    if not folder.exists():
        folder.mkdir()
        url = round.stack.enter_context(round.home.place(folder))
        other = replace(round.start_of(()), url=url, folder=folder, last=2)
        write(other.input, folder, url)
        told = run(other).told[-1]
        assert told[0] == "done", told
    held = round.contents()
    round.is_refused(run(replace(round.start_of(()), checkpoints="other/checkpoints")), held)


def _backup(round: Round, driver: Driver) -> None:
    round.backup = round.home.dump(round.url, round.folder / f"backup-{round.starts}")  # type: ignore[attr-defined]
    driver.go_on()


def _store_goes_back(round: Round, driver: Driver) -> None:
    """Under a running driver, which must say so and write nothing; so must the next one."""
    home: Any = round.home
    assert round.backup is not None
    newest = home.dump(round.url, round.folder / f"newest-{round.starts}")
    home.restore(round.url, round.backup)
    held, round.gone = round.contents(), len(driver.told)
    driver.go_on()
    driver.next()
    if driver.told[-1][:2] != ("error", "StateError") or "gone back" not in driver.told[-1][2]:
        raise AssertionError(f"the store has gone back, and its driver says {driver.told[-1]}")
    round.is_refused(run(round.start_of(())), held)
    home.restore(round.url, newest)


def _stop(round: Round, driver: Driver) -> None:
    """It stands still while others go on, and wakes up later."""
    assert driver.process.pid is not None
    os.kill(driver.process.pid, signal.SIGSTOP)
    round.zombies.append(driver)


def _pause(round: Round, driver: Driver) -> None:
    """It stands still for a moment."""
    assert driver.process.pid is not None
    os.kill(driver.process.pid, signal.SIGSTOP)
    driver.go_on()
    os.kill(driver.process.pid, signal.SIGCONT)


def _cut(round: Round, driver: Driver) -> None:
    assert round.home.proxy is not None
    round.home.proxy.cut()
    driver.go_on()


def _cut_at_commit(when: str) -> Callable[[Round, Driver], None]:
    def cut(round: Round, driver: Driver) -> None:
        assert round.home.proxy is not None
        round.home.proxy.cut_on(round.home.commit, when)
        driver.go_on()

    return cut


def _late_commit(round: Round, driver: Driver) -> None:
    """The next COMMIT stays in the network; it arrives after its client has given the connection up."""
    proxy = round.home.proxy
    assert proxy is not None
    cuts = proxy.cuts + 1
    proxy.cut_on(round.home.commit, "held")

    def deliver() -> None:
        if proxy.wait(cuts):
            time.sleep(LATE)
            proxy.deliver()

    threading.Thread(target=deliver, daemon=True).start()
    driver.go_on()


def _kill_server(round: Round, driver: Driver) -> None:
    round.home.crash(round.draw.random() * 0.3)
    driver.go_on()


def _kill_server_before(round: Round, _: None) -> None:
    round.home.crash(round.draw.random() * 2)


def _refuse_writes(round: Round, driver: Driver) -> None:
    round.home.refuse_writes(round.draw.random() * 0.5)
    driver.go_on()


def _kill_broker(*places: str) -> Callable[[Round, Driver], None]:
    def kill(round: Round, driver: Driver) -> None:
        round.home.crash(round.draw.random() * 0.3, _broker(round, places))
        driver.go_on()

    return kill


def _freeze_broker(round: Round, driver: Driver) -> None:
    """For a moment, or until the others have given it up."""
    round.home.freeze(round.draw.choice((0.5, 5.0)), _broker(round, ("leader", *COORDINATORS)))
    driver.go_on()


def _broker(round: Round, places: Sequence[str]) -> Any:
    home: Any = round.home
    state, partition = round.draw.choice(round.drawn.states), round.draw.randrange(min(2, round.drawn.partitions))
    return home.broker(round.draw.choice(places), round.url, state, partition)


def _commits(home: Home) -> bool:
    return home.commit is not None


KINDS: dict[str, Kind] = {
    "driver killed": Kind(_everywhere, action="die", weight=12),
    "killed at a request": Kind(
        lambda home: home.kind not in ("redis", *TOPICS), ("statement",), action="die", weight=4
    ),
    "stopped and woken later": Kind(_everywhere, (*BETWEEN, *OF_THE_DRIVER), "rest", _stop, last=True, weight=2),
    "stopped for a moment": Kind(_everywhere, act=_pause, ends=False),
    "clock jumps": Kind(_everywhere, action="jump", ends=False),
    "disk full": Kind(lambda home: home.kind in ("sqlite", "files"), action="full"),
    "log goes back": Kind(_everywhere, act=_log_goes_back),
    "log loses its end": Kind(_everywhere, act=_kill_in_the_log),
    "log of another run": Kind(_everywhere, (*BETWEEN, *OF_THE_DRIVER), act=_crossed),
    "store goes back": Kind(lambda home: home.copies, ("over",), act=_store_goes_back, last=True),
    "connection cut": Kind(_served, act=_cut, ends=False, weight=3),
    **{
        f"cut at COMMIT, {when}": Kind(_commits, AT_COMMIT, act=_cut_at_commit(when), ends=False, waits=True)
        for when in CUTS
    },
    "COMMIT comes late": Kind(_commits, AT_COMMIT, act=_late_commit, ends=False, waits=True),
    "server killed": Kind(_alone, act=_kill_server, ends=False),
    "server killed before a start": Kind(_alone, (START,), act=_kill_server_before, ends=False),
    "store read-only": Kind(lambda home: home.refuses_writes, act=_refuse_writes, ends=False),
    "leader killed": Kind(_replicated, act=_kill_broker("leader"), ends=False, weight=2),
    "coordinator killed": Kind(_replicated, act=_kill_broker(*COORDINATORS), ends=False, weight=2),
    "broker frozen": Kind(_replicated, act=_freeze_broker, ends=False, weight=2),
}
BACKUP = Kind(_everywhere, ("over",), act=_backup, ends=False)
"""What must be done before a store can go back; it is no fault."""


def kinds(home: Home) -> list[str]:
    return [name for name, kind in KINDS.items() if kind.there(home)]


def earlier(folder: Path, number: int) -> Path:
    """A copy of the checkpoint as it is now; that of a topology that has never run is no folder."""
    copy = folder / f"log-{number}"
    if (folder / "checkpoints").exists():
        shutil.copytree(folder / "checkpoints", copy)
    return copy
