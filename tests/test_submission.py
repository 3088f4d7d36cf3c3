"""What both clusters check of a submission, before anything starts."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from trident_py import DefinitionError, Fields, LocalCluster, TridentTopology
from trident_py.config import CHECKED, list_keys
from trident_py.errors import TridentError
from trident_py.spouts import IRichSpout
from trident_py.testing import FixedBatchSpout, collect


def words() -> Any:
    topology = TridentTopology()
    topology.newStream("words", FixedBatchSpout("word", 2, ("a",)))
    return topology


@pytest.mark.parametrize(
    ("given", "told"),
    [
        (lambda: ("t", {}, words()), r"takes a built topology: .*topology\.build\(\)"),
        (
            lambda: ("t", words().build(), {}),
            "takes a name, a configuration and a built topology; got str, Topology, dict",
        ),
        (lambda: (words().build(), {}, "t"), "got Topology, dict, str"),
        (lambda: ("t", {}, words), "got str, dict, function"),
        (lambda: ("", {}, words().build()), "takes a name"),
        (lambda: ("t", ["a"], words().build()), "the configuration, a dict or None"),
        (
            lambda: ("t", {"topology.max.batch.attempts": "abc"}, words().build()),
            "attempts is 'abc'; it must be a number",
        ),
        (
            lambda: ("t", {"topology.max.batch.attempts": 0}, words().build()),
            "must be a number of attempts, at least 1",
        ),
        (lambda: ("t", {"topology.max.batch.attempts": True}, words().build()), "must be a number of attempts"),
        (lambda: ("t", {"topology.start.wait.secs": -1}, words().build()), "must be a number of seconds, at least 0"),
        (lambda: ("t", {"topology.error.values": "no"}, words().build()), "must be true or false"),
    ],
)
def test_what_cannot_be_submitted_is_told_before_anything_starts(given: Any, told: str) -> None:
    with LocalCluster() as cluster, pytest.raises(DefinitionError, match=told):
        cluster.submitTopology(*given())


def test_a_name_that_is_too_long_for_a_folder_is_told_with_the_place(tmp_path: Path) -> None:
    (tmp_path / "t").mkdir()
    topology = TridentTopology()
    topology.newStream("s" * 300, FixedBatchSpout("word", 2, ("a",)))
    with LocalCluster(str(tmp_path)) as cluster, pytest.raises(TridentError, match=r"s cannot be used: .*too long"):
        cluster.submitTopology("t", {}, topology.build())


class Once(IRichSpout):
    """Emits one tuple."""

    over = False

    def open(self, conf: dict, context: Any, collector: Any) -> None:
        self.collector = collector

    def nextTuple(self) -> None:
        if not self.over:
            self.over = True
            self.collector.emit([1])

    def isExhausted(self) -> bool:
        return self.over

    def getOutputFields(self) -> Fields:
        return Fields("value")


def run_with_empty_keys(cluster: Any) -> dict[int, list[tuple]]:
    """All that have an effect, as in a YAML file that names keys without a value."""
    topology = TridentTopology()
    collect(topology.newStream("s", Once()), "out")
    running = cluster.submitTopology("t", dict.fromkeys(CHECKED), topology.build())
    running.awaitTermination(60)
    return running.collected("out")  # type: ignore[no-any-return]


def test_none_stands_for_the_default_of_each_key(tmp_path: Path) -> None:
    with LocalCluster(str(tmp_path)) as cluster:
        assert run_with_empty_keys(cluster) == {1: [(1,)]}


@pytest.mark.spark
def test_none_stands_for_the_default_of_each_key_on_spark(spark_cluster: Any) -> None:
    assert run_with_empty_keys(spark_cluster()) == {1: [(1,)]}


def test_an_unknown_key_is_warned_of_with_the_one_that_was_meant(caplog: pytest.LogCaptureFixture) -> None:
    conf = {"topology.max.batch.atempts": 3, "topology.message.id.tracing": 1, "my.key": 1, "topology.workers": 2}
    with LocalCluster() as cluster:
        cluster.submitTopology("t", conf, words().build()).awaitTermination(30)
    told = [record.getMessage() for record in caplog.records if "has no effect" in record.getMessage()]
    assert told == [
        "the configuration key topology.max.batch.atempts has no effect in trident_py. "
        "Did you mean topology.max.batch.attempts?",
        "the configuration key topology.message.id.tracing has no effect in trident_py",
    ]


def test_every_key_that_the_code_knows_is_named_by_config() -> None:
    root = Path(__file__).parent.parent
    sources = [path.read_text() for folder in ("trident_py", "states") for path in (root / folder).rglob("*.py")]
    used = {key for text in sources for key in re.findall(r'"(topology\.[a-z.]+[a-z])"', text)}
    assert used - set(list_keys()) == set()
