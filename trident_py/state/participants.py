"""What a state does on the driver, around the commits of its partitions."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ..errors import DefinitionError
from .base import StateFactory
from .roles import Participates


@dataclass(frozen=True)
class Remembered:
    """What a store knows of a state of a topology, before a driver changes anything there.

    ``where``: the table or topic and its store, for eyes: no secrets. ``lineage``: the checkpoint that wrote it, "" if
    the store knows nothing under this topology and state. ``written``: the highest txid that has left data, or that is
    over. ``whole``: the txid behind which no place of the store is; None: the same as ``written``. ``last``: the
    highest txid that was begun. ``valued``: the highest txid that its values carry; told where the lineage is another.
    """

    where: str
    lineage: str = ""
    written: int = 0
    whole: int | None = None
    last: int = 0
    valued: int = 0

    @property
    def least(self) -> int:
        return self.written if self.whole is None else self.whole

    @property
    def highest(self) -> int:
        """No new txid may be as low as this one, if the store's batches are not to be taken for those to come."""
        return max(self.written, self.last, self.valued)


class BatchParticipant(ABC):
    """Called on the driver by the batch loop, for one state of one topology. Inherit it.

    At a start all participants of a component are first asked (`remembered`), and what they say is compared with the
    checkpoint (`trident_py.run.agreement`); only if all of them agree each one is opened. ``conf`` tells the place:
    topology.name, trident.state.name, trident.lineage (this checkpoint), and for `open` trident.txid (the last txid
    that the checkpoint has committed) and trident.forget (the user gives up what the store knows of older txids).

    `open` once for each new driver: raises the fencing token and returns it. It changes nothing else that another
    checkpoint could miss: that the store belongs to this checkpoint now is written by the first `prepare`.
    `prepare` before each attempt; `publish` after all partitions of all states have committed, with what
    `State.commit` returned in the tasks that succeeded (nothing of partitions without tuples); `abort` after an attempt
    that failed. On replay `prepare` and `publish` come again with the same txid.

    All of them raise FailedException where the store is away or locked: `remembered` and `open` are called again then,
    the others fail the batch (`trident_py.patience`).

    A participant with ``decides = True`` makes a batch visible in `publish`. Then the batch loop writes the receipts
    (plain JSON values) into the checkpoint first, and after that no attempt of the batch runs any more: `publish`
    comes with those receipts until it succeeds, in the next driver too. It has `published` besides: if `publish` is
    refused, that tells whether the batch is visible nevertheless; if not, it may be run again.
    """

    decides: bool = False

    def remembered(self, conf: dict) -> Remembered | None:
        """What the store knows of this state. Reads only. None: there is no store that outlives a driver, or it keeps
        no txids; nothing is compared then."""
        return None

    @abstractmethod
    def open(self, conf: dict) -> int: ...

    @abstractmethod
    def prepare(self, txid: int, attempt: int, numPartitions: int) -> None: ...

    @abstractmethod
    def publish(self, txid: int, attempt: int, receipts: Sequence[Any]) -> None: ...

    @abstractmethod
    def abort(self, txid: int, attempt: int) -> None: ...

    def published(self, txid: int) -> bool:
        """Asked only if it ``decides``."""
        raise NotImplementedError


def participant_of(factory: StateFactory) -> BatchParticipant | None:
    """The driver's side of a state in one run, or None if it has none.

    A factory is frozen, so what remembers the run between the calls is what ``factory.participant()`` makes;
    a factory without that method may be a BatchParticipant itself. Raises DefinitionError for anything else.
    """
    if not isinstance(factory, Participates):
        return factory if isinstance(factory, BatchParticipant) else None
    made = factory.participant()
    if made is None or isinstance(made, BatchParticipant):
        return made
    raise DefinitionError(
        f"{factory!r}: its participant() returned a {type(made).__name__}, which is not a BatchParticipant, and would "
        "never be called. Inherit trident_py.state.BatchParticipant"
    )
