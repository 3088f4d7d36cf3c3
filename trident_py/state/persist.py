"""Calls beginCommit, updateState and commit; no other code does. Storm: PartitionPersistProcessor."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..engine.phases import phase
from ..operations.base import TridentCollector
from .base import State, StateUpdater
from .roles import RollsBack


class SilentCollector(TridentCollector):
    """The collector of a persist whose new values are not read; updaters may skip making them."""

    __slots__ = ()

    def __init__(self, report: Callable[[BaseException], Any] | None = None) -> None:
        super().__init__(_ignore, report)


def _ignore(values: Any) -> None:
    """Drop what it is told."""


SILENT = SilentCollector()


def persist(
    state: State,
    txid: int | None,
    updater: StateUpdater,
    tuples: Sequence[Any],
    collector: TridentCollector,
    always: bool = False,
    step: Callable[[str], None] = _ignore,
) -> Any:
    """Commit the tuples of one partition of one batch to its state. Returns what `commit` returned.

    Runs where the tuples are. Without tuples it calls nothing and returns None, unless ``always``. On replay it is
    called again with the same txid. An exception of any of the three calls passes through; if the state has
    ``rollback(txid)``, that is called first, and its errors do not hide the first one. ``step`` is told the steps
    (`trident_py.model.fault_points`).
    """
    if len(tuples) == 0 and not always:
        return None
    try:
        # 1. the state gets the txid, 2. the values are written, 3. the writes become durable
        step("begin")
        with phase("state begin"):
            state.beginCommit(txid)
        step("begun")
        updater.updateState(state, tuples, collector)
        step("written")
        with phase("state commit"):
            receipt = state.commit(txid)
        step("committed")
        return receipt
    except BaseException as error:
        if isinstance(state, RollsBack):
            try:
                state.rollback(txid)
            except Exception as second:
                error.add_note(f"and the rollback of batch {txid} failed: {second}")
        raise
