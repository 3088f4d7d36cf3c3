"""Starts driver processes, one ahead of time, and holds them to leaving nothing behind."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any

import psutil
import pyspark

ROOT = Path(__file__).parents[2]
PATIENCE = 120
QUICK_JAVA = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"  # a third less work for a process that lives for seconds


class Driver:
    """One driver process: waits for an order, obeys it, and is gone with all it started."""

    def __init__(self, scratch: Path, settings: dict[str, str], module: str) -> None:
        scratch.mkdir(parents=True, exist_ok=True)
        paths = [str(ROOT), str(ROOT / "tests"), os.environ.get("PYTHONPATH", "")]
        environment = {
            **os.environ, "PYTHONPATH": os.pathsep.join(paths), "TMPDIR": str(scratch),
            "JAVA_TOOL_OPTIONS": QUICK_JAVA, "SPARK_HOME": str(Path(pyspark.__file__).parent),
        }  # fmt: skip
        self._errors = scratch / "stderr"
        with self._errors.open("wb") as errors:
            self.process = subprocess.Popen(
                [sys.executable, "-W", "error", "-m", module, *(f"{k}={v}" for k, v in settings.items())],
                env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors, text=True,
            )  # fmt: skip
        self.told: list[list[Any]] = []
        self.started: set[psutil.Process] = set()

    def obey(self, order: Any) -> None:
        self.until("ready")
        self.obey_again(order)

    def obey_again(self, order: Any) -> None:
        """One more run in the same process, after the last has ended."""
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps(asdict(order)) + "\n")
        self.process.stdin.flush()

    def until(self, *kinds: str) -> list[Any]:
        """Reads what it tells until one of these kinds, which it returns."""
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.told.append(json.loads(line))
            self._look()
            if self.told[-1][0] in kinds:
                return self.told[-1]
        raise AssertionError(f"the driver ended before {kinds}: {self.told[-3:]}\n{self.errors}")

    def wait_killed(self) -> int:
        """Reads to its end; returns the exit code. Java process and workers end by themselves."""
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.told.append(json.loads(line))
            self._look()
            assert self.told[-1][0] not in ("done", "error"), f"it was to be killed: {self.told[-1]}"
        code = self.process.wait(PATIENCE)
        self.nothing_left()
        return code

    def end(self) -> None:
        """Lets it end in order."""
        assert self.process.stdin is not None
        self._look()
        self.process.stdin.close()
        self.wait_killed()

    def kill(self) -> None:
        """Whatever it does, it and all it started are gone afterwards."""
        self._look()
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait(PATIENCE)
        for pipe in (self.process.stdin, self.process.stdout):
            if pipe is not None and not pipe.closed:
                pipe.close()
        self.nothing_left()

    def nothing_left(self) -> None:
        _, alive = psutil.wait_procs(list(self.started), timeout=PATIENCE)
        for process in alive:
            process.kill()
        assert alive == [], "processes of a dead driver went on"

    @property
    def errors(self) -> str:
        return self._errors.read_text()[-3000:]

    def _look(self) -> None:
        try:
            self.started.update(psutil.Process(self.process.pid).children(recursive=True))
        except psutil.NoSuchProcess:
            return


class Drivers:
    """The drivers of a test, which obey the orders of their ``module``. With ``ahead`` the next one makes its session
    while this one works."""

    def __init__(self, folder: Path, settings: dict[str, str] | None = None, module: str = "faults.driver") -> None:
        self.folder = folder
        self.settings = settings or {}
        self.module = module
        self._made: list[Driver] = []
        self._spare: Driver | None = None

    def start(self, order: Any, ahead: bool = False) -> Driver:
        driver = self._spare or self._new()
        self._spare = None
        driver.obey(order)
        if ahead:
            self._spare = self._new()
        return driver

    def _new(self) -> Driver:
        self._made.append(Driver(self.folder / f"scratch-{len(self._made)}", self.settings, self.module))
        return self._made[-1]

    def close(self) -> None:
        for driver in self._made:
            driver.kill()
