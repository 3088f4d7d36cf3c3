"""Driver processes that start in milliseconds: forked from a process that has the user's module imported.

    python -m trident_py.testing.faults.fork_server FILE

reads from ``FILE`` what it serves, and from stdin a line for each order: ``start FILE``, ``kill PID``, ``warm FILE``.
It tells on stdout: ``ready``, ``started PID``, ``ended PID STATUS``.
"""

from __future__ import annotations

import contextlib
import importlib
import os
import pickle
import select
import signal
import sys
import traceback
from pathlib import Path
from typing import Any, TextIO

from trident_py.model.chunks import Chunk
from trident_py.testing.faults.driver_process import drive
from trident_py.tuples import Fields

_POLL = 0.002


class ForkServer:
    """The process that forks. It has no threads of its own."""

    def __init__(self, served: dict[str, Any], orders: int, answers: TextIO) -> None:
        sys.path[:] = served["path"]
        self.build = _resolve(served["build"])
        self.readings = pickle.loads(served["readings"])  # noqa: S301  from the test that started it
        self.orders, self.answers = orders, answers
        self.children: set[int] = set()

    def serve(self) -> None:
        """Obey until its stdin ends; then its children end too."""
        self.tell("ready")
        waiting = b""
        try:
            while True:
                self._reap()
                if not select.select([self.orders], [], [], _POLL if self.children else None)[0]:
                    continue
                data = os.read(self.orders, 1 << 16)
                if not data:
                    return
                *lines, waiting = (waiting + data).split(b"\n")
                for line in lines:
                    self.obey(*line.decode().split(" ", 1))
        finally:
            for child in self.children:
                os.kill(child, signal.SIGKILL)

    def tell(self, *words: Any) -> None:
        print(*words, file=self.answers, flush=True)

    def obey(self, order: str, argument: str) -> None:
        if order == "kill":
            if int(argument) in self.children:
                os.kill(int(argument), signal.SIGKILL)
        elif order == "warm":
            for module in Path(argument).read_text(encoding="utf-8").split():
                with contextlib.suppress(Exception):
                    importlib.import_module(module)
        else:
            self._fork(Path(argument))

    def _fork(self, file: Path) -> None:
        child = os.fork()
        if child == 0:
            code = 1
            try:
                os.close(self.orders)
                self.answers.close()
                drive(pickle.loads(file.read_bytes()), self.build, self.readings)  # noqa: S301  from the test that started it
                loaded = " ".join(sorted(set(sys.modules) - {"__main__"}))
                file.with_suffix(".modules").write_text(loaded, encoding="utf-8")
                code = 0
            finally:
                sys.stdout.flush()
                sys.stderr.flush()
                os._exit(code)
        self.children.add(child)
        self.tell("started", child)

    def _reap(self) -> None:
        for child in list(self.children):
            ended, status = os.waitpid(child, os.WNOHANG)
            if ended:
                self.children.remove(child)
                self.tell("ended", child, os.waitstatus_to_exitcode(status))


def _resolve(build: Any) -> Any:
    """Return the function of "module:name", or the one that was pickled."""
    if not isinstance(build, str):
        return pickle.loads(build)  # noqa: S301  from the test that started it
    module, _, name = build.partition(":")
    found: Any = importlib.import_module(module)
    for part in name.split("."):
        found = vars(found)[part]
    return found


def main(file: str) -> None:
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # what the user's code prints goes to the log
    Chunk.of_rows(Fields("n bigint", "word string"), [(1, "w")])  # loads what pyarrow loads at first use
    try:
        nursery = ForkServer(pickle.loads(Path(file).read_bytes()), os.dup(0), answers)  # noqa: S301  from the test that started it
    except BaseException:
        print("broken", repr(traceback.format_exc()), file=answers, flush=True)
        return
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, 0)
    nursery.serve()


if __name__ == "__main__":
    main(sys.argv[1])
