"""The values that pass between the driver side and the task side of a spout."""

from __future__ import annotations

import pickle
from typing import Any, NamedTuple

from ..tuples import Fields


class Descriptor(NamedTuple):
    """What one spout partition must emit for a batch.

    ``payload`` is an encoded Chunk, the emitted rows, for a spout in the driver process, else the coordinator's
    metadata (a JSON value).
    """

    spout: int
    partition: int
    payload: Any

    def encode(self) -> bytes:
        return pickle.dumps(tuple(self), protocol=5)

    @classmethod
    def decode(cls, block: Any) -> Descriptor:
        return cls(*pickle.loads(block))


class SpoutNodeInfo(NamedTuple):
    """A spout in a program: its id in the topology, its declaration and its number of partitions."""

    id: str
    spout: Any
    partitions: int
    fields: Fields
