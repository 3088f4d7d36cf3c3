"""What a state does on the driver, around the commits of its partitions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol, runtime_checkable

from .base import StateFactory


@runtime_checkable
class BatchParticipant(Protocol):
    """Called on the driver by the batch loop, for one state of one topology.

    `open` once for each new driver, before its first batch: raises the fencing token and returns it. All of these
    raise FailedException where the store is away or locked: `open` (and `last_txid`, if there is one) is called again
    then, the others fail the batch (`trident_py.patience`).
    `prepare` before each attempt; `publish` after all partitions of all states have committed, with what
    `State.commit` returned in the tasks that succeeded; `abort` after an attempt that failed. On replay
    `prepare` and `publish` come again with the same txid. `open` raises LineageError if the checkpoint is
    not the one that wrote the store.

    A participant with ``decides = True`` makes a batch visible in `publish`. Then the batch loop writes the receipts
    (plain JSON values) into the checkpoint first, and after that no attempt of the batch runs any more: `publish`
    comes with those receipts until it succeeds, in the next driver too. It has ``published(txid) -> bool`` besides: if
    `publish` is refused, that tells whether the batch is visible nevertheless; if not, it may be run again.
    """

    def open(self, conf: dict) -> int: ...
    def prepare(self, txid: int, attempt: int, numPartitions: int) -> None: ...
    def publish(self, txid: int, attempt: int, receipts: Sequence[Any]) -> None: ...
    def abort(self, txid: int, attempt: int) -> None: ...


def participant_of(factory: StateFactory) -> BatchParticipant | None:
    """The driver's side of a state in one run, or None if it has none.

    A factory is frozen, so what remembers the run between the calls is what ``factory.participant()`` makes;
    a factory without that method may be a BatchParticipant itself.
    """
    make = getattr(factory, "participant", None)
    if make is not None:
        made = make()
        return made if isinstance(made, BatchParticipant) else None
    return factory if isinstance(factory, BatchParticipant) else None
