"""How the partitions of a state share the rows of one table when a query asks each of them for its own."""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Iterator, Sequence
from typing import Any


def shared(rows: Iterable[tuple[Sequence[Any], Any]], partition: int, of: int) -> Iterator[tuple[Sequence[Any], Any]]:
    """The (key, value) rows of this partition of so many: each row belongs to exactly one.

    So a tuple that is broadcast to all partitions sees every row once, as in Storm, where each partition holds
    its own rows. The owner is a function of the key alone.
    """
    for key, value in rows:
        if of == 1 or zlib.crc32(repr(tuple(key)).encode("utf-8", "surrogatepass")) % of == partition:
            yield key, value
