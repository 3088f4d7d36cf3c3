"""A client of a DRPC server, over HTTP, with Python's standard library alone."""

from __future__ import annotations

import http.client
import os
import threading
from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

from ...config import Config
from ...drpc.local_drpc import TIMEOUT_SECONDS
from ...errors import DefinitionError, DRPCExecutionException
from ...model.chunks import encodable
from ...model.json_text import parse_json

PORT = 3774
TOKEN = "TRIDENT_DRPC_TOKEN"  # noqa: S105  the variable's name
"""The variable of the environment with the one token of server and client."""

_TYPES = {503: "SERVER_SHUTDOWN", 504: "SERVER_TIMEOUT", 500: "INTERNAL_ERROR"}
_MORE_SECONDS = 5.0


class DRPCClient:
    """``DRPCClient(conf, host, port=3774, timeout=None)`` as in Storm, or ``DRPCClient(host, port)``.

    ``timeout``: how many seconds to wait for an answer; None: ``drpc.request.timeout.secs`` of the conf (600) and a
    little more, so that the server's own limit comes first. ``token``: the bearer token; None: TRIDENT_DRPC_TOKEN of
    the environment. Thread-safe: each thread has a connection, which stays open until `close`. A context manager.
    """

    def __init__(
        self,
        conf: Mapping[str, Any] | str | None = None,
        host: str | int = "localhost",
        port: int = PORT,
        timeout: float | None = None,
        *,
        token: str | None = None,
    ) -> None:
        settings: Mapping[str, Any] = {} if conf is None or isinstance(conf, str) else conf
        if isinstance(conf, str):
            host, port = conf, host if isinstance(host, int) else port
        if not isinstance(host, str):
            raise DefinitionError(f"DRPCClient takes a conf, a host and a port, or a host and a port; got {host!r}")
        self.host = host
        self.port = port
        limit = settings.get(Config.DRPC_REQUEST_TIMEOUT_SECS) or TIMEOUT_SECONDS
        self.timeout = float(limit) + _MORE_SECONDS if timeout is None else timeout
        self._token = os.environ.get(TOKEN, "") if token is None else token
        if not self._token.isprintable() or max(self._token, default="") > "\xff":
            raise DefinitionError(f"the token of DRPC ({TOKEN}) has a character that no header of HTTP can hold")
        self._of_thread = threading.local()
        self._open: set[http.client.HTTPConnection] = set()

    def __enter__(self) -> DRPCClient:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"DRPCClient({self.host!r}, {self.port})"

    def execute(self, function: str, args: str) -> list[list[Any]]:
        """Ask a function. Returns what ``LocalDRPC.execute`` returns: a list of rows.

        Raises DRPCExecutionException, with the server's type and message: also without an answer in time
        (SERVER_TIMEOUT) or without a server (SERVER_SHUTDOWN). A request is sent once; only one that found its open
        connection closed by the server is sent again.
        """
        text = self.text(function, args)
        try:
            rows: list[list[Any]] = parse_json(text)
        except ValueError:
            said = f"{self!r}: its answer is not JSON: {text[:200]!r}"
            raise DRPCExecutionException(said, "INTERNAL_ERROR") from None
        return rows

    def text(self, function: str, args: str) -> str:
        """Execute; return the answer as it came."""
        if not encodable(function) or not encodable(args):
            raise DRPCExecutionException(f"{function!r} and its args must be texts that UTF-8 can hold, got {args!r}")
        try:
            status, body = self._exchange(f"/drpc/{quote(function, safe='')}", args.encode())
        except TimeoutError:
            self._drop()
            text = f"{self!r}: no answer of {function!r} within {self.timeout:g} s"
            raise DRPCExecutionException(text, "SERVER_TIMEOUT") from None
        except (OSError, UnicodeError, http.client.HTTPException) as error:  # or no name
            self._drop()
            text = f"{self!r}: no DRPC server answers: {type(error).__name__}: {error}"
            raise DRPCExecutionException(text, "SERVER_SHUTDOWN") from error
        if status != 200:
            raise _to_error(status, body)
        return body.decode(errors="replace")

    def close(self) -> None:
        """Close the connections of all threads."""
        while self._open:
            self._open.pop().close()
        self._of_thread = threading.local()

    def _exchange(self, path: str, body: bytes) -> tuple[int, bytes]:
        old = self._of_thread.__dict__.get("connection")
        if old is not None:
            try:
                return self._send(old, path, body)
            except (http.client.RemoteDisconnected, ConnectionResetError, BrokenPipeError):
                self._drop()  # the server has closed it while nothing was asked
        connection = http.client.HTTPConnection(self.host, self.port, timeout=self.timeout)
        self._of_thread.connection = connection
        self._open.add(connection)
        return self._send(connection, path, body)

    def _send(self, connection: http.client.HTTPConnection, path: str, body: bytes) -> tuple[int, bytes]:
        headers = {"Content-Type": "text/plain; charset=utf-8"}
        if self._token:
            headers["Authorization"] = f"Bearer {self._token}"
        connection.request("POST", path, body, headers)
        response = connection.getresponse()
        return response.status, response.read()

    def _drop(self) -> None:
        connection = self._of_thread.__dict__.pop("connection", None)
        if connection is not None:
            self._open.discard(connection)
            connection.close()


def _to_error(status: int, body: bytes) -> DRPCExecutionException:
    try:
        said = parse_json(body)
        return DRPCExecutionException(str(said["errorMessage"]), str(said["error"]))
    except (ValueError, TypeError, KeyError):
        text = f"HTTP {status}: {body[:200].decode('utf-8', 'replace')}"
        return DRPCExecutionException(text, _TYPES.get(status, "FAILED_REQUEST"))
