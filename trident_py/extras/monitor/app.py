"""The page of a run over HTTP: who may see it, what there is to see, and what may be done."""

from __future__ import annotations

import asyncio
import base64
import binascii
import hashlib
import hmac
import json
import logging
import pkgutil
import re
import threading
from collections.abc import AsyncIterator, Callable
from typing import Any

from prometheus_client import CONTENT_TYPE_LATEST
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route

from ...model.json_text import parse_json, write_json
from ...report.progress import RunningTopology
from ..drpc_server.web_server import LOCAL, digest, read_body
from . import views
from .metrics import text_of
from .openapi import document
from .run_record import EVENTS, RunRecord
from .timeline import KEPT

log = logging.getLogger("trident_py")

STREAMS = 32  # pages that are open at a time
STREAM_SECONDS, STREAM_GRACE = 300.0, 10.0  # then a page asks again; one that reads nothing has gone
TICK_SECONDS, STILL_TICKS = 0.25, 8
SIZE_SECONDS = 1.0  # for stores that answer late
LEVELS_BYTES = 64 * 2**10
PROBES = ("/healthz", "/readyz")
JSON = "application/json"


class PageAccess:
    """Who may see the run and act on it: with a token who has it, without one who is on this machine.

    Without a token the header Host must name this machine, so that no page of another site can read through a name of
    its own. An action must come from this page, or from no page at all.
    """

    def __init__(self, token: str) -> None:
        self._token = digest(token) if token else None

    def check(self, request: Request) -> None:
        """Raise HTTPException for a caller who may not do this."""
        host = request.headers.get("host", "")
        if self._token is None:
            if re.sub(r":\d*$", "", host).strip("[]") not in LOCAL:
                raise HTTPException(403, f"without a token, the run is shown on this machine only: at {LOCAL[0]}")
        elif request.url.path not in PROBES and not hmac.compare_digest(self._token, digest(_read_token(request))):
            text = "this needs the token of the run: as the password, or as Authorization: Bearer TOKEN"
            raise HTTPException(401, text)
        origin = request.headers.get("origin")
        if request.method == "POST" and origin is not None and origin.partition("://")[2] != host:
            raise HTTPException(403, f"a page of {origin} may not act on this run")


def _read_token(request: Request) -> str:
    """Return the token of a request: that of Bearer, or the password of Basic."""
    kind, _, value = request.headers.get("authorization", "").partition(" ")
    if kind.lower() == "bearer":
        return value.strip()
    try:
        return base64.b64decode(value, validate=True).decode().partition(":")[2] if kind.lower() == "basic" else ""
    except (binascii.Error, UnicodeDecodeError):
        return ""


