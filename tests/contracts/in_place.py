"""Aggregators that change the value they are given, and return it; batches of them, judged by their fold."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

from trident_py.operations.base import CombinerAggregator, ReducerAggregator
from trident_py.state import CombinerValueUpdater, ReducerValueUpdater
from trident_py.state.roles import RollsBack
from trident_py.state.updates import Combines

SHARED: list = []


class Listing(ReducerAggregator):
    """All values of a key, in one list; every group begins with the same empty list."""

    def init(self) -> list:
        return SHARED

    def reduce(self, curr: list, tuple: Any) -> list:
        if tuple[0] is None:
            raise ValueError("a tuple in the middle fails")
        curr.append(tuple[0])
        return curr


class Joining(CombinerAggregator):
    """The same by a combiner, which also empties the partial result that it gets."""

    def __init__(self) -> None:
        self.empty: list = []

    def init(self, tuple: Any) -> list:
        return [tuple[0]]

    def combine(self, val1: list, val2: list) -> list:
        if None in val2:
            raise ValueError("a partial result in the middle fails")
        val1.extend(val2)
        val2.clear()
        return val1

    def zero(self) -> list:
        return self.empty


KEYS = [["a"], ["b"], ["c"], ["d"]]
Batch = dict[str, list]


def reduces(batch: Batch) -> Sequence[Any]:
    return [ReducerValueUpdater(Listing(), [(n,) for n in numbers]) for numbers in batch.values()]


def combines(batch: Batch) -> Sequence[Any]:
    return [CombinerValueUpdater(Joining(), list(numbers)) for numbers in batch.values()]


def combines_at_once(batch: Batch) -> Sequence[Any]:
    return Combines(Joining(), [list(numbers) for numbers in batch.values()])


UPDATERS = [reduces, combines, combines_at_once]


class Commits:
    """Updates a map as a batch does, and writes into all that it returns; `fold` is what it should hold. ``kind``: of
    the factory."""

    def __init__(self, state: Any, kind: str, updaters: Callable[[Batch], Sequence[Any]]) -> None:
        self.state = state
        self.kind = kind
        self.updaters = updaters
        self.before: Batch = {}
        self.fold: Batch = {}

    def read_and_write(self) -> Batch:
        values = self.state.multiGet(KEYS)
        seen = {key[0]: list(value) for key, value in zip(KEYS, values, strict=True) if value is not None}
        for value in values:
            if value is not None:
                value.append("a reader")
        return seen

    def update(self, batch: Batch) -> None:
        news = self.state.multiUpdate([[key] for key in batch], self.updaters(batch))
        for key, numbers in batch.items():
            since = self.fold if self.kind == "non-transactional" else self.before
            self.fold[key] = since.get(key, []) + numbers
        assert news == [self.fold[key] for key in batch]
        for value in news:
            value.append("a consumer of the new values")

    def attempt(self, txid: int, parts: list[Batch], fails: bool) -> None:
        """One attempt: two updates of different keys. One that fails does so in the middle of the second."""
        begun = dict(self.fold)
        self.state.beginCommit(txid)
        for part in parts:
            if fails and part is parts[-1]:
                with suppress(ValueError):  # a transactional map calls no updater of what the batch has written
                    self.state.multiUpdate([[key] for key in part], self.updaters(dict(part, **{max(part): [0, None]})))
                if isinstance(self.state, RollsBack):
                    self.state.rollback(txid)
                    self.fold = begun
                return
            self.update(part)
            self.read_and_write()
        self.state.commit(txid)

    def batch(self, txid: int, rng: random.Random) -> None:
        self.before = {key: list(value) for key, value in self.fold.items()}
        parts = split(rng)
        for _ in range(rng.randrange(3)):
            self.attempt(txid, parts, fails=all(max(part) in self.fold for part in parts) and rng.random() < 0.5)
            if self.kind == "opaque":  # a replay may have other numbers
                parts = [{key: [*numbers, rng.randrange(100)] for key, numbers in part.items()} for part in parts]
        self.attempt(txid, parts, fails=False)


def run_batches(state: Any, kind: str, updaters: Any, rng: random.Random) -> None:
    """Judge the state after each of six batches: with failures, replays, two updates in a commit, writing readers."""
    commits = Commits(state, kind, updaters)
    for txid in range(1, 7):
        commits.batch(txid, rng)
        assert commits.read_and_write() == commits.read_and_write() == commits.fold
    assert SHARED == []


def split(rng: random.Random) -> list[Batch]:
    """Two parts of a batch, without a key in common."""
    keys = rng.sample("abcd", 4)[: rng.randint(2, 4)]
    at = rng.randint(1, len(keys) - 1)
    return [{key: [rng.randrange(100), rng.randrange(100)] for key in part} for part in (keys[:at], keys[at:])]
