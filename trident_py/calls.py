"""The calls of a home service's clients, each done once."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass

GRACE = 60.0


@dataclass(eq=False)
class _Caller:
    """A client: its last call and the reply, and how many connections it has."""

    number: int = 0
    reply: Future[bytes] | None = None
    connections: int = 0
    left: float = 0.0


class Calls:
    """The calls of all clients of a service: each is done once, however often it is asked for.

    A reply is kept until the client has it, asks for the next thing, or is gone for ``grace`` seconds. Who comes back
    later is told so: nobody knows then whether its last call was done.
    """

    def __init__(self, grace: float = GRACE) -> None:
        self._grace = grace
        self._lock = threading.Lock()
        self._callers: dict[str, _Caller] = {}

    def __len__(self) -> int:
        return len(self._callers)

    def kept(self) -> int:
        """Bytes of the replies that are kept."""
        with self._lock:
            replies = [each.reply for each in self._callers.values()]
        return sum(len(reply.result()) for reply in replies if reply is not None and reply.done())

    def join(self, client: str, again: bool) -> bool:
        """A connection of this client; False if it comes ``again`` and is not known any more."""
        with self._lock:
            past = time.monotonic() - self._grace
            self._callers = {n: c for n, c in self._callers.items() if c.connections or c.left > past}
            if again and client not in self._callers:
                return False
            self._callers.setdefault(client, _Caller()).connections += 1
            return True

    def leave(self, client: str) -> None:
        """Its connection has ended."""
        with self._lock:
            caller = self._callers[client]
            caller.connections -= 1
            caller.left = time.monotonic()

    def got(self, client: str) -> None:
        """The client has its last reply."""
        with self._lock:
            self._callers[client].reply = None

    def once(self, client: str, number: int, work: Callable[[], bytes]) -> bytes | None:
        """The reply of a call, which this thread does unless another does or did it; None if the client had it before.

        ``work`` does not raise.
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
