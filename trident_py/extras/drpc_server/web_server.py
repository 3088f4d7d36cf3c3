"""What our HTTP servers share: uvicorn in a thread, its protocol with limits, bodies, tokens."""

from __future__ import annotations

import asyncio
import hashlib
import socket
import threading
from typing import Any, Self

import uvicorn
from starlette.exceptions import HTTPException
from starlette.requests import Request
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from ...errors import DefinitionError
from ...model.requirements import address_of

LOCAL = ("127.0.0.1", "::1", "localhost")
"""The hosts at which no other machine can call."""
IDLE_SECONDS = 60
BODY_SECONDS = 30.0
_START_SECONDS = 30.0
_GRACE_SECONDS = 5


class PatientProtocol(HttpToolsProtocol):
    """uvicorn's protocol, which waits without limit for the first request of a connection and for the rest of a head.
    This one waits as long as for an idle connection (``timeout_keep_alive``). A body has a limit of its own.
    """

    _late: asyncio.TimerHandle | None = None

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        self._wait()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        if self._late is None and (self.cycle is None or self.cycle.response_complete):
            self._wait()

    def on_headers_complete(self) -> None:
        self._stop_waiting()
        super().on_headers_complete()

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_waiting()
        super().connection_lost(exc)

    def _wait(self) -> None:
        self._late = self.loop.call_later(self.timeout_keep_alive, self.timeout_keep_alive_handler)

    def _stop_waiting(self) -> None:
        if self._late is not None:
            self._late.cancel()
            self._late = None


class WebServer:
    """Serves an ASGI application in a thread of the driver, from `start` to `stop`. A context manager.

    ``what`` it is in errors; ``setting``: the key that names its port (0: any free one). Raises DefinitionError if the
    port is taken.
    """

    def __init__(self, application: Any, what: str, setting: str, host: str, port: int) -> None:
        self.what = what
        self.host = host
        self._socket = _listen(what, setting, host, port)
        self.port: int = self._socket.getsockname()[1]
        self._server = uvicorn.Server(
            uvicorn.Config(
                application, http=PatientProtocol, access_log=False, log_config=None, log_level="warning",
                proxy_headers=False, server_header=False, timeout_keep_alive=IDLE_SECONDS,
                timeout_graceful_shutdown=_GRACE_SECONDS, lifespan="off",
            )
        )  # fmt: skip
        name = f"trident-http-{self.port}"
        self._thread = threading.Thread(target=self._server.run, args=([self._socket],), name=name, daemon=True)

    @property
    def url(self) -> str:
        return f"http://{address_of(self.host, self.port)}"

    def start(self) -> Self:
        """Return when requests are accepted."""
        self._thread.start()
        waited = threading.Event()
        for _ in range(int(_START_SECONDS / 0.01)):
            if self._server.started or not self._thread.is_alive():
                break
            waited.wait(0.01)
        if not self._server.started:
            raise DefinitionError(f"{self.what} at {self.url} did not start; the log says why")
        return self

    def stop(self) -> None:
        """End the server, after the requests that it has. Returns when its thread has ended."""
        self._server.should_exit = True
        if self._thread.is_alive():
            self._thread.join(_GRACE_SECONDS + 5)
        self._socket.close()

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *exception: object) -> None:
        self.stop()


def _listen(what: str, setting: str, host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, port), family=family, backlog=256)
    except OSError as error:
        raise DefinitionError(
            f"{what} cannot listen at {host}:{port}: {error}. Choose another {setting} (0: any free one), or end what "
            "listens there"
        ) from None


async def read_body(request: Request, most: int, what: str) -> bytes:
    """Return the body of a request. Raises HTTPException if it is longer than ``most`` bytes or takes too long."""
    parts, size = [], 0
    try:
        async with asyncio.timeout(BODY_SECONDS):
            async for part in request.stream():
                parts.append(part)
                size += len(part)
                if size > most:
                    raise HTTPException(413, f"the {what} are longer than {most} bytes")
    except TimeoutError:
        raise HTTPException(408, f"the {what} did not arrive within {BODY_SECONDS:g} s") from None
    return b"".join(parts)


def digest(token: str) -> bytes:
    """Return what a server keeps of a token."""
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).digest()
