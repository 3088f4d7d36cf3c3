"""A tuple that was emitted with too few values: what lacks is an error for whoever reads it, and for nobody else."""

from __future__ import annotations

import operator
import pickle
from typing import Any

import pytest

from trident_py import Fields, MissingValueError, TopologyError
from trident_py.model.chunks import Chunk
from trident_py.operations import Filter, Function
from trident_py.operations.builtin import Count

from .support import bag, both, both_always, through

FIELDS = ["a", "b"]
BATCH = [[(1, 2)], [(3, 4)]]


class Reads(Function):
    """Emits the field, or what it caught in its place."""

    def execute(self, tuple: Any, collector: Any) -> None:
        try:
            collector.emit((tuple.getValueByField("b"),))
        except MissingValueError as error:
            assert "'b'" in str(error)
            collector.emit(("caught",))


class KeepsFirst(Filter):
    def isKeep(self, tuple: Any) -> bool:
        return bool(tuple[0] == 1)


def shorter(stream: Any) -> Any:
    """The stream with its first field only, under the names of two."""
    return stream.map(lambda row: (row[0],))


@both_always
def test_what_nobody_reads_may_be_missing(cluster: Any) -> None:
    counted = through(cluster, FIELDS, BATCH, lambda s: shorter(s).aggregate(FIELDS, Count(), "n"), 2)
    assert counted == {1: bag([(1,)]), 2: bag([(1,)])}


def test_user_code_can_catch_the_error_of_a_missing_value(cluster: Any) -> None:
    found = through(cluster, FIELDS, BATCH, lambda s: shorter(s).each(FIELDS, Reads(), "c").project(["a", "c"]))
    assert found == {1: bag([(1, "caught")]), 2: bag([(3, "caught")])}


def test_a_filter_reads_only_what_it_asks_for(cluster: Any) -> None:
    found = through(cluster, FIELDS, BATCH, lambda s: shorter(s).filter(KeepsFirst()).project(["a"]))
    assert found == {1: bag([(1,)])}


@pytest.mark.parametrize(
    "build",
    [
        lambda s: s.each(FIELDS, lambda a, b: [(b,)], "c"),
        lambda s: s.groupBy("b").aggregate(Count(), "n"),
        lambda s: s.partitionBy("b").project(["b"]).parallelismHint(2),
        lambda s: s.map(list),
    ],
)
def test_reading_it_ends_the_run_with_the_fields_name(cluster: Any, build: Any) -> None:
    with pytest.raises(TopologyError, match="too few values") as raised:
        through(cluster, FIELDS, BATCH, lambda s: build(shorter(s)))
    assert isinstance(raised.value.__cause__, MissingValueError)


def test_a_whole_tuple_may_be_passed_on(cluster: Any) -> None:
    found = through(cluster, FIELDS, BATCH, lambda s: shorter(s).map(lambda row: row).project(["a"]))
    assert found == {1: bag([(1,)]), 2: bag([(3,)])}


READS = {
    "by index": lambda t: t[1],
    "from the end": lambda t: t[-1],
    "by slice": lambda t: t[:2],
    "by name": lambda t: t.getValueByField("b"),
    "typed": lambda t: t.getIntegerByField("b"),
    "by a loop": list,
    "unpacked": lambda t: (lambda a, b: None)(*t),
    "backwards": lambda t: list(reversed(t)),
    "searched": lambda t: 7 in t,
    "selected": lambda t: t.select(["b"]),
    "added": lambda t: (*t, 3),
    "concatenated": lambda t: operator.add(t, (3,)),
    "concatenated behind": lambda t: operator.add((3,), t),
    "compared": lambda t: t == (1, 2),
}


@pytest.mark.parametrize("read", READS.values(), ids=READS)
def test_every_way_to_read_it_fails_and_index_error_is_its_name_in_python(read: Any) -> None:
    short, whole = Chunk.of_rows(Fields(*FIELDS), [(1,), (1, 2)]).tuples(Fields(*FIELDS))
    with pytest.raises(MissingValueError, match="'b'"):
        read(short)
    with pytest.raises(IndexError):
        read(short)
    read(whole)
    assert short[0] == short.getValueByField("a") == 1 and len(short) == short.size() == 2
    assert short.select("a") == (1,) and repr(short) == "[1, <missing>]"


def test_a_tuple_that_lacks_a_value_travels() -> None:
    (short,) = Chunk.of_rows(Fields(*FIELDS), [(1,)]).tuples(Fields(*FIELDS))
    again = pickle.loads(pickle.dumps(short))
    assert again[0] == 1 and repr(again) == repr(short)
    with pytest.raises(MissingValueError):
        again[1]


def test_values_with_an_equality_of_their_own_travel_in_a_chunk_that_lacks_others() -> None:
    import numpy as np

    chunk = Chunk.of_rows(Fields(*FIELDS), [(np.zeros(2),), (np.ones(2), 1)])
    again = Chunk.decode(chunk.encode())
    assert [each[0].tolist() for each in again.tuples(Fields("a"))] == [[0, 0], [1, 1]]


class Adds(Function):
    def execute(self, tuple: Any, collector: Any) -> None:
        collector.emit([tuple[0] + tuple[1]])


class Asks(Filter):
    def isKeep(self, tuple: Any) -> bool:
        return tuple[0] is not None


def whole(tuple: Any) -> Any:
    return [sum(tuple)]


@pytest.mark.parametrize(
    ("step", "where"),
    [
        (lambda s: s.each(["a", "b"], Adds(), "c"), "each Adds"),
        (lambda s: s.filter(["b"], Asks()), "filter Asks"),
        (lambda s: s.map(whole, ["c"]), "map whole"),
    ],
    ids=["function", "filter", "map"],
)
@both
def test_who_reads_a_missing_value_is_named_with_the_batch(cluster: Any, step: Any, where: str) -> None:
    with pytest.raises(TopologyError) as failed:
        through(cluster, FIELDS, BATCH, lambda s: step(shorter(s)))
    assert (failed.value.operation, failed.value.txid, failed.value.partition) == (where, 1, 0)
    assert isinstance(failed.value.__cause__, MissingValueError)
    assert "b=<missing>" in "".join(failed.value.__cause__.__notes__)
