"""Hosts of their own on one machine, for tests of what crosses a network: each can be killed, paused, cut off, slowed.

A host is a process tree with its own network, process, host name and mount namespaces. All hosts of a `Network` hang on
one bridge, which lives in a namespace too: nothing of the machine's own network is touched, and everything is gone with
the process that made it. Linux, as root, with iproute2 and util-linux (``ip``, ``unshare``, ``nsenter``).
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Self

from trident_py.errors import DefinitionError, TridentError
from trident_py.testing.proxy import CuttingProxy

from . import delay_line
from .keeper import die_with_parent, runs
from .service import HOST, ServiceMissing

PREFIX = "10.99.0"
NOBODY = "02:00:00:00:00:01"  # the address of no network card: what is sent to it is lost
PATIENCE = 20
NOTHING: Mapping[str, str] = {}
CLONE_NEWNET = 0x40000000
_PROGRAMS = {"ip": "iproute2", "unshare": "util-linux", "nsenter": "util-linux"}
_LIBC = ctypes.CDLL(None, use_errno=True)
# "Dies with its parent" means the thread that started it, for the kernel. This one lives as long as the process.
_STARTER = ThreadPoolExecutor(1, "starts hosts")

# The first process of a host. It reaps the orphans; when it is killed, so is everything else on the host.
# Its arguments: the host's name, pairs of a name and the folder that is kept under it, --, and pairs of what to mount
# (a name that is kept, or - for nothing) and where: a folder before those that are inside of it.
_INIT = """
set -e
hostname "$1"; ip link set lo up; shift
mount -t tmpfs none /mnt; touch /mnt/hosts; mount --bind /mnt/hosts /etc/hosts
while [ "$1" != -- ]; do mkdir "/mnt/$1"; mount --bind "$2" "/mnt/$1"; shift 2; done; shift
while [ $# -gt 0 ]; do
    mkdir -p "$2"
    if [ "$1" = - ]; then mount -t tmpfs -o mode=1777 none "$2"; else mount --bind "/mnt/$1" "$2"; fi
    shift 2
done
echo ready
while :; do sleep 1000 & wait; done
"""


class Host:
    """One host of a `Network`: made by `Network.host`, addressed by its name in every call of the network.

    Its files are the machine's, but for the ``private`` folders, which are empty and its own: except that this Python
    and our sources, if they are inside of one, stay where they are. Folders that are ``kept`` are under /mnt, by name,
    also if a private one hides them.
    """

    def __init__(self, name: str, address: str, private: Sequence[str], kept: Mapping[str, str] = NOTHING) -> None:
        self.name = name
        self.address = address
        self.card = f"02:00:00:00:01:{int(address.rpartition('.')[2]):02x}"
        self.alive = False
        self._arguments = _mounts(private, kept)
        self._holder: subprocess.Popen[bytes] | None = None
        self._init = 0
        self._outside: list[subprocess.Popen[bytes]] = []

    def boot(self) -> None:
        """Starts the host: an init process in new namespaces. Its private folders are empty."""
        command = ["unshare", "--net", "--mount", "--uts", "--ipc", "--pid", "--fork", "--kill-child", "--mount-proc",
                   "sh", "-c", _INIT, "init", self.name, *self._arguments]  # fmt: skip
        self._holder = _started(command, stdout=subprocess.PIPE)
        assert self._holder.stdout is not None
        self._outside = [self._holder]
        with self._holder.stdout as output:
            started = output.readline() == b"ready\n"
        if not started:
            self.kill()
            raise TridentError(f"host {self.name} did not start; hosts of their own need root on Linux")
        children = Path(f"/proc/{self._holder.pid}/task/{self._holder.pid}/children")
        self._init = int(children.read_text())
        self.alive = True

    def run(self, command: Sequence[str], **options: Any) -> subprocess.Popen[bytes]:
        """Starts a program on the host. ``options`` are those of `subprocess.Popen`; ``cwd`` is a folder there."""
        folder = str(options.pop("cwd", "/"))
        enter = [*self._enter("-a"), "sh", "-c", 'cd "$0" && exec "$@"', folder, *command]
        program = _started(enter, **options)
        self._outside = [one for one in self._outside if one.poll() is None] + [program]
        return program

    def path(self, path: str | Path) -> Path:
        """A file on the host, as this process reaches it."""
        return Path(f"/proc/{self._init}/root") / str(path).lstrip("/")

    def processes(self) -> list[int]:
        """The process ids on this machine of all that runs on the host, the init process first."""
        space = Path(f"/proc/{self._init}/ns/pid").readlink()
        pids = [int(entry.name) for entry in Path("/proc").glob("[0-9]*") if _links_to(entry / "ns/pid", space)]
        return sorted(pids, key=lambda pid: (pid != self._init, pid))

    def pause(self) -> None:
        """Stops every process of the host (SIGSTOP), as a machine does that is suspended."""
        self._signal(signal.SIGSTOP)

    def resume(self) -> None:
        self._signal(signal.SIGCONT)
        for program in self._outside:
            program.send_signal(signal.SIGCONT)  # unshare and nsenter stop with their children

    def kill(self) -> None:
        """Ends the host like a power cut: every process by SIGKILL at once. Its private folders are lost."""
        if self._holder is not None:
            self._holder.kill()  # and with it, by the kernel, the init process and all others
            _until_gone(self._init)
            for program in self._outside:
                program.wait(PATIENCE)
        self._holder, self._init, self.alive = None, 0, False

    def network(self, *arguments: str) -> None:
        """Runs ``ip`` with these arguments in the host's network."""
        _done([*self._enter("-n"), "ip", *arguments])

    def listen(self, port: int, address: str = HOST) -> socket.socket:
        """A socket of this process that listens on the host: on its loopback, or at its own address."""
        with _in_network_of(self._init):
            return socket.create_server((address, port))

    def connect(self, port: int) -> socket.socket:
        """A connection of this process to a server on the host, made from the host itself."""
        with _in_network_of(self._init):
            return socket.create_connection((self.address, port), timeout=PATIENCE)

    @property
    def pid(self) -> int:
        """The process id of its init process; 0 while the host is down."""
        return self._init

    def _enter(self, spaces: str) -> list[str]:
        if not self.alive:
            raise TridentError(f"host {self.name} is down; Network.boot({self.name!r}) starts it")
        return ["nsenter", "-t", str(self._init), spaces, "--"]

    def _signal(self, number: int) -> None:
        for pid in reversed(self.processes()):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, number)

    def __repr__(self) -> str:
        return f"Host({self.name!r}, {self.address}, {'up' if self.alive else 'down'})"


