"""What a look at a state's store found, before anything is written."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, Protocol, runtime_checkable


@dataclass(frozen=True)
class Finding:
    """One thing that was looked at: it is right, it would be made at the start, or it would stop the start."""

    level: Literal["ok", "creates", "error"]
    text: str


@runtime_checkable
class Checkable(Protocol):
    """A StateFactory that can look at its store before the start. Optional.

    ``check`` is called by `trident states check`, in the process of the command. It connects, and writes
    nothing: no table, no row, no file. What would stop the start is a finding of level "error"; an exception
    becomes one too. No finding may hold a secret.
    """

    def check(self) -> Sequence[Finding]: ...
