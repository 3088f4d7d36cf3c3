"""The verdict on an operation by its source: what `trident_py.operations.determinism` calls if this extra is there."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ...operations.determinism import CHANGING, DETERMINISTIC, UNSEEN, Verdict
from .reader import read


def judge(operation: Any, trusted: Iterable[str] = ()) -> Verdict:
    """Return the verdict by the declaration, else by the source of the operation. Executes no user code.

    ``trusted``: modules, classes and functions to take as deterministic; "*" takes everything unseen as deterministic.
    """
    findings = read(operation, trusted)
    for kind in (CHANGING, UNSEEN) if "*" not in trusted else (CHANGING,):
        reasons = [finding.what for finding in findings if finding.kind == kind]
        if reasons:
            more = f" (and {len(reasons) - 1} more)" if len(reasons) > 1 else ""
            return Verdict(kind, f"{'not seen: ' if kind == UNSEEN else ''}{reasons[0]}{more}")
    return Verdict(DETERMINISTIC)


def follows_hash_seed(operation: Any, trusted: Iterable[str] = ()) -> str:
    """Return what in the operation depends on Python's hash seed: a set's order, or `hash`; "" if nothing does."""
    return next((finding.what for finding in read(operation, trusted) if finding.seeded), "")