class Network:
    """Hosts on one bridge. ``close()`` (or the ``with`` block) ends all.

    Raises ServiceMissing without root, on another system than Linux, or without the programs that it calls.
    """

    def __init__(self) -> None:
        _check_possible()
        self.hosts: dict[str, Host] = {}
        self._gates: dict[tuple[str, int], CuttingProxy] = {}
        self._delays: dict[str, subprocess.Popen[bytes]] = {}
        self._lost: set[tuple[str, str]] = set()
        self._switch = Host("switch", f"{PREFIX}.1", ())
        self._switch.boot()
        self._switch.network("link", "add", "br0", "type", "bridge")
        self._switch.network("link", "set", "br0", "up")

    def host(self, name: str, private: Iterable[str] = ("/tmp",), kept: Mapping[str, str] = NOTHING) -> Host:
        """Adds a host and boots it; see `Host`. Every host knows the others by name."""
        if name in self.hosts or name == self._switch.name or not name.isidentifier() or len(name) > 10:
            raise DefinitionError(f"host {name!r}: give it a new name of at most 10 letters and digits")
        private = tuple(private)
        if missing := [folder for folder in private if not Path(folder).is_dir()]:
            raise DefinitionError(f"host {name!r}: no folder {missing[0]} that could be private; make it first")
        host = Host(name, f"{PREFIX}.{len(self.hosts) + 10}", private, kept)
        self.hosts[name] = host
        self.boot(name)
        return host

    def boot(self, name: str) -> Host:
        """Boots a host that was killed. It has the same name and address, and empty private folders."""
        host = self.hosts[name]
        host.boot()
        _done(["ip", "link", "add", f"to_{name}", "netns", str(self._switch.pid), "type", "veth",
               "peer", "name", "eth0", "address", host.card, "netns", str(host.pid)])  # fmt: skip
        self._switch.network("link", "set", f"to_{name}", "master", "br0", "up")
        host.network("addr", "add", f"{host.address}/24", "dev", "eth0")
        host.network("link", "set", "eth0", "up")
        self._share_names()
        for port in {port for _, port in self._gates}:
            self._open_gate(host, port)
        return host

    def reach(self, port: int) -> None:
        """Lets every host, now and later, reach a server of this machine's loopback under the same address there."""
        for host in self.hosts.values():
            self._open_gate(host, port)

    def gate(self, name: str, port: int) -> CuttingProxy:
        """The proxy through which a host reaches a server of this machine: it cuts connections on command."""
        return self._gates[name, port]

    def kill(self, name: str) -> None:
        """Ends a host like a power cut."""
        self.fast(name)
        if self.hosts[name].alive:
            self._switch.network("link", "del", f"to_{name}")  # first: a machine without power says no farewell
        self.hosts[name].kill()
        self._lost -= {pair for pair in self._lost if pair[0] == name}
        for key in [key for key in self._gates if key[0] == name]:
            self._gates[key].refuse = True
            self._gates[key].cut()

    def cut(self, one: str, other: str) -> None:
        """Loses, in silence, every packet between two hosts, until `heal`."""
        for here, there in ((one, other), (other, one)):
            self._lost.add((here, there))
            self._neighbour(here, "replace", there, "lladdr", NOBODY, "dev", "eth0", "nud", "permanent")

    def heal(self) -> None:
        """Ends every `cut`, and every `slow`."""
        for here, there in self._lost:
            self._neighbour(here, "del", there, "dev", "eth0")
        self._lost.clear()
        for name in list(self._delays):
            self.fast(name)

    def slow(self, name: str, milliseconds: int, share: float = 0.0) -> None:
        """Delays every packet from and to a host, until `fast` or `heal`. A ``share`` of them comes twice, and a share
        comes late, after others that were sent later."""
        self.fast(name)
        inner, outer = f"in_{name}", f"out_{name}"
        self._switch.network("link", "add", inner, "type", "veth", "peer", "name", outer)
        for link, master in ((f"to_{name}", ["nomaster"]), (outer, ["master", "br0"]), (inner, [])):
            self._switch.network("link", "set", link, *master, "promisc", "on", "up")
        numbers = str(milliseconds), str(share)
        script = [sys.executable, "-I", "-S", delay_line.__file__, f"to_{name}", inner, *numbers]
        delay = self._delays[name] = self._switch.run(script, stdout=subprocess.PIPE)
        assert delay.stdout is not None
        with delay.stdout as output:
            if output.readline() != b"ready\n":
                raise TridentError(f"host {name} could not be slowed")

    def fast(self, name: str) -> None:
        """Ends the delay of a host."""
        if name in self._delays:
            delay = self._delays.pop(name)
            delay.kill()
            delay.wait(PATIENCE)
            self._switch.network("link", "del", f"in_{name}")
            if self.hosts[name].alive:
                self._switch.network("link", "set", f"to_{name}", "master", "br0")

    def close(self) -> None:
        for gate in self._gates.values():
            gate.close()
        for host in (*self.hosts.values(), self._switch):
            host.kill()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _neighbour(self, name: str, action: str, other: str, *arguments: str) -> None:
        self.hosts[name].network("neigh", action, self.hosts[other].address, *arguments)

    def _share_names(self) -> None:
        names = [f"{HOST} localhost", *(f"{host.address} {host.name}" for host in self.hosts.values())]
        for host in self.hosts.values():
            if host.alive:
                host.path("/etc/hosts").write_text("\n".join(names) + "\n")

    def _open_gate(self, host: Host, port: int) -> None:
        old = self._gates.pop((host.name, port), None)
        if old is not None:
            old.close()
        self._gates[host.name, port] = CuttingProxy(HOST, port, listener=host.listen(port))


