"""Storm's HTTP interface of DRPC: paths, answers, status codes."""

from __future__ import annotations

import asyncio
import json
import logging
from typing import Any

from fastapi import FastAPI, Request, Response
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect
from starlette.routing import Route

from ...drpc.local_drpc import LocalDRPC, timeout_error
from ...errors import DRPCExecutionException
from ...model.user_traceback import describe_error
from .access import Access, Refused

log = logging.getLogger("trident_py.drpc")

STATUS = {"FAILED_REQUEST": 400, "SERVER_SHUTDOWN": 503, "SERVER_BUSY": 503, "SERVER_TIMEOUT": 504}
BODY_BYTES = 16 * 2**20
BODY_SECONDS = 30.0
RETRY_SECONDS = 1
JSON = "application/json"


class Door:
    """Lets in up to ``room`` requests at a time. Used on the event loop."""

    def __init__(self, drpc: LocalDRPC, access: Access, room: int) -> None:
        self.drpc = drpc
        self.access = access
        self.room = room
        self.inside = 0

    async def answer(self, request: Request) -> Response:
        """Return one call. The answer is the JSON of the rows as it stands."""
        function = request.path_params["function"]
        self.access.check(request.headers.get("authorization", ""), function)
        if self.inside >= self.room:
            text = f"{self.inside} requests run or wait already (drpc.queue.size); send it again"
            raise DRPCExecutionException(text, "SERVER_BUSY")
        self.inside += 1
        try:
            args = await _body(request) if request.method == "POST" else request.path_params.get("args", "")
            return Response(await self._ask(function, args), media_type=JSON)
        finally:
            self.inside -= 1

    async def _ask(self, function: str, args: str) -> str:
        answer, seconds = self.drpc.ask(function, args)
        try:
            return await asyncio.wait_for(asyncio.wrap_future(answer), seconds)  # a late one is cancelled
        except TimeoutError:
            raise timeout_error(function, seconds) from None


def application(drpc: LocalDRPC, access: Access, room: int) -> FastAPI:
    """Return an ASGI application over the functions of a LocalDRPC."""
    app = FastAPI(title="DRPC", openapi_url=None, docs_url=None, redoc_url=None, redirect_slashes=False)
    door = Door(drpc, access, room)
    app.router.routes += [
        Route("/drpc/{function}", door.answer, methods=["GET", "POST"]),
        Route("/drpc/{function}/{args:path}", door.answer, methods=["GET"]),
    ]
    for kind in (DRPCExecutionException, Refused, HTTPException, ClientDisconnect, Exception):
        app.add_exception_handler(kind, _refusal)
    return app


async def _body(request: Request) -> str:
    parts, size = [], 0
    try:
        async with asyncio.timeout(BODY_SECONDS):
            async for part in request.stream():
                parts.append(part)
                size += len(part)
                if size > BODY_BYTES:
                    raise HTTPException(413, f"the args are longer than {BODY_BYTES} bytes")
    except TimeoutError:
        raise HTTPException(408, f"the args did not arrive within {BODY_SECONDS:g} s") from None
    try:
        return b"".join(parts).decode()
    except UnicodeDecodeError as error:
        raise DRPCExecutionException(f"the body, which is the args, is not UTF-8: {error}") from None


async def _refusal(request: Request, error: Exception) -> Response:
    """Return every error as ``{"error", "errorMessage"}``, the cause in the message."""
    if isinstance(error, DRPCExecutionException):
        headers = {"Retry-After": str(RETRY_SECONDS)} if STATUS.get(error.type) == 503 else {}
        return _error(STATUS.get(error.type, 500), error.type, str(error), headers)
    if isinstance(error, Refused):
        headers = {"WWW-Authenticate": "Bearer"} if error.status == 401 else {}
        return _error(error.status, "Not Authorized", str(error), headers)
    if isinstance(error, HTTPException):
        text = f"{error.detail}: call POST /drpc/FUNCTION, GET /drpc/FUNCTION/ARGS or GET /drpc/FUNCTION"
        return _error(error.status_code, "FAILED_REQUEST", text, {"Connection": "close"})
    if isinstance(error, ClientDisconnect):
        return Response(status_code=400)  # nobody reads it
    log.error("a request failed", exc_info=error)
    return _error(500, "INTERNAL_ERROR", describe_error(error), {})


def _error(status: int, error: str, message: str, headers: dict[str, Any]) -> Response:
    body = json.dumps({"error": error, "errorMessage": message})
    return Response(body, status, {**headers, "Cache-Control": "no-store"}, JSON)
