"""SparkCluster gives what real Storm Trident gave: all cases made by hand and a part of the random ones.

`make test` runs one case of each shape that a topology is lowered to.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from trident_py import SparkCluster, TridentError
from trident_py.plan import ProcessorNode
from trident_py.run.lowering import Lowered, lower

from . import cases
from .compare import diff
from .deviations import DEVIATIONS, check
from .interpreter import Interpreter, run

pytestmark = pytest.mark.spark

SEED = 3
RANDOM = 12
RANDOM_ALWAYS = 4

HANDMADE = [r for r in cases.handmade() if cases.later(r.case) is None]
CHOSEN = random.Random(SEED).sample([r for r in cases.random() if cases.later(r.case) is None], RANDOM)


def shape(case: dict[str, Any]) -> str:
    """What its topologies are lowered to: stages by what they do, and exchanges; or the error that it ends with."""
    interpreter = Interpreter(case)
    try:
        interpreter.build()
        plan = interpreter.topology.plan()
        return repr([lowered(lower(part, plan)) for part in plan.components() if len(part.nodes) > 1])
    except TridentError as error:
        return type(error).__name__


def lowered(made: Lowered) -> list[Any]:
    stages = [
        sorted((min(stage.partitions, 2), stage.commits, sorted({does(made, node) for node in stage.nodes}))
               for stage in level)
        for level in made.levels
    ]  # fmt: skip
    return [*stages, sorted({(each.level, type(each.partitioner).__name__) for each in made.exchanges})]


def does(made: Lowered, node: int) -> str:
    found = made.plan.by_id[node]
    return type(found.spec if isinstance(found, ProcessorNode) else found).__name__


def one_of_each_shape(recorded: list[cases.Recorded]) -> list[Any]:
    firsts: dict[str, str] = {}
    for each in recorded:
        firsts.setdefault(shape(each.case), each.name)
    always = set(firsts.values())
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
    ours = run(recorded.case, cluster)
    assert diff(recorded.case, recorded.result, ours) == {}, ours["error"]
