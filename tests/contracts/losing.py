"""What every state proves of a store that has lost something: batches, commits, or its history."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any, ClassVar

import pytest

from contracts.backups import put_back, tables_of
from states.sql.table import TablePlace
from trident_py.engine.store_position import CheckpointState
from trident_py.errors import FailedException, LineageError, StateError
from trident_py.state import BaseStateUpdater


class Idle(BaseStateUpdater):
    """Writes nothing."""

    def updateState(self, state: Any, tuples: Any, collector: Any) -> None: ...


class TellsWhatTheStoreLost:
    def backup(self: Any, factory: Any) -> Callable[[], None]:
        """Copies all that the store has; returns what puts it back, as an operator does under a running driver."""
        store = TablePlace(factory.url, factory.table).store()
        return partial(put_back, store, tables_of(store))

    tells_in_attempt: ClassVar[int] = 0
    """The attempt in which a store that has gone back is noticed."""

    @pytest.mark.parametrize("attempt", [0, 1])
    def test_a_store_that_goes_back_under_a_driver_is_told_before_anything_is_written(
        self: Any, factory: Any, attempt: int
    ) -> None:
        """Also if it is asked next in a further attempt, whose begin is recorded."""
        driver = self.batches(factory, 2)
        restore = self.backup(factory)
        for txid in (3, 4):
            self.batch(driver, txid)
        restore()
        before = self.found(factory)
        words = "gone back while the topology ran: its last complete batch is 2, and this driver has completed batch 4"
        for rows in (self.rows(5), []):
            with pytest.raises(StateError, match=words):
                driver.batch(rows, 5, attempt=max(attempt, self.tells_in_attempt))
        assert self.found(factory) == before
        self.refused(factory, "has the batches up to 2, .* has committed batch 4", 4)

    @pytest.mark.parametrize("begun", [True, False])
    def test_a_commit_that_the_store_has_lost_is_repeated(self: Any, factory: Any, begun: bool) -> None:
        """A replica that lacks the last moment takes over, with the beginning of the batch or without."""
        driver = self.batches(factory, 2)
        before = self.backup(factory)
        driver.participant.prepare(3, 0, 2)
        restore = self.backup(factory) if begun else before
        receipts = driver.tasks(self.rows(3), 3)
        restore()
        with pytest.raises((FailedException, StateError)):
            driver.publish(3, 0, receipts)
        driver.participant.abort(3, 0)
        self.batch(driver, 3, attempt=1)
        self.batch(driver, 4)
        self.holds(factory, range(1, 5))

    def test_copies_that_ran_on_are_not_crossed(self: Any, factory: Any) -> None:
        """Lineage and txid agree, the histories do not."""
        self.batches(factory, 2)
        record = {"base": 0, "states": {"s": ["first", 2, 2, False, "", 2]}, "run": "this"}
        standing = CheckpointState("checkpoint", "contract", record, "first", 3)
        self.batch(self.on(factory, 2, run="t-other"), 3)
        with pytest.raises(LineageError, match="last written by the run 'other', which this checkpoint does not know"):
            self.driver(factory, standing=standing)
        own = replace(standing, record={**record, "run": "other"})
        self.driver(factory, standing=own)
        self.batch(self.driver(factory, standing=standing, **{"topology.lineage.accept": "s@3:3"}), 4)
        self.holds(factory, range(1, 5))

    def test_partitions_that_touch_little_are_complete(self: Any, factory: Any) -> None:
        """Nothing, before any row has decided the columns; then one row, which may be in any file."""
        driver = self.driver(factory)
        driver.updater = Idle()
        self.batch(driver, 1)
        driver.updater = self.updater
        for txid in range(2, 9):
            driver.batch(self.rows(txid)[:1], txid)
        assert driver.participant.remembered(driver.conf).least == 8

    def test_the_end_of_a_decided_batch_tells_whose_it_is(self: Any, factory: Any) -> None:
        """A run that only ended what another one had decided is known to the next one."""
        self.batch(self.on(factory, 0, states={}, run="t-first"), 1)
        found = factory.participant().remembered({"topology.name": "contract", "trident.state.name": "s"})
        self.on(factory, 1, run="t-then", begun=True, decided=True).publish(2, 0, [])
        record = {"base": 0, "states": {"s": ["first", found.last, 1, False, "first", 1]}, "run": "then"}
        self.driver(factory, standing=CheckpointState("checkpoint", "contract", record, "first", 2))
