"""What a run tells the code in it, under Storm-like keys of the conf. The only place that knows these keys."""

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
}


@dataclass(frozen=True)
class RunContext:
    """The place of a spout, an operation or a state in a run. What a conf does not tell has its default.

    ``lineage``: the checkpoint that is written. ``generation``: the state's fencing token, None without a driver.
    ``way``: how tuples reach the state's partition (`trident_py.run.ways`). ``home``: the address of the driver's
    objects (`trident_py.home`), None in the driver itself. ``running``: its ``transaction`` is the attempt at hand.
    ``metadata``: the store of the spouts' metadata. ``report(error)`` makes an event. When a participant is opened,
    ``txid`` is the last one that the checkpoint has committed, and ``forget`` says that the user gives up what the
    store knows of older ones. ``command_line``: errors offer settings as they are typed there.
    """

    topology: str = ""
    state: str = ""
    lineage: str = ""
    generation: int | None = None
    way: str = ""
    run: str = ""
    home: Any = None
    running: Any = None
    metadata: Any = None
    report: Callable[[BaseException], Any] | None = None
    txid: int = 0
    forget: bool = False
    command_line: bool = False

    @classmethod
    def of(cls, conf: Mapping[str, Any]) -> RunContext:
        return cls(**{name: value for name, key in KEYS.items() if (value := conf.get(key)) is not None})


def attempt_of(running: Any) -> int:
    """The attempt at hand, of a `RunContext`'s ``running``; 0 where no run counts them."""
    return 0 if running is None or running.transaction is None else int(running.transaction.attemptId)


def with_context(conf: Mapping[str, Any], **fields: Any) -> dict[str, Any]:
    """The conf with these fields of a RunContext."""
    return {**conf, **{KEYS[name]: value for name, value in fields.items()}}


def without_context(conf: Mapping[str, Any]) -> dict[str, Any]:
    """The conf as the user wrote it."""
    return {key: value for key, value in conf.items() if not str(key).startswith(_OURS)}
