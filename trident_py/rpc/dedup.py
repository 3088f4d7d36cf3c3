"""Calls of a home service's clients, executed at most once each."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass

GRACE = 60.0


@dataclass(eq=False)
class _Caller:
    """A client: the number of its last call, the reply, its connections, and when the last one ended."""

    number: int = 0
    reply: Future[bytes] | None = None
    connections: int = 0
    left: float = 0.0


class Calls:
    """The calls of all clients of a service. Each is executed once, however often the client repeats it.

    A reply is kept until the client has received it, makes its next call, or has been gone for ``grace`` seconds. A
    client that comes back later is rejected, because it is then unknown whether its last call was executed.
    """

    def __init__(self, grace: float = GRACE) -> None:
        self._grace = grace
        self._lock = threading.Lock()
        self._callers: dict[str, _Caller] = {}

    def __len__(self) -> int:
        return len(self._callers)

    def kept(self) -> int:
        """Return the number of bytes of all kept replies."""
        with self._lock:
            replies = [caller.reply for caller in self._callers.values()]
        return sum(len(reply.result()) for reply in replies if reply is not None and reply.done())

    def join(self, client: str, again: bool) -> bool:
        """Add a connection of this client. Returns False if it comes back (``again``) but was already forgotten."""
        with self._lock:
            past = time.monotonic() - self._grace
            self._callers = {n: c for n, c in self._callers.items() if c.connections or c.left > past}
            if again and client not in self._callers:
                return False
            self._callers.setdefault(client, _Caller()).connections += 1
            return True

    def leave(self, client: str) -> None:
        """Called when a connection of this client has ended."""
        with self._lock:
            caller = self._callers[client]
            caller.connections -= 1
            caller.left = time.monotonic()

    def got(self, client: str) -> None:
        """Called when the client has received its last reply."""
        with self._lock:
            self._callers[client].reply = None

    def once(self, client: str, number: int, work: Callable[[], bytes]) -> bytes | None:
        """Return the reply to a call; None if the client has already received it.

        This thread executes the call, unless another thread executes or has executed it. ``work`` must not raise.
        """
        with self._lock:
            caller = self._callers[client]
            new = number > caller.number
            if new:
                caller.number, caller.reply = number, Future()
            reply = caller.reply if number == caller.number else None
        if new and reply is not None:
            reply.set_result(work())
        return None if reply is None else reply.result()
