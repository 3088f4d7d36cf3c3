"""The matrix of guarantees: spout kind x state kind, whether a replay may differ, and whether its keys may."""

from __future__ import annotations

from typing import NamedTuple

from ...spouts.interfaces import NON_TRANSACTIONAL, OPAQUE, TRANSACTIONAL

EXACTLY = "exactly once"
IN_EFFECT = "exactly once in effect"
AT_LEAST = "at least once"
WRONG = "wrong"
NONE = "no guarantee"

ORDER = (EXACTLY, IN_EFFECT, AT_LEAST, NONE, WRONG)
STATE_KINDS = (
    "non-transactional", "transactional", "opaque", "insert-ignore", "upsert", "append", "batch", "sequence", "window",
)  # fmt: skip


class Cell(NamedTuple):
    """One cell: the guarantee, the reason, and what would raise it (empty for the best guarantees)."""

    guarantee: str
    reason: str
    raise_by: str = ""


_AGAIN = "a replayed batch is applied again"
_STORED = "an existing row is not written again"
_REPLACED = "a record with a deterministic key replaces the earlier one"
_SKIPPED = "a replay may hold other tuples, but skips the keys or partitions that a failed attempt committed"
_PAST = "a number already applied is dropped, and the last one is kept with the data"
_ENTERS = "the tuples of a batch enter under its txid, and a replay replaces what a failed attempt has entered"
_FLIP = "a whole batch is staged, and becomes visible in one transaction"

_CELLS: dict[tuple[str, str], Cell] = {
    (TRANSACTIONAL, "non-transactional"): Cell(AT_LEAST, _AGAIN, "make the state transactional or opaque"),
    (TRANSACTIONAL, "transactional"): Cell(EXACTLY, "a batch never changes, and its txid is kept with each value"),
    (TRANSACTIONAL, "opaque"): Cell(EXACTLY, "the value before the batch is kept with each value"),
    (TRANSACTIONAL, "insert-ignore"): Cell(IN_EFFECT, _STORED),
    (TRANSACTIONAL, "upsert"): Cell(IN_EFFECT, _REPLACED),
    (TRANSACTIONAL, "append"): Cell(EXACTLY, "the rows of a partition and their txid are written in one transaction"),
    (TRANSACTIONAL, "batch"): Cell(EXACTLY, f"{_FLIP} with its txid"),
    (TRANSACTIONAL, "sequence"): Cell(IN_EFFECT, _PAST),
    (TRANSACTIONAL, "window"): Cell(EXACTLY, _ENTERS),
    (OPAQUE, "non-transactional"): Cell(AT_LEAST, _AGAIN, "make the state opaque"),
    (OPAQUE, "transactional"): Cell(WRONG, _SKIPPED, "make the state opaque"),
    (OPAQUE, "opaque"): Cell(EXACTLY, "except keys that a failed attempt wrote and the replay does not touch (S12)"),
    (OPAQUE, "insert-ignore"): Cell(IN_EFFECT, f"{_STORED}, whichever batch brings it"),
    (OPAQUE, "upsert"): Cell(IN_EFFECT, f"{_REPLACED}, whichever batch brings it"),
    (OPAQUE, "append"): Cell(WRONG, _SKIPPED, "make the state a batch state"),
    (OPAQUE, "batch"): Cell(EXACTLY, f"{_FLIP}; a visible batch is never emitted again with other tuples"),
    (OPAQUE, "sequence"): Cell(IN_EFFECT, f"{_PAST}, whichever batch brings it"),
    (OPAQUE, "window"): Cell(EXACTLY, _ENTERS),
}

# The cells if a replay may differ also in the keys of its rows.
_MOVED: dict[str, Cell] = {
    "transactional": Cell(WRONG, _SKIPPED),
    "opaque": Cell(AT_LEAST, "a replay updates other keys, and those of the failed attempt stay (S12)"),
    "insert-ignore": Cell(AT_LEAST, "a replay writes its rows again, under other keys"),
    "upsert": Cell(AT_LEAST, "a replay writes its records again, under other keys"),
    "sequence": Cell(WRONG, "a row may get another number in a replay, and is then stored twice, or dropped"),
}

_LOST = "the spout does not promise to emit a failed batch again"
_RE_READ = "use a transactional or opaque spout"
_NO_PROMISE: dict[str, str] = {
    "insert-ignore": f"each key is stored once, but {_LOST}",
    "upsert": f"a key's last record stays, but {_LOST}",
    "sequence": f"a repeated number is dropped, but {_LOST}, so a gap is never filled",
}


def cell(spout_kind: str, state_kind: str, moved: bool = False) -> Cell:
    """Return the cell for a spout kind, as the state sees it (`effective_kind`), and a state kind. An unknown kind is
    at least once.

    ``moved``: a replay may bring other keys.
    """
    if spout_kind == NON_TRANSACTIONAL:
        return Cell(NONE, _NO_PROMISE.get(state_kind, _LOST), _RE_READ)
    if moved and spout_kind == OPAQUE and state_kind in _MOVED:
        return _MOVED[state_kind]
    unknown = Cell(
        AT_LEAST,
        f"the kind {state_kind!r} is not known; a replayed batch may be applied again",
        f"use a known kind ({', '.join(STATE_KINDS[1:])}), or declare `guarantees` in the factory",
    )
    return _CELLS.get((spout_kind, state_kind), unknown)


def effective_kind(spout_kind: str, changing: bool) -> str:
    """Return the spout kind as a state behind functions sees it. ``changing``: their results may differ on a replay."""
    return OPAQUE if changing and spout_kind == TRANSACTIONAL else spout_kind


def worse(guarantee: str, other: str) -> str:
    return max(guarantee, other, key=ORDER.index)
