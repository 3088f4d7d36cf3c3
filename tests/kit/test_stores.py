"""The kit on servers and files: every disturbance that a store allows."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import databases
import pytest
from redis import Redis

from trident_py.testing.faults import FAULTS, FaultReport, everywhere

from . import several, wordcount
from .wordcount import FIELDS

pytestmark = pytest.mark.whole(
    "test_a_right_topology_passes_a_smoke", "test_a_mistake_is_found_shrunk_and_repeated_by_the_command"
)
SERVERS = ("cut-before", "cut-during", "cut-lost", "cut-after", "late")


def tried(name: str, **options: Any) -> FaultReport:
    return everywhere(getattr(several, name), several.BATCHES, fields=several.FIELDS, seed=1, **options)


def faults(report: FaultReport) -> set[str]:
    return {verdict.case.fault for verdict in report.verdicts}


@pytest.mark.parametrize("server", databases.SERVERS)
def test_connections_are_cut_and_a_commit_comes_late(server: str, request: pytest.FixtureRequest) -> None:
    report = tried("in_sql", stores=[request.getfixturevalue(server).url], faults=SERVERS)
    assert faults(report) == set(SERVERS)
    assert str(report).count("no difference seen in 27") == 3


def test_an_opaque_spout_replays_other_content() -> None:
    report = tried("in_sql", kind="opaque", faults=("content", "partitions", "forget"))
    assert {verdict.case.point.step for verdict in report.verdicts} >= {"emit", "written", "decided", "published"}
    assert str(report).count("no difference seen in 29") == 3


def test_the_transactional_map_is_wrong_behind_it_and_that_is_shown() -> None:
    batches = [[("a",), ("b",), ("a",), ("b",)] * 2, [("a",), ("b",), ("b",), ("a",)] * 2]
    report = everywhere(wordcount.build, batches, fields=FIELDS, kind="opaque", seed=1, faults=("content",))
    assert "counts (wrong): differed in" in str(report)


def test_redis(own_server: Callable[..., Any]) -> None:
    url = own_server("redis").url

    @contextmanager
    def emptied(folder: Path) -> Iterator[str]:
        with Redis.from_url(url) as client:
            client.flushall()
        yield url

    report = tried("in_redis", kind="opaque", stores=[emptied], smoke=True)
    assert faults(report) == FAULTS.keys() - set(SERVERS)


def test_files() -> None:
    report = tried("in_files", stores=["files"], kind="opaque", smoke=True)
    assert faults(report) == FAULTS.keys() - set(SERVERS)
