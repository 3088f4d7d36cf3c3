"""The URL of a Redis, read in one way: for a state, for the gateway's store, and where values of Storm are."""

from __future__ import annotations

from typing import NamedTuple
from urllib.parse import parse_qs, unquote, urlsplit

from .requirements import Needs, address_of

SCHEMES = ("redis", "rediss", "unix")
_HERE = ("localhost", "127.0.0.1", "::1", "")


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

    @property
    def needs(self) -> Needs:
        """What each machine needs whose tasks use the server."""
        if self.socket:
            return Needs(("redis",), "trident-py[redis]", paths=(self.socket,))
        return Needs(("redis",), "trident-py[redis]", (address_of(self.host or "localhost", self.port),))


def is_redis_url(url: str) -> bool:
    return url.partition("://")[0] in SCHEMES


def read_redis_url(url: str) -> RedisAddress:
    """Read what follows the scheme. Raises ValueError, whose text may show a part of the password: for a URL whose
    password has a sign that ends it, redis-py would take a part of it for the port or the database."""
    parts = urlsplit(url)
    if "@" in parts.fragment or "@" in parts.query.partition("=")[0]:
        raise ValueError("the password has a ? or #")
    path, asked = unquote(parts.path), parse_qs(parts.query).get("db", [""])[0]
    if parts.scheme == "unix":
        return RedisAddress("", 0, str(int(asked or 0)), path)
    return RedisAddress(parts.hostname or "", parts.port or 6379, str(int(asked or path.strip("/") or 0)), "")
