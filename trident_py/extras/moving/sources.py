"""Where Storm's states keep their values: Redis, or a dump as JSON lines. Read in parts, once."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from decimal import Decimal
from itertools import islice
from pathlib import Path
from typing import Any, Protocol

from ...errors import DefinitionError, StateError, TridentError, explain_missing
from ...model.secrets import hide, redact_url, secrets_in
from ...state import Location, StateType
from ...state.serializers import SERIALIZERS
from ..redis.url import make_client, read_redis_url
from .storm_values import Key, check_form, decode

OURS = b"trident:"  # begins the names of our ledger's keys
REDIS = ("redis://", "rediss://", "unix://")
ANSWER = 5.0  # seconds; older versions of redis-py would wait for ever
Batch = tuple[list[Key], list[Any]]
Number = Callable[[str], Any]
FIELDS = {str, int, float, bool, type(None), Decimal}  # what a field of a key may be in a dump


class ValueSource(Protocol):
    """The values of one state. ``shown``: where they are, without secrets."""

    @property
    def kind(self) -> StateType: ...

    @property
    def shown(self) -> str: ...

    def read(self, size: int, number: Number | None = None) -> Iterator[Batch]:
        """Yield keys and values of about so many keys at a time. A key may come twice, with the same value.
        ``number``: makes JSON's numbers that have a fraction; None: they become floats."""


def unreadable(what: str, example: str) -> DefinitionError:
    """Return the error for a URL that cannot be read. It is not shown: nothing tells where its password is."""
    return DefinitionError(
        f"{what}: the URL is not readable: percent-encode / # ? and @ in a password (%2F %23 %3F %40). An example: "
        f"{example}"
    )


@dataclass(frozen=True)
class RedisSource:
    """A hash of a Redis, or (``hash`` None) the strings of its database whose names match."""

    url: str
    hash: str | None
    kind: StateType
    match: str | None = None

    @property
    def what(self) -> str:
        return "the strings" if self.hash is None else f"hash {self.hash!r}"

    @property
    def shown(self) -> str:
        return f"{self.what} at {redact_url(self.url)}"

    @property
    def location(self) -> Location:
        """That of a state of ours that keeps its values here."""
        return read_redis_url(self.url).locate(self.hash, self.shown)

    def connect(self) -> Any:
        try:
            return make_client(self.url, socket_timeout=ANSWER, socket_connect_timeout=ANSWER)
        except ImportError as error:
            raise DefinitionError(explain_missing(self.shown, f"the client {error.name}", "redis")) from error

    @contextmanager
    def open(self) -> Iterator[Any]:
        """Give a client; its errors inside are raised as TridentError."""
        client = self.connect()
        from redis import RedisError

        try:
            yield client
        except RedisError as error:
            cause = hide(str(error), secrets_in(self.url))
            raise TridentError(f"{self.shown}: {cause}. Check the server and the name") from error

    def read(self, size: int, number: Number | None = None) -> Iterator[Batch]:
        with self.open() as client:
            for names, texts in self.pages(client, size):
                keys = self.keys(names)
                yield keys, decode(self.kind, keys, texts, number)

    def pages(self, client: Any, size: int) -> Iterator[tuple[list[bytes], list[bytes]]]:
        """Yield names and texts as they are."""
        cursor = None
        while cursor != 0:
            if self.hash is None:
                cursor, found = client.scan(cursor or 0, self.match, size, "STRING")
                names = [name for name in dict.fromkeys(found) if not name.startswith(OURS)]
                page = dict(zip(names, client.mget(names), strict=True)) if names else {}
            else:
                cursor, page = client.hscan(self.hash, cursor or 0, self.match, size)
            there = {name: text for name, text in page.items() if text is not None}
            if there:
                yield list(there), list(there.values())

    def keys(self, names: Sequence[bytes]) -> list[Key]:
        """Return the keys of names. Raises StateError for one that is no text."""
        try:
            return [(name.decode(),) for name in names]
        except UnicodeDecodeError as error:
            raise StateError(
                f"{self.shown}: name {error.object[:80]!r} is not UTF-8, so no key of Storm's; use --match"
            ) from error

    def texts(self, client: Any, keys: Sequence[Key]) -> list[bytes]:
        """Return the texts of keys; "null" for a missing one."""
        names = [key[0] for key in keys]
        found = client.mget(names) if self.hash is None else client.hmget(self.hash, names)
        return [b"null" if text is None else text for text in found]

    def change(self, client: Any, changed: Mapping[Key, Any], removed: Sequence[Key]) -> None:
        """Write values in Storm's bytes, and remove keys, in one step."""
        texts = {key[0]: SERIALIZERS[self.kind].serialize(value) for key, value in changed.items()}
        pipeline, names = client.pipeline(), [key[0] for key in removed]
        if self.hash is None:
            for name, text in texts.items():
                pipeline.set(name, text, keepttl=True)
        elif texts:
            pipeline.hset(self.hash, mapping=texts)
        if names:
            pipeline.delete(*names) if self.hash is None else pipeline.hdel(self.hash, *names)
        pipeline.execute()

    def count(self, client: Any) -> int:
        if self.hash is not None and self.match is None:
            return int(client.hlen(self.hash))
        return sum(len(names) for names, _ in self.pages(client, 10_000))


@dataclass(frozen=True)
class DumpSource:
    """A file of JSON lines: ``key`` (a text, or a list of the key's fields) and ``value``, or ``text`` with the JSON
    that Storm's serializers make, as memcached, HBase and Cassandra hold it."""

    file: Path
    kind: StateType

    @property
    def shown(self) -> str:
        return str(self.file)

    def read(self, size: int, number: Number | None = None) -> Iterator[Batch]:
        with self.file.open("rb") as lines:
            at = 0
            while part := list(islice(lines, size)):
                keys, values = self._parse(part, at, number)
                at += len(part)
                yield keys, check_form(self.kind, keys, values)

    def _parse(self, lines: Sequence[bytes], before: int, number: Number | None) -> Batch:
        keys: list[Key] = []
        values = []
        load = json.JSONDecoder(parse_float=number).decode
        for at, line in enumerate(lines, before + 1):
            if not line.strip():
                continue
            try:
                row = load(line.decode("utf-8-sig"))
                key = row["key"]
                values.append(load(row["text"]) if "text" in row else row["value"])
                fields = tuple(key) if isinstance(key, list) else (key,)
                if not fields or not {type(part) for part in fields} <= FIELDS:
                    raise ValueError("a key of other parts")
            except (ValueError, TypeError, KeyError, RecursionError) as error:
                raise StateError(
                    f'{self.file}, line {at}: expected {{"key": ..., "value": ...}}, or text for value, '
                    f"got {line[:80]!r}"
                ) from error
            keys.append(fields)
        return keys, values
