"""The real cluster of the probe's tests: two workers, of which one can be spoilt."""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pymysql

from testbed.hosts import Host
from testbed.spark_hosts import SparkHosts
from trident_py.errors import TridentError

from . import app

ROOT = Path(__file__).parents[3]
SITE = Path(pymysql.__file__).parents[1]
FAKETIME = next(Path("/usr/lib").glob("*/faketime/libfaketime.so.1"), None)
PORT = 9099
SECONDS = 180
PYTHON = f"""#!/bin/sh
if [ -e /tmp/clock ] && [ -e {FAKETIME} ]; then
    export LD_PRELOAD={FAKETIME} FAKETIME_TIMESTAMP_FILE=/tmp/clock FAKETIME_NO_CACHE=1
fi
if [ -e /tmp/custom ]; then export PYTHONPATH=/tmp/custom:$PYTHONPATH; fi
exec {sys.executable} "$@"
"""


class ProbedHosts:
    """Spark on hosts, a server's host ``db``, and an application that checks what it is asked.

    A Python worker runs one task only, so that it sees what its host has now.
    """

    def __init__(self, reuse: str = "false") -> None:
        jobs, quiet = {"spark.trident.inline.max.tuples": "0"}, {"spark.log.level": "ERROR"}
        self.hosts = SparkHosts(settings={**jobs, **quiet, "spark.python.worker.reuse": reuse}).start()
        self.db = self.hosts.network.host("db")
        self.db.run([sys.executable, "-I", "-m", "http.server", str(PORT), "--directory", "/mnt"],
                    stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)  # fmt: skip
        for host in (self.hosts.driver, *self.hosts.workers):
            host.path("/tmp/python").write_text(PYTHON)
            host.path("/tmp/python").chmod(0o755)
        self.bad.path("/tmp/clock").write_text("+0s")
        pythons = {"PYSPARK_PYTHON": "/tmp/python", "PYSPARK_DRIVER_PYTHON": sys.executable}
        self.output = self.hosts.driver.path("/tmp/output")
        with self.output.open("wb") as output:
            self.running = self.hosts.submit(
                str(Path(app.__file__)), environment={**pythons, "PYTHONPATH": str(ROOT)}, stdout=output, stderr=output
            )

    def ask(self, **asked: Any) -> dict[str, Any]:
        """The application's answer, with "error" as lines."""
        ask, answer = self.hosts.driver.path(app.ASK), self.hosts.driver.path(app.ANSWER)
        ask.with_suffix(".new").write_text(json.dumps(asked))
        ask.with_suffix(".new").rename(ask)
        end = time.monotonic() + SECONDS
        while not answer.exists():
            if self.running.poll() is not None or time.monotonic() > end:
                raise TridentError(f"the application does not answer:\n{self.output.read_text()[-3000:]}")
            time.sleep(0.02)
        told: dict[str, Any] = json.loads(answer.read_text())
        answer.unlink()
        seconds = re.compile(r"\d+ s ")  # how far a clock is off
        assert seconds.sub("", told.get("submitted", "")) == seconds.sub("", told["error"])
        return told | {"error": told["error"].splitlines()}

    @property
    def bad(self) -> Host:
        """The worker that is spoilt."""
        return self.hosts.workers[1]

    def on_bad(self, script: str) -> None:
        done = self.bad.run(["sh", "-ec", script], stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        output = done.communicate()[0]
        assert done.returncode == 0, output.decode()

    @contextlib.contextmanager
    def without(self, folder: Path, *names: str) -> Iterator[None]:
        """Inside, the bad worker does not see these names of a folder."""
        gone = " ".join(str(folder / name) for name in names)
        layers = f"lowerdir={folder},upperdir=/tmp/layer/up,workdir=/tmp/layer/work"
        self.on_bad("mkdir -p /tmp/layer; mount -t tmpfs none /tmp/layer; mkdir /tmp/layer/up /tmp/layer/work")
        self.on_bad(f"mount -t overlay none -o {layers} {folder}; rm -rf {gone}")
        yield
        self.on_bad(f"umount {folder}; umount /tmp/layer")

    @contextlib.contextmanager
    def nothing_but_python(self) -> Iterator[None]:
        """Inside, the bad worker has no package but pyspark."""
        ours = [ROOT / "trident_py", ROOT / "states"]
        spark = SITE / "pyspark"
        self.on_bad(f"mkdir -p /tmp/spark; mount --bind {spark} /tmp/spark; mount -t tmpfs none {SITE}; mkdir {spark}")
        self.on_bad(f"mount --bind /tmp/spark {spark}; " + "; ".join(f"mount -t tmpfs none {path}" for path in ours))
        yield
        self.on_bad(f"umount {ours[0]} {ours[1]} {spark} {SITE} /tmp/spark")

    @contextlib.contextmanager
    def other_python(self, script: str) -> Iterator[None]:
        """Inside, the bad worker's Python is prepared by this script, which runs on the host."""
        self._end_daemon()
        self.on_bad(script)
        yield
        self._end_daemon()
        self.bad.path("/tmp/python").write_text(PYTHON)
        self.bad.path("/tmp/python").chmod(0o755)
        self.on_bad("rm -rf /tmp/custom")

    def _end_daemon(self) -> None:
        """Spark then starts another, at the next task."""
        for pid in self.bad.processes():
            with contextlib.suppress(OSError):
                if b"pyspark.daemon" in Path(f"/proc/{pid}/cmdline").read_bytes():
                    os.kill(pid, signal.SIGKILL)

    def close(self) -> None:
        self.hosts.close()
