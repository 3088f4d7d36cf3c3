"""The HTTP service: routes, bodies within limits of size and time, answers, OpenAPI; starts and ends the gateway."""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import os
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from fastapi import FastAPI, Request, Response
from fastapi.responses import JSONResponse
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect
from starlette.routing import Route

from ...errors import TridentError
from .answers import body_of, code_of, wait_of
from .claims import MOST_BYTES, ClaimStore
from .event_reader import Sent, events_of
from .gateway import Gateway, Sink
from .metrics import Metrics
from .producer import KafkaSink
from .settings import Limits, Settings, read_settings
from .stores import store_of

CLOSE = {"Connection": "close"}
"""The connection ends with the answer."""


class RequestRefused(HTTPException):
    """A request that is refused before its events are read."""


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
            yield await self._receive(body, stream)
        finally:
            self._coming.pop(body, None)
            self._bytes -= body.size

    async def _receive(self, body: _Body, stream: AsyncIterator[bytes]) -> bytes:
        try:
            async with body.time:
                async for part in stream:
                    self._take(body, part)
        except TimeoutError:
            if not body.gave_way:
                reason = f"the body did not arrive within {self._limits.bodySeconds:g} s"
                raise RequestRefused(408, reason, CLOSE) from None
        if body.gave_way:
            raise RequestRefused(503, "the body stalled while others arrived; send it again", CLOSE)
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
        if not body.time.expired():  # else its task is about to hear of it
            body.time.reschedule(asyncio.get_running_loop().time())


DESCRIPTION = """Accepts each event once, however often a sensor sends it: claims its fingerprint, writes it to Kafka,
then acknowledges it. 201 and 200 are ACKs. 503 means that the result is unknown: send it again after Retry-After."""

_ANSWER: dict[str, Any] = {
    "type": "object",
    "required": ["status"],
    "properties": {
        "status": {"enum": ["accepted", "duplicate", "conflict", "invalid", "retry"]},
        "fingerprint": {"type": "string"},
        "reason": {"type": "string"},
    },
}
_MANY: dict[str, Any] = {
    "type": "object",
    "required": ["results"],
    "properties": {
        "results": {"type": "array", "items": _ANSWER},
        **{name: {"type": "integer"} for name in _ANSWER["properties"]["status"]["enum"]},
    },
}
_REASON: dict[str, Any] = {"type": "object", "required": ["reason"], "properties": {"reason": {"type": "string"}}}


def _json(description: str, *schemas: dict[str, Any]) -> dict[str, Any]:
    schema = schemas[0] if len(schemas) == 1 else {"oneOf": list(schemas)}
    return {"description": description, "content": {"application/json": {"schema": schema}}}


_LATER = _json("The result is unknown: send it again", _ANSWER, _MANY, _REASON)
_LATER["headers"] = {"Retry-After": {"description": "seconds", "schema": {"type": "integer"}}}

POST: dict[str, Any] = {
    "requestBody": {
        "required": True,
        "content": {
            "application/json": {
                "schema": {"oneOf": [{"type": "object"}, {"type": "array", "items": {"type": "object"}}]}
            }
        },
    },
    "responses": {
        "200": _json("The event was in Kafka already (duplicate), or the answers for many events", _ANSWER, _MANY),
        "201": _json("The event is in Kafka now (accepted)", _ANSWER),
        "400": _json("The body is not JSON", _REASON),
        "409": _json("Another event has this fingerprint (conflict)", _ANSWER),
        "408": _json("The body did not arrive in time", _REASON),
        "413": _json("Too many bytes, or too many events", _REASON),
        "415": _json("The Content-Encoding is not supported", _REASON),
        "422": _json("The event is refused (invalid)", _ANSWER, _REASON),
        "503": _LATER,
    },
}
EVENT: dict[int | str, dict[str, Any]] = {
    200: _json("Status new, produced or processed", {"type": "object"}),
    404: _json("No event has this fingerprint", _REASON),
    503: _json("The claim store is unavailable", _REASON),
}
HEALTH: dict[int | str, dict[str, Any]] = {
    200: _json("Store and Kafka answer", {"type": "object"}),
    503: _json("The store or Kafka does not answer", {"type": "object"}),
}
METRICS: dict[int | str, dict[str, Any]] = {200: {"description": "Text", "content": {"text/plain": {}}}}


log = logging.getLogger("trident_py.events")

CONFIG = "TRIDENT_EVENTS_CONFIG"
FAILED = "TRIDENT_EVENTS_FAILED"  # the file that a worker makes which does not start
PROBE = 0.5
PATIENCE = 2.0
EXPIRE_EVERY = 600.0


def application() -> FastAPI:
    """Make the gateway of the file in TRIDENT_EVENTS_CONFIG. Called by uvicorn's workers."""
    with _noting_failure():
        return application_of(read_settings(os.environ[CONFIG]))


@contextlib.contextmanager
def _noting_failure() -> Iterator[None]:
    """Note for the process that has started the workers that the block has failed."""
    try:
        yield
    except BaseException:
        if FAILED in os.environ:
            Path(os.environ[FAILED]).touch()
        raise


def kafka(settings: Settings) -> Sink:
    return KafkaSink(settings.kafka, settings.limits.bodyBytes)


def claims(settings: Settings) -> ClaimStore:
    return store_of(settings.store, settings.expirySeconds, settings.table)


