"""Options in the URL of a database that its driver does not take: named before anything connects."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from states.loading.loader import look_at
from states.sql import SqlMapState
from trident_py.errors import DefinitionError, FailedException
from trident_py.extras.gateway.stores import store_of
from trident_py.extras.moving.table_source import TableSource
from trident_py.state import StateType

MYSQL, MARIADB, POSTGRESQL = "mysql+pymysql", "mariadb+pymysql", "postgresql+psycopg"
BUILDERS: dict[str, Callable[[str], Any]] = {
    "state": lambda url: SqlMapState.opaque(url, "t", "k string", "n bigint"),
    "gateway": lambda url: store_of(url, 60),
    "import": lambda url: TableSource(url, "t", StateType.NON_TRANSACTIONAL, ("k",), ("n",))._open(),
}
WRONG = [
    *((kind, option) for kind in (MYSQL, MARIADB) for option in (
        "connect_timeout=x", "connect_timeout=0", "connect_timeout=1&connect_timeout=2", "read_timeout=x",
        "write_timeout=-1", "client_flag=x", "local_infile=x", "use_unicode=x", "foo=bar", "charset=nope", "port=x",
        "ssl=true",
    )),
    *((kind, "ssl_cipher=nope") for kind in (MYSQL, MARIADB)),
    *((POSTGRESQL, option) for option in (
        "connect_timeout=x", "foo=bar", "port=x", "row_factory=x", "sslmode=nope", "sslmode=verify_full",
        "target_session_attrs=master", "channel_binding=x", "gssencmode=x", "load_balance_hosts=x", "require_auth=x",
        "ssl_min_protocol_version=TLSv9", "keepalives=x", "keepalives_idle=x", "tcp_user_timeout=x",
    )),
]  # fmt: skip


@pytest.mark.parametrize("build", BUILDERS.values(), ids=list(BUILDERS))
@pytest.mark.parametrize(("kind", "option"), WRONG)
def test_an_option_that_the_driver_does_not_take_is_named(
    build: Callable[[str], Any], kind: str, option: str
) -> None:
    name = option.partition("=")[0]
    with pytest.raises(DefinitionError, match=rf"has an option that \w+ does not take: '{name}'") as told:
        build(f"{kind}://me:hush@127.0.0.1:1/db?{option}")
    assert "hush" not in str(told.value)


@pytest.mark.parametrize(
    ("kind", "options"),
    [
        (MYSQL, "connect_timeout=3&read_timeout=4&charset=utf8mb4&ssl_ca=/none.pem&local_infile=1&unix_socket=/none"),
        (MARIADB, "ssl_cert=/none.pem&ssl_key=/none.key&ssl_check_hostname=false&init_command=SELECT+1"),
        (POSTGRESQL, "connect_timeout=3&sslmode=verify-full&sslrootcert=/none.pem&application_name=me&keepalives=1"),
        (POSTGRESQL, "sslmode=verify-full&sslrootcert=system&require_auth=scram-sha-256&keepalives=0"),
        (POSTGRESQL, "options=-c+statement_timeout%3D5&sslcert=/none.crt&sslkey=/none.key&passfile=/none&service=none"),
        (POSTGRESQL, "host=a:1&host=b:2&target_session_attrs=read-write"),
        (POSTGRESQL, "host=a,b&port=1,2"),
    ],
)
@pytest.mark.parametrize("build", [BUILDERS["state"], BUILDERS["gateway"]], ids=["state", "gateway"])
def test_options_that_it_takes_are_left_to_it(build: Callable[[str], Any], kind: str, options: str) -> None:
    """A file of another machine, too."""
    assert build(f"{kind}://me:hush@127.0.0.1:1/db?{options}") is not None


def test_options_that_do_not_fit_each_other_are_named_together() -> None:
    with pytest.raises(DefinitionError, match=r"does not take: 'host', 'port' \(.*mix"):
        BUILDERS["state"](f"{POSTGRESQL}:///db?host=a:1&host=b:2&port=3")


def test_a_timeout_of_sqlite_is_a_number() -> None:
    with pytest.raises(DefinitionError, match="does not take: 'timeout'"):
        BUILDERS["state"]("sqlite:///none.db?timeout=x")


def test_the_options_of_the_environment_are_not_the_urls(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PGSSLMODE", "nope")
    assert BUILDERS["state"](f"{POSTGRESQL}://me@127.0.0.1:1/db?application_name=env") is not None


@pytest.mark.parametrize(
    ("kind", "options", "name"),
    [
        *((kind, f"{name}=/none.pem", name) for kind in (MYSQL, MARIADB)
          for name in ("ssl_ca", "ssl_capath", "ssl_cert", "ssl_key")),
        (POSTGRESQL, "sslmode=verify-full&sslrootcert=/none.pem", "sslrootcert"),
        (POSTGRESQL, f"sslcert={__file__}&sslkey=/none.pem", "sslkey"),
    ],
)  # fmt: skip
def test_a_file_that_is_not_where_it_is_needed_is_told_before_a_server_is_waited_for(
    kind: str, options: str, name: str
) -> None:
    url = f"{kind}://me:hush@127.0.0.1:1/db?{options}"
    state, source = BUILDERS["state"](url), TableSource(url, "t", StateType.NON_TRANSACTIONAL, ("k",), ("n",))
    uses: list[Callable[[], Any]] = [
        lambda: state.participant().remembered({"topology.name": "t", "trident.state.name": "s"}),
        lambda: BUILDERS["gateway"](url).get("f"), source._open,
    ]  # fmt: skip
    for use in uses:
        with pytest.raises(DefinitionError, match=f"not on this machine: {name}=/none.pem"):
            use()
    assert [(each.level, name in each.text) for each in look_at("s", state).findings] == [("error", True)]


@pytest.mark.parametrize("options", ["sslmode=require&sslrootcert=/none.pem", "sslcert=/none.crt&sslkey=/none.key"])
def test_a_file_that_libpq_does_without_may_be_missing(options: str) -> None:
    state = BUILDERS["state"](f"{POSTGRESQL}://me:hush@127.0.0.1:1/db?{options}")
    with pytest.raises(FailedException):
        state.participant().remembered({"topology.name": "t", "trident.state.name": "s"})
