"""The context that a run passes to its code under Storm-like keys of the conf. Only this module knows these keys."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

_OURS = "trident."
KEYS = {
    "topology": "topology.name",
    "state": "trident.state.name",
    "lineage": "trident.lineage",
    "generation": "trident.generation",
    "way": "trident.way",
    "run": "trident.run",
    "home": "trident.home",
    "running": "trident.context",
    "metadata": "trident.metadata",
    "report": "trident.report",
    "txid": "trident.txid",
    "forget": "trident.forget",
    "command_line": "trident.command.line",
    "watcher": "trident.watcher",
    "reads_only": "trident.reads.only",
}


class CurrentBatch:
    """The batch that a process works on, for the states of one component: its ``transaction`` (a TransactionAttempt),
    what the spouts share with its tasks, by spout id, and its ``time`` by the driver's clock, in milliseconds since
    1970. Changes with every attempt."""

    def __init__(self) -> None:
        self.transaction: Any = None
        self.shared: Mapping[str, Any] = {}
        self.time = 0


@dataclass(frozen=True)
class RunContext:
    """The place of a spout, an operation or a state in a run. A field that the conf lacks has its default.

    ``lineage``: the identity of the checkpoint. ``generation``: the state's fencing token, None without a driver.
    ``way``: how tuples reach the state's partition (`trident_py.engine.program`). ``home``: the address of the
    driver's objects (`trident_py.rpc.service`), None in the driver itself. ``running``: the attempt, and what spouts
    share. ``metadata``: the store of the spouts' metadata. ``report(error)`` records an event. When a participant is
    opened, ``txid`` is the last txid that the checkpoint has committed, and ``forget`` means that the user gives up the
    store's knowledge of older txids. ``command_line``: error messages show settings as command-line options.
    ``watcher``: who is told the steps of the run (`trident_py.model.fault_points`). ``reads_only``: nothing may be
    written to a store; no file of it appears.
    """

    topology: str = ""
    state: str = ""
    lineage: str = ""
    generation: int | None = None
    way: str = ""
    run: str = ""
    home: Any = None
    running: CurrentBatch | None = None
    metadata: Any = None
    report: Callable[[BaseException], Any] | None = None
    txid: int = 0
    forget: bool = False
    command_line: bool = False
    watcher: Any = None
    reads_only: bool = False

    @property
    def token(self) -> str:
        """The random end of ``run``: checkpoint and stores both keep it, as the run that wrote them last."""
        return self.run.rpartition("-")[2]

    @classmethod
    def of(cls, conf: Mapping[str, Any]) -> RunContext:
        return cls(**{name: value for name, key in KEYS.items() if (value := conf.get(key)) is not None})


def attempt_of(running: CurrentBatch | None) -> int:
    """Return the number of the current attempt, from a `RunContext`'s ``running``; 0 outside of a run."""
    return 0 if running is None or running.transaction is None else int(running.transaction.attemptId)


def with_context(conf: Mapping[str, Any], **fields: Any) -> dict[str, Any]:
    """Return the conf with these fields of a RunContext added."""
    return {**conf, **{KEYS[name]: value for name, value in fields.items()}}


def without_context(conf: Mapping[str, Any]) -> dict[str, Any]:
    """Return the conf as the user wrote it."""
    return {key: value for key, value in conf.items() if not str(key).startswith(_OURS)}
