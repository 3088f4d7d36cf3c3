"""Translates the Java topologies and runs the Python on LocalCluster, as the harness runs the Java on Storm."""

from __future__ import annotations

import importlib
import io
import logging
import re
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stdout
from pathlib import Path
from typing import Any

import pytest

from trident_py import LocalCluster, LocalDRPC, StormSubmitter
from trident_py.extras.moving.port.modules import translate_files
from trident_py.spouts.coordination import Coordination

from .cases import RECORDER, Case

WAIT = 60.0
BUILDER = re.compile(r"public static StormTopology (\w+)\((.*?)\)", re.S)


def translate(cases: list[Case], folder: Path) -> dict[str, str]:
    """Writes the modules into the folder. Returns the name of the module of each case."""
    modules = translate_files([RECORDER, *(case.source for case in cases)])
    for module in modules:
        (folder / module.report.python).write_text(module.text)
    reports = [module.report for module in modules]
    found = [f"{report.java}:{finding.line}: {finding.reason}" for report in reports for finding in report.findings]
    assert len(found) == sum(case.left for case in cases), found
    return {Path(module.report.java).stem: Path(module.report.python).stem for module in modules}


def run(case: Case, module: str, folder: Path) -> dict[str, Any]:
    """What the translated topology gives."""
    case = case.prepare(folder)
    with pytest.MonkeyPatch.context() as patch, printed() as lines, LocalCluster() as cluster, LocalDRPC() as drpc:
        patch.syspath_prepend(str(folder))
        patch.setattr(sys, "dont_write_bytecode", True)
        run_to(case.batches, patch)
        done = Awaited(case, cluster, patch)
        try:
            recorded = importlib.import_module("recorder").Recorder.ROWS
            start(importlib.import_module(module), case, drpc, done.submit)
            done.wait()
            answers = [[function, args, drpc.execute(function, args)] for function, args in case.asks]
            done.running.stop()
            rows = {name: dict(batches.items()) for name, batches in recorded.items()}
            result = {"rows": rows, "printed": lines.getvalue().splitlines(), "answers": answers}
            return case.canonical(result | ({"files": case.lines_of_files(folder)} if case.files else {}))
        finally:
            for loaded in [name for name in sys.modules if name in {path.stem for path in folder.glob("*.py")}]:
                del sys.modules[loaded]


def start(module: Any, case: Case, drpc: LocalDRPC, submit: Callable[..., Any]) -> None:
    """Calls what the harness calls: the method that returns a topology, or else main."""
    given = {"LocalDRPC": drpc, "ILocalDRPC": drpc, "Config": dict(case.conf)}
    if builder := BUILDER.search(case.source.read_text()):
        parameters = [given[part.split()[0]] for part in builder[2].split(",") if part]
        place = module if hasattr(module, builder[1]) else getattr(module, case.name)
        submit(case.name, case.conf, getattr(place, builder[1])(*parameters))
    else:
        module.main([case.name])


def run_to(batches: int, patch: pytest.MonkeyPatch) -> None:
    """As in Storm, an exhausted spout emits empty batches; as in the harness, none begins behind the last."""
    ready, exhausted = Coordination.ready, Coordination.is_exhausted

    def gated(self: Coordination, txid: int) -> bool:
        return txid <= batches and (exhausted(self, txid) or ready(self, txid))

    patch.setattr(Coordination, "ready", gated)
    patch.setattr(Coordination, "is_exhausted", lambda self, txid=None: False)


class Awaited:
    """The run of a case, and its end."""

    def __init__(self, case: Case, cluster: LocalCluster, patch: pytest.MonkeyPatch) -> None:
        self.case, self.cluster = case, cluster
        self.running: Any = None
        self._changed = threading.Condition()
        patch.setattr(StormSubmitter, "submitTopology", self.submit)

    def submit(self, name: str, conf: dict, topology: Any) -> None:
        self.running = self.cluster.submitTopology(name, {**conf, **self.case.conf}, topology)
        self.running.addListener(self._listen)

    def wait(self) -> None:
        with self._changed:
            assert self._changed.wait_for(self._is_over, WAIT), self.running.progress
        if self.running.exception is not None:
            raise self.running.exception

    def _listen(self, event: Any, progress: Any) -> None:
        with self._changed:
            self._changed.notify_all()

    def _is_over(self) -> bool:
        at = [progress.txid or 0 for progress in self.running.progress.values()]
        return self.running.exception is not None or min(at) >= self.case.batches


@contextmanager
def printed() -> Iterator[io.StringIO]:
    """What is printed, and logged from INFO on by others than ours."""
    lines = io.StringIO()
    handler = logging.StreamHandler(lines)
    handler.addFilter(lambda record: not record.name.startswith("trident_py"))
    root, level = logging.getLogger(), logging.getLogger().level
    root.addHandler(handler)
    root.setLevel(logging.INFO)
    try:
        with redirect_stdout(lines):
            yield lines
    finally:
        root.removeHandler(handler)
        root.setLevel(level)
