"""Storm's HTTP interface of DRPC: paths, answers, status codes, and who may call which function."""

from __future__ import annotations

import asyncio
import hmac
import json
import logging
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from fastapi import FastAPI, Request, Response
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect
from starlette.routing import Route

from ...documents import Document, read
from ...drpc.local_drpc import LocalDRPC, timeout_error
from ...errors import DefinitionError, DRPCExecutionException
from ...model.user_traceback import describe_error
from .client import TOKEN
from .web_server import LOCAL, digest, read_body

ACL, TOKENS, USERS = "drpc.authorizer.acl", "drpc.tokens", "client.users"


class Refused(HTTPException):
    """A caller who may not call: 401 without a valid token, 403 if the function is not the caller's."""


@dataclass(frozen=True)
class Access:
    """The callers by their tokens, and the functions of each. ``acl`` None: every caller may call everything.

    Tokens are kept as digests.
    """

    callers: Mapping[bytes, str] = field(default_factory=dict, repr=False)
    acl: Mapping[str, frozenset[str]] | None = None

    @property
    def is_open(self) -> bool:
        """Whether no caller needs a token."""
        return not self.callers

    def check(self, authorization: str, function: str) -> None:
        """Check the header Authorization of a call. Raises Refused."""
        caller = self._caller(authorization)
        if self.acl is not None and caller not in self.acl.get(function, ()):
            raise Refused(403, f"{caller} may not call the function {function!r}")

    def _caller(self, authorization: str) -> str:
        if self.is_open:
            return ""
        kind, _, token = authorization.partition(" ")
        given, found = digest(token.strip()), ""
        for known, name in self.callers.items():
            if hmac.compare_digest(known, given):
                found = name
        if kind.lower() != "bearer" or not found:
            raise Refused(401, "the call needs the header Authorization: Bearer TOKEN, with a token of this server")
        return found


def access_of(file: str | None) -> Access:
    """Return the access list of a file, else the one token of TRIDENT_DRPC_TOKEN, else an open door.

    Raises DefinitionError for a file that cannot be used, or in which nobody can call.
    """
    if file is None:
        token = os.environ.get(TOKEN, "")
        return Access({digest(token): "the caller"}) if token else Access()
    document = read(file, "of who may call which DRPC function", f"{TOKENS}:")
    found = _read(document)
    document.stop()
    return found


def _read(document: Document) -> Access:
    data = document.data
    if not isinstance(data, dict) or set(data) != {TOKENS, ACL}:
        document.add((), f"the file has two parts: {TOKENS} (a token for each user) and {ACL} (users by function)")
        return Access()
    tokens, acl = data[TOKENS], data[ACL]
    if not isinstance(tokens, dict) or not tokens:
        document.add((TOKENS,), "names a token for each user, as in alice: ${ALICE_TOKEN}")
        tokens = {}
    callers: dict[bytes, str] = {}
    for user, token in tokens.items():
        if not isinstance(token, str) or not token:
            document.add((TOKENS, user), "a token is a text that is not empty")
        elif callers.setdefault(digest(token), user) != user:
            document.add((TOKENS, user), f"this is also the token of {callers[digest(token)]}")
    if not isinstance(acl, dict):
        document.add((ACL,), f"names the users of each function, as in words: {{{USERS}: [alice]}}")
        acl = {}
    return Access(callers, {function: _users(document, function, entry, tokens) for function, entry in acl.items()})


def _users(document: Document, function: str, entry: object, tokens: Mapping[str, object]) -> frozenset[str]:
    """Return the users of one function. Storm's ``invocation.user``, who runs the topology, is accepted and not
    used."""
    where = (ACL, function)
    if not isinstance(entry, dict) or not set(entry) <= {USERS, "invocation.user"}:
        document.add(where, f"has the key {USERS}, a list of users")
        return frozenset()
    users = entry.get(USERS, [])
    users = [users] if isinstance(users, str) else users
    if not isinstance(users, list):
        document.add((*where, USERS), "is a list of users")
        return frozenset()
    for user in users:
        if not isinstance(user, str) or user not in tokens:
            document.add((*where, USERS), f"{user!r} has no token in {TOKENS}")
    return frozenset(map(str, users))


def check_host(host: str, access: Access) -> None:
    """Raise DefinitionError if other machines could call without a token."""
    if access.is_open and host not in LOCAL:
        raise DefinitionError(
            f"drpc.http.host is {host}, so other machines could call every function without a token. Set {TOKEN} in "
            f"the environment, or an access list (drpc.authorizer.acl.filename, {Path('drpc-auth-acl.yaml')}); or "
            "serve this machine only: 127.0.0.1"
        )


log = logging.getLogger("trident_py.drpc")

STATUS = {"FAILED_REQUEST": 400, "SERVER_SHUTDOWN": 503, "SERVER_BUSY": 503, "SERVER_TIMEOUT": 504}
BODY_BYTES = 16 * 2**20
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
    for kind in (DRPCExecutionException, HTTPException, ClientDisconnect, Exception):
        app.add_exception_handler(kind, _refusal)
    return app


async def _body(request: Request) -> str:
    try:
        return (await read_body(request, BODY_BYTES, "args")).decode()
    except UnicodeDecodeError as error:
        raise DRPCExecutionException(f"the body, which is the args, is not UTF-8: {error}") from None


async def _refusal(request: Request, error: Exception) -> Response:
    """Return every error as ``{"error", "errorMessage"}``, the cause in the message."""
    if isinstance(error, DRPCExecutionException):
        headers = {"Retry-After": str(RETRY_SECONDS)} if STATUS.get(error.type) == 503 else {}
        return _error(STATUS.get(error.type, 500), error.type, str(error), headers)
    if isinstance(error, Refused):
        headers = {"WWW-Authenticate": "Bearer"} if error.status_code == 401 else {}
        return _error(error.status_code, "Not Authorized", error.detail, headers)
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