def _started(command: list[str], **options: Any) -> subprocess.Popen[bytes]:
    """A program that ends with this process, whichever thread asks for it."""

    def start() -> subprocess.Popen[bytes]:
        return subprocess.Popen(command, stdin=subprocess.DEVNULL, preexec_fn=die_with_parent, **options)

    return _STARTER.submit(start).result()


def _mounts(private: Sequence[str], kept: Mapping[str, str]) -> list[str]:
    """The arguments of `_INIT` for these folders. One of ours that is private itself stays so."""
    hidden = {Path(folder): "-" for folder in private}
    ours = [folder for folder in _own_folders() - hidden.keys() if not hidden.keys().isdisjoint(folder.parents)]
    shown = {folder: f"own{number}" for number, folder in enumerate(ours)}
    pairs = [*kept.items(), *((name, str(folder)) for folder, name in shown.items())]
    places = [(name, str(folder)) for folder, name in sorted((hidden | shown).items())]
    return [*(word for pair in pairs for word in pair), "--", *(word for pair in places for word in pair)]


def _own_folders() -> set[Path]:
    """Where this Python, its packages and our sources are. None is inside of another."""
    folders = {Path(__file__).parents[1], Path(sys.prefix), Path(sys.base_prefix)}
    return {folder for folder in folders if folders.isdisjoint(folder.parents)}


def _check_possible() -> None:
    if sys.platform != "linux" or os.geteuid() != 0:
        raise ServiceMissing("hosts of their own need root on Linux")
    for program, package in _PROGRAMS.items():
        if shutil.which(program) is None:
            raise ServiceMissing(f"{program} is not installed: sudo apt-get install --no-install-recommends {package}")


def _done(command: list[str]) -> None:
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True)
    if done.returncode != 0:
        raise TridentError(f"{' '.join(command)}: {(done.stderr or done.stdout).strip()}")


def _links_to(link: Path, target: Path) -> bool:
    try:
        return link.readlink() == target
    except OSError:
        return False  # the process has ended


def _until_gone(pid: int) -> None:
    end = time.monotonic() + PATIENCE
    while pid and runs(pid) and time.monotonic() < end:
        time.sleep(0.005)


def join_network(pid: int) -> None:
    """Puts this thread, and those that it starts later, into the network of another process for good."""
    with Path(f"/proc/{pid}/ns/net").open() as there:
        _enter_network(there.fileno())


@contextlib.contextmanager
def _in_network_of(pid: int) -> Iterator[None]:
    """Puts this thread into the network of another process. Sockets made inside stay there."""
    with Path("/proc/thread-self/ns/net").open() as back, Path(f"/proc/{pid}/ns/net").open() as there:
        _enter_network(there.fileno())
        try:
            yield
        finally:
            _enter_network(back.fileno())


def _enter_network(fd: int) -> None:
    if _LIBC.setns(fd, CLONE_NEWNET) != 0:
        raise OSError(ctypes.get_errno(), "cannot enter the network of a host")
