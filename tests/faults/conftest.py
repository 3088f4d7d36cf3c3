"""One topology with every state, run again and again in one session, for faults that need no dead process."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import databases
import pytest

from states.sql.store import close_stores

from .evidence import Evidence, evidence
from .hooks import Kill
from .stores import EXACT
from .topology import Shape, build


def homes() -> list[Any]:
    """The store of each state: every store has some of them in `make test`, each has all of them in `make test-all`."""
    kinds = databases.kinds()
    mixed = {state: kinds[at % len(kinds)] for at, state in enumerate(EXACT)}
    alone = [pytest.param(dict.fromkeys(EXACT, kind), id=kind, marks=pytest.mark.whole) for kind in kinds]
    return [pytest.param(mixed, id="-".join(kinds)), *alone]


@pytest.fixture(params=homes())
def urls(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[dict[str, str]]:
    """The URL of each state's database, on one store and on another."""
    with ExitStack() as stack:
        made = {
            kind: databases.sqlite(tmp_path) if kind == "sqlite"
            else stack.enter_context(databases.fresh(request.getfixturevalue(kind)))
            for kind in sorted(set(request.param.values()))
        }  # fmt: skip
        yield {state: made[kind] for state, kind in request.param.items()}
        close_stores()


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
