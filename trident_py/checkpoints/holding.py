"""Which driver has a checkpoint: the one that started last. The same rule on both clusters."""

from __future__ import annotations

import os
import socket
import uuid
from typing import Any

from ..errors import TridentError
from ..spouts.metadata import DRIVER, SharedMetadataStore, taken_by


class Holding:
    """This driver's hold on one component's checkpoint. ``where`` names it in messages."""

    def __init__(self, store: SharedMetadataStore, where: str) -> None:
        self.driver = {"host": socket.gethostname(), "pid": os.getpid(), "id": uuid.uuid4().hex}
        self._store = store
        self._where = where

    def begin(self) -> None:
        """Called before the checkpoint is read. Raises TridentError while `trident checkpoint convert` works on it."""
        if not self._store.occupy():
            raise TridentError(f"the checkpoint {self._where} is being converted: start again when that is done")

    def take(self) -> dict[str, Any]:
        """This driver has the checkpoint from now on; an older one is refused at its next `check`, or when it writes.

        Returns the record of the driver before it. Raises ZombieError if another driver starts at the same moment.
        """
        before: dict[str, Any] = {}

        def taken(entries: dict[int, Any]) -> tuple[int, Any]:
            before.clear()
            before.update(entries[max(entries)] if entries else {"batch": -1})
            return before["batch"] + 1, {**before, "driver": self.driver}

        self._store.seize(DRIVER, taken)
        return before

    def check(self) -> None:
        """Called before a batch is planned. Raises ZombieError if another driver has taken the checkpoint since."""
        if self._store.changed(DRIVER):
            raise taken_by(self._where, self._store.newest(DRIVER))
