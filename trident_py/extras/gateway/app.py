"""The HTTP service: routes, size limits, answers; starts and ends the gateway behind them."""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import os
from collections.abc import AsyncIterator, Callable
from dataclasses import asdict

from fastapi import FastAPI, Request, Response
from fastapi.responses import JSONResponse
from starlette.requests import ClientDisconnect
from starlette.routing import Route

from ...errors import TridentError
from .answers import body_of, code_of, wait_of
from .bodies import Bodies, RequestRefused
from .claims import MOST_BYTES, ClaimStore
from .event_reader import Sent, events_of
from .gateway import Gateway, Sink
from .metrics import Metrics
from .openapi import DESCRIPTION, EVENT, HEALTH, METRICS, POST
from .producer import KafkaSink
from .settings import Settings, read_settings
from .stores import store_of

log = logging.getLogger("trident_py.events")

CONFIG = "TRIDENT_EVENTS_CONFIG"
PROBE = 0.5
PATIENCE = 2.0
EXPIRE_EVERY = 600.0


def application() -> FastAPI:
    """Make the gateway of the file in TRIDENT_EVENTS_CONFIG. Called by uvicorn's workers."""
    return application_of(read_settings(os.environ[CONFIG]))


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
    headers = {"Retry-After": str(gateway.settings.retryAfterSeconds)} if error.code == 503 else {}
    headers |= {"Connection": "close"} if error.close else {}
    return JSONResponse({"reason": str(error)}, error.code, headers)


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
