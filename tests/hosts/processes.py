"""Which processes run on a host, found from outside."""

from __future__ import annotations

from pathlib import Path

from testbed.hosts import Host

EXECUTOR, WORKER, MASTER = b"CoarseGrainedExecutorBackend", b"deploy.worker.Worker", b"deploy.master.Master"


def running(host: Host, words: bytes) -> list[int]:
    """The processes of a host with these words in their command line, by their ids on this machine."""
    return [pid for pid in everything(host) if words in _read(pid, "cmdline")]


def everything(host: Host) -> list[int]:
    """All processes of a host; none of one that is down, or goes down meanwhile."""
    try:
        return host.processes() if host.alive else []
    except FileNotFoundError:
        return []


def real_pid(host: Host, pid: int) -> int:
    """The id on this machine of a process that knows itself by another one."""
    for real in everything(host):
        for line in _read(real, "status").splitlines():
            if line.startswith(b"NSpid:") and int(line.split()[-1]) == pid:
                return real
    raise ProcessLookupError(f"{host.name} has no process {pid}")


def _read(pid: int, name: str) -> bytes:
    try:
        return Path(f"/proc/{pid}/{name}").read_bytes()
    except OSError:
        return b""  # the process has ended
