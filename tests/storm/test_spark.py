"""SparkCluster gives what real Storm Trident gave: all cases made by hand and a part of the random ones.

`make test` runs so many cases that each kind of stage and of exchange that a topology is lowered to comes once.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tiers import one_of_each

from trident_py import SparkCluster, TridentError
from trident_py.engine.lowering import Lowered, lower
from trident_py.model.plan import ProcessorNode

from . import cases
from .compare import diff
from .deviations import DEVIATIONS, check
from .interpreter import Interpreter, run

pytestmark = pytest.mark.spark

SEED = 3
RANDOM = 12
RANDOM_ALWAYS = 4

HANDMADE = cases.handmade()
CHOSEN = random.Random(SEED).sample(cases.random(), RANDOM)


def shape(case: dict[str, Any]) -> set[str]:
    """What its topologies are lowered to: stages by what they do, and exchanges; or the error that it ends with."""
    interpreter = Interpreter(case)
    try:
        interpreter.build()
        plan = interpreter.topology.plan()
        return {part for component in plan.components() if len(component.nodes) > 1
                for part in lowered(lower(component, plan))}  # fmt: skip
    except TridentError as error:
        return {type(error).__name__}


def lowered(made: Lowered) -> Iterator[str]:
    for level in made.levels:
        for stage in level:
            yield repr((min(stage.partitions, 2), stage.commits, sorted({does(made, node) for node in stage.nodes})))
    for exchange in made.exchanges:
        yield f"{type(exchange.partitioner).__name__} behind level {exchange.level}"


def does(made: Lowered, node: int) -> str:
    found = made.plan.by_id[node]
    return type(found.spec if isinstance(found, ProcessorNode) else found).__name__


def one_of_each_shape(recorded: list[cases.Recorded]) -> list[Any]:
    chosen = one_of_each([[("shape", part) for part in sorted(shape(each.case))] for each in recorded])
    always = {recorded[number].name for number in chosen}
    return params(recorded, lambda each: each.name in always)


def params(recorded: list[cases.Recorded], always: Callable[[cases.Recorded], bool]) -> list[Any]:
    return [pytest.param(each, id=each.name, marks=[] if always(each) else [pytest.mark.whole]) for each in recorded]


@pytest.fixture(scope="module")
def cluster(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> Any:
    checkpoints: Path = tmp_path_factory.mktemp("checkpoints")
    with SparkCluster(spark, checkpoints=str(checkpoints)) as cluster:
        yield cluster


@pytest.mark.parametrize("recorded", one_of_each_shape(HANDMADE))
def test_a_case_made_by_hand_gives_what_storm_gave(recorded: cases.Recorded, cluster: Any) -> None:
    ours = run(recorded.case, cluster)
    if recorded.name in DEVIATIONS:
        check(recorded, ours)
    else:
        assert diff(recorded.case, recorded.result, ours) == {}, ours["error"]


@pytest.mark.parametrize("recorded", params(CHOSEN, CHOSEN[:RANDOM_ALWAYS].__contains__))
def test_a_random_case_gives_what_storm_gave(recorded: cases.Recorded, cluster: Any) -> None:
    recorded = cases.renamed(recorded)
    ours = run(recorded.case, cluster)
    assert diff(recorded.case, recorded.result, ours) == {}, ours["error"]
