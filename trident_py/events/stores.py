"""A store of claims by its URL."""

from __future__ import annotations

import re

from sqlalchemy import make_url
from sqlalchemy.exc import ArgumentError

from ..errors import DefinitionError
from .claims import ClaimStore
from .redisstore import RedisClaims
from .sqlstore import SqlClaims


def store_of(url: str, expiry: float | None = None, table: str = "trident_events") -> ClaimStore:
    """``sqlite:///``, ``mysql+pymysql://``, ``postgresql+psycopg://`` or ``redis://``. Opens nothing.

    ``expiry`` in seconds is for Redis, which forgets by itself. Raises DefinitionError for anything else.
    """
    if re.match(r"(redis|rediss|unix)://", url):
        try:
            return RedisClaims(url, expiry, table)
        except ValueError:  # tells a part of the password
            raise DefinitionError(
                "the store's URL cannot be read; / # ? and @ in a password are percent-encoded (%2F %23 %3F %40)"
            ) from None
    try:
        return SqlClaims(make_url(url), table)
    except ArgumentError:
        raise DefinitionError("the store is no URL; it is like sqlite:///events.db or redis://host:6379/0") from None
