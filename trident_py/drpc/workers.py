"""The threads that answer the requests of one run. Each has engines of its own, so no task serves two at once."""

from __future__ import annotations

import contextlib
import queue
import threading
import time
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from typing import NamedTuple

from ..engine.program import Program
from ..errors import DRPCExecutionException
from ..model.user_traceback import describe_error
from .engine import Engine

THREADS = 16


class Request(NamedTuple):
    """A request that waits for a thread. ``ready()`` returns when it may run, or raises DRPCExecutionException."""

    function: str
    args: str
    ready: Callable[[], None]
    answer: Future[str]


class Workers:
    """Up to ``limit`` threads, started when requests come and none is idle. They are daemons."""

    def __init__(self, programs: Mapping[str, Program], limit: int) -> None:
        self._programs = programs
        self._limit = limit
        self._waiting: queue.SimpleQueue[Request | None] = queue.SimpleQueue()
        self._lock = threading.Lock()
        self._threads: list[threading.Thread] = []
        self._unserved = 0  # requests that wait or run
        self._ended = ""

    @property
    def waiting(self) -> int:
        return self._waiting.qsize()

    def put(self, request: Request) -> None:
        """Take a request. Raises DRPCExecutionException after `end`."""
        with self._lock:
            if self._ended:
                raise DRPCExecutionException(self._ended, "SERVER_SHUTDOWN")
            self._unserved += 1
            if self._unserved > len(self._threads) < self._limit:
                name = f"trident-drpc-{len(self._threads)}"
                thread = threading.Thread(target=self._serve, name=name, daemon=True)
                self._threads.append(thread)
                thread.start()
            self._waiting.put(request)

    def end(self, reason: str) -> None:
        """Fail the requests that wait. Running ones are finished; then their threads close their engines and end."""
        with self._lock:
            if self._ended:
                return
            self._ended = reason
            for _ in self._threads:
                self._waiting.put(None)

    def join(self, seconds: float) -> None:
        """Wait for the threads to end, all together for so long."""
        until = time.monotonic() + seconds
        for thread in self._threads:
            if thread is not threading.current_thread():
                thread.join(max(0.0, until - time.monotonic()))

    def _serve(self) -> None:
        engines: dict[str, Engine] = {}
        while (request := self._waiting.get()) is not None:
            try:
                self._answer(engines, request)
            finally:
                with self._lock:
                    self._unserved -= 1
        for engine in engines.values():
            with contextlib.suppress(Exception):  # the others must be closed too
                engine.close()

    def _answer(self, engines: dict[str, Engine], request: Request) -> None:
        if not request.answer.set_running_or_notify_cancel():
            return  # its caller has given up
        try:
            if self._ended:
                raise DRPCExecutionException(self._ended, "SERVER_SHUTDOWN")
            request.ready()
            if request.function not in engines:
                engines[request.function] = Engine(self._programs[request.function])
            request.answer.set_result(engines[request.function].answer(request.args))
        except DRPCExecutionException as error:
            request.answer.set_exception(error)
        except BaseException as error:
            failed = DRPCExecutionException(f"{request.function!r}: {describe_error(error)}", "INTERNAL_ERROR")
            failed.__cause__ = error
            request.answer.set_exception(failed)
