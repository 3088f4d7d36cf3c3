"""LocalDRPC: calls the DRPC functions of the topologies that run in this process."""

from __future__ import annotations

import json
import threading
from concurrent.futures import Future
from functools import cache
from typing import Any, Protocol

from ..errors import DefinitionError, DRPCExecutionException
from ..model.chunks import encodable

TIMEOUT_SECONDS = 600.0


class Answers(Protocol):
    """The functions of one run."""

    @property
    def name(self) -> str: ...

    @property
    def is_active(self) -> bool: ...

    def ask(self, function: str, args: str, timeout: float | None) -> tuple[Future[str], float]: ...


class LocalDRPC:
    """Calls functions that topologies of this process define by ``newDRPCStream(function, drpc)``, on either cluster.

    Thread-safe. Source in Storm: org.apache.storm.LocalDRPC.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._functions: dict[str, Answers] = {}
        self._shut = False

    def __enter__(self) -> LocalDRPC:
        return self

    def __exit__(self, *exception: object) -> None:
        self.shutdown()

    def execute(self, function: str, args: str, timeout: float | None = None) -> list[list[Any]]:
        """Ask a function and wait for its answer: a list of rows, each the list of all fields of the last statement,
        as they are in JSON.

        ``timeout``: in seconds; None: ``drpc.request.timeout.secs`` of the topology (600). A request that comes before
        the topology has opened its states waits for that. One that fails is not tried again. Raises
        DRPCExecutionException, with the cause in its text; an exception of the topology's code is its ``__cause__``.
        """
        rows: list[list[Any]] = json.loads(self.text(function, args, timeout))
        return rows

    def text(self, function: str, args: str, timeout: float | None = None) -> str:
        """Execute; return the answer as JSON text."""
        answer, seconds = self.ask(function, args, timeout)
        try:
            return answer.result(seconds)
        except TimeoutError:
            answer.cancel()
            raise timeout_error(function, seconds) from None

    def ask(self, function: str, args: str, timeout: float | None = None) -> tuple[Future[str], float]:
        """Ask; returns the answer to come, as JSON text, and for how many seconds to wait for it."""
        if not isinstance(args, str) or not encodable(args):
            raise DRPCExecutionException(f"the args of {function!r} must be one str that UTF-8 can hold, got {args!r}")
        with self._lock:
            answers, shut, known = self._functions.get(function), self._shut, sorted(self._functions)
        if shut:
            raise DRPCExecutionException("this LocalDRPC is shut down", "SERVER_SHUTDOWN")
        if answers is None:
            there = f"the functions are: {', '.join(known)}" if known else "no topology with a DRPC stream runs here"
            raise DRPCExecutionException(f"no running topology answers the function {function!r}; {there}")
        return answers.ask(function, args, timeout)

    def functions(self) -> list[str]:
        """Return the functions that can be called now."""
        with self._lock:
            return sorted(self._functions)

    def shutdown(self) -> None:
        """End the calls through this object. The topologies go on."""
        with self._lock:
            self._shut = True
            self._functions.clear()

    def close(self) -> None:
        """Shut down."""
        self.shutdown()

    # -- for clusters -----------------------------------------------------------------------------------------

    def check_free(self, function: str) -> None:
        """Raise DefinitionError if a topology that still runs answers the function, or this object is shut down."""
        with self._lock:
            other = self._functions.get(function)
            if self._shut:
                raise DefinitionError(f"the LocalDRPC of the function {function!r} is shut down; create a new one")
            if other is not None and other.is_active:
                raise DefinitionError(
                    f"the topology {other.name!r}, which still runs, answers the function {function!r}. Stop it, or "
                    "give the function another name, or its own LocalDRPC: newDRPCStream(function, LocalDRPC()), and a "
                    "drpc.http.port of its own if it has one"
                )

    def register(self, function: str, answers: Answers) -> None:
        with self._lock:
            self._functions[function] = answers

    def forget(self, function: str, answers: Answers) -> None:
        """End the function, unless a later topology answers it."""
        with self._lock:
            if self._functions.get(function) is answers:
                del self._functions[function]


def timeout_error(function: str, seconds: float) -> DRPCExecutionException:
    return DRPCExecutionException(
        f"the function {function!r} did not answer within {seconds:g} s (drpc.request.timeout.secs); its topology may "
        "still be working on it, and drops the answer",
        "SERVER_TIMEOUT",
    )


@cache
def default_drpc() -> LocalDRPC:
    """Return the LocalDRPC of this process: that of streams that name none, and the one that the server asks."""
    return LocalDRPC()
