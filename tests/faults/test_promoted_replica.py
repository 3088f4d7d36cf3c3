"""A server that dies under a running driver, and its replica that takes its place, with and without lag."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import redis
from needed import needed
from servers.waiting import soon
from sqlalchemy.exc import OperationalError

from testbed.redis_server import RedisReplica, RedisServer
from testbed.sql_servers import MariaDb, MariaDbReplica, MySql, MySqlReplica, PostgreSql, PostgreSqlStandby
from trident_py.engine.program import compile_plan
from trident_py.extras.txid.components import component_of
from trident_py.extras.txid.rewind import rewind
from trident_py.model.context import with_context
from trident_py.testing.proxy import HOST, CuttingProxy

from . import backups
from .drawn import Drawn, DrawnStart
from .forks import PATIENCE, fork, run, run_with
from .held import HELD
from .readings import Fold, Readings
from .steps import Fault

pytestmark = pytest.mark.dear

LAST = 8
LOGGED = {"log_bin": "binlog", "server_id": 1, "binlog_format": "ROW"}
GTIDS = {"gtid_mode": "ON", "enforce_gtid_consistency": "ON"}
SERVERS: dict[str, tuple[Any, Any]] = {
    "postgresql": (PostgreSql, PostgreSqlStandby),
    "mariadb": (lambda: MariaDb(**LOGGED), MariaDbReplica),
    "mysql": (lambda: MySql(**LOGGED, **GTIDS), lambda port: MySqlReplica(port, **GTIDS)),
    "redis": (lambda: RedisServer(**{"repl-diskless-sync-delay": 0}), RedisReplica),
}


class Pair:
    """A primary and its replica, which follows it by way of a proxy, and the address of whichever is in charge."""

    def __init__(self, kind: str, primary: Any, replica: Any, link: CuttingProxy, address: CuttingProxy) -> None:
        self.kind, self.primary, self.replica, self.link, self.address = kind, primary, replica, link, address
        self.url = primary.url.replace(f":{primary.port}/", f":{address.port}/")
        self.url += "#pair" if kind == "redis" else ""

    def start(self, folder: Path, *faults: Fault) -> DrawnStart:
        drawn = Drawn(self.kind, "transactional", tuple(HELD[self.kind]), 2, False, False)
        return DrawnStart(self.url, folder, LAST, faults, drawn=drawn)

    def differences(self, last: int) -> dict[str, Any]:
        """The states that are not what a fold over so many batches gives."""
        pairs = {name: held.pairs(self.url, Fold(Readings(1), last)) for name, held in HELD[self.kind].items()}
        return {name: made for name, made in pairs.items() if any(found != expected for found, expected in made)}

    def part(self) -> None:
        """From now on the replica lags."""
        assert soon(self.caught_up)
        self.link.refuse = True
        self.link.cut()

    def caught_up(self) -> bool:
        try:
            return self._contents(self.replica) == self._contents(self.primary)
        except OperationalError:
            return False  # it has no such database yet

    def _contents(self, server: Any) -> Any:
        if self.kind != "redis":
            return backups.contents(server.url)
        with redis.Redis.from_url(server.url) as reader:
            return {key: reader.dump(key) for key in reader.scan_iter()}

    def fail_over(self) -> None:
        self.primary.kill()
        self.replica.promote()
        self.address.target = (HOST, self.replica.port)
        self.address.cut()


@pytest.fixture(params=SERVERS)
def pair(request: pytest.FixtureRequest) -> Iterator[Pair]:
    primary_of, replica_of = SERVERS[request.param]
    with needed(request.param), primary_of() as primary, CuttingProxy(HOST, primary.port) as link:
        with replica_of(link.port) as replica, CuttingProxy(HOST, primary.port) as address:
            yield Pair(request.param, primary, replica, link, address)


def test_a_replica_that_has_all_takes_over_and_nothing_is_lost(pair: Pair, tmp_path: Path) -> None:
    def fail_over(txid: int) -> None:
        assert soon(pair.caught_up)
        pair.fail_over()

    driver = run_with(pair.start(tmp_path, Fault("begin", "rows", 5, action="ask")), fail_over)
    assert driver.told[-1] == ("done", LAST), driver.told[-1]
    assert pair.differences(LAST) == {}


def take_back(start: DrawnStart, txid: int) -> None:
    """In a process of its own: the server of forks has the clients."""
    (program,) = compile_plan(start.topology().plan, with_context(dict(start.conf), topology="faults", run="asks"))
    rewind(component_of(start.place, program), txid)


def test_a_replica_that_lags_takes_over_and_a_rewind_gives_it_what_it_lacks(pair: Pair, tmp_path: Path) -> None:
    asked = (Fault("over", "", 3, action="ask"), Fault("begin", "rows", 6, action="ask"))
    driver = run_with(pair.start(tmp_path, *asked), lambda txid: pair.part() if txid == 3 else pair.fail_over())
    kind, error, said = driver.told[-1]
    assert (kind, error) == ("error", "StateError")
    assert "its last complete batch is 3, and this driver has completed batch 5" in said
    kind, error, said = run(pair.start(tmp_path)).told[-1]
    assert (kind, error) == ("error", "LineageError")
    assert "has the batches up to 3" in said and "trident txid rewind --to 3" in said
    assert pair.differences(3) == {}
    taken = fork(take_back, pair.start(tmp_path), 3)
    taken.start()
    taken.join(PATIENCE)
    assert taken.exitcode == 0
    assert run(pair.start(tmp_path)).told[-1] == ("done", LAST)
    assert pair.differences(LAST) == {}
