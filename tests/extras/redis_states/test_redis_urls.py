"""The options in the URL of a Redis: what each client of ours takes, and what is refused before it connects."""

from __future__ import annotations

import contextlib
import socket
from collections.abc import Callable
from typing import Any

import pytest
import redis as client
from contracts.crashing import Driver
from redis_clients import close_servers
from redis_contract import RedisContract

from states.redis import RedisMapState, RedisState
from trident_py.errors import DefinitionError, FailedException
from trident_py.extras.gateway import redisstore
from trident_py.extras.gateway.stores import store_of
from trident_py.extras.moving import sources
from trident_py.extras.moving.sources import RedisSource
from trident_py.extras.redis import server
from trident_py.extras.redis.url import OPTIONS, read_redis_url
from trident_py.operations.builtin import Sum
from trident_py.state import MapCombinerAggStateUpdater, OpaqueValue, StateType
from trident_py.tuples import Fields, TridentTuple

SUM = MapCombinerAggStateUpdater(Sum(), "word", "n")
GOOD = {
    "db": "0", "username": "default", "password": "", "client_name": "me", "socket_timeout": "2.5",
    "socket_connect_timeout": "3", "socket_keepalive": "yes", "retry_on_timeout": "False", "max_connections": "7",
    "health_check_interval": "30", "protocol": "3", "ssl_ca_certs": "/ca.pem", "ssl_ca_path": "/ca", "ssl_ca_data": "x",
    "ssl_certfile": "/cert", "ssl_keyfile": "/key", "ssl_password": "pw", "ssl_check_hostname": "no",
    "ssl_cert_reqs": "none",
}  # fmt: skip
BUILDERS: list[Callable[[str], Any]] = [
    lambda url: RedisMapState.opaque(url, "h"),
    lambda url: RedisState(url, "h"),
    lambda url: store_of(url, 60),
    lambda url: RedisSource(url, "h", StateType.OPAQUE).connect(),
]


def ask(built: Any) -> Any:
    """The first question to the server."""
    if isinstance(built, RedisState | RedisMapState):
        return built.participant().remembered({"topology.name": "t", "trident.state.name": "s"})
    return built.get("x")


@pytest.mark.parametrize("build", BUILDERS, ids=["map", "texts", "gateway", "import"])
@pytest.mark.parametrize(
    ("options", "said"),
    [
        ("foo=bar", r"option 'foo'\. Here, redis:// takes only db, username"),
        ("db=1&foo", r"option 'foo'"),
        ("decode_responses=True", r"option 'decode_responses'"),
        ("encoding=latin-1", r"option 'encoding'"),
        ("timeout=1", r"option 'timeout'"),
        ("retry_on_error=TimeoutError", r"option 'retry_on_error'"),
        ("ssl_ca_certs=/ca.pem", r"option 'ssl_ca_certs'\. Here, redis:// takes"),
        ("socket_timeout=x", r"option 'socket_timeout': it must be a number of seconds above 0"),
        ("socket_timeout=0", r"option 'socket_timeout'"),
        ("socket_connect_timeout=nan", r"option 'socket_connect_timeout'"),
        ("socket_connect_timeout=inf", r"option 'socket_connect_timeout'"),
        ("db=x", r"option 'db': it must be a whole number"),
        ("db=-1", r"option 'db'"),
        ("max_connections=0", r"option 'max_connections': it must be a whole number from 1 on"),
        ("health_check_interval=1.5", r"option 'health_check_interval'"),
        ("socket_keepalive=x", r"option 'socket_keepalive': it must be true or false"),
        ("protocol=4", r"option 'protocol': it must be 2 or 3"),
    ],
)
def test_an_option_that_cannot_be_is_named_without_the_password(
    build: Callable[[str], Any], options: str, said: str
) -> None:
    with pytest.raises(DefinitionError, match=said) as told:
        build(f"redis://me:hush@place:6379/0?{options}&password=hush")
    assert "hush" not in str(told.value)


@pytest.mark.parametrize("build", BUILDERS, ids=["map", "texts", "gateway", "import"])
@pytest.mark.parametrize("url", ["redis://u:12?gehe=im@place:1/0", "redis://u:12?g&db=1@place", "redis://u:1#h@place"])
def test_a_part_of_a_password_is_not_taken_for_an_option(build: Callable[[str], Any], url: str) -> None:
    with pytest.raises(DefinitionError, match="percent-encode") as told:
        build(url)
    assert "'g" not in str(told.value) and "gehe" not in str(told.value)