def application_of(
    settings: Settings,
    make_store: Callable[[Settings], ClaimStore] = claims,
    make_sink: Callable[[Settings], Sink] = kafka,
) -> FastAPI:
    """Return an ASGI application. Store and producer are made when it starts, and may be away then."""

    @contextlib.asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        with _noting_failure():
            gateway = Gateway(settings, make_store(settings), make_sink(settings), Metrics())
        app.state.gateway, app.state.bodies = gateway, Bodies(settings.limits)
        behind = [asyncio.create_task(_watch(gateway)), asyncio.create_task(_forget(gateway))]
        try:
            yield
        finally:
            for task in behind:
                task.cancel()
            await asyncio.gather(*behind, return_exceptions=True)
            await gateway.close()

    # A redirect to the path without a slash would name the host that the request's own header says.
    app = FastAPI(title="Events gateway", description=DESCRIPTION, lifespan=lifespan, redirect_slashes=False)
    app.add_exception_handler(RequestRefused, _refusal)
    app.router.routes.append(Route("/events", post_events, methods=["POST"]))  # without FastAPI's dependencies
    app.add_api_route("/events", post_events, methods=["POST"], openapi_extra=POST, responses={}, status_code=201)
    app.add_api_route("/events/{fingerprint:path}", get_event, methods=["GET"], responses=EVENT)
    app.add_api_route("/healthz", healthz, methods=["GET"], responses=HEALTH)
    app.add_api_route("/metrics", metrics, methods=["GET"], responses=METRICS)
    return app


async def post_events(request: Request) -> Response:
    """Accept one event (an object) or many (an array of objects). An ACK is 201 or 200; 503 means: send it again
    later."""
    gateway: Gateway = request.app.state.gateway
    encoding = request.headers.get("content-encoding", "identity")
    if encoding != "identity":
        raise RequestRefused(415, f"Content-Encoding {encoding[:50]} is not supported; send the body uncompressed")
    try:
        async with request.app.state.bodies.read(request.stream()) as body:
            return await _to_response(gateway, *_parse(body))
    except ClientDisconnect:
        return Response(status_code=400)  # the client is gone


async def _to_response(gateway: Gateway, events: list[Sent], single: bool) -> Response:
    limits = gateway.settings.limits
    if not events:
        raise RequestRefused(422, "the array is empty; send at least one event")
    if len(events) > limits.batch:
        raise RequestRefused(413, f"{len(events)} events in one request; send at most {limits.batch}")
    answers = await gateway.take(events)
    code = code_of(answers, single)
    wait = wait_of(answers, gateway.settings.retryAfterSeconds)
    return JSONResponse(body_of(answers, single), code, {"Retry-After": str(wait)} if code == 503 else None)


async def get_event(fingerprint: str, request: Request) -> Response:
    """Return how far an event got."""
    gateway: Gateway = request.app.state.gateway
    raw = request.scope.get("raw_path", b"").rpartition(b"/")[2].decode("ascii", "replace")  # plain ones contain %
    try:
        entry = None
        for form in dict.fromkeys([fingerprint, raw]):
            if entry is None and form.isprintable() and len(form.encode()) <= MOST_BYTES:
                entry = await gateway.get(form)
    except TridentError as error:
        log.warning("%s", error)
        raise RequestRefused(503, "the claim store is unavailable") from None
    if entry is None:
        raise RequestRefused(404, "no event has this fingerprint; it never arrived, or it has expired")
    return JSONResponse({name: value for name, value in asdict(entry).items() if name not in ("owner", "lease")})


async def healthz(request: Request) -> Response:
    """Return whether store and Kafka answer."""
    gateway: Gateway = request.app.state.gateway

    async def store() -> str | None:
        try:
            await asyncio.wait_for(gateway.get(""), PATIENCE)
        except (TridentError, TimeoutError) as error:
            log.warning("the claim store: %s", error or "no answer in time")
            return "away"
        return None

    problems = await asyncio.gather(store(), asyncio.to_thread(gateway.sink.problem, PATIENCE))
    health = dict(zip(("store", "kafka"), (problem or "ok" for problem in problems), strict=True))
    return JSONResponse(health, 503 if any(problems) else 200)


async def metrics(request: Request) -> Response:
    """Return numbers for Prometheus, of all workers."""
    return Response(request.app.state.gateway.metrics.text(), media_type="text/plain; version=0.0.4; charset=utf-8")


def _parse(body: bytes) -> tuple[list[Sent], bool]:
    try:
        return events_of(body)
    except json.JSONDecodeError as error:
        raise RequestRefused(400, f"the body is not JSON: {error}") from None
    except (ValueError, RecursionError) as error:  # not UTF-8, NaN, a number of thousands of digits, too deep
        raise RequestRefused(400, f"the body is not JSON, or cannot be read: {str(error)[:200]}") from None


async def _refusal(request: Request, error: Exception) -> Response:
    assert isinstance(error, RequestRefused)
    gateway: Gateway = request.app.state.gateway
    headers = {"Retry-After": str(gateway.settings.retryAfterSeconds)} if error.status_code == 503 else {}
    return JSONResponse({"reason": error.detail}, error.status_code, {**headers, **(error.headers or {})})


async def _watch(gateway: Gateway) -> None:
    """Check whether Kafka is back, while it is away and requests are refused."""
    while True:
        await asyncio.sleep(PROBE)
        if gateway.sink.away is not None:
            await asyncio.to_thread(gateway.sink.problem, PATIENCE)


async def _forget(gateway: Gateway) -> None:
    """Delete expired events from time to time."""
    while True:
        await asyncio.sleep(min(EXPIRE_EVERY, gateway.settings.expirySeconds / 10))
        try:
            if count := await gateway.expire():
                log.info("deleted %d events older than %g s", count, gateway.settings.expirySeconds)
        except TridentError as error:
            log.warning("expired events are deleted later: %s", error)
