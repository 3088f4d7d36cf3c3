"""Parts of the samples in Storm's documentation that several of them share."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

from trident_py import Fields, TridentTopology, Values
from trident_py.operations import BaseFunction
from trident_py.operations.builtin import FilterNull
from trident_py.testing import FixedBatchSpout, collect

from .support import Batches, bag, run

SENTENCES = (
    Values("the cow jumped over the moon"),
    Values("the man went to the store and bought some candy"),
    Values("four score and seven years ago"),
    Values("how many apples can you eat"),
    Values("to be or not to be the person"),
)


class Split(BaseFunction):
    def execute(self, tuple: Any, collector: Any) -> None:
        sentence = tuple.getString(0)
        for word in sentence.split(" "):
            collector.emit(Values(word))


def spout_of(count: int, cycles: int = 1, size: int = 3) -> FixedBatchSpout:
    """The first sentences in batches of three. Storm's spouts cycle for ever."""
    return FixedBatchSpout(Fields("sentence"), size, *SENTENCES[:count] * cycles)


def counted(count: int) -> dict[tuple, int]:
    """The counts of the words in the first sentences, by key."""
    words = " ".join(sentence for (sentence,) in SENTENCES[:count]).split()
    return {(word,): n for word, n in Counter(words).items()}


def by_partition(
    cluster: Any, fields: Fields, partitions: Sequence[Sequence[tuple]], build: Callable[[Any], Any]
) -> dict[int, list[str]]:
    """What comes out of one batch whose partitions have these tuples: bags by partition.

    Task k of n of the spout emits every n-th tuple, so short partitions are filled up with nulls, which a filter drops.
    """
    longest = max(map(len, partitions))
    nothing = (None,) * len(fields)
    rows = [part[i] if i < len(part) else nothing for i in range(longest) for part in partitions]
    topology = TridentTopology()
    stream = topology.newStream("mystream", Batches(fields, [rows])).parallelismHint(len(partitions))
    collect(build(stream.each(fields, FilterNull())), "out")
    found = run(cluster, topology).collected_by_partition("out")[1]
    return {partition: bag(rows) for partition, rows in found.items()}


def bags_of(*partitions: Sequence[tuple]) -> dict[int, list[str]]:
    return {number: bag(rows) for number, rows in enumerate(partitions)}
