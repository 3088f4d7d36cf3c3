"""Packets between a driver and its store that come late, twice or behind later ones: TCP hides it from a run."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from needed import HOSTS, needed

from testbed.hosts import Network, join_network
from trident_py.testing.proxy import HOST, CuttingProxy

from .drawn import Drawn, DrawnStart
from .forks import run
from .held import HELD
from .homes import home

pytestmark = [pytest.mark.servers, pytest.mark.whole("test_a_short_round_loses_and_doubles_nothing")]
LAST = 8
MILLISECONDS, SHARE = 3, 0.2


@dataclass(frozen=True, kw_only=True)
class StartOnHost(DrawnStart):
    """One start of a driver whose network is that of another process."""

    pid: int

    def topology(self) -> Any:
        join_network(self.pid)
        return super().topology()


@pytest.fixture
def network() -> Iterator[Network]:
    with needed(HOSTS), Network() as made:
        made.host("driver")
        made.host("store")
        yield made


@pytest.mark.parametrize("store", ["mariadb", "postgresql", "redis"])
def test_packets_that_come_late_and_twice_change_nothing(network: Network, tmp_path: Path, store: str) -> None:
    near, far = network.hosts["driver"], network.hosts["store"]
    with needed(store), ExitStack() as stack:
        place = stack.enter_context(home(store))
        port = place.server.port
        stack.enter_context(CuttingProxy(HOST, port, far.listen(port, far.address)))
        url = stack.enter_context(place.place(tmp_path))
        drawn = Drawn(store, "transactional", tuple(HELD[store]), 2, False, False)
        start = StartOnHost(url.replace(HOST, far.address), tmp_path, LAST, drawn=drawn, pid=near.pid)
        network.slow("driver", MILLISECONDS, SHARE)
        assert run(start).told[-1] == ("done", LAST)
        for name, held in HELD[store].items():
            assert all(found == expected for found, expected in held.pairs(url, start.input.fold())), name
    assert counters(near.pid)["TCPDSACKOldSent"] > 20, "packets came twice"


def counters(pid: int) -> dict[str, int]:
    """What the kernel has counted in the network of a process."""
    names, values = Path(f"/proc/{pid}/net/netstat").read_text().splitlines()[:2]
    return dict(zip(names.split()[1:], map(int, values.split()[1:]), strict=True))
