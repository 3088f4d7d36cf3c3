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


def printed(module: str, *arguments: str) -> list[str]:
    """The lines that ``python -m examples.MODULE`` prints. It may write no warning and no error."""
    command = [sys.executable, "-W", "error", "-m", f"examples.{module}", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, check=True)
    assert done.stderr == ""
    return done.stdout.splitlines()


def finished(cluster: Any, topology: TridentTopology) -> RunningTopology:
    """Runs a topology to the end of its spouts."""
    running: RunningTopology = cluster.submitTopology("example", {}, topology.build())
    assert running.awaitTermination(timeout=120)
    return running


def after_each_batch(cluster: Any, topology: TridentTopology, ask: Callable[[], Any], until: int) -> dict[int, Any]:
    """Runs a topology that never ends until this txid. What ``ask`` returned behind the commit of each txid that was
    noticed; the run waits for it."""
    seen, done = {}, threading.Event()

    def listen(event: Any, progress: Any) -> None:
        if event.kind == "committed":
            seen[event.txid] = ask()
            if event.txid >= until:
                done.set()

    running = cluster.submitTopology("example", {}, topology.build())
    running.addListener(listen)
    assert done.wait(60)
    running.stop()
    return {txid: answer for txid, answer in seen.items() if txid <= until}
