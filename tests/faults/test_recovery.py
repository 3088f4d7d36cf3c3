"""Every row of the table of checkpoint and store, end to end: on every store, on both clusters, with every state."""

from __future__ import annotations

import itertools
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import databases
import pytest

from trident_py import LocalCluster
from trident_py.engine.store_position import StorePosition

from .stores import TABLES
from .stories import STORIES
from .worlds import World, watch

ROOT = Path(__file__).parents[2]
CLUSTERS = ("local", pytest.param("spark", marks=pytest.mark.spark))
Make = Callable[[str], World]


@pytest.fixture
def world(request: pytest.FixtureRequest, database: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Make:
    """``world("local")`` or ``world("spark")``, on each kind of database in turn."""
    found = watch(monkeypatch)

    def make(cluster: str) -> World:
        made = LocalCluster if cluster == "local" else request.getfixturevalue("spark_cluster")
        return World(database, tmp_path, made, found)

    return make


def cases() -> list[Any]:
    """Spark's workers always have the same hash seed, so only the other cluster can be REORDERED. The rows are those of
    `trident_py.engine`, the same for both clusters: `make test` takes one on Spark."""
    found = []
    for relation, cluster in itertools.product(StorePosition, ("local", "spark")):
        if (relation, cluster) != (StorePosition.REORDERED, "spark"):
            marks = [pytest.mark.spark] if cluster == "spark" else []
            if cluster == "spark" and relation is not StorePosition.CONTINUED:
                marks.append(pytest.mark.whole)
            found.append(pytest.param(relation, cluster, id=f"{relation.name.lower()}-{cluster}", marks=marks))
    return found


@pytest.mark.one_of_each
@pytest.mark.parametrize(("relation", "cluster"), cases())
def test_a_row_of_the_table_comes_about_and_does_what_it_says(
    world: Make, cluster: str, relation: StorePosition
) -> None:
    made = world(cluster)
    states = STORIES[relation](made)
    assert {(TABLES.get(state, state), relation) for state in states} <= made.found


def test_every_row_has_its_test_on_every_store_and_both_clusters() -> None:
    rows = [relation.name.lower() for relation in StorePosition]
    wanted = {"-".join(each) for each in itertools.product(databases.kinds(), rows, ("local", "spark"))}
    wanted -= {f"{kind}-reordered-spark" for kind in databases.kinds()}
    command = [sys.executable, "-m", "pytest", "--collect-only", "-q", "-p", "no:cacheprovider", __file__]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    name = test_a_row_of_the_table_comes_about_and_does_what_it_says.__name__
    found = {line.partition("[")[2].rstrip("]") for line in listed.splitlines() if f"::{name}[" in line}
    assert found == wanted
    assert set(STORIES) == set(StorePosition)
