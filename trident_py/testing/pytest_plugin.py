"""The pytest plugin of the test kit: the fixture ``trident_faults`` and its options. Installed as an entry point."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

import pytest

from .faults import FaultReport, Story, everywhere
from .faults.report import Rerun


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("trident", "test kit of trident_py")
    group.addoption("--trident-smoke", action="store_true", help="try a sample of the points, in seconds")
    group.addoption("--trident-seed", type=int, metavar="N", help="the seed of order and sample")
    group.addoption("--trident-point", default="", metavar="POINT", help="try only this point, as a report names it")
    group.addoption("--trident-rows", default="", metavar="ROWS", help="feed only these rows, as a report names them")


class TridentFaults:
    """What a test does to its topology. Made by the fixture ``trident_faults``, which passes on pytest's options."""

    def __init__(self, config: pytest.Config, test: str, closing: ExitStack) -> None:
        self._config, self._rerun, self._closing = config, Rerun(test), closing

    def everywhere(self, build: Any, batches: Any = None, **options: Any) -> FaultReport:
        """Run `trident_py.testing.faults.everywhere` with --trident-smoke, --trident-seed and --trident-point. Prints
        the report."""
        __tracebackhide__ = True
        option = self._config.getoption
        given = {"seed": option("--trident-seed"), "point": option("--trident-point"), "rows": option("--trident-rows")}
        smoke = options.pop("smoke", False) or option("--trident-smoke")
        named = {name: value for name, value in given.items() if value not in (None, "")}
        report = everywhere(build, batches, smoke=smoke, rerun=self._rerun, **{**options, **named})
        print(report)
        return report

    def story(self, build: Any, fields: Any = None, **options: Any) -> Story:
        """Return a `trident_py.testing.faults.Story`, closed at the end of the test."""
        return self._closing.enter_context(Story(build, fields, **options))


@pytest.fixture
def trident_faults(request: pytest.FixtureRequest) -> Iterator[TridentFaults]:
    """Disturb topologies: ``trident_faults.everywhere(build, batches)`` and ``trident_faults.story(build)``."""
    with ExitStack() as closing:
        yield TridentFaults(request.config, _name_test(request), closing)


def _name_test(request: pytest.FixtureRequest) -> str:
    """Return the test as pytest finds it from where it was started."""
    _, _, within = request.node.nodeid.partition("::")
    file = os.path.relpath(request.node.path, request.config.invocation_params.dir)
    return f"{file}::{within}"
