"""A small separate process that starts a server, and removes server and folder when its parent is gone.

Run by path, with the standard library alone: ``python keeper.py PARENT_PID FOLDER``. It reads orders as JSON lines from
standard input and answers each with a JSON line. A parent killed by SIGKILL cannot clean up; this process can.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import select
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

LOOK = 0.2  # seconds between two checks of the parent
PR_SET_PDEATHSIG = 1
PR_SET_CHILD_SUBREAPER = 36
IPC_RMID = 0
LIBC = ctypes.CDLL(None)


class Keeper:
    """The server's parent process. ``serve`` returns when its own parent says so or dies, and leaves nothing behind."""

    def __init__(self, parent: int, folder: Path) -> None:
        self.parent = parent
        self.folder = folder
        self.server: subprocess.Popen[bytes] | None = None
        self.orders: dict[str, Callable[..., Any]] = {
            "run": self.run, "start": self.start, "alive": self.alive, "stop": self.stop, "kill": self.kill,
        }  # fmt: skip

    def serve(self) -> None:
        try:
            while os.getppid() == self.parent:
                if self.server is not None:
                    self.server.poll()
                if not select.select([sys.stdin], [], [], LOOK)[0]:
                    continue
                line = sys.stdin.readline()
                if line in ("", "end\n"):
                    return
                order = json.loads(line)
                print(json.dumps(self.orders[order.pop("order")](**order)), flush=True)
        finally:
            self.kill()
            remove(self.folder)

    def run(self, command: list[str], user: str | None) -> dict[str, Any]:
        program = subprocess.run(command, **self.setting(user), stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        return {"code": program.returncode, "output": program.stdout.decode(errors="replace")}

    def start(self, command: list[str], user: str | None) -> int:
        """Starts the server and returns its process id; its output goes to the file ``log``."""
        with (self.folder / "log").open("ab") as log:
            self.server = subprocess.Popen(
                command, **self.setting(user), stdout=log, stderr=log, preexec_fn=die_with_parent
            )
        return self.server.pid

    def setting(self, user: str | None) -> dict[str, Any]:
        """Returns account, folder and standard input of a program. None: the account of this process."""
        account = {} if user is None else {"user": user, "group": user, "extra_groups": []}
        return {**account, "cwd": self.folder, "stdin": subprocess.DEVNULL}

    def alive(self) -> bool:
        return self.server is not None and self.server.poll() is None

    def stop(self, number: int, seconds: float) -> int | None:
        """Asks the server to end, and kills it after ``seconds``. Returns its exit code, None if there is no server."""
        if self.server is None:
            return None
        if self.server.poll() is None:
            self.server.send_signal(number)
        try:
            return self.server.wait(seconds)
        except subprocess.TimeoutExpired:
            return self.kill()

    def kill(self) -> int | None:
        """Kills the server and its children by SIGKILL, all at once. They are gone when this returns."""
        if self.server is None:
            return None
        children = children_of(self.server.pid) if self.server.poll() is None else []
        self.server.kill()
        for child in children:
            with contextlib.suppress(ProcessLookupError):
                os.kill(child, signal.SIGKILL)
        code = self.server.wait()
        end = time.monotonic() + 10
        while any(map(runs, children)) and time.monotonic() < end:
            time.sleep(0.005)
        return code


def die_with_parent() -> None:
    """Linux: this process gets SIGKILL when its parent is killed. Called after a change of account, which resets it."""
    if sys.platform == "linux":
        LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)


def children_of(pid: int) -> list[int]:
    try:
        return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    except OSError:
        return []  # no such list here; PostgreSQL's children end by themselves without their parent


def runs(pid: int) -> bool:
    """Whether a process runs; reaps it if it is a dead child of ours."""
    try:
        with contextlib.suppress(ChildProcessError):
            os.waitpid(pid, os.WNOHANG)
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


def remove(folder: Path) -> None:
    """Removes the folder, and the small segment that a killed PostgreSQL leaves, named in line 7 of its pid file."""
    with contextlib.suppress(OSError, IndexError, ValueError):
        file = folder / "data" / "postmaster.pid"
        LIBC.shmctl(int(file.read_text().splitlines()[6].split()[1]), IPC_RMID, None)
    shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    if sys.platform == "linux":
        LIBC.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)  # a killed server's children become ours
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # tidy up on the way out
    Keeper(int(sys.argv[1]), Path(sys.argv[2])).serve()