class RunPage:
    """The answers to requests about one run."""

    def __init__(self, record: RunRecord) -> None:
        self._record = record
        self._streams = 0
        page = pkgutil.get_data(__package__, "page.html") or b""
        script = re.search(rb"<script>(.*?)</script>", page, re.DOTALL)
        seal = base64.b64encode(hashlib.sha256(script[1] if script else b"").digest()).decode()
        may = f"style-src 'unsafe-inline'; script-src 'sha256-{seal}'; connect-src 'self'; img-src data:"
        policy = "; ".join([may, *(f"{each} 'none'" for each in ("default-src", "frame-ancestors", "base-uri"))])
        self._page = page, {"Content-Security-Policy": policy, "Referrer-Policy": "no-referrer"}

    # -- to see -----------------------------------------------------------------------------------------------

    async def page(self, request: Request) -> Response:
        content, headers = self._page
        return Response(content, 200, headers, "text/html")

    async def summary(self, request: Request) -> Response:
        return _json(views.summary(self._record))

    async def topology(self, request: Request) -> Response:
        self._check_id(request)
        await asyncio.to_thread(self._record.measure_states, SIZE_SECONDS)
        return _json(views.topology(self._record))

    async def batches(self, request: Request) -> Response:
        component, txid = request.query_params.get("component"), _number(request, "txid")
        found = views.batches(self._record, component, txid, _number(request, "limit") or KEPT)
        if found or txid is None:
            return _json({"batches": found, "note": ""})
        return _json(await asyncio.to_thread(views.past, self._record, component, txid))

    async def events(self, request: Request) -> Response:
        asked = request.query_params
        txid, limit = _number(request, "txid"), _number(request, "limit") or EVENTS
        return _json({"events": views.events(self._record, asked.get("event"), asked.get("component"), txid, limit)})

    async def picture(self, request: Request) -> Response:
        drawn = await asyncio.to_thread(lambda: self._record.picture)
        if not drawn:
            raise HTTPException(404, "the topology cannot be drawn here: graphviz, or the extra diagrams, is missing")
        return Response(drawn, 200, None, "image/svg+xml")

    async def explain(self, request: Request) -> Response:
        return Response(self._record.explained, 200, None, "text/plain")

    async def describe(self, request: Request) -> Response:
        return _json(document())

    async def metrics(self, request: Request) -> Response:
        return Response(text_of(self._record), 200, None, CONTENT_TYPE_LATEST)

    async def alive(self, request: Request) -> Response:
        return Response("alive\n", 200, None, "text/plain")

    async def ready(self, request: Request) -> Response:
        why = self._record.unready()
        return Response(f"{why or 'ready'}\n", 503 if why else 200, None, "text/plain")

    async def stream(self, request: Request) -> Response:
        """Return the page's content as server-sent events, until the run ends."""
        if self._streams >= STREAMS:
            raise HTTPException(503, f"{STREAMS} pages of this run are open already")
        return _Stream(self._changes(), self._count)

    def _count(self, more: int) -> None:
        self._streams += more

    async def _changes(self) -> AsyncIterator[str]:
        until = asyncio.get_running_loop().time() + STREAM_SECONDS
        over = False
        while not over and asyncio.get_running_loop().time() < until:
            self._record.measure_states()
            over, seen = self._record.over, self._record.changes
            yield f"data: {write_json(views.live(self._record))}\n\n"
            for tick in range(0 if over else STILL_TICKS):
                await asyncio.sleep(TICK_SECONDS)
                if self._record.over or (tick >= 3 and self._record.changes != seen):
                    break

    # -- to do ------------------------------------------------------------------------------------------------

    async def activate(self, request: Request) -> Response:
        return self._do(request, "activate", RunningTopology.activate)

    async def deactivate(self, request: Request) -> Response:
        return self._do(request, "deactivate", RunningTopology.deactivate)

    async def kill(self, request: Request) -> Response:
        """Stop the run after its batch, without a wait: none is left in its middle."""
        return self._do(request, "kill", RunningTopology.stop)

    async def set_levels(self, request: Request) -> Response:
        """Set the levels of loggers in the driver, as in Storm: {"namedLoggerLevels": {NAME: {"target_level": LEVEL}}}.
        """
        self._check_id(request)
        body, known = await read_body(request, LEVELS_BYTES, "levels"), logging.getLevelNamesMapping()
        try:
            levels = {name: known[each["target_level"]] for name, each in parse_json(body)["namedLoggerLevels"].items()}
        except (ValueError, KeyError, TypeError, AttributeError):
            form = '{"namedLoggerLevels": {"trident_py": {"target_level": "DEBUG"}}}'
            raise HTTPException(400, f"the body is JSON such as {form}; levels: {', '.join(known)}") from None
        for name, level in levels.items():
            logging.getLogger(None if name == "ROOT" else name).setLevel(level)
            if logging.lastResort is not None:  # prints on stderr where nobody has set up logging
                logging.lastResort.setLevel(min(logging.lastResort.level, level))
            log.info("the level of %s is %s, as the page of the run was told", name, logging.getLevelName(level))
        return self._confirm("logconfig")

    def _do(self, request: Request, operation: str, work: Any) -> Response:
        """Begin an action in a thread of its own: it calls listeners, and a stop waits for the batch."""
        self._check_id(request)
        log.info("%s, as the page of the run was told", operation)
        name = f"trident-{operation}-{self._record.name}"
        threading.Thread(target=work, args=(self._record.running,), name=name, daemon=True).start()
        return self._confirm(operation)

    def _confirm(self, operation: str) -> Response:
        return _json({"topologyOperation": operation, "topologyId": self._record.id, "status": "success"})

    def _check_id(self, request: Request) -> None:
        if request.path_params["id"] != self._record.id:
            raise HTTPException(404, f"there is no topology {request.path_params['id']!r} here: {self._record.id}")


