"""What both clusters check of a submission, before anything starts."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from trident_py import DefinitionError, LocalCluster, TridentTopology
from trident_py.config import list_keys
from trident_py.testing import FixedBatchSpout


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
