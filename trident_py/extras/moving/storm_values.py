"""The values of Storm's map states in their three forms, and what becomes of them behind the last committed batch.

    non-transactional    value
    transactional        [txid, value]
    opaque               [currTxid, curr, prev]

Source in Storm: JSONOpaqueSerializer and its siblings, OpaqueValue.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from ...errors import DefinitionError, StateError
from ...state import OpaqueValue, StateType, TransactionalValue
from .checkpoint import Moved

PARTS = {StateType.TRANSACTIONAL: 2, StateType.OPAQUE: 3}
WRAP: dict[StateType, Callable[[Any], Any]] = {
    StateType.TRANSACTIONAL: partial(tuple.__new__, TransactionalValue),
    StateType.OPAQUE: partial(tuple.__new__, OpaqueValue),
    StateType.NON_TRANSACTIONAL: lambda value: value,
}
Key = tuple[Any, ...]


def decode(
    kind: StateType, keys: Sequence[Key], texts: Sequence[bytes], number: Callable[[str], Any] | None = None
) -> list[Any]:
    """Return the values of JSON texts; ``number`` makes those with a fraction. Raises StateError that names the
    first key whose value has another form."""
    try:
        values: list[Any] = json.loads(b"[" + b",".join(texts) + b"]", parse_float=number)
        if len(values) != len(texts):
            raise ValueError("several values")
    except (ValueError, RecursionError):
        values = [_decode_one(kind, key, text, number) for key, text in zip(keys, texts, strict=True)]
    return check_form(kind, keys, values)


def _decode_one(kind: StateType, key: Key, text: bytes, number: Callable[[str], Any] | None) -> Any:
    try:
        return json.loads(text, parse_float=number)
    except (ValueError, RecursionError):
        raise other_form(kind, key, text.decode("utf-8", "replace")) from None


def check_form(kind: StateType, keys: Sequence[Key], values: Sequence[Any]) -> list[Any]:
    """Return the values as Storm's classes. Raises StateError for one that this kind of state does not write."""
    if kind is StateType.NON_TRANSACTIONAL:
        return list(values)
    if not _all_have_form(values, PARTS[kind]):
        for key, value in zip(keys, values, strict=True):
            if not _all_have_form([value], PARTS[kind]):
                raise other_form(kind, key, repr(value))
    return list(map(WRAP[kind], values))


def _all_have_form(values: Sequence[Any], parts: int) -> bool:
    return (
        set(map(type, values)) <= {list}
        and set(map(len, values)) <= {parts}
        and {type(value[0]) for value in values} <= {int, type(None)}
    )


def other_form(kind: StateType, key: Key, found: str) -> StateError:
    """Return the error for what this kind of state does not write."""
    form = {2: "[txid, value]", 3: "[currTxid, curr, prev]"}.get(PARTS.get(kind, 0), "a JSON value")
    return StateError(
        f"key {list(key)!r}: {found[:80]} is not {form}, which a {kind.value} state of Storm writes; name the kind of "
        "the state with --kind, or what else is there with --match. Nothing of its part was written"
    )


@dataclass
class ImportTally:
    """What was done with the keys: how many were taken, of them with their value before the batch under way, or kept
    as part of it because it is repeated; how many were left out because that batch had made them."""

    taken: int = 0
    previous: int = 0
    absent: int = 0
    kept: int = 0


class Rebase:
    """Turns values of Storm into those of our state, behind the last committed batch.

    An opaque value of the batch under way is the one before it. A transactional one stays if the checkpoint repeats
    that batch. Else it cannot be told what the batch did. Twice is the same as once.
    """

    def __init__(self, source: StateType, target: StateType, moved: Moved, accept: bool = False) -> None:
        self.tally = ImportTally()
        self._source, self.target, self._moved, self._accept = source, target, moved, accept
        self._check_kinds()

    def _check_kinds(self) -> None:
        """Raise DefinitionError if the source cannot tell what the batch under way did."""
        plain = self._source is StateType.NON_TRANSACTIONAL
        if plain and self._moved.under_way and not self._accept:
            raise DefinitionError(
                f"batch {self._moved.committed + 1} was under way in Storm, and a non-transactional state does not say "
                "which of its values have it already. Choose: (1) start Storm again, deactivate the topology, wait "
                "until no batch is under way, kill it, and import again; (2) go on, and that batch may count twice: "
                "--accept-under-way. Nothing was changed"
            )

    def __call__(self, keys: Sequence[Key], values: Sequence[Any]) -> tuple[list[Key], list[Any]]:
        """Return the keys that our state has, and their stored values."""
        if self._source is StateType.NON_TRANSACTIONAL:
            self.tally.taken += len(values)
            return list(keys), [self._store(self._moved.committed, value) for value in values]
        committed, kept, rest = self._moved.committed, list(keys), list(values)
        for at, (txid, *_) in enumerate(values):
            if txid is None:
                rest[at] = WRAP[self._source]((committed, *values[at][1:]))
            elif txid > committed:
                rest[at] = self._settle(keys[at], values[at])
        if None in rest:
            kept = [key for key, value in zip(keys, rest, strict=True) if value is not None]
            rest = [value for value in rest if value is not None]
        self.tally.taken += len(kept)
        return kept, rest if self._source is self.target else [self._store(*value) for value in rest]

    def _settle(self, key: Key, value: Any) -> Any:
        """Return a value of the batch under way as it counts; None if the key did not exist before it."""
        moved = self._moved
        if value[0] > moved.committed + 1:
            raise StateError(
                f"key {list(key)!r} has txid {value[0]}, and the checkpoint was imported at txid {moved.committed}: "
                "the topology has run on in Storm since, or the state is another one's. Import the offsets again"
            )
        if len(value) == PARTS[StateType.OPAQUE]:
            if value[2] is None:
                self.tally.absent += 1
                return None
            self.tally.previous += 1
            return OpaqueValue(moved.committed, value[2], value[2])
        if moved.repeats and self.target is StateType.TRANSACTIONAL:
            self.tally.kept += 1
            return TransactionalValue(moved.base + 1, value[1])
        raise StateError(
            f"key {list(key)!r} has txid {value[0]}, the batch that was under way in Storm: a transactional value does "
            "not say what was before it, and "
            + ("our state must be transactional to repeat the batch" if moved.repeats else "its spout was opaque")
            + ". Start Storm again, deactivate the topology, wait until no batch is under way, kill it, and import "
            "again"
        )

    def _store(self, txid: int, value: Any, previous: Any = None) -> Any:
        if self.target is StateType.OPAQUE:
            return tuple.__new__(OpaqueValue, (txid, value, previous))
        if self.target is StateType.TRANSACTIONAL:
            return tuple.__new__(TransactionalValue, (txid, value))
        return value
