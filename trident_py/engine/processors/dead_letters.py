"""Dead letters: selects the tuples of an attempt, and records the excluded ones.

A tuple is known by its spout, the spout's partition and its number there in the order of emission, from 0.
"""

from __future__ import annotations

import hashlib
import json
import pickle
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ...errors import SpoutError, show
from ...model.canonical import UnkeyableError, canonical
from ...model.chunks import Chunk, encodable, to_list
from ...model.secrets import hide
from ...tuples import MISSING, Fields
from .base import NodeContext, Processor, Spec

LETTER = Fields(
    "txid bigint",
    "spout string",
    "partition int",
    "index bigint",
    "tuple string",
    "operation string",
    "operationPartition int",
    "error string",
)
LONGEST_ERROR = 2_000
Range = tuple[int, int]


@dataclass(frozen=True)
class Excluded:
    """A tuple that takes part in no attempt of its txid. ``text``: its values as a JSON list. ``operation`` failed in
    partition ``at`` with ``error``."""

    spout: str
    partition: int
    index: int
    digest: str
    text: str
    operation: str
    at: int
    error: str

    @property
    def place(self) -> tuple[str, int]:
        """The spout's partition."""
        return self.spout, self.partition

    def letter(self, txid: int) -> list[Any]:
        """Return the values of `LETTER`."""
        return [txid, self.spout, self.partition, self.index, self.text, self.operation, self.at, self.error]


class ChangedBatch(SpoutError):
    """The spout emitted another tuple at the place of one that is excluded from the batch."""


@dataclass(frozen=True)
class Share:
    """Which tuples of one spout partition take part in an attempt.

    ``kept``: their numbers as ranges with an exclusive end; None: all but the ``excluded``, which must have these
    digests. ``asked``: the tuples whose content is reported to the driver.
    """

    kept: Sequence[Range] | None = None
    excluded: Mapping[int, str] = field(default_factory=dict)
    asked: frozenset[int] = frozenset()

    @property
    def whole(self) -> bool:
        """Whether every tuple takes part, and none is looked at."""
        return self.kept is None and not self.excluded and not self.asked

    def of(self, start: int, end: int) -> Iterator[Range]:
        """Return the ranges that take part between two numbers."""
        if self.kept is not None:
            cut = ((max(start, first), min(end, last)) for first, last in self.kept)
            yield from (part for part in cut if part[0] < part[1])
            return
        for index in sorted(index for index in self.excluded if start <= index < end):
            if start < index:
                yield start, index
            start = index + 1
        if start < end:
            yield start, end

    def select_inspected(self, start: int, end: int) -> list[int]:
        """Return the numbers between these whose content must be looked at."""
        return sorted(index for index in {*self.excluded, *self.asked} if start <= index < end)


def values_of(chunk: Chunk, fields: Fields, row: int) -> list[Any]:
    """Return the values of one row, without those that were never emitted."""
    values = (to_list(chunk.between(row, row + 1).columns[name])[0] for name in fields)
    return [value for value in values if value is not MISSING]


def digest_of(values: Sequence[Any]) -> str:
    """Return a digest by which a tuple is recognised in a replay."""
    digest = hashlib.sha256()
    for value in values:
        try:
            part = canonical(value)
        except UnkeyableError:
            part = pickle.dumps(value, protocol=5)
        digest.update(len(part).to_bytes(8, "big") + part)
    return digest.hexdigest()


def as_json(values: Sequence[Any]) -> str:
    """Return the values as a JSON list; what JSON cannot hold as the text of its repr."""
    return f"[{', '.join(map(_json, values))}]"


def _json(value: Any) -> str:
    try:
        text = json.dumps(value, ensure_ascii=False, allow_nan=False, sort_keys=True, default=show)
    except (TypeError, ValueError, RecursionError):
        text = json.dumps(show(value), ensure_ascii=False)
    return text if encodable(text) else json.dumps(json.loads(text), sort_keys=True)


def as_text(error: str) -> str:
    """Return an error as every store can hold it: no secrets, no lone surrogates, no NUL, and not endless."""
    text = hide(error).encode("utf-8", "backslashreplace").decode().replace("\0", "\\0")
    return text if len(text) <= LONGEST_ERROR else f"{text[:LONGEST_ERROR]}..."


@dataclass(frozen=True)
class DeadLetters(Spec):
    """The stream of a spout's excluded tuples. It reads no tuple of the spout: the driver tells which they are."""

    spout: str

    @property
    def operation(self) -> str:
        return f"dead letters of spout {self.spout}"

    def reads(self, port: int) -> Iterable[str]:
        return ()

    def make(self, context: NodeContext) -> Processor:
        return DeadLettersProcessor(self, context)


class DeadLettersProcessor(Processor[DeadLetters]):
    """Emits the letters of its spout partition at the end of the batch."""

    def finish(self) -> None:
        self.emit_rows(LETTER, self.context.letters(self.spec.spout))
