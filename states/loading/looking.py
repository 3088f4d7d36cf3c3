"""Checks the stores of a file's states before the start: `trident states check`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from ..findings import Finding
from .reading import Definition, definitions


@dataclass(frozen=True)
class Look:
    """One state of a file, with the findings at its store."""

    name: str
    type: str
    state: str
    findings: tuple[Finding, ...]

    @property
    def stops(self) -> bool:
        """Whether a finding would stop the start."""
        return any(finding.level == "error" for finding in self.findings)


def look(path: str | Path) -> list[Look]:
    """Checks the store of each state of a file: connects, and writes nothing.

    Raises DefinitionError if the file is wrong. A store that cannot be reached is a finding.
    """
    return [_look(each) for each in definitions(path)]


def _look(state: Definition) -> Look:
    hide = state.document.hide
    try:
        found = [Finding(each.level, hide(each.text)) for each in state.settings.check(state.factory)]
    except Exception as error:  # an error of a database driver or of a third-party type
        text = f"{type(error).__name__}: {error}".partition("(Background on this error")[0]
        found = [Finding("error", hide(" ".join(text.split())))]
    return Look(state.name, state.type, hide(repr(state.factory)), tuple(found))
