"""The URL of a Redis, read in one way: for a state, for the gateway's store, and where values of Storm are."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple
from urllib.parse import SplitResult, parse_qsl, unquote, urlsplit

from ...errors import DefinitionError
from ...model.requirements import Needs, address_of
from ...state import Location

SCHEMES = ("redis", "rediss", "unix")
_HERE = ("localhost", "127.0.0.1", "::1", "")


class _Option(NamedTuple):
    """What the value of an option must be, and whether a text is that."""

    expected: str
    fits: Callable[[str], bool]


def _is_duration(text: str) -> bool:
    try:
        return 0 < float(text) < 1e9
    except ValueError:
        return False


_TEXT = _Option("a text", bool)
_SECONDS = _Option("a number of seconds above 0", _is_duration)
_NUMBER = _Option("a whole number", str.isdecimal)
_SIZE = _Option("a whole number from 1 on", lambda text: text.isdecimal() and int(text) > 0)
_SWITCH = _Option(
    "true or false", lambda text: text.lower() in ("true", "false", "1", "0", "yes", "no", "t", "f", "y", "n")
)
_EVERYWHERE = {
    "db": _NUMBER, "username": _TEXT, "password": _TEXT, "client_name": _TEXT, "socket_timeout": _SECONDS,
    "socket_connect_timeout": _SECONDS, "retry_on_timeout": _SWITCH, "max_connections": _SIZE,
    "health_check_interval": _NUMBER, "protocol": _Option("2 or 3", ("2", "3").__contains__),
}  # fmt: skip
_TCP = {"socket_keepalive": _SWITCH}
_TLS = {
    "ssl_ca_certs": _TEXT, "ssl_ca_path": _TEXT, "ssl_ca_data": _TEXT, "ssl_certfile": _TEXT, "ssl_keyfile": _TEXT,
    "ssl_password": _TEXT, "ssl_check_hostname": _SWITCH,
    "ssl_cert_reqs": _Option("none, optional or required", ("none", "optional", "required").__contains__),
}  # fmt: skip
OPTIONS = {"redis": _EVERYWHERE | _TCP, "rediss": _EVERYWHERE | _TCP | _TLS, "unix": _EVERYWHERE}
"""The options that a URL may have, by scheme: every version of redis-py takes them, and they do not change what is
read."""


class RedisAddress(NamedTuple):
    """One database of a Redis. ``socket``: the path of its socket; "" if it has a host."""

    host: str
    port: int
    database: str
    socket: str

    @property
    def spelling(self) -> str:
        """One spelling, for comparison: ``host:port/database``."""
        host = "localhost" if self.host in _HERE else self.host.lower()
        return f"{self.socket or f'{host}:{self.port}'}/{self.database}"

    def locate(self, hash: str | None, shown: str) -> Location:
        """Return the place of values in a hash, or (None) in the strings of the database."""
        name = "strings" if hash is None else f"hash {hash}"
        return Location(frozenset([self.spelling]), frozenset([name]), shown=shown)

    @property
    def needs(self) -> Needs:
        """What each machine needs whose tasks use the server."""
        if self.socket:
            return Needs(("redis",), "trident-py[redis]", paths=(self.socket,))
        return Needs(("redis",), "trident-py[redis]", (address_of(self.host or "localhost", self.port),))


def is_redis_url(url: str) -> bool:
    return url.partition("://")[0] in SCHEMES


def read_redis_url(url: str) -> RedisAddress:
    """Read what follows the scheme. Raises DefinitionError, whose text has no secrets of the URL, for one that Redis
    clients cannot read, and for an option that they would not take, or that changes what is read."""
    try:
        parts = urlsplit(url)
        given = parse_qsl(parts.query, keep_blank_values=True)
        database = next((value for name, value in given if name == "db" and value), "")
        address = _read_address(parts, given, database)
    except ValueError:
        raise DefinitionError(
            "the URL of Redis is not readable: percent-encode / # ? and @ in a password (%2F %23 %3F %40). An example: "
            "redis://host:6379/0"
        ) from None
    for name, value in given:
        _check_option(parts.scheme, name, value)
    return address._replace(database=str(int(database or address.database)))


def make_client(url: str, **options: Any) -> Any:
    """Return a client of redis-py, which is there. It checks the server's name in its certificate; before its version 6
    redis-py itself did so only if it was asked."""
    import redis

    read_redis_url(url)
    parts = urlsplit(url)
    checks = parts.scheme == "rediss" and dict(parse_qsl(parts.query)).get("ssl_cert_reqs") != "none"
    if checks:
        options["ssl_check_hostname"] = True  # what the URL says has precedence
    return redis.Redis.from_url(url, **options)


def _read_address(parts: SplitResult, given: Sequence[tuple[str, str]], database: str) -> RedisAddress:
    """Read all but the options; a ``database`` among them counts, not the path. Raises ValueError if a password has a
    sign that ends it: redis-py would take a part of it for the port, the database or an option."""
    strange = any(name not in OPTIONS[parts.scheme] for name, _ in given)
    if "@" in parts.fragment or (strange and "@" in parts.query):
        raise ValueError("the password has a ? or #")
    path = unquote(parts.path)
    if parts.scheme == "unix":
        return RedisAddress("", 0, "0", path)
    number = "0" if database else str(int(path.strip("/") or 0))
    return RedisAddress(parts.hostname or "", parts.port or 6379, number, "")


def _check_option(scheme: str, name: str, value: str) -> None:
    """Raise DefinitionError, which does not show the value: it may be a secret. An empty one counts as none, as in
    redis-py."""
    options = OPTIONS[scheme]
    if name not in options:
        raise DefinitionError(
            f"the URL of Redis has the option {name!r}. Here, {scheme}:// takes only {', '.join(options)}"
        )
    expected, fits = options[name]
    if value and not fits(value):
        raise DefinitionError(f"the URL of Redis has a wrong value for its option {name!r}: it must be {expected}")
