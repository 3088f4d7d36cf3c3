"""Takes the values of one of Storm's states into one of ours: streamed, compared after each part, repeatable."""

from __future__ import annotations

import json
from array import array
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from decimal import Decimal
from hashlib import sha256
from typing import Any

import numpy as np

from ...engine.processors.base import no_collection
from ...errors import StateError
from ...state.roles import StoredValues
from .checkpoint import Moved
from .declared_types import exact_numbers, fit_values, key_fields
from .sources import Batch, RedisSource, ValueSource
from .storm_values import ImportTally, Key, Rebase, decode

SIZE = 50_000  # keys of one part, which is one transaction of our state
Tell = Callable[[int], None]
Check = Callable[[], None]


@dataclass(frozen=True)
class Result:
    """What an import did. ``source`` and ``target``: the digest of what was read and re-based, and of what our state
    then held; ``keys`` and ``count``: how many different keys were read and are to be there, and how many are."""

    tally: ImportTally
    keys: int
    count: int
    source: str
    target: str

    def check(self, shown: str) -> None:
        """Raise StateError unless both sides agree."""
        if self.source != self.target:
            raise StateError(
                f"{shown} gives back other values than were written: digest {self.source[:16]} was sent, "
                f"{self.target[:16]} is there. Check the types of its columns; then import again"
            )
        if self.keys != self.count:
            raise StateError(
                f"{shown} holds {self.count:,} keys, and Storm's state {self.keys:,}: some of ours are not of this "
                "import, or two of Storm's are one key here. Empty it, or name another one; then import again"
            )


@dataclass(frozen=True)
class PreparedPart:
    """Keys and values as our state gets them, as text, and how many keys were taken until then."""

    keys: list[Key]
    values: list[Any]
    text: bytes
    taken: int


class Digest:
    """The digest of keys and values in their order, and the number of different keys; 8 bytes of memory for a key."""

    def __init__(self) -> None:
        self._hash = sha256()
        self._keys = array("q")

    def add(self, text: bytes) -> None:
        self._hash.update(text)

    def note(self, keys: Sequence[Key]) -> None:
        self._keys.extend(map(hash, map(repr, keys)))  # the numbers -1 and -2 have one hash

    @property
    def keys(self) -> int:
        return len(np.unique(np.frombuffer(self._keys, np.int64))) if self._keys else 0

    @property
    def text(self) -> str:
        return self._hash.hexdigest()


def as_text(keys: Sequence[Key], values: Sequence[Any]) -> bytes:
    """Return keys and values as the text that is digested."""
    return json.dumps([keys, values], default=repr).encode()


def import_values(
    source: ValueSource, target: StoredValues, moved: Moved, split: str | None, accept: bool, tell: Tell,
    check: Check = lambda: None,
) -> Result:  # fmt: skip
    """Write all values of the source into our state, and compare. Each part is one transaction; to repeat all of it
    changes nothing. ``split``: what stands between the fields of a key in its name; ``tell`` gets the keys so far;
    ``check`` is called before each part, and raises if it may not be written any more."""
    rebase, number = Rebase(source.kind, target.kind, moved, accept), exact_numbers(target.key, target.value)
    sent, found = Digest(), Digest()

    def prepare() -> Iterator[PreparedPart]:
        for part in source.read(SIZE, number):
            keys, values = rebase(*part)
            if keys:
                sent.note(keys)  # as Storm has them: two of them that are one key here are two
                values = values if number is None else fit_values(target.kind, values, target.value)
                keys, values = _drop_repeated(key_fields(keys, target.key, split), values)
                yield PreparedPart(keys, values, as_text(keys, values), rebase.tally.taken)

    with no_collection():
        for part, held in _write(target, _work_ahead(prepare()), check):
            sent.add(part.text)
            found.add(part.text if held else as_text(part.keys, target.get(part.keys)))
            tell(part.taken)
    return Result(rebase.tally, sent.keys, target.count(), sent.text, found.text)


def _work_ahead(parts: Iterator[PreparedPart]) -> Iterator[PreparedPart]:
    """Yield the parts; the next one is read and prepared while our store writes this one."""
    with ThreadPoolExecutor(1) as reader:
        coming = reader.submit(next, parts, None)
        while (part := coming.result()) is not None:
            coming = reader.submit(next, parts, None)
            yield part


def _write(
    target: StoredValues, parts: Iterator[PreparedPart], check: Check
) -> Iterator[tuple[PreparedPart, bool]]:
    """Write the parts; yield each with whether our state holds it, which is found out while it writes the next one."""
    with ThreadPoolExecutor(1) as comparing:
        written: tuple[PreparedPart, Future[bool]] | None = None
        for part in parts:
            check()
            target.put(part.keys, part.values)
            if written is not None:
                yield written[0], written[1].result()
            written = part, comparing.submit(target.holds, part.keys, part.values)
        if written is not None:
            yield written[0], written[1].result()


def _drop_repeated(keys: list[Key], values: list[Any]) -> Batch:
    once = dict(zip(keys, values, strict=True))
    return (keys, values) if len(once) == len(keys) else (list(once), list(once.values()))


def rebase_in_place(
    source: RedisSource, moved: Moved, accept: bool, tell: Tell, check: Check = lambda: None
) -> Result:
    """Change the values of the batch under way where they are, and no other one. Twice is the same as once.
    ``check``: as of `import_values`."""
    rebase = Rebase(source.kind, source.kind, moved, accept)
    sent, found = Digest(), Digest()
    with source.open() as client:
        for names, texts in source.pages(client, SIZE):
            keys = source.keys(names)
            before = decode(source.kind, keys, texts, Decimal)
            kept, values = rebase(keys, before)
            there, after = dict(zip(keys, before, strict=True)), dict(zip(kept, values, strict=True))
            changed = {key: value for key, value in after.items() if value != there[key]}
            check()
            source.change(client, changed, [key for key in keys if key not in after])
            sent.add(as_text(kept, values))
            sent.note(kept)
            found.add(as_text(kept, decode(source.kind, kept, source.texts(client, kept), Decimal) if kept else []))
            tell(rebase.tally.taken)
        return Result(rebase.tally, sent.keys, source.count(client), sent.text, found.text)