class _Stream(StreamingResponse):
    """Server-sent events. They end after a while, also for a client that has stopped reading. ``count`` is told of
    each open one."""

    def __init__(self, events: AsyncIterator[str], count: Callable[[int], None]) -> None:
        super().__init__(events, 200, None, "text/event-stream")
        self._count = count

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        self._count(1)
        try:
            async with asyncio.timeout(STREAM_SECONDS + STREAM_GRACE):
                await super().__call__(scope, receive, send)
        except TimeoutError:
            log.info("a page that did not read for %g s is left alone", STREAM_GRACE)
        finally:
            self._count(-1)


def application(record: RunRecord, token: str) -> Any:
    """Return an ASGI application that shows a run."""
    app = Starlette(routes=routes_of(RunPage(record)), exception_handlers={HTTPException: _refuse})
    return _check_access(app, PageAccess(token))


def routes_of(page: RunPage) -> list[Route]:
    """Return what there is to ask. `openapi` describes that of ``/api``."""
    topology = "/api/v1/topology"
    seen = {
        "/": page.page, f"{topology}/summary": page.summary, f"{topology}/{{id}}": page.topology,
        "/api/batches": page.batches, "/api/events": page.events, "/api/stream": page.stream,
        "/api/topology.svg": page.picture, "/api/topology.txt": page.explain,
        "/api/openapi.json": page.describe,
        "/metrics": page.metrics, "/healthz": page.alive, "/readyz": page.ready,
    }  # fmt: skip
    done = {
        f"{topology}/{{id}}/activate": page.activate, f"{topology}/{{id}}/deactivate": page.deactivate,
        f"{topology}/{{id}}/kill/{{wait}}": page.kill, f"{topology}/{{id}}/logconfig": page.set_levels,
    }  # fmt: skip
    routes = [Route(path, answer, methods=["GET"]) for path, answer in seen.items()]
    return routes + [Route(path, answer, methods=["POST"]) for path, answer in done.items()]


def _check_access(app: Any, access: PageAccess) -> Any:
    """Return the application, which answers only who may ask."""

    async def answer(scope: Any, receive: Any, send: Any) -> None:
        async def send_bare(message: Any) -> None:
            if message["type"] == "http.response.start":
                message["headers"] += [(b"cache-control", b"no-store"), (b"x-content-type-options", b"nosniff")]
            await send(message)

        if scope["type"] != "http":
            return
        try:
            access.check(request := Request(scope))
        except HTTPException as refused:
            await (await _refuse(request, refused))(scope, receive, send_bare)
        else:
            await app(scope, receive, send_bare)

    return answer


async def _refuse(request: Request, error: Any) -> Response:
    """Return an error as Storm does."""
    status = error.status_code
    headers = {"WWW-Authenticate": 'Basic realm="trident_py", charset="UTF-8"'} if status == 401 else None
    return Response(json.dumps({"error": status, "errorMessage": error.detail}), status, headers, JSON)


def _json(value: Any) -> Response:
    return Response(write_json(value), 200, None, JSON)


def _number(request: Request, name: str) -> int | None:
    given = request.query_params.get(name)
    if given is None:
        return None
    if not (given.isascii() and given.isdigit() and len(given) < 19 and int(given) > 0):
        raise HTTPException(400, f"{name} is a number, at least 1")
    return int(given)
