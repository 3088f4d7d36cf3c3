"""What lives in the driver, on several machines: refused, or allowed by the user. Nothing else needs it."""

from __future__ import annotations

import json
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from testbed.spark_hosts import SparkHosts
from trident_py import DefinitionError, Fields, TridentTopology
from trident_py.operations.builtin import Count
from trident_py.spark import network
from trident_py.spark.network import Homes
from trident_py.state import MemoryMapState
from trident_py.testing import FixedBatchSpout, LoggingBackingMap

from .clusters import started
from .home_app import OpaqueNumbers, TransactionalNumbers

ROOT = Path(__file__).parents[2]
APP = Path(__file__).with_name("home_app.py")


def session(master: str = "spark://m:7077", **settings: str) -> Any:
    """What `network` reads of a session."""
    conf = {key.replace("_", "."): value for key, value in settings.items()}
    return SimpleNamespace(sparkContext=SimpleNamespace(master=master, getConf=lambda: conf))


def plan_of(spout: Any, factory: Any = None) -> Any:
    topology = TridentTopology()
    stream = topology.newStream("s", spout)
    if factory is not None:
        grouped = stream.groupBy(stream.getOutputFields().get(0))
        grouped.persistentAggregate(factory, Count(), Fields("count"), stateName="counts")
    return topology.build().plan


@pytest.fixture
def homes() -> Iterator[Homes]:
    opened = Homes()
    yield opened
    opened.close()


WORDS = FixedBatchSpout(Fields("word"), 1, ("a",))
HOME = {
    "memory": (WORDS, MemoryMapState.Factory(), "state 'counts' lives in the driver process"),
    "a log of calls": (WORDS, LoggingBackingMap.Factory(), "state 'counts' lives in the driver process"),
    "transactional": (TransactionalNumbers(), None, "spout 's' is an IPartitionedTridentSpout"),
}


@pytest.mark.parametrize("case", HOME)
def test_what_lives_in_the_driver_is_refused_on_several_machines(homes: Homes, case: str) -> None:
    spout, factory, words = HOME[case]
    with pytest.raises(DefinitionError, match=words) as caught:
        homes.for_workers(session(), plan_of(spout, factory), {})
    assert "spark.authenticate=true" in str(caught.value) and "topology.home.network=true" in str(caught.value)
    assert "spark://m:7077" in str(caught.value)


@pytest.mark.parametrize("master", ["local[2]", "local", "local-cluster[2,1,1024]"])
def test_on_one_machine_everything_uses_the_loopback(homes: Homes, master: str) -> None:
    plan = plan_of(TransactionalNumbers(), MemoryMapState.Factory())
    assert homes.for_workers(session(master), plan, {"topology.home.network": False}) is homes.local.address


def test_what_lives_elsewhere_opens_no_socket_on_the_network(homes: Homes) -> None:
    assert list(network.home_users(plan_of(OpaqueNumbers()))) == []
    conf = {"topology.home.network": True}
    assert homes.for_workers(session(), plan_of(OpaqueNumbers()), conf) is homes.local.address


@pytest.mark.parametrize(
    ("authenticate", "setting", "allowed"),
    [("false", None, False), ("true", None, True), ("TRUE", None, True), ("false", True, True), ("true", False, False)],
)
def test_the_topology_s_setting_decides_else_that_of_spark(authenticate: str, setting: Any, allowed: bool) -> None:
    conf = {} if setting is None else {"topology.home.network": setting}
    assert network.is_allowed(session(spark_authenticate=authenticate), conf) is allowed


def test_it_listens_on_the_address_of_sparks_driver_alone(homes: Homes) -> None:
    """127.0.0.2 stands for that address: nothing answers on another."""
    for bind in ("127.0.0.2", "0.0.0.0"):
        spark = session(spark_driver_host="127.0.0.2", spark_driver_bindAddress=bind)
        address = homes.for_workers(spark, plan_of(WORDS, MemoryMapState.Factory()), {"topology.home.network": True})
        assert address.host == "127.0.0.2" and address is not homes.local.address
        socket.create_connection((address.host, address.port), 5).close()
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection(("127.0.0.1", address.port), 5)
        homes.close()
        homes._network = None


def test_an_address_of_another_machine_is_refused_with_the_settings(homes: Homes) -> None:
    spark = session(spark_driver_host="192.0.2.1")
    with pytest.raises(DefinitionError, match=r"cannot listen on 192\.0\.2\.1.*spark\.driver\.bindAddress"):
        homes.for_workers(spark, plan_of(WORDS, MemoryMapState.Factory()), {"topology.home.network": True})


@pytest.fixture(scope="module")
def hosts() -> Iterator[SparkHosts]:
    with started() as hosts:
        yield hosts


NUMBERS = [{str(txid): [[part, txid - 1] for part in "abc"] for txid in (1, 2, 3)}, {"1": 1, "2": 2, "3": 0}]


@pytest.mark.spark
@pytest.mark.whole(
    "test_what_lives_in_the_driver_is_refused_on_several_machines",
    "test_an_executor_lost_between_two_commits",
)
def test_on_two_machines_replays_are_exact_and_need_no_socket_of_ours(hosts: SparkHosts) -> None:
    """The opaque spout and its replays need nothing; what lives in the driver is refused, and exact once allowed."""
    environment = {"PYTHONPATH": str(ROOT)}
    running = hosts.submit(str(APP), environment=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    output, errors = running.communicate(timeout=300)
    assert running.returncode == 0, errors.decode()[-4000:]
    results = dict(json.loads(line) for line in output.decode().splitlines() if line.startswith("["))
    assert results["opaque"] == NUMBERS
    assert "spout 's' is an IPartitionedTridentSpout" in results["transactional refused"]
    assert "state 'counts' lives in the driver process" in results["words refused"]
    assert results["transactional"] == NUMBERS
    assert results["words"] == [{"a": 3, "b": 1, "c": 1}, {"1": 1, "2": 2, "3": 0}]
