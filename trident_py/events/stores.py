"""Makes a store of claims from its URL."""

from __future__ import annotations

import re

from sqlalchemy import make_url
from sqlalchemy.exc import ArgumentError

from ..errors import DefinitionError
from .claims import ClaimStore
from .redisstore import RedisClaims
from .sqlstore import SqlClaims


def store_of(url: str, expiry: float | None = None, table: str = "trident_events") -> ClaimStore:
    """Returns the store of a ``sqlite:///``, ``mysql+pymysql://``, ``postgresql+psycopg://`` or ``redis://`` URL,
    unopened.

    ``expiry`` in seconds is for Redis, which expires keys itself. Raises DefinitionError for any other URL.
    """
    if re.match(r"(redis|rediss|unix)://", url):
        return RedisClaims(url, expiry, table)
    try:
        return SqlClaims(make_url(url), table)
    except ArgumentError:
        raise DefinitionError("the store is not a URL such as sqlite:///events.db or redis://host:6379/0") from None
