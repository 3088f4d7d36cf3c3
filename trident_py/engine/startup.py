"""The start of a component on the driver: asks every state's store and compares the answers with the checkpoint. Only
if all agree does it raise the fences. Until then it writes nothing, neither to a store nor to the checkpoint."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import TypeVar

from ..checkpoints.metadata_store import MetadataStore
from ..model.context import RunContext, with_context
from ..model.retry import Patience
from ..state.participants import BatchParticipant, Remembered, participant_of
from .program import Program
from .recovery import Agreement, agree, check_kinds, check_rewound, check_spouts, check_streams
from .store_position import CheckpointState

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
            self.store.put(AGREEMENT, 0, agreed.record(self.standing, self._spouts(), self._kinds(), run))
        return agreed, generations

    def examine(self) -> Agreement:
        """Ask all states and compare. Raises as `open` does and changes nothing."""
        check_rewound(self.standing)
        check_streams(self.standing, self._spouts())
        check_spouts(self.program.conf, self.standing, self._spouts())
        check_kinds(self.standing, self._kinds())
        return self._compare()

    def is_untouched(self, txid: int) -> bool:
        """Return whether no state holds anything of a batch after this txid. False for a state whose store cannot
        tell."""
        if self.participants.keys() != self.program.states().keys():
            return False
        answers = self.ask_all()
        return all(answer is not None and answer.written <= txid for answer in answers.values())

    def ask(self, name: str) -> Remembered | None:
        """Ask the store of one state, once."""
        return self.participants[name].remembered(self.conf_of(name))

    def ask_all(self) -> dict[str, Remembered | None]:
        """Ask the stores of all states, and wait for those that are away."""
        return self._of_participants(self.ask)

    def _compare(self) -> Agreement:
        deciding = [name for name, participant in self.participants.items() if participant.decides]
        return agree(self.program.conf, self.standing, self.ask_all(), deciding)

    def raise_fences(self, agreed: Agreement) -> dict[str, int]:
        def raise_fence(name: str) -> int:
            self.check_owner()  # at each try: a newer driver may have started while this one waited for the store
            return self.participants[name].open(self.conf_of(name, agreed))

        return self._of_participants(raise_fence)

    def _of_participants(self, call: Callable[[str], T]) -> dict[str, T]:
        return {
            name: self.patience.wait_until_available(f"state {name}", partial(call, name)) for name in self.participants
        }

    def conf_of(self, name: str, agreed: Agreement | None = None) -> dict:
        """Return the configuration for a participant, with its context."""
        way = self.program.routes.get(name, "")
        conf = with_context(self.program.conf, state=name, lineage=self.standing.lineage, way=way)
        if agreed is not None:
            joined = agreed.joined.get(name)
            return with_context(conf, txid=agreed.txid, forget=joined is not None and joined.forget)
        return conf if self.standing.is_new else with_context(conf, txid=self.standing.committed)

    def _spouts(self) -> dict[str, str]:
        return {info.id: type(info.spout).__qualname__ for info in self.program.spouts}

    def _kinds(self) -> dict[str, str]:
        return {state.name: state.kind for _, state in self.program.lowered.plan.updates()}
