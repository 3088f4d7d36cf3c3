"""What a batch sends grows no faster than its partitions. Rows and bytes are counted, not timed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from trident_py import Fields, TridentTopology
from trident_py.engine.program import FAILURE, BatchInfo, compile_plan, descriptor_rows, outcome
from trident_py.engine.worker_cache import end_run, task_for
from trident_py.errors import FailedException
from trident_py.model.context import with_context
from trident_py.operations.builtin import Sum
from trident_py.spouts import Coordination, MemoryMetadataStore
from trident_py.testing import FixedBatchSpout, MemoryMapState

FEW, MANY = 8, 64
FACTOR = MANY / FEW
Rows = list[tuple[int, int, bytes]]


def one_fails(n: int) -> list[int]:
    if n == 0:
        raise FailedException("row 0 " + "x" * 1000)
    return [n]


def all_fail(n: int) -> list[int]:
    raise FailedException(f"row {n} " + "x" * 1000)


def fine(n: int) -> list[int]:
    return [n]


def rows_of_a_batch(partitions: int, function: Callable[[int], list[int]]) -> list[Rows]:
    """The rows that enter each level, and those that go to the driver: three levels, one tuple for each partition."""
    topology = TridentTopology()
    numbers = [(n,) for n in range(partitions)]
    spread = topology.newStream("in", FixedBatchSpout(Fields("n bigint"), partitions, *numbers)).shuffle()
    keyed = spread.each("n", function, Fields("key bigint")).parallelismHint(partitions)
    sums = keyed.groupBy("key").persistentAggregate(MemoryMapState.Factory(), "n", Sum(), "sum")
    sums.parallelismHint(partitions)
    (program,) = compile_plan(topology.build().plan, with_context({"topology.name": "t"}, run="growth"))
    coordination = Coordination(program.spouts, program.conf, MemoryMetadataStore())
    batch = BatchInfo(1, 0, run="growth")
    levels = [list(descriptor_rows(coordination.descriptors(1, 0, coordination.initialize(1, 0))))]
    try:
        for level in range(program.level_count):
            levels.append(played(program, level, batch, levels[-1]))
    finally:
        end_run("growth")
        coordination.close()
    return levels


def played(program: Any, level: int, batch: BatchInfo, rows: Rows) -> Rows:
    """One level, as Spark runs it: each task by itself."""
    leaving: Rows = []
    for partition in range(program.partitions(level)):
        task = task_for(program, level, partition, batch)
        leaving += task.execute(batch, [(tag, block) for target, tag, block in rows if target == partition])
        leaving += task.commit()
    return leaving


def failures(rows: Rows) -> Rows:
    return [row for row in rows if row[1] == FAILURE]


def size(rows: Rows) -> int:
    return sum(len(block) for _, _, block in rows)


@pytest.mark.parametrize("function", [one_fails, all_fail])
def test_a_failure_is_sent_whole_only_to_who_passes_it_on(function: Any) -> None:
    few, many = rows_of_a_batch(FEW, function), rows_of_a_batch(MANY, function)
    grown = FACTOR if function is all_fail else 1.0
    for small, large in zip(few[2:], many[2:], strict=True):  # what leaves the failing level, and each later one
        assert 0 < size(failures(large)) <= 1.2 * grown * size(failures(small))
    assert [len(failures(level)) for level in many[3:]] == [len(outcome((t, b) for _, t, b in many[-1]).failures)]


@pytest.mark.parametrize("function", [one_fails, all_fail])
def test_every_task_behind_a_failure_knows_of_it(function: Any) -> None:
    levels = rows_of_a_batch(MANY, function)
    assert {target for target, _, _ in failures(levels[2])} == set(range(MANY))
    seen = outcome((tag, block) for _, tag, block in levels[-1])
    expected = {str(one) for one in range(MANY)} if function is all_fail else {"0"}
    assert {str(failure.error).split()[1] for failure in seen.failures} == expected
    assert [report for report in seen.reports if report.kind == "persisted"] == []


def test_reports_to_the_driver_grow_with_the_partitions() -> None:
    few, many = rows_of_a_batch(FEW, fine), rows_of_a_batch(MANY, fine)
    assert len(many[-1]) <= FACTOR * len(few[-1])
    assert size(many[-1]) <= 1.1 * FACTOR * size(few[-1])