@pytest.mark.parametrize("scheme", ["redis", "rediss", "unix"])
def test_every_option_is_one_that_the_client_takes(scheme: str) -> None:
    options = "&".join(f"{name}={GOOD[name]}" for name in OPTIONS[scheme])
    url = f"{scheme}://place/9?{options}"
    assert read_redis_url(url).database == "0"
    pool = client.Redis.from_url(url).connection_pool
    connection = pool.connection_class(**pool.connection_kwargs)  # a name that it does not know would end here
    assert (connection.client_name, connection.socket_timeout, connection.health_check_interval) == ("me", 2.5, 30)


@pytest.mark.parametrize("name", [name for name in OPTIONS["redis"] if name != "password"])
def test_a_state_reads_and_writes_the_same_under_every_option(redis: str, name: str) -> None:
    factory = RedisMapState.opaque(f"{redis}?{name}={GOOD[name]}", RedisContract().name())
    driver = Driver(factory, SUM)
    for txid in (1, 2):
        driver.batch([TridentTuple.of(Fields("word", "n"), ("a", txid))], txid)
    assert factory.stored() == {("a",): OpaqueValue(2, 3, 1)}
    assert [finding.level for finding in factory.check()] == ["ok"]
    close_servers()


@pytest.mark.timeout(60)
@pytest.mark.parametrize("scheme", ["rediss", "redis"])
@pytest.mark.parametrize("build", BUILDERS[1:], ids=["texts", "gateway", "import"])
def test_a_server_that_says_nothing_is_not_waited_for_as_for_an_answer(
    build: Callable[[str], Any], scheme: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As a port that speaks no TLS does. The answer to a command may take longer, once the server has given one."""
    monkeypatch.setattr(server, "ANSWER", 3600.0)
    for module, name in ((server, "CONNECT"), (redisstore, "PATIENCE"), (sources, "ANSWER")):
        monkeypatch.setattr(module, name, 0.2)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        built = build(f"{scheme}://127.0.0.1:{silent.getsockname()[1]}/0")
        with pytest.raises((FailedException, client.TimeoutError), match=r"Timeout|no TLS"):
            ask(built)
    close_servers()


def test_an_import_sets_a_limit_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    """Older versions of the client have none."""
    monkeypatch.setattr(sources, "ANSWER", 7.0)
    options = RedisSource("redis://place", "h", StateType.OPAQUE).connect().connection_pool.connection_kwargs
    assert (options["socket_timeout"], options["socket_connect_timeout"]) == (7.0, 7.0)


def test_a_port_without_tls_is_told(redis: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "CONNECT", 0.2)
    url = redis.replace("redis://", "rediss://")
    for _ in range(2):  # it is asked in the same way until it has answered
        with pytest.raises(FailedException, match="The server is gone, or cannot do this now, or speaks no TLS"):
            ask(RedisState(url, "h"))
    close_servers()


def test_an_option_without_a_value_counts_as_none() -> None:
    """As in redis-py; a variable may be empty."""
    assert read_redis_url("redis://place/3?db=&password=&socket_timeout=").database == "3"
    assert read_redis_url("redis://place/name?db=&db=2").database == "2"


@pytest.mark.parametrize("build", BUILDERS, ids=["map", "texts", "gateway", "import"])
@pytest.mark.parametrize(
    ("options", "checked"),
    [("", True), ("?ssl_ca_certs=/ca.pem", True), ("?ssl_check_hostname=no", False), ("?ssl_cert_reqs=none", False)],
)
def test_the_name_in_a_servers_certificate_is_checked_by_every_client(
    build: Callable[[str], Any], options: str, checked: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[dict[str, Any]] = []
    real = client.Redis.from_url.__func__  # type: ignore[attr-defined]

    def note(cls: Any, url: str, **given: Any) -> Any:
        made = real(cls, url, **given)
        asked.append(given | {"made": made.connection_pool.connection_kwargs})
        return made

    monkeypatch.setattr(client.Redis, "from_url", classmethod(note))
    with contextlib.suppress(Exception):  # nothing listens there
        ask(build(f"rediss://127.0.0.1:1/0{options}"))
    close_servers()
    assert asked
    for given in asked:  # before version 6 it must be asked
        assert given.get("ssl_check_hostname", False) == ("cert_reqs=none" not in options)
        assert given["made"].get("ssl_check_hostname", False) == checked
