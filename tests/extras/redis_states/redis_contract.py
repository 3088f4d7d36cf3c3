"""What the contract of all states says in Redis' words. Inherit it before the contract's own class."""

from __future__ import annotations

import itertools
import json
import os
import pickle
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
import redis as client
from contracts.crashing import POINTS
from redis_clients import close_servers

from trident_py.errors import DefinitionError, StateError
from trident_py.extras.redis.location import OURS
from trident_py.extras.redis.writer import RedisWriter

COUNT = itertools.count()
# A publish is one script: nothing is half done inside it.
KILLED_AT = [point for point in POINTS if point != "inside publish"]


def plainly(url: str, hash: str | None) -> dict[str, Any]:
    """The values that any client finds: name -> parsed JSON."""
    with client.Redis.from_url(url, decode_responses=True) as reader:
        if hash is not None:
            found = reader.hgetall(hash)
        else:
            names = [name for name in reader.scan_iter() if not name.startswith(OURS)]
            found = dict(zip(names, reader.mget(names), strict=True)) if names else {}
    return {name: json.loads(text) for name, text in found.items()}


class RedisContract:
    """Names, how a secret is given, and what is read by a client of its own."""

    @pytest.fixture
    def factory(self: Any, redis: str) -> Iterator[Any]:
        yield self.make(redis)
        close_servers()

    def name(self) -> str:
        return f"contract-{os.getpid()}-{next(COUNT)}"

    def found(self: Any, factory: Any) -> dict[tuple, Any]:
        """By a client of its own; the state's own reading must say the same."""
        at = {"non-transactional": lambda value: value}.get(factory.kind, lambda value: value[1])
        there = {(name,): at(value) for name, value in plainly(factory.url, factory.hash).items()}
        assert {key: at(value) for key, value in factory.stored().items()} == there
        return there

    taken_words = ("could not commit to", "OutOfMemoryError", "raise it")

    def place(self, factory: Any) -> str:
        return str(factory.place.what)

    @contextmanager
    def taking_less(self, factory: Any) -> Iterator[None]:
        """Redis has no memory for the values."""
        commit = RedisWriter.commit

        def full(*given: Any) -> int:
            with client.Redis.from_url(factory.url) as admin:
                try:
                    admin.config_set("maxmemory", 1)
                    return commit(*given)
                finally:
                    admin.config_set("maxmemory", 0)

        with mock.patch.object(RedisWriter, "commit", full):
            yield

    def erase(self, factory: Any) -> None:
        with client.Redis.from_url(factory.url) as writer:
            fence = [factory.place.ledger("contract", "s"), factory.place.marks("contract", "s")]
            assert writer.delete(*fence) > 0

    def backup(self, factory: Any) -> Callable[[], None]:
        with client.Redis.from_url(factory.url) as reader:
            kept = {key: reader.dump(key) for key in reader.scan_iter()}

        def restore() -> None:
            with client.Redis.from_url(factory.url) as writer:
                writer.flushdb()
                for key, value in kept.items():
                    writer.restore(key, 0, value)

        return restore

    def test_the_factory_is_a_picklable_value_without_secrets(self: Any, factory: Any) -> None:
        copy = pickle.loads(pickle.dumps(factory))
        assert copy == factory == replace(factory)
        assert hash(copy) == hash(factory)
        assert factory.kind and factory.stateName
        for url in ("redis://:hush@place:6379/0", "rediss://me:hush@place/3", "redis://place/1?password=hush"):
            secret = replace(factory, url=url)
            assert "hush" not in repr(secret) + secret.location.shown + str(secret.needs)
            assert "place" in repr(secret) and secret != factory
        with pytest.raises(DefinitionError) as told:
            replace(factory, url="redis://:hu/sh@place:x/0")
        assert "hu" not in str(told.value).replace("hush", "hu")
        with pytest.raises(DefinitionError, match="its scheme must be redis"):
            replace(factory, url="http://me:hush@host/x")

    def test_a_bad_row_is_named_and_nothing_of_the_batch_is_written(self: Any, factory: Any) -> None:
        driver = self.driver(factory)
        self.batch(driver, 1)
        before = factory.stored()
        with pytest.raises(StateError) as told:
            driver.run(self.rows(2, self.bad_row), 2, of=1)
        for words in (self.place(factory), *self.bad_words):
            assert words in str(told.value)
        assert factory.stored() == before
        self.batch(driver, 2, attempt=1)
        self.holds(factory, range(1, 3))

    @pytest.mark.parametrize("point", KILLED_AT)
    def test_a_driver_killed_at_any_point_goes_on_where_it_was(
        self: Any, factory: Any, tmp_path: Path, point: str
    ) -> None:
        self.goes_on(factory, tmp_path, point)
