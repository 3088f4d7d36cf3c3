"""What a Redis keeps of the writes that it has acknowledged: read from the server, as far as its user may.

A map in Redis is exact as long as Redis loses nothing. A loss of the last writes (``appendfsync everysec``, a snapshot,
a fail-over) goes back behind the ledger too, which notices it. An evicted key is gone without a trace, so a server that
may evict is refused.
"""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from states.diagnostics import Finding

from ...errors import StateError
from .server import RedisDatabase

log = logging.getLogger("trident_py")
REMARK = (
    "if Redis loses no acknowledged write (appendonly yes, appendfsync always); if it does, the run or the next start "
    "ends with an error"
)


@dataclass(frozen=True)
class PersistenceSettings:
    """The settings that decide; "" where the server does not tell."""

    policy: str = ""
    limit: int = 0
    appends: bool | None = None
    fsync: str = ""
    replicas: int = 0
    cluster: bool = False
    is_replica: bool = False

    @classmethod
    def of(cls, server: RedisDatabase) -> PersistenceSettings:
        """Ask the server. Raises FailedException if it is away."""
        info: dict[str, Any] = server.ask(lambda client: client.info(), "read its INFO")
        fsync = ""
        with contextlib.suppress(StateError):  # services that others run often forbid CONFIG
            fsync = server.ask(lambda client: client.config_get("appendfsync"), "read CONFIG").get("appendfsync", "")
        appends = info.get("aof_enabled")
        return cls(
            str(info.get("maxmemory_policy", "")), int(info.get("maxmemory", 0)),
            None if appends is None else bool(appends), fsync, int(info.get("connected_slaves", 0)),
            bool(info.get("cluster_enabled", 0)), info.get("role") == "slave",
        )  # fmt: skip

    def problems(self) -> Iterator[str]:
        """Return why no state may be kept here."""
        if self.cluster:
            yield (
                "the server is part of a Redis Cluster, which is not supported: a batch, its ledger and its owner must "
                "change in one step. Use one Redis with its replicas"
            )
        if self.is_replica:
            yield "the server is a replica, which takes no writes. Name the primary in the URL"
        yield from self.evictions()

    def evictions(self) -> Iterator[str]:
        """Return why keys of a state may vanish."""
        if self.limit > 0 and self.policy not in ("", "noeviction"):
            yield (
                f"maxmemory-policy is {self.policy}: Redis may drop keys of the state, and nothing would notice it. "
                "Set maxmemory-policy noeviction, or maxmemory 0"
            )

    @property
    def loses(self) -> str:
        """What a crash of the server may lose."""
        if self.appends is None or (self.appends and not self.fsync):
            return "the server does not tell how it writes to disk"
        if not self.appends:
            return "appendonly is no: a crash loses all batches since the last snapshot, or everything"
        if self.fsync == "always":
            return "appendonly yes, appendfsync always: a crash loses nothing"
        return f"appendonly yes, appendfsync {self.fsync}: a crash loses the last batches, about a second of them"

    @property
    def keeps_all(self) -> bool:
        return self.appends is True and self.fsync == "always"

    @property
    def with_replicas(self) -> str:
        """What is added for a fail-over."""
        if self.replicas == 0:
            return ""
        return "; replication is asynchronous: a fail-over may lose the last batches"


def check(server: RedisDatabase) -> PersistenceSettings:
    """Called at a start. Raises StateError for a server that cannot hold a state."""
    settings = PersistenceSettings.of(server)
    for problem in settings.problems():
        raise StateError(f"{server.shown}: {problem}")
    return settings


def check_evictions(server: RedisDatabase) -> None:
    """Called while a run goes on. Raises StateError if the server may drop keys since."""
    for problem in PersistenceSettings.of(server).evictions():
        raise StateError(f"{server.shown}: {problem}. It was set while the topology ran: look for missing keys")


def tell(server: RedisDatabase) -> None:
    """Called once for each run. Logs what a crash of the server may lose."""
    settings = check(server)
    if settings.keeps_all and settings.replicas == 0:
        log.info("%s: %s", server.shown, settings.loses)
        return
    ends = "A loss is noticed, and ends the run or the next start with an error"
    log.warning("%s: %s%s. %s", server.shown, settings.loses, settings.with_replicas, ends)


def findings(server: RedisDatabase) -> list[Finding]:
    """Return the same for `trident states check`."""
    settings = PersistenceSettings.of(server)
    problems = [Finding("error", problem) for problem in settings.problems()]
    return problems or [Finding("ok", f"{settings.loses}{settings.with_replicas}")]
