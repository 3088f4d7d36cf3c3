"""Group commit: items that wait while the store is busy go to it together in the next call."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from typing import Generic, TypeVar

Item = TypeVar("Item")
EventAnswer = TypeVar("EventAnswer")
Request = tuple[Sequence[Item], "asyncio.Future[Sequence[EventAnswer]]"]


class Grouped(Generic[Item, EventAnswer]):
    """Calls ``call`` with the items of many requests at once, in a thread. Each request gets its own answers.

    ``call`` gets a list of items and returns as many answers. At most ``lanes`` calls run at once, each with at most
    ``most`` items. An item is sent at once if a lane is free: nothing waits for a timer. An exception goes to all
    requests of the call.
    """

    def __init__(
        self, call: Callable[[list[Item]], Sequence[EventAnswer]], threads: Executor, lanes: int, most: int
    ) -> None:
        self._call, self._threads, self._most = call, threads, most
        self._free = lanes
        self._waiting: deque[Request[Item, EventAnswer]] = deque()
        self._running: set[asyncio.Task[None]] = set()

    def add(self, items: Sequence[Item]) -> asyncio.Future[Sequence[EventAnswer]]:
        """Return a future of the answers, in the order of the items. Called on the event loop."""
        answers: asyncio.Future[Sequence[EventAnswer]] = asyncio.get_running_loop().create_future()
        self._waiting.append((items, answers))
        if self._free:
            self._free -= 1
            task = asyncio.create_task(self._work())
            self._running.add(task)
            task.add_done_callback(self._running.discard)
        return answers

    async def _work(self) -> None:
        try:
            while self._waiting:
                group = self._next()
                together = [item for items, _ in group for item in items]
                try:
                    answers = await asyncio.get_running_loop().run_in_executor(self._threads, self._call, together)
                except Exception as error:
                    for _, future in group:
                        if not future.done():
                            future.set_exception(error)
                else:
                    self._hand_out(group, answers)
        finally:
            self._free += 1

    def _next(self) -> list[Request[Item, EventAnswer]]:
        group = [self._waiting.popleft()]
        size = len(group[0][0])
        while self._waiting and size + len(self._waiting[0][0]) <= self._most:
            group.append(self._waiting.popleft())
            size += len(group[-1][0])
        return group

    def _hand_out(self, group: Sequence[Request[Item, EventAnswer]], answers: Sequence[EventAnswer]) -> None:
        start = 0
        for items, future in group:
            if not future.done():
                future.set_result(answers[start : start + len(items)])
            start += len(items)
