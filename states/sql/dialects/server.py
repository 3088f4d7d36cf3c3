"""Shared by MySQL and PostgreSQL: a server behind a URL, whose typed columns have limits."""

from __future__ import annotations

import datetime
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar

import sqlalchemy as sa
from sqlalchemy.engine import URL, Engine

from trident_py.model.requirements import address_of
from trident_py.state import Needs

from ...columns.values import Column, RefusedValue, decoder_of
from ..connection import Statement
from .base import Dialect, names

_HERE = ("", "localhost", "127.0.0.1", "::1")
_DECIMAL = re.compile(r"(?:DECIMAL|NUMERIC)\s*(\(\d+(?:,\s*\d+)?\))?")
_TAIL = re.compile(r"( CHARACTER SET \w+| COLLATE \S+)*$")
_LENGTH = re.compile(r"(?:CHAR|BINARY)\((\d+)\)")


class ServerDialect(Dialect):
    """Base class of the server dialects. Patterns are matched against the upper-case name of a column's type."""

    served = True
    pool: ClassVar[dict[str, Any]] = {"pool_size": 1, "pool_pre_ping": True}
    title: ClassVar[str]
    port: ClassVar[int]
    families: ClassVar[Sequence[tuple[str, str]]]
    """The supported types, as patterns of the whole name, with their DDL types."""
    changing: ClassVar[Sequence[tuple[str, str]]]
    """Types that change values, and how."""
    limits: ClassVar[Mapping[str, tuple[str, ...]]]
    """What the columns of a family cannot hold, see `Column.without`."""
    decoded: ClassVar[Sequence[str]]
    """The families whose values the driver does not return as they were sent."""
    holds_any_decimal: ClassVar[bool] = False
    """Whether a decimal type without sizes holds every decimal."""

    def address(self, url: URL) -> str:
        socket = url.query.get("unix_socket")
        host, port = str(url.query.get("host", url.host or "")), url.query.get("port", url.port or self.port)
        host = "localhost" if host.lower() in _HERE else host.lower()
        schema = f" {url.query['options']}" if "options" in url.query else ""  # PostgreSQL's search_path
        return f"{self.name} {socket or f'{host}:{port}'}/{url.database}{schema}"

    def needs(self, url: URL) -> Needs:
        servers = _servers(url, self.port)
        sockets = [str(url.query.get("unix_socket", "")), *(host for host, _ in servers if host.startswith("/"))]
        paths = tuple(filter(None, sockets))
        reached = ",".join(address_of(host or "localhost", port) for host, port in servers)
        addresses = () if paths else (reached,)
        return Needs(("sqlalchemy", url.get_driver_name()), f"trident-py[{self.name}]", addresses, paths)

    def ddl_of(self, type_name: str) -> str | None:
        kind = _TAIL.sub("", type_name.upper())
        if decimal := _DECIMAL.fullmatch(kind):
            return f"decimal{decimal.group(1) or ''}".replace(" ", "")
        return next((ddl for pattern, ddl in self.families if re.fullmatch(pattern, kind)), None)

    def type_names(self, engine: Engine, table: str) -> dict[str, str]:
        columns = sa.inspect(engine).get_columns(table)
        return {column["name"]: _compile_type(engine, column["type"]) for column in columns}

    def fits(self, column: Column, type_name: str) -> bool:
        for pattern, why in self.changing:
            if re.match(pattern, type_name.upper()):
                raise RefusedValue(why)
        ddl = self.ddl_of(type_name)
        if ddl is None:
            return False
        stored = Column(column.name, ddl)
        if column.family == "json":
            return stored.family in ("json", "text")
        if column.family == stored.family == "integer":
            return stored.bits >= column.bits
        if column.family == stored.family == "decimal":
            return stored.sizes == [*column.digits] or (self.holds_any_decimal and not stored.sizes)
        return column.family == stored.family

    def narrow(self, column: Column, type_name: str) -> Column:
        limits = self.limits.get(column.family, ())
        length = _LENGTH.search(type_name.upper())
        if length is not None and column.family == "json":
            return replace(column, without=limits, most=int(length.group(1)))
        if length is None or column.family not in ("text", "binary"):
            return Column(column.name, column.ddl, column.key, limits)
        size = min([int(length.group(1)), *column.sizes[:1]])
        return Column(column.name, f"{column.base}({size})", column.key, limits)

    def decoder(self, column: Column) -> Callable[[Any], Any] | None:
        if column.zoned:
            return _in_utc
        return decoder_of(column) if column.family in self.decoded else None

    def columns_now(self, table: str, columns: Sequence[Column]) -> Statement:
        """Lock the table against ALTER TABLE, as any SELECT does; read nothing."""
        return f'SELECT {names(columns)} FROM "{table}" LIMIT 0', ()


def _in_utc(time: datetime.datetime) -> datetime.datetime:
    return time.replace(tzinfo=datetime.UTC)


def _servers(url: URL, port: int) -> list[tuple[str, str]]:
    """Return the hosts and ports of a URL; PostgreSQL's may name several, ``?host=a:5432&host=b`` or ``?host=a,b``."""
    given = url.query.get("host", url.host or "")
    hosts = ",".join([given] if isinstance(given, str) else given).split(",")
    ports = str(url.query.get("port", url.port or port)).split(",")
    pairs = [(host, ports[min(place, len(ports) - 1)]) for place, host in enumerate(hosts)]
    split = [(host, port, re.fullmatch(r"([^:/]+):(\d+)", host)) for host, port in pairs]
    return [(host, port) if match is None else (match[1], match[2]) for host, port, match in split]


def _compile_type(engine: Engine, kind: Any) -> str:
    try:
        return str(kind.compile(dialect=engine.dialect))
    except sa.exc.CompileError:
        return str(kind)  # a type unknown to SQLAlchemy
