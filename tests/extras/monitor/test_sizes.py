"""The sizes of states: asked beside the run, not too often, and of each store alone."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import pytest

from trident_py.errors import FailedException
from trident_py.extras.monitor import sizes
from trident_py.extras.monitor.sizes import StateSizes
from trident_py.state import BatchParticipant
from trident_py.testing import MemoryMapState

from .runs import until


class Sized(BatchParticipant):
    def __init__(self, answer: Callable[[], int | None]) -> None:
        self.measure_size = answer  # type: ignore[method-assign]

    def open(self, conf: dict) -> int:
        raise AssertionError("a look opens nothing")

    prepare = publish = abort = open  # type: ignore[assignment]


@dataclass(frozen=True)
class Factory:
    answer: Callable[[], int | None]

    def participant(self) -> Sized:
        return Sized(self.answer)


def sizes_of(**answers: Callable[[], int | None]) -> StateSizes:
    return StateSizes({name: Factory(answer) for name, answer in answers.items()})  # type: ignore[misc]


def away() -> int:
    raise FailedException("the server is gone")


def test_a_store_is_asked_once_a_minute_and_only_if_the_run_has_opened_it(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []
    found = sizes_of(counts=lambda: asked.append(1) or len(asked))  # type: ignore[func-returns-value]
    found.look([], 5)
    assert not asked
    for _ in range(3):
        found.look(["counts"], 5)
    assert (asked, found.known) == ([1], {"counts": 1})
    monkeypatch.setattr(sizes, "RENEWED", -1.0)
    found.look(["counts"], 5)
    assert found.known == {"counts": 2}


def test_a_store_that_is_away_or_does_not_answer_harms_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sizes, "RENEWED", -1.0)
    go, asked = threading.Event(), []

    def hang() -> int | None:
        asked.append(1)
        return 7 if go.wait(30) else None

    answers: list[Any] = [lambda: 3, away]
    found = sizes_of(hangs=hang, fails=lambda: answers.pop(0)(), good=lambda: 5)
    for size in (3, None):
        found.look(["hangs", "fails", "good"])
        wanted = {"fails": size, "good": 5}
        until(partial(lambda wanted: found.known == wanted, wanted))
    assert asked == [1]  # not again while it is asked
    go.set()
    until(lambda: found.known.get("hangs") == 7)


def test_a_state_without_a_store_of_its_own_tells_none() -> None:
    found = StateSizes({"counts": MemoryMapState.Factory()})
    found.look(["counts"], 5)
    assert found.known == {"counts": None}
