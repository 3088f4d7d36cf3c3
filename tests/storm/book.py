"""What a running case tells the driver process: which failures fired, what was peeked at."""

from __future__ import annotations

import threading
from typing import Any

from trident_py.rpc import service as home
from trident_py.tuples import TransactionAttempt


class Book:
    """Lives in the driver process, written by the tasks of one case, on Spark from its workers."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.fired: dict[int, list] = {}
        self.peeks: dict[str, list[tuple[int, int, int, list]]] = {}

    def fire(self, number: int, entry: list) -> bool:
        """True the first time: a failure that a case asks for happens once, in whichever task comes first."""
        with self.lock:
            return self.fired.setdefault(number, entry) is entry

    def peek(self, step: str, txid: int, attempt: int, partition: int, values: list) -> None:
        with self.lock:
            self.peeks.setdefault(step, []).append((txid, attempt, partition, values))

    def all(self) -> tuple[list[list], dict[str, list]]:
        with self.lock:
            return list(self.fired.values()), dict(self.peeks)


def open_book(conf: dict, key: str) -> Any:
    """The book of this case: outlives the run, so without its name."""
    return home.store(home.of_any_run(conf), key, Book)


def place(attempt: TransactionAttempt | None) -> tuple[int, int]:
    assert attempt is not None, "user code runs in an attempt"
    return attempt.txid, attempt.attemptId
