"""Runs the ports of Storm's examples."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

from trident_py import RunningTopology, TridentTopology

ROOT = Path(__file__).parents[1]


def printed(module: str, *arguments: str, warns: str = "") -> list[str]:
    """The lines that ``python -m examples.MODULE`` prints. Each line of its standard error has ``warns``; without it
    there is none."""
    command = [sys.executable, "-W", "error", "-m", f"examples.{module}", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, check=True)
    assert [line for line in done.stderr.splitlines() if not warns or warns not in line] == []
    return done.stdout.splitlines()


def printed_on_spark(module: str, *arguments: str) -> list[str]:
    """The lines that the module prints itself on Spark. Those of tasks may be among them."""
    command = [sys.executable, "-m", f"examples.{module}", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, check=False)
    assert done.returncode == 0, done.stderr[-6000:]
    return done.stdout.splitlines()


def finished(
    cluster: Any, topology: TridentTopology, conf: dict | None = None, name: str = "example"
) -> RunningTopology:  # fmt: skip
    """Runs a topology to the end of its spouts."""
    running: RunningTopology = cluster.submitTopology(name, conf or {}, topology.build())
    assert running.awaitTermination(timeout=120)
    return running


def until(
    cluster: Any, topology: TridentTopology, txid: int, conf: dict | None = None, then: Callable[[int], Any] = int
) -> RunningTopology:
    """Runs a topology that never ends, and stops it behind this txid. ``then`` is called behind the commit of each txid
    that was noticed; the run waits for it."""
    done = threading.Event()

    def listen(event: Any, progress: Any) -> None:
        if event.kind == "committed":
            then(event.txid)
            if event.txid >= txid:
                done.set()

    running: RunningTopology = cluster.submitTopology("example", conf or {}, topology.build())
    running.addListener(listen)
    assert done.wait(60)
    running.stop()
    return running
