"""Poison tuples, the setting: whether a run looks for them, and what that means for its batches."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..config import Config
from ..model.plan import Plan

RECORDS = "poison"  # the checkpoint's path for what each txid excludes
TAKING_BACK = ("batch", "window")  # kinds of states in which a replay replaces what a failed attempt has left


def is_on(conf: Mapping[str, Any]) -> bool:
    return conf.get(Config.TOPOLOGY_POISON) == "bisect"


def takes_back(plan: Plan) -> bool:
    """Return whether each state that a component updates replaces in a replay what a failed attempt has committed."""
    return all(state.kind in TAKING_BACK for _, state in plan.updates())


def remark(plan: Plan) -> str:
    """Return what the guarantees say of a component."""
    when = "a batch that fails" if takes_back(plan) else "every batch"
    return f"a tuple that fails alone becomes a dead letter ({Config.TOPOLOGY_POISON}), and {when} first runs dry"
