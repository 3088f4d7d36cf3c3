"""What the next start of a component will do, in one sentence, by the rules of a start."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ...engine.hooks import StartInfo, wrap_start
from ...engine.startup import Startup
from ...engine.store_position import CheckpointState
from ...errors import TridentError
from ...model.retry import START_WAIT, start_wait
from .evidence import NextStart, StateEvidence

BEGINS, CONTINUES, REPEATS, PUBLISHES = "begins", "continues", "repeats", "publishes"
WAITS, REFUSED = "waits", "refused"
MOVES = NextStart("moves", "shuts out the driver, which commits batch after batch, and goes on where it is then")


def predict(standing: CheckpointState, decision: Mapping[str, Any] | None) -> NextStart:
    """Return what the log alone tells."""
    txid = standing.committed + 1
    if standing.is_new:
        return _begins(txid, standing.where)
    if decision is not None:
        attempt = decision["attempt"]
        return NextStart(PUBLISHES, f"publishes txid {txid} as attempt {attempt} has decided it, and goes on after it")
    if standing.begun:
        return NextStart(REPEATS, f"repeats txid {txid}, from attempt 0 on, because it has begun and is not over")
    return NextStart(CONTINUES, f"continues after txid {standing.committed}")


def _begins(txid: int, where: str) -> NextStart:
    return NextStart(BEGINS, f"begins with txid {txid}: there is no checkpoint in {where}, so it makes one")


def examine(opening: Startup, states: Sequence[StateEvidence], after: NextStart) -> NextStart:
    """Compare as a start does. ``after``: what it does if it is not refused."""
    conf = opening.program.conf
    for state in states:
        if state.away:
            wait = f"for up to {start_wait(conf):g} s ({START_WAIT})"
            return NextStart(WAITS, f"waits for state {state.state}, {wait}, then is refused: {state.error}")
    plan = opening.program.lowered.plan
    about = StartInfo(plan, conf, opening.standing, opening.store, lambda txid, text: None)
    try:
        agreed = wrap_start(opening, about).examine()
    except TridentError as error:
        return NextStart(REFUSED, f"is refused: {error}")
    if after.kind == BEGINS:
        return _begins(agreed.txid + 1, opening.standing.where)
    if after.kind != REPEATS or not states:
        return after
    have = "; ".join(f"{state.state} {state.of(agreed.txid + 1)}" for state in states)
    return NextStart(REPEATS, f"{after.sentence}: {have}")
