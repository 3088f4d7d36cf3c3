"""A real server for tests: started in a temporary folder on a loopback port, killed and restarted on command.

The base of `sql_servers.MariaDb`, `sql_servers.PostgreSql` and `kafka_broker.KafkaBroker`: a folder, a port, a process,
and a keeper that ends all three when the process that started them is gone.
"""

from __future__ import annotations

import contextlib
import json
import os
import random
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any, ClassVar, Self

from trident_py.errors import TridentError

from . import keeper

PATIENCE: float = 60
PORTS = (15_000, 32_000)  # below the range for outgoing connections: a stopped server keeps its port
HOST = "127.0.0.1"


class ServiceMissing(TridentError):
    """A program or driver that a server needs is not installed. The message says which, and how to install it."""


class Service:
    """One server with its own folder, port and process. Call it only in the process that made it; threads may share it.

    ``options`` are the server's own settings (``local_infile=0``, ``max_connections=20``). ``base`` is the folder for
    its temporary folder. Several servers run side by side.
    """

    name: ClassVar[str]
    _stop_signal: ClassVar[int] = signal.SIGTERM

    def __init__(self, base: str | Path | None = None, **options: Any) -> None:
        self.options: dict[str, Any] = options
        self.folder: Path | None = None
        self.port = 0
        self.pid: int | None = None
        self._base = base
        self._keeper: subprocess.Popen[bytes] | None = None
        self._one_order = threading.Lock()

    @property
    def running(self) -> bool:
        return self._keeper is not None and bool(self._order("alive"))

    @property
    def log(self) -> str:
        """The server's output since its first start."""
        return "" if self.folder is None else (self.folder / "log").read_text(errors="replace")

    def start(self, **options: Any) -> Self:
        """Starts the server and returns when it accepts a connection. ``options`` change its settings from now on.

        The first start makes the data folder and chooses the port; later ones keep both. Raises ServiceMissing, or
        TridentError with the end of the server's log if it does not answer within a minute.
        """
        if self.running:
            raise TridentError(f"{self.name} on port {self.port} is already running; restart() starts it again")
        self.options.update(options)
        new = self.folder is None
        try:
            if new:
                self._make()
            self.pid = self._order("start", command=self._command(), user=self._account())
            self._until_it_answers()
            if new:
                self._first_started()
        except BaseException:
            if new:
                self.close()
            raise
        return self

    def stop(self) -> None:
        """Ends the server in order; the data stays. Does nothing if it is down."""
        if self._keeper is not None:
            self._order("stop", number=int(self._stop_signal), seconds=PATIENCE)
        self.pid = None

    def kill(self) -> None:
        """Kills the server by SIGKILL, like a crash. The data folder stays; ``start()`` recovers it."""
        if self._keeper is not None:
            self._order("kill")
        self.pid = None

    def restart(self, **options: Any) -> Self:
        """Ends the server in order, if it runs, and starts it with the same data and port."""
        self.stop()
        return self.start(**options)

    def freeze(self) -> None:
        """Stops the process where it stands, as a machine does that hangs: connections stay, nobody answers."""
        assert self.pid is not None
        os.kill(self.pid, signal.SIGSTOP)

    def thaw(self) -> None:
        assert self.pid is not None
        os.kill(self.pid, signal.SIGCONT)

    def close(self) -> None:
        """Ends the server and removes its folder. The next start begins with an empty one."""
        if self._keeper is not None:
            with self._one_order:
                self._keeper.communicate(b"end\n", timeout=PATIENCE)
            assert self.folder is not None
            keeper.remove(self.folder)  # if the keeper itself was killed
        self._keeper, self.folder, self.pid = None, None, None

    def __enter__(self) -> Self:
        return self if self.running else self.start()

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"{type(self).__name__}(port={self.port}, pid={self.pid})"

    def _make(self) -> None:
        """Makes the folder, the keeper and an empty data folder, and chooses the port."""
        programs = self._programs()  # may raise, before anything is made
        folder = self.folder = Path(tempfile.mkdtemp(prefix="trident-", dir=self._base or _open_folder()))
        command = [sys.executable, "-I", "-S", keeper.__file__, str(os.getpid()), str(folder)]
        self._keeper = subprocess.Popen(
            command, bufsize=0, stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True
        )
        self.port = free_port()
        folder.chmod(0o755)
        (folder / "data").mkdir(mode=0o700)
        if (account := self._account()) is not None:
            shutil.chown(folder / "data", account, account)
        self._run("create its data folder", self._make_data(programs), account)

    def _run(self, doing: str, command: list[str], account: str | None) -> None:
        """Runs a program in the server's folder. Raises TridentError with its output if it fails."""
        result = self._order("run", command=command, user=account)
        if result["code"] != 0:
            raise TridentError(f"{self.name} could not {doing}:\n{result['output'][-2000:]}")

    def _order(self, order: str, **arguments: Any) -> Any:
        answer = b""
        with self._one_order, contextlib.suppress(BrokenPipeError):
            assert self._keeper is not None and self._keeper.stdin is not None and self._keeper.stdout is not None
            self._keeper.stdin.write(json.dumps({"order": order, **arguments}).encode() + b"\n")
            answer = self._keeper.stdout.readline()
        if not answer:
            raise TridentError(f"the keeper process of {self.name} has ended; close() and start again")
        return json.loads(answer)

    def _until_it_answers(self) -> None:
        end = time.monotonic() + PATIENCE
        while True:
            try:
                return self._answer()
            except self._no_answer() as error:
                if self.running and time.monotonic() < end:
                    time.sleep(0.02)
                    continue
                raise TridentError(f"{self.name} does not answer on port {self.port}:\n{self.log[-2000:]}") from error

    def _answer(self) -> None:
        """Sends the server a request. Raises one of ``_no_answer()`` if it does not answer."""
        raise NotImplementedError

    def _no_answer(self) -> tuple[type[BaseException], ...]:
        raise NotImplementedError

    def _first_started(self) -> None:
        """Prepares a new server for use."""

    def _account(self) -> str | None:
        return None  # the account of this process

    def _programs(self) -> Path:
        """Returns the folder of the server's programs. Raises ServiceMissing."""
        raise NotImplementedError

    def _make_data(self, programs: Path) -> list[str]:
        """Returns the command that fills the new data folder. By default it stays empty."""
        return ["true"]

    def _command(self) -> list[str]:
        raise NotImplementedError


def find(program: str, folders: list[str], package: str) -> Path:
    """Returns the folder of a program: the first of PATH and ``folders`` that has it."""
    path = shutil.which(program) or shutil.which(program, path=os.pathsep.join(folders))
    if path is None:
        raise ServiceMissing(
            f"{program} is not installed: sudo apt-get install --no-install-recommends {package} "
            f"(looked in PATH, {', '.join(folders)})"
        )
    return Path(path).parent


def _open_folder() -> str:
    """Returns a folder for temporary ones that every account may enter, short enough for a socket's path."""
    folder = Path(tempfile.gettempdir()).resolve()
    open_to_all = all(parent.stat().st_mode & 0o001 for parent in (folder, *folder.parents))
    return str(folder) if open_to_all and len(str(folder)) < 60 else "/tmp"


def free_port() -> int:
    for port in random.SystemRandom().sample(range(*PORTS), 100):
        with socket.socket() as probe, contextlib.suppress(OSError):
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind((HOST, port))
            return port
    raise TridentError(f"no free port on {HOST} between {PORTS[0]} and {PORTS[1]}")
