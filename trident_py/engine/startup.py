"""The start of a component on the driver: asks every state's store and compares the answers with the checkpoint. Only
if all agree does it raise the fences. Until then it writes nothing, neither to a store nor to the checkpoint."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import TypeVar

from ..checkpoints.metadata_store import MetadataStore
from ..errors import LineageError
from ..model.context import RunContext, with_context
from ..model.retry import Patience
from ..state.participants import BatchParticipant, Remembered, participant_of
from .program import Program
from .recovery import Agreement, agree, check_rewound, check_spouts, check_streams
from .store_position import CheckpointState, Joined

T = TypeVar("T")
AGREEMENT = "component"  # the checkpoint's path for the record of `Agreement`


def participants_of(program: Program) -> dict[str, BatchParticipant]:
    """Return the participants of the component's states, by state name. A state may have none."""
    participants = {name: participant_of(factory) for name, factory in program.states().items()}
    return {name: participant for name, participant in participants.items() if participant is not None}


@dataclass(frozen=True)
class Startup:
    """One start of one component. ``store`` is the checkpoint's metadata store; ``check_owner`` raises ZombieError if
    another driver owns the checkpoint; ``records``: whether it records what the stores agree on."""

    program: Program
    participants: Mapping[str, BatchParticipant]
    patience: Patience
    store: MetadataStore
    standing: CheckpointState
    check_owner: Callable[[], None] = lambda: None
    records: bool = True

    def open(self) -> tuple[Agreement, dict[str, int]]:
        """Open all states, record the agreement in the checkpoint, and return it with each state's generation.

        Raises LineageError if a store disagrees, StateError if a store stays unavailable, Stopped if the run is stopped
        meanwhile, ZombieError if another driver has started meanwhile: that one is not shut out. An older driver may
        write until the fences are raised, so the stores are asked again after that.
        """
        agreed = self.examine()
        generations = self.raise_fences(agreed)
        while (again := self._compare()) != agreed:
            agreed, generations = again, self.raise_fences(again)
        if self.records:
            run = RunContext.of(self.program.conf).token
            self.store.put(AGREEMENT, 0, agreed.record(self.standing, self._spouts(), run))
        return agreed, generations

    def examine(self) -> Agreement:
        """Ask all states and compare. Raises as `open` does and changes nothing."""
        check_rewound(self.standing)
        check_streams(self.standing, self._spouts())
        check_spouts(self.program.conf, self.standing, self._spouts())
        return self._compare()

    def is_untouched(self, txid: int) -> bool:
        """Return whether no state holds anything of a batch after this txid. False for a state whose store cannot
        tell."""
        if self.participants.keys() != self.program.states().keys():
            return False
        answers = self._ask_stores()
        return all(answer is not None and answer.written <= txid for answer in answers.values())

    def ask(self, name: str) -> Remembered | None:
        """Ask the store of one state, once."""
        return self.participants[name].remembered(self._conf(name, None))

    def can_rewind(self, name: str, txid: int) -> str | None:
        """Return why a state cannot go back to a batch; None if it can, or has nothing of later ones."""
        why, told, joined = self._why_not(name, txid), self._look(name), self.standing.find_joined(name)
        if told is None:
            return why
        last = self.standing.committed
        accepted = joined is not None and joined == Joined.of(told, last, joined.forget)
        ours = told.lineage == self.standing.lineage
        if ours and told.least < min(txid, last) and not accepted:
            return f"its store has the batches up to {told.least} alone"
        return None if told.written <= txid else why

    def rewind(self, name: str, txid: int) -> None:
        """Take a state back, once its fence is raised. One that cannot go back has nothing of later batches, and stays
        as it is. Raises LineageError if it has."""
        why, told = self._why_not(name, txid), self._look(name)
        if why is None:
            self.participants[name].rewind(txid)
        elif told is None or told.written > txid:
            raise LineageError(f"state {name!r} cannot go back to txid {txid}: {why}")

    def ask_rewound(self, txid: int) -> dict[str, Joined]:
        """Ask the states once all of them have gone back to a batch."""
        joined = {}
        for name, answer in self._ask_stores().items():
            before = self.standing.find_joined(name)
            if answer is not None:
                joined[name] = Joined.of(answer, txid, before is not None and before.forget)
        return joined

    def _why_not(self, name: str, txid: int) -> str | None:
        return self.participants[name].can_rewind(self._conf(name, None), txid)

    def _look(self, name: str) -> Remembered | None:
        """Ask the store of one state, and leave no trace there."""
        return self.participants[name].remembered(with_context(self._conf(name, None), reads_only=True))

    def _ask_stores(self) -> dict[str, Remembered | None]:
        return self._of_participants(self.ask)

    def _compare(self) -> Agreement:
        deciding = [name for name, participant in self.participants.items() if participant.decides]
        return agree(self.program.conf, self.standing, self._ask_stores(), deciding)

    def raise_fences(self, agreed: Agreement) -> dict[str, int]:
        def raise_fence(name: str) -> int:
            self.check_owner()  # at each try: a newer driver may have started while this one waited for the store
            return self.participants[name].open(self._conf(name, agreed))

        return self._of_participants(raise_fence)

    def _of_participants(self, call: Callable[[str], T]) -> dict[str, T]:
        return {
            name: self.patience.wait_until_available(f"state {name}", partial(call, name)) for name in self.participants
        }

    def _conf(self, name: str, agreed: Agreement | None) -> dict:
        """Return the configuration for a participant, with its context."""
        way = self.program.routes.get(name, "")
        conf = with_context(self.program.conf, state=name, lineage=self.standing.lineage, way=way)
        if agreed is not None:
            joined = agreed.joined.get(name)
            return with_context(conf, txid=agreed.txid, forget=joined is not None and joined.forget)
        return conf if self.standing.is_new else with_context(conf, txid=self.standing.committed)

    def _spouts(self) -> dict[str, str]:
        return {info.id: type(info.spout).__qualname__ for info in self.program.spouts}
