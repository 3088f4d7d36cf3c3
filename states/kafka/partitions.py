"""All partitions of a state at once, on the driver: shuts out whoever writes them and reads how far they are."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

from trident_py.errors import FailedException
from trident_py.kafka.clients import is_fenced

from .marks import Mark, MarkPlace
from .producer import TransactionalProducer

AT_ONCE = 8
T = TypeVar("T")


class Partitions:
    """A context manager; its producers live within it."""

    def __init__(self, place: MarkPlace, settings: Mapping[str, Any]) -> None:
        self._place = place
        self._settings = settings
        self._producers: list[TransactionalProducer] = []
        self.marks: list[Mark] = []

    def __enter__(self) -> Partitions:
        return self

    def __exit__(self, *exception: object) -> None:
        for producer in self._producers:
            producer.close()

    @property
    def last(self) -> int:
        """The highest txid that a partition has written, 0 if none."""
        return max((mark.txid for mark in self.marks), default=0)

    def open(self, count: int) -> list[Mark]:
        """The marks of this many partitions, each read once its old producer is shut out."""
        self._make(count)
        self.marks = self._each(self._taken)
        return self.marks

    def shut_out(self, count: int) -> None:
        """Ends what this many partitions have open; who wrote there commits nothing more."""
        self._make(count)
        self._each(lambda part: self._producers[part].open())

    def _make(self, count: int) -> None:
        self._producers = [TransactionalProducer(self._place, part, self._settings) for part in range(count)]

    def settle(self, anew: bool) -> None:
        """Once the new driver's mark is there: writes the marks again, which a task that has come back since then with
        the old one's leave does not survive. ``anew``: what they say counts no more."""
        self.marks = self._each(lambda part: self._settled(part, anew))

    def _taken(self, part: int) -> Mark:
        self._producers[part].open()
        return self._place.read(part) or Mark()

    def _settled(self, part: int, anew: bool) -> Mark:
        own, mark = self._producers[part], self.marks[part]
        if not own.is_open:  # its last commit was not clean
            mark = self._taken(part)
        while True:
            try:
                wanted = mark._replace(txid=0) if anew else mark
                own.commit(wanted)
                return wanted
            except FailedException as error:
                if error.__cause__ is None or not is_fenced(error.__cause__):
                    raise
                mark = self._taken(part)  # somebody came between: what has he written?

    def _each(self, call: Callable[[int], T]) -> list[T]:
        parts = range(len(self._producers))
        if len(parts) < 2:
            return list(map(call, parts))
        with ThreadPoolExecutor(min(AT_ONCE, len(parts))) as pool:
            return list(pool.map(call, parts))
