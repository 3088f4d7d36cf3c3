"""Where a state's values are: one hash, or the strings of one database, and the names of the keys beside them.

The values have Storm's names. Ours begin with ``trident:``. They carry the hash's name, in braces where its slot is
hashed from, so that a Redis Cluster would keep them with it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any
from urllib.parse import quote

from ...errors import DefinitionError
from ...model import secrets
from ...state import Location
from .server import AT_ONCE, RedisDatabase, server_of
from .url import read_redis_url

OURS = "trident:"


@dataclass(frozen=True)
class RedisPlace:
    """A hash in a database, or (``hash`` None) the database's strings."""

    url: str
    hash: str | None

    @property
    def server(self) -> RedisDatabase:
        return server_of(self.url)

    @property
    def what(self) -> str:
        """The place within its server, for messages."""
        return "the strings" if self.hash is None else f"hash {self.hash!r}"

    @property
    def shown(self) -> str:
        return f"{self.what} at {secrets.redact_url(self.url)}"

    @property
    def location(self) -> Location:
        return read_redis_url(self.url).locate(self.hash, self.shown)

    @property
    def _tag(self) -> str:
        if self.hash is None:
            return "strings"
        inner = self.hash.partition("{")[2].partition("}")
        slot = inner[0] if inner[0] and inner[1] else self.hash
        return f"{{{slot}}}:{quote(self.hash, safe='')}"

    @property
    def owner(self) -> str:
        """The key of the note that names the owner."""
        return f"{OURS}owner:{self._tag}"

    def ledger(self, topology: str, state: str) -> str:
        """Return the key of the state's ledger, a hash."""
        return f"{OURS}ledger:{self._tag}:{_join_names(topology, state)}"

    def marks(self, topology: str, state: str) -> str:
        """Return the key of the marks of the current attempt's partitions, a hash."""
        return f"{OURS}marks:{self._tag}:{_join_names(topology, state)}"

    def read(self, names: Sequence[str]) -> list[bytes | None]:
        """Return the stored bytes in the order of the names; None for an absent one."""
        found: list[bytes | None] = []
        for start in range(0, len(names), AT_ONCE):
            part = names[start : start + AT_ONCE]
            found += self.server.ask(partial(self._read, part), f"read from {self.what}")
        return found

    def _read(self, names: Sequence[str], client: Any) -> list[bytes | None]:
        found: list[bytes | None] = client.mget(names) if self.hash is None else client.hmget(self.hash, names)
        return found

    def scan(self) -> Iterator[tuple[str, bytes]]:
        """Yield what is stored, page by page; what changes meanwhile may come in its old or its new form."""
        cursor, seen = 0, set[bytes]()
        while True:
            cursor, page = self.server.ask(partial(self._page, cursor), f"read {self.what}")
            new = {name.decode("utf-8", "surrogateescape"): value for name, value in page.items() if name not in seen}
            seen.update(page)
            yield from new.items()
            if cursor == 0:
                return

    def is_empty(self) -> bool:
        """Return whether nothing is stored."""
        return next(self.scan(), None) is None if self.hash is None else not self.has(self.hash)

    def has(self, key: str | bytes) -> bool:
        """Return whether the database has this key."""
        return bool(self.server.ask(lambda client: client.exists(key), f"look for {self.what}"))

    def check_type(self) -> None:
        """Raise StateError if the hash is something else. What the strings will be named is not known."""
        if self.hash is not None:
            self.server.ask(lambda client: client.hlen(self.hash), f"look at {self.what}")

    def count(self) -> int:
        """Return how many values are stored."""
        if self.hash is None:
            return sum(1 for _ in self.scan())
        return int(self.server.ask(lambda client: client.hlen(self.hash), f"count {self.what}"))

    def _page(self, cursor: int, client: Any) -> tuple[int, Mapping[bytes, bytes]]:
        if self.hash is not None:
            following, page = client.hscan(self.hash, cursor, count=AT_ONCE)
            return int(following), page
        following, names = client.scan(cursor, count=AT_ONCE, _type="STRING")
        names = [name for name in names if not name.startswith(OURS.encode())]
        values = client.mget(names) if names else []
        return int(following), {n: value for n, value in zip(names, values, strict=True) if value is not None}


def check_hash(name: str | None) -> None:
    """Raise DefinitionError for something that cannot name a hash."""
    if name is not None and (not isinstance(name, str) or not name or name.startswith(OURS)):
        raise DefinitionError(
            f"hash must be the name of a hash, or None for strings, and not begin with {OURS}; got {name!r}"
        )


def _join_names(topology: str, state: str) -> str:
    return f"{quote(topology, safe='')}/{quote(state, safe='')}"
