"""Findings: the results of checking a state's store before anything is written."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, Protocol, runtime_checkable

from trident_py.model.requirements import role


@dataclass(frozen=True)
class Finding:
    """One result: the thing is right ("ok"), the start would create it ("creates"), it may be wrong ("warning"), or it
    would stop the start ("error")."""

    level: Literal["ok", "creates", "warning", "error"]
    text: str


@role
@runtime_checkable
class Checkable(Protocol):
    """A StateFactory that can check its store before the start. Optional.

    `trident states check` calls ``check`` in the process of the command. ``check`` connects and writes nothing: no
    table, no row, no file. A finding of level "error" would stop the start; an exception counts as one. No finding may
    contain a secret.
    """

    def check(self) -> Sequence[Finding]: ...


@role
@runtime_checkable
class CheckableAsQueried(Protocol):
    """A StateFactory whose start is another one in a topology that only queries the state. Optional, beside
    `Checkable`."""

    def check_queried(self) -> Sequence[Finding]:
        """Check the store as `Checkable.check` does, for a topology that only queries the state."""
