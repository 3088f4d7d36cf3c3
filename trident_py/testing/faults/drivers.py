"""The test's side of the driver processes: starts them, waits for them, ends them."""

from __future__ import annotations

import ast
import pickle
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any, Self

import cloudpickle

from ...errors import DefinitionError, TridentError
from ...model.pickling import by_value
from . import fork_server
from .driver_process import Build, Outcome, Readings, Run
from .kill_point import GO, HIT

PATIENCE = 180.0
KILLED = -signal.SIGKILL


class Drivers:
    """Starts the drivers of one ``build``. A context manager; all its processes end with it."""

    def __init__(self, folder: Path, build: Build | str, readings: Readings) -> None:
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True)
        self._build, self._readings = build, readings
        self._changed = threading.Condition()
        self._told: list[list[str]] = []
        self._count = 0

    def __enter__(self) -> Self:
        self._open([])
        return self

    def _open(self, shipped: list[ModuleType]) -> None:
        served = self.folder / "served"
        served.write_bytes(_pickle_start(self._build, self._readings, shipped))
        self.log = self.folder / "log"
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-m", fork_server.__name__, str(served)],
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, text=True,
            )  # fmt: skip
        threading.Thread(target=self._listen, args=(self._process,), daemon=True).start()
        first = self._wait(lambda: self._told[0] if self._told else None)
        if first[0] == "ready":
            return
        modules = _modules(self._build, self._readings)
        self.close()
        self._told = []
        if "ModuleNotFoundError" in " ".join(first) and not shipped and modules:
            self._open(modules)
            return
        said = ast.literal_eval(first[1]) if len(first) > 1 else self.log.read_text()[-2000:]
        raise DefinitionError(f"build cannot be loaded in a process of its own:\n{said}")

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.close()
        try:
            self._process.wait(10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._process.stdout.close()

    def start(self, run: Run) -> Driving:
        """Start a driver and return at once."""
        self._count += 1
        file = self.folder / f"run-{self._count}"
        file.write_bytes(cloudpickle.dumps(run))
        with self._changed:
            before = sum(words[0] == "started" for words in self._told)
        self._order("start", file)
        started = self._wait(lambda: [w for w in self._told if w[0] == "started"][before:] or None)
        return Driving(self, run, int(started[0][1]))

    def run(self, run: Run, warm: bool = False) -> Driving:
        """Return a driver from its start to its end. ``warm``: later ones have imported what it has imported."""
        driving = self.start(run)
        driving.wait()
        if warm and (modules := self.folder / f"run-{self._count}.modules").exists():
            self._order("warm", modules)
        return driving

    def _order(self, order: str, argument: object) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(f"{order} {argument}\n")
        self._process.stdin.flush()

    def _listen(self, process: Any) -> None:
        for line in process.stdout:
            with self._changed:
                self._told.append(line.rstrip("\n").split(" ", 1) if line.startswith("broken") else line.split())
                self._changed.notify_all()
        with self._changed:
            self._told.append(["gone"])
            self._changed.notify_all()

    def _wait(self, found: Callable[[], Any], seconds: float = PATIENCE) -> Any:
        with self._changed:
            if not self._changed.wait_for(lambda: found() is not None or ["gone"] in self._told, seconds):
                raise TridentError(f"a driver process did not answer in {seconds:g} s:\n{self.log.read_text()[-2000:]}")
            answer = found()
        if answer is None:
            raise TridentError(f"the process that starts drivers has ended:\n{self.log.read_text()[-2000:]}")
        return answer


class Driving:
    """One driver process."""

    def __init__(self, drivers: Drivers, run: Run, pid: int) -> None:
        self.drivers, self.run, self.pid = drivers, run, pid

    def wait(self, seconds: float = PATIENCE) -> int:
        """Wait for its end; returns its exit code. A process that does not end is killed, and TridentError raised."""
        pid = str(self.pid)

        def find_end() -> Any:
            told = [words for words in self.drivers._told if words[:2] == ["ended", pid]]
            return told[-1] if told else None

        try:
            return int(self.drivers._wait(find_end, seconds)[2])
        except TridentError:
            self.kill()
            raise

    def kill(self) -> None:
        self.drivers._order("kill", self.pid)

    @property
    def outcome(self) -> Outcome | None:
        """How the run has ended; None if its process was killed."""
        if not self.run.outcome.exists():
            return None
        outcome: Outcome = pickle.loads(self.run.outcome.read_bytes())  # noqa: S301  from a driver process of the test
        return outcome

    @property
    def ending(self) -> Outcome:
        """As `outcome`; of a killed process, too."""
        return self.outcome or Outcome("the process died")

    def until_hit(self, seconds: float = PATIENCE) -> bool:
        """Wait until the run is held at its point. False if it has ended before."""
        until = time.monotonic() + seconds
        hit = Path(self.run.folder) / HIT
        while not hit.exists():
            if self.run.outcome.exists():
                return hit.exists()
            if time.monotonic() > until:
                raise TridentError(f"the run neither ended nor reached {self.run.tripwire.point} in {seconds:g} s")
            time.sleep(0.002)
        return True

    def go_on(self) -> None:
        (Path(self.run.folder) / GO).touch()


def was_hit(folder: Path) -> bool:
    return (folder / HIT).exists()


def _pickle_start(build: Build | str, readings: Readings, modules: list[ModuleType]) -> bytes:
    path = [str(Path(entry or ".").resolve()) for entry in sys.path]
    with by_value(modules):
        made = build if isinstance(build, str) else cloudpickle.dumps(build)
        return pickle.dumps({"build": made, "readings": cloudpickle.dumps(dict(readings)), "path": path})


def _modules(build: Build | str, readings: Readings) -> list[ModuleType]:
    """Return the modules of these functions, which another process may not find: pytest can import a test from its
    file."""
    names = {function.__module__ for function in (build, *readings.values()) if not isinstance(function, str)}
    return [sys.modules[name] for name in sorted(names) if name in sys.modules]
