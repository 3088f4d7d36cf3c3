"""What is left to look at when a story hangs: thread dumps of the driver, and the ends of all logs."""

from __future__ import annotations

import contextlib
import os
import signal
import time
from pathlib import Path
from typing import Any

from .processes import EXECUTOR, real_pid, running

LINES = 60


def evidence(lab: Any, driver: Any) -> list[str]:
    """Texts with a heading each. Asks the driver's processes and the executors for their threads first."""
    texts = [_end("driver", _text(driver.log), LINES)]
    host = lab.network.hosts.get(driver.host)
    if host is not None and host.alive:
        with contextlib.suppress(ProcessLookupError):
            os.kill(real_pid(host, driver.pid), signal.SIGUSR1)
        _threads_of(host, b"SparkSubmit")
    for worker in lab.hosts.workers:
        if worker.alive:
            _threads_of(worker, EXECUTOR)
    time.sleep(2)
    texts.append(_end("driver, with its threads", _text(driver.log), 900))
    for name in ("master", *lab.hosts.worker_names):
        if lab.network.hosts[name].alive:
            texts.append(_end(name, lab.hosts.log(name), LINES))
    for worker in lab.hosts.workers:
        if worker.alive:
            for log in sorted(worker.path("/tmp/work").glob("*/*/std*"))[-4:]:
                texts.append(_end(f"{worker.name} {log.name}", log.read_text(errors="replace"), 200))
    return texts


def _threads_of(host: Any, words: bytes) -> None:
    for pid in running(host, words):
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGQUIT)


def _text(log: Path) -> str:
    return log.read_text(errors="replace") if log.is_file() else ""


def _end(heading: str, text: str, lines: int) -> str:
    return "\n".join([f"==== {heading}", *text.splitlines()[-lines:]])
