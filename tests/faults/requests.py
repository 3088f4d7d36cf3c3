"""DRPC requests to a driver that lives through faults, and whether each answer is one that may be given.

A driver asks itself for the value of each word, again and again, beside its batches, and tells the test: ("asked", n),
then ("answered", n, values) or ("failed", n, cause, text). Its events are judged when it has ended:

- each request has one reply, but for the last one of a driver that was killed;
- a value is that after some batch, not before the last one that was committed when the request was asked, and not
  before that of an earlier answer of this driver;
- a failure is one of ours and names its cause, and there is one only where something has failed.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from trident_py.drpc import default_drpc
from trident_py.errors import DRPCExecutionException
from trident_py.operations.builtin import MapGet
from trident_py.testing import Split

from .steps import REQUEST

FUNCTION = "total"
PAUSE = 0.01
PATIENCE = 60.0
Values = dict[str, int | None]
ENDED = ("SERVER_SHUTDOWN: ", "FAILED_REQUEST: no running topology answers")
"""Failures of a run that has ended with an error."""
OURS = ("ConnectionLost", "FailedException", "StateError")
"""Causes of a failure that name a store."""


class WrongReply(Exception):
    """A request has got a reply that it may not get, or none."""


def answer(topology: Any, state: Any) -> None:
    """Let the topology answer: the value of each word in the args."""
    words = topology.newDRPCStream(FUNCTION).each("args", Split(), "word").groupBy("word")
    words.stateQuery(state, "word", MapGet(), "total").project(["word", "total"])


@contextmanager
def asked(words: Iterable[str], pipe: Any) -> Iterator[None]:
    """Ask all the time until the batches are over, and once more then."""
    over = threading.Event()
    asking = threading.Thread(target=_ask, args=(" ".join(words), pipe, over), daemon=True)
    asking.start()
    try:
        yield
    finally:
        over.set()
        asking.join(PATIENCE)


def _ask(words: str, pipe: Any, over: threading.Event) -> None:
    number, last = 0, False
    while not last:
        last = over.wait(PAUSE)
        number += 1
        pipe.send(("asked", number))
        try:
            with REQUEST:
                values = dict(default_drpc().execute(FUNCTION, words, PATIENCE))
        except DRPCExecutionException as error:
            pipe.send(("failed", number, type(error.__cause__).__name__, f"{error.type}: {error}"))
        else:
            pipe.send(("answered", number, values))


class History:
    """What the value of each word was after each batch, from none on."""

    def __init__(self, batches: Iterable[Iterable[tuple[str, int]]]) -> None:
        self.values: list[Values] = [{}]
        for batch in batches:
            self.values.append(dict(self.values[-1]))
            for word, n in batch:
                self.values[-1][word] = (self.values[-1].get(word) or 0) + n

    def batch(self, word: str, value: int | None, least: int) -> int | None:
        """The first batch from ``least`` on after which a word had this value."""
        found = (txid for txid in range(least, len(self.values)) if self.values[txid].get(word) == value)
        return next(found, None)

    def judge(self, told: list[tuple], committed: int, may_fail: bool) -> Counter[str]:
        """The requests of a driver that were answered, and that have failed. ``committed``: the last batch when it
        started; ``may_fail``: something was away. Raises WrongReply."""
        counted, newest, least = Counter[str](), dict[str, int](), None
        for event in told:
            if event[0] == "committed":
                committed = max(committed, event[1])
            elif event[0] == "asked":
                least = committed
            elif event[0] == "answered":
                for word, value in event[2].items():
                    newest[word] = self._judge(event, word, value, max(least or 0, newest.get(word, 0)))
            elif event[0] == "failed":
                _judge_failure(event, may_fail, told[-1][0] == "error")
            if event[0] in ("answered", "failed"):
                counted[event[0]] += 1
                least = None
        if least is not None and told[-1][0] in ("done", "error"):
            raise WrongReply(f"a request had no reply: {told[-2:]}")
        return counted

    def _judge(self, event: tuple, word: str, value: int | None, least: int) -> int:
        found = self.batch(word, value, least)
        if found is None:
            values = [after.get(word) for after in self.values]
            raise WrongReply(f"request {event[1]}: {word} is {value}, at least of batch {least}, of {values}")
        return found


def _judge_failure(event: tuple, may_fail: bool, ended: bool) -> None:
    _, number, cause, text = event
    if not (ended and text.startswith(ENDED)) and not (may_fail and cause in OURS):
        raise WrongReply(f"request {number} has failed, and nothing was away: {cause}: {text}")
