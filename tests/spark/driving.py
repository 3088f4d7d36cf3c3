"""Driver processes (`driver`) for tests that kill them."""

from __future__ import annotations

import subprocess
from collections.abc import Callable

import psutil

PATIENCE = 300
Start = Callable[..., subprocess.Popen]


def until(process: subprocess.Popen, kind: str, count: int) -> None:
    """Reads events until so many of a kind have come."""
    assert process.stdout is not None
    for line in process.stdout:
        count -= line.startswith(kind)
        if count <= 0:
            return
    raise AssertionError(f"the driver ended: {process.communicate()[1]}")


def kill(process: subprocess.Popen) -> None:
    """kill -9 of the driver; its Java process and workers must end by themselves."""
    children = psutil.Process(process.pid).children(recursive=True) if process.poll() is None else []
    process.kill()
    process.communicate()
    _, alive = psutil.wait_procs(children, timeout=PATIENCE)
    assert alive == []


def exact(count: int) -> dict[int, list[list[int]]]:
    return {txid: [[2 * txid - 2], [2 * txid - 1]] for txid in range(1, count + 1)}
