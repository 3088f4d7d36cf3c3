"""A child process that dies before the n-th call that changes something on the disk."""

from __future__ import annotations

import multiprocessing
import os
import shutil
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

from faults.disk import Calls

FORK = multiprocessing.get_context("fork")


def killed_before(number: int, action: Callable[[], Any]) -> bool:
    """Runs the action in a child; returns whether it came to its end."""
    process = FORK.Process(target=_run, args=(number, action))
    process.start()
    process.join()
    assert process.exitcode in (0, -signal.SIGKILL)
    return process.exitcode == 0


def _run(number: int, action: Callable[[], Any]) -> None:
    calls = Calls(number)
    os.fsync, shutil.rmtree = calls.counted(os.fsync), calls.counted(shutil.rmtree)
    for name in ("replace", "unlink"):
        setattr(Path, name, _method(calls.counted(getattr(Path, name))))
    action()


def _method(call: Any) -> Any:
    return lambda *args, **named: call(*args, **named)
