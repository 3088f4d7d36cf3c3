"""Makes a store of claims from its URL."""

from __future__ import annotations

from sqlalchemy import make_url
from sqlalchemy.exc import ArgumentError

from ...databases.options import check_options
from ...errors import DefinitionError
from ...model.requirements import Needs, address_of
from ..redis.url import is_redis_url, read_redis_url
from .claims import ClaimStore
from .redisstore import RedisClaims
from .sqlstore import SqlClaims

_SERVERS = {
    "mysql": (("sqlalchemy", "pymysql"), "mysql", 3306),
    "mariadb": (("sqlalchemy", "pymysql"), "mysql", 3306),
    "postgresql": (("sqlalchemy", "psycopg"), "postgresql", 5432),
}


def store_of(url: str, expiry: float | None = None, table: str = "trident_events") -> ClaimStore:
    """Return the store of a ``sqlite:///``, ``mysql+pymysql://``, ``postgresql+psycopg://`` or ``redis://`` URL,
    unopened.

    ``expiry`` in seconds is for Redis, which expires keys itself. Raises DefinitionError for any other URL.
    """
    if is_redis_url(url):
        return RedisClaims(url, expiry, table)
    try:
        where = make_url(url)
    except ArgumentError:
        raise DefinitionError("the store is not a URL such as sqlite:///events.db or redis://host:6379/0") from None
    if where.get_backend_name() in _SERVERS:
        check_options(where)
    return SqlClaims(where, table)


def needs_of_store(url: str) -> Needs:
    """Return what each machine needs whose tasks use the store. Shows no secret of the URL."""
    if is_redis_url(url):
        return read_redis_url(url).needs
    where = make_url(url)
    kind = where.get_backend_name()
    if kind == "sqlite":
        file = f"it is the SQLite file {where.database}, and each machine would write a file of its own"
        return Needs(("sqlalchemy",), one_machine=file)
    client, extra, port = _SERVERS[kind]
    address = address_of(where.host or "localhost", where.port or port)
    return Needs(client, f"trident-py[{extra}]", (address,))
