"""All partitions of a state at once, on the driver: shuts out their producers and reads their marks."""

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
    """The partitions' producers; a context manager that closes them."""

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
        """The highest txid that a partition has written, 0 if there is none."""
        return max((mark.txid for mark in self.marks), default=0)

    def open(self, count: int) -> list[Mark]:
        """Shut out the old producers of this many partitions, and return the marks read afterwards."""
        self._make(count)
        self.marks = self._in_parallel(self._take_over)
        return self.marks

    def shut_out(self, count: int) -> None:
        """End the open transactions of this many partitions; their old producers can no longer commit."""
        self._make(count)
        self._in_parallel(lambda part: self._producers[part].open())

    def _make(self, count: int) -> None:
        self._producers = [TransactionalProducer(self._place, part, self._settings) for part in range(count)]

    def settle(self, anew: bool) -> None:
        """Called after the new driver's mark is written; writes the partitions' marks again, which shuts out a task of
        the old driver that has reopened its producer meanwhile. ``anew``: resets the marks' txids to 0."""
        self.marks = self._in_parallel(lambda part: self._settle(part, anew))

    def _take_over(self, part: int) -> Mark:
        self._producers[part].open()
        return self._place.read(part) or Mark()

    def _settle(self, part: int, anew: bool) -> Mark:
        writer, mark = self._producers[part], self.marks[part]
        if not writer.is_open:  # its last commit was not clean
            mark = self._take_over(part)
        while True:
            try:
                wanted = mark._replace(txid=0) if anew else mark
                writer.commit(wanted)
                return wanted
            except FailedException as error:
                if not is_fenced(error.__cause__):
                    raise
                mark = self._take_over(part)  # another producer took over; re-read its mark

    def _in_parallel(self, call: Callable[[int], T]) -> list[T]:
        parts = range(len(self._producers))
        if len(parts) < 2:
            return list(map(call, parts))
        with ThreadPoolExecutor(min(AT_ONCE, len(parts))) as pool:
            return list(pool.map(call, parts))
