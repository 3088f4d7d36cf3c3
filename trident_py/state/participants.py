"""The driver side of a state, around the commits of its partitions."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from ..errors import DefinitionError
from .base import StateFactory
from .roles import Participates


@dataclass(frozen=True)
class Remembered:
    """What a store has recorded of one state of a topology, before this driver changes anything there.

    ``where``: the table or topic and its store, for messages, without secrets. ``lineage``: the checkpoint that wrote
    it; "" if the store has nothing of this topology and state. ``written``: the highest txid that has left data or is
    complete. ``whole``: the txid that every part of the store has reached; None: the same as ``written``. ``last``:
    the highest txid that has begun. ``valued``: the highest txid in its values, set only if the lineage is another.
    ``run``: the token of the run that wrote it last (`RunContext.token`); "" if the store keeps none. What people are
    told, and no rule asks for: ``generation``, ``attempt`` (the latest one let in of ``last``), ``owner`` of the place.
    """

    where: str
    lineage: str = ""
    written: int = 0
    whole: int | None = None
    last: int = 0
    valued: int = 0
    run: str = ""
    generation: int = 0
    attempt: int = 0
    owner: str = ""

    @property
    def least(self) -> int:
        return self.written if self.whole is None else self.whole

    @property
    def highest(self) -> int:
        """The highest txid in the store. A new txid must be higher, or the store takes its batch for an old one."""
        return max(self.written, self.last, self.valued)


class BatchParticipant(ABC):
    """The driver side of one state of one topology, called by the batch loop. Inherit it.

    At a start `remembered` is called on all participants of a component, and their answers are compared with the
    checkpoint (`trident_py.engine.recovery`). Only if all agree, each one is opened. ``conf`` has topology.name,
    trident.state.name, trident.lineage (this checkpoint), and for `open` trident.txid (the last txid that the
    checkpoint has committed) and trident.forget (the user gives up what the store holds of older txids).

    `open` is called once per new driver: it raises the generation and returns it. It changes nothing else that another
    checkpoint could miss: the first `prepare` records that the store now belongs to this checkpoint. `prepare` is
    called before each attempt; `publish` after all partitions of all states have committed, with the receipts that
    `State.commit` returned in the successful tasks (none from partitions without tuples); `abort` after a failed
    attempt. On replay `prepare` and `publish` are called again with the same txid.

    All of them raise FailedException if the store is away or locked: `remembered` and `open` are then called again, the
    others fail the batch (`trident_py.model.retry`).

    A participant with ``decides = True`` makes a batch visible in `publish`. The batch loop then writes the receipts
    (plain JSON values) into the checkpoint first, and runs no further attempt of the batch: it calls `publish` with
    those receipts until it succeeds, also in the next driver. If `publish` is refused, `published` tells whether the
    batch is visible; if it is not, the batch may run again.
    """

    decides: bool = False
    keeps_receipts: bool = False
    """Whether the receipts are plain JSON values, and `publish` compares them with what the store has."""
    stays: ClassVar[str] = "it keeps neither earlier values nor the batch of a row"
    """Why it cannot go back to any batch."""

    def can_rewind(self, conf: dict, txid: int) -> str | None:
        """Return why the state cannot go back to how it was after this batch; None if it can. Reads only."""
        return self.stays

    def rewind(self, txid: int) -> None:
        """Go back to how the state was after this batch, as the driver that has called `open`. Called again if its
        outcome is unknown, also by a later driver: then it changes nothing more."""
        raise NotImplementedError

    def remembered(self, conf: dict) -> Remembered | None:
        """Return what the store has recorded of this state. Reads only. None: no store outlives the driver, or it
        keeps no txids; nothing is compared then."""
        return None

    def find_owner(self, conf: dict) -> tuple[str, str] | None:
        """Return the topology and the state that own the place, whoever asks. Reads only. None: nobody does, or it is
        not noted."""
        return None

    def measure_size(self) -> int | None:
        """Return how many bytes the state takes in its store now, as the store tells it. Reads only, and is called
        after `open`, on an object of its own. None: the store does not tell."""
        return None

    @abstractmethod
    def open(self, conf: dict) -> int: ...

    @abstractmethod
    def prepare(self, txid: int, attempt: int, numPartitions: int) -> None: ...

    @abstractmethod
    def publish(self, txid: int, attempt: int, receipts: Sequence[Any]) -> None: ...

    @abstractmethod
    def abort(self, txid: int, attempt: int) -> None: ...

    def give_up(self, txid: int) -> bool:
        """Make sure that no `publish` that is under way shows the batch later, and return True; False if it is
        visible, or that is unknown. Called only if it ``decides``, when it has refused the batch and the decision is to
        be withdrawn."""
        return False


def participant_of(factory: StateFactory) -> BatchParticipant | None:
    """Return the driver side of a state in one run, or None if it has none.

    A factory is frozen, so ``factory.participant()`` makes the object that keeps data between the calls. A factory
    without that method may be a BatchParticipant itself. Raises DefinitionError for anything else.
    """
    if not isinstance(factory, Participates):
        return factory if isinstance(factory, BatchParticipant) else None
    participant = factory.participant()
    if participant is None or isinstance(participant, BatchParticipant):
        return participant
    raise DefinitionError(
        f"{factory!r}: participant() returned a {type(participant).__name__}, which is not a BatchParticipant and "
        "would never be called. Inherit trident_py.state.BatchParticipant"
    )
