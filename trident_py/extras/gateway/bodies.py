"""Reads the bodies of requests within limits of time and size. A stalled body never blocks another."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from dataclasses import dataclass, field

from .settings import Limits


class RequestRefused(Exception):
    """A request that is refused before its events are read. ``close``: the connection ends with the answer."""

    def __init__(self, code: int, reason: str, close: bool = False) -> None:
        super().__init__(reason)
        self.code, self.close = code, close


@dataclass(eq=False)
class _Body:
    time: asyncio.Timeout
    size: int = 0
    parts: list[bytes] = field(default_factory=list)
    gave_way: bool = False


class Bodies:
    """All unanswered bodies of one worker. Used on the event loop."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._bytes = 0
        self._coming: dict[_Body, None] = {}  # the longest silent first

    @contextlib.asynccontextmanager
    async def read(self, stream: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
        """Yields a whole body, which counts against the limits until it is answered. Raises RequestRefused for a body
        that is too long or too slow, or that must give way to others."""
        body = _Body(asyncio.timeout(self._limits.bodySeconds))
        try:
            yield await self._received(body, stream)
        finally:
            self._coming.pop(body, None)
            self._bytes -= body.size

    async def _received(self, body: _Body, stream: AsyncIterator[bytes]) -> bytes:
        try:
            async with body.time:
                async for part in stream:
                    self._take(body, part)
        except TimeoutError:
            if not body.gave_way:
                reason = f"the body did not arrive within {self._limits.bodySeconds:g} s"
                raise RequestRefused(408, reason, close=True) from None
        if body.gave_way:
            raise RequestRefused(503, "the body stalled while others arrived; send it again", close=True)
        self._coming.pop(body, None)
        return b"".join(body.parts)

    def _take(self, body: _Body, part: bytes) -> None:
        if body.gave_way:
            return
        self._coming.pop(body, None)
        body.parts.append(part)
        body.size += len(part)
        self._bytes += len(part)
        if body.size > self._limits.bodyBytes:
            raise RequestRefused(413, f"the body is longer than {self._limits.bodyBytes} bytes")
        while self._bytes > self._limits.allBytes and self._coming:
            self._give_way(next(iter(self._coming)))
        if self._bytes > self._limits.allBytes and self._bytes > body.size:
            reason = f"unanswered bodies have {self._bytes} bytes of at most {self._limits.allBytes}; send it again"
            raise RequestRefused(503, reason)
        self._coming[body] = None

    def _give_way(self, body: _Body) -> None:
        del self._coming[body]
        self._bytes -= body.size
        body.size, body.parts, body.gave_way = 0, [], True
        body.time.reschedule(asyncio.get_running_loop().time())
