"""Answers the requests of one run: threads, each with engines of its own that serve one request at a time."""

from __future__ import annotations

import contextlib
import queue
import random
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from typing import Any, NamedTuple

from ..engine.hooks import T
from ..engine.program import AttemptOutcome, BatchInfo, Program, RequestInfo
from ..engine.task import LevelTask, run_attempt
from ..errors import DRPCExecutionException, TridentError
from ..metrics import IMetricsContext
from ..model.chunks import Chunk
from ..model.context import CurrentBatch, RunContext, with_context
from ..model.plan import ProcessorNode
from ..model.user_traceback import describe_error, notes_of
from ..spouts.requests import DRPCSpout
from ..state.base import is_current
from ..state.roles import Closes

ARGS = DRPCSpout().getOutputFields()
_IDS = 2**62


class Engine:
    """One thread's tasks and states for one function. A request is a batch of one tuple in partition 0 of its source.

    A state is made here with `makeState`, for reading: without a generation, and without a transaction. It serves many
    requests only if what it sees is always current, or if nothing in the topology updates it; otherwise each request
    gets a state of its own. No answer comes from an old cache.
    """

    def __init__(self, program: Program) -> None:
        self.program = program
        self._run = RunContext.of(program.conf).run
        self._tasks: dict[tuple[int, int], LevelTask] = {}
        self._kept: dict[tuple[str, int], Any] = {}
        self._of_request: dict[tuple[str, int], Any] = {}

    def answer(self, args: str) -> str:
        """Return the answer as JSON: an array of rows, each an array. Raises DRPCExecutionException with the cause."""
        chunk = Chunk({ARGS[0]: [args]}, 1)  # a list, so that a few tuples stay out of Arrow
        batch = RequestInfo(random.randrange(1, _IDS), 0, run=self._run)  # noqa: S311  a number, no secret
        try:
            outcome = run_attempt(self.program, self._task, batch, [(0, 0, chunk)])
        finally:
            _close(self._of_request)
        if outcome.failures:
            raise _to_error(self.program.component, outcome)
        rows = [row for report in outcome.reports if report.kind == "answer" for row in report.value]
        return "[" + ",".join(rows) + "]"

    def _task(self, level: int, partition: int) -> LevelTask:
        key = (level, partition)
        if key not in self._tasks:
            self._tasks[key] = LevelTask(self, self.program, level, partition, encodes=False)
        return self._tasks[key]

    def state(self, program: Program, node: ProcessorNode, index: int, count: int, batch: BatchInfo) -> Any:
        """Return the partition of a state, for one of the tasks."""
        assert node.state is not None
        key = (node.state.id, index)
        states = self._kept if node.state.static or is_current(node.state.factory) else self._of_request
        if key not in states:
            conf = with_context(program.conf, state=node.state.name, running=CurrentBatch())
            states[key] = node.state.factory.makeState(conf, IMetricsContext(), index, count)
        return states[key]

    def metrics_of(self, program: Program, node: ProcessorNode, index: int) -> None:
        """Return None: progress is that of the batches, not of states made for requests."""
        return

    def keep(self, kind: Callable[[], T]) -> T:
        raise TridentError("a DRPC request runs once: nothing watches it")

    def close(self) -> None:
        """Clean up the operations and close the states."""
        for task in self._tasks.values():
            task.close()
        _close(self._kept)


def _close(states: dict[tuple[str, int], Any]) -> None:
    """Close the states and forget them."""
    closing = list(states.values())
    states.clear()
    for state in closing:
        if isinstance(state, Closes):
            state.close()


def _to_error(function: str, outcome: AttemptOutcome) -> DRPCExecutionException:
    failure = min(outcome.failures, key=lambda failure: failure.level)
    lines = [describe_error(failure.error), *notes_of(failure.error)]
    where = f"in {failure.operation}, partition {failure.partition}, of the function {function!r}"
    error = DRPCExecutionException("\n  ".join([*lines, where]))
    error.__cause__ = failure.error
    return error


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
        self.asked: Counter[str] = Counter()
        self.over: Counter[str] = Counter()
        self._ended = ""

    @property
    def waiting(self) -> int:
        return self._waiting.qsize()

    def put(self, request: Request) -> None:
        """Take a request. Raises DRPCExecutionException after `end`, and if no thread can be started and none runs."""
        with self._lock:
            if self._ended:
                raise DRPCExecutionException(self._ended, "SERVER_SHUTDOWN")
            if self._unserved >= len(self._threads) < self._limit:
                self._start()
            self._unserved += 1
            self.asked[request.function] += 1
            self._waiting.put(request)

    def _start(self) -> None:
        thread = threading.Thread(target=self._serve, name=f"trident-drpc-{len(self._threads)}", daemon=True)
        try:
            thread.start()
        except RuntimeError as error:  # the machine has no more threads: those that run serve
            if not self._threads:
                raise DRPCExecutionException(f"no thread for the request: {error}", "INTERNAL_ERROR") from error
            return
        self._threads.append(thread)

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
                    self.over[request.function] += 1
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
