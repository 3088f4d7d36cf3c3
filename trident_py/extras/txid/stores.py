"""The states of a states file alone: what their stores remember, whichever topology has written them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from ...errors import FailedException, TridentError
from ...model.context import with_context
from ...state.participants import participant_of
from ...topology.user_modules import states_loading
from .evidence import StateEvidence
from .inspection import evidence_of
from .lines import states_table


def look_at_states(file: str) -> list[StateEvidence]:
    """Ask the store of each state of a file. Changes nothing."""
    return [_ask(name, factory) for name, factory in states_loading().load(file).items()]


def _ask(name: str, factory: Any) -> StateEvidence:
    """Ask as the topology that owns the place; without an owner, nothing is known of txids."""
    conf = with_context({}, topology="", state=name, reads_only=True)
    try:
        participant = participant_of(factory)
        owner = None if participant is None else participant.find_owner(conf)
        if participant is None or owner is None:
            return StateEvidence(name)
        told = participant.remembered(with_context(conf, topology=owner[0], state=owner[1]))
    except TridentError as error:
        return StateEvidence(name, error=str(error), away=isinstance(error, FailedException))
    return StateEvidence(name) if told is None else evidence_of(name, told, decided=False)


def lines_of(file: str, found: Sequence[StateEvidence]) -> Iterator[str]:
    """Yield what `trident txid ls` prints of a states file."""
    yield f"{file}: no checkpoint is known; name the topology, and what the next start will do is told"
    yield from (f"  {line}" for line in states_table(found))
