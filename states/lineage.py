"""A checkpoint that is not the one that wrote the store: going on is the user's choice, one setting for each way."""

from __future__ import annotations

from typing import Any, NamedTuple

from trident_py.errors import LineageError

BASE = "topology.txid.base"
ABANDON = "topology.lineage.abandon"


class Remembered(NamedTuple):
    """What a store knows of a state: whose batches, up to which, and the highest txid that its values carry."""

    topology: str
    state: str
    where: str
    lineage: str
    last: int
    valued: int


def begins_anew(conf: dict, known: Remembered) -> bool:
    """Whether the ledger forgets the old lineage; else txids go on behind it. Raises LineageError with the choices."""
    base = conf.get(BASE)
    if base == "continue" or (isinstance(base, int) and not isinstance(base, bool) and base >= known.last):
        return False
    if conf.get(ABANDON) == known.lineage and known.lineage and known.valued == 0:
        return True
    raise LineageError(
        f"state {known.state!r} of topology {known.topology!r} in {known.where} remembers batch {known.last}, written "
        f"under another checkpoint (lineage {known.lineage!r}); this one starts anew, and its batches would be skipped "
        f"or counted twice. {_why(base, conf.get(ABANDON), known)}Choose: (1) restore the checkpoint that wrote the "
        f'store; (2) continue the txid sequence behind it, conf["{BASE}"] = "continue" or a number of at least '
        f'{known.last}; (3) start a new lineage from txid 1, conf["{ABANDON}"] = {known.lineage!r}, where no value '
        "carries a txid; (4) process again into a new table or topic. In (2) and (3) what the source sends again is "
        "applied again"
    )


def _why(base: Any, abandon: Any, known: Remembered) -> str:
    if abandon is not None and known.valued > 0:
        return f"{ABANDON} cannot help: the table's values carry txids up to {known.valued}. "
    if abandon is not None:
        return f"{ABANDON} is {abandon!r}, which is another lineage. "
    return "" if base is None else f"{BASE} is {base!r}, which is behind it. "
