"""One topology with every state, run again and again in one session, for faults that need no dead process."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import databases
import pytest

from .evidence import Evidence, evidence
from .hooks import Kill
from .stores import EXACT
from .topology import Shape, build


def shares() -> list[Any]:
    """A store and its states: each store with a part of them for `make test`, so that each state comes once, and each
    with all of them for `make test-all`."""
    kinds = databases.kinds()
    parts = [(kind, EXACT[at :: len(kinds)]) for at, kind in enumerate(kinds)]
    return [pytest.param(*part, id="-".join([part[0], *part[1]])) for part in parts] + [
        pytest.param(kind, EXACT, id=kind, marks=pytest.mark.whole) for kind in kinds
    ]


class Runs:
    """Runs the topology of `topology.build` to its end; every run is a new start on the same checkpoint."""

    def __init__(self, cluster: Callable[..., Any], folder: Path) -> None:
        self.folder = folder
        self.checkpoint = folder / "check points"
        self._cluster = cluster

    def __call__(self, shape: Shape, wrap: Any = None, **conf: Any) -> Any:
        """The ended run. Raises its TopologyError. Settings are given with _ for the dots."""
        settings = {name.replace("_", "."): value for name, value in conf.items()}
        topology = build(self.folder, shape, Kill(str(self.folder)), wrap)
        running = self._cluster(self.checkpoint).submitTopology("faults", settings, topology)
        assert running.awaitTermination(200)
        return running

    def evidence(self) -> Evidence:
        return evidence(self.folder)


@pytest.fixture
def runs(spark_cluster: Callable[..., Any], tmp_path: Path) -> Runs:
    return Runs(spark_cluster, tmp_path)


@pytest.fixture
def url_on(request: pytest.FixtureRequest) -> Iterator[Callable[[str], str]]:
    """``url_on("mariadb")``: an empty database on the shared server of that kind."""
    with ExitStack() as stack:
        yield lambda kind: stack.enter_context(databases.fresh(request.getfixturevalue(kind)))
