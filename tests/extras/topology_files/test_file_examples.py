"""Examples that exist as a module and as a file: the same plan, the same results, on both clusters."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from examples import trident_reach, trident_windowing, word_count
from trident_py import Fields, LocalCluster, Topology
from trident_py.drpc import default_drpc
from trident_py.testing import collect, stored
from trident_py.topology_files import Defined, load
from trident_py.windowing import InMemoryWindowsStoreFactory, SlidingCountWindow

EXAMPLES = Path(__file__).parents[3] / "examples"
COUNTS = {"the": 5, "to": 3, "and": 2, "be": 2}


def file_of(name: str) -> Defined:
    return load(EXAMPLES / f"{name}.yml")


def windowing() -> Topology:
    store, window = InMemoryWindowsStoreFactory(), SlidingCountWindow.of(30, 10)
    return trident_windowing.build(store, window).build()


def windowing_by_file() -> Topology:
    defined = file_of("trident_windowing")
    collect(defined.streams["counts"], "counts")
    return defined.build()


BOTH: dict[str, tuple[Callable[[], Topology], Callable[[], Topology]]] = {
    "word_count": (lambda: word_count.build().build(), lambda: file_of("word_count").build()),
    "trident_reach": (lambda: trident_reach.build().build(), lambda: file_of("trident_reach").build()),
    "trident_windowing": (windowing, windowing_by_file),
}


def anonymous(text: str) -> str:
    """Memory states are numbered at random."""
    return re.sub(r"\b[0-9a-f]{8}(?:[0-9a-f]{24})?\b", "ID", text)


def data(value: Any) -> Any:
    """A value as plain data: objects by their class and their attributes."""
    if isinstance(value, str):
        return anonymous(value)
    if isinstance(value, Fields):
        return value.names, value.types
    if isinstance(value, list | tuple):
        return [data(item) for item in value]
    if isinstance(value, dict):
        return {data(key): data(item) for key, item in value.items()}
    if isinstance(value, type) or callable(value) or not hasattr(value, "__dict__"):
        return value
    attributes = vars(value)
    if dataclasses.is_dataclass(value):
        attributes = {field.name: attributes[field.name] for field in dataclasses.fields(value) if field.compare}
    return type(value), data({name: item for name, item in attributes.items() if not name.startswith("_lock")})


@pytest.mark.parametrize("name", BOTH)
def test_a_file_gives_the_plan_that_the_module_gives(name: str) -> None:
    module, file = (build() for build in BOTH[name])
    assert anonymous(file.explain()) == anonymous(module.explain())
    assert anonymous(file.explain("mermaid")) == anonymous(module.explain("mermaid"))
    assert data(file.plan.nodes) == data(module.plan.nodes)
    assert anonymous(str(file.guarantees())) == anonymous(str(module.guarantees()))


def test_plans_that_differ_are_told_apart() -> None:
    """What `data` compares: the arguments of a spout, of a window and of a state too."""
    plans = [
        trident_windowing.build(InMemoryWindowsStoreFactory(), SlidingCountWindow.of(30, slide), batch=batch)
        for slide, batch in ((10, 3), (9, 3), (10, 4))
    ]
    shapes = [data(plan.build().plan.nodes) for plan in plans]
    assert shapes[0] != shapes[1] and shapes[0] != shapes[2]


def results(cluster: Any) -> dict[str, Any]:
    counted = file_of("word_count")
    running = cluster.submitTopology(counted.name, counted.configuration, counted.build())
    assert running.awaitTermination(120)
    counts = {word: value.curr for (word,), value in stored(counted.states["wordCounts"]).items()}
    return {"words": counts, "asked": sorted(default_drpc().execute("words", "cat the dog jumped"))}


def test_the_words_of_the_file_are_counted_and_asked() -> None:
    with LocalCluster() as cluster:
        found = results(cluster)
    assert {word: count for word, count in found["words"].items() if count > 1} == COUNTS
    assert (len(found["words"]), found["asked"]) == (28, [["jumped", 1], ["the", 5]])


@pytest.mark.spark
def test_the_words_of_the_file_are_the_same_on_spark(spark_cluster: Any) -> None:
    found = results(spark_cluster())
    assert {word: count for word, count in found["words"].items() if count > 1} == COUNTS
    assert (len(found["words"]), found["asked"]) == (28, [["jumped", 1], ["the", 5]])


def test_the_reach_of_the_file_is_storms() -> None:
    defined = file_of("trident_reach")
    with LocalCluster() as cluster:
        cluster.submitTopology(defined.name, {}, defined.build())
        urls = ("aaa", "foo.com/blog/1", "engineering.twitter.com/blog/5", "tech.backtype.com/blog/123")
        assert [default_drpc().execute("reach", url) for url in urls] == [[[0]], [[16]], [[14]], [[7]]]


def test_the_windows_of_the_file_are_those_of_the_module() -> None:
    found = []
    for build in BOTH["trident_windowing"]:
        with LocalCluster() as cluster:
            running = cluster.submitTopology("windowing", {}, build())
            assert running.awaitTermination(60)
            found.append(running.collected("counts"))
    assert found[0] == found[1]
    assert [count for rows in found[0].values() for (count,) in rows] == [10, 20, 30]
