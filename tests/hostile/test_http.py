"""The two HTTP servers: any request gets an answer that says what is wrong, and the next good one is served."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import json
import socket
from collections.abc import Iterator, Sequence
from typing import Any

import httpx
import pytest
from fastapi import FastAPI
from hypothesis import given
from hypothesis import strategies as st

from trident_py import LocalCluster, LocalDRPC, TridentTopology
from trident_py.drpc import DRPCClient
from trident_py.extras.drpc_server.app import Access, access_of, application
from trident_py.extras.drpc_server.server import DRPCServer
from trident_py.extras.gateway.app import application_of
from trident_py.extras.gateway.settings import Settings

from .drawing import TEXTS, VALUES, altered, damaged, often, patience

EVENT = {"sensor": "a", "number": 1, "time": "2013-11-03T06:00:00Z", "more": {"x": [1.5, None, "é"]}}
INSTANTS = st.sampled_from(
    ["1e-999999999", "1e999999", "-0", "0.0", "1" * 400, "9" * 4_301, "253402300800", "-1e300",
    '"0001-01-01T00:00:00+14:00"',
     '"2013-11-03T06:00:00"', '"2013-W01-1T00:00:00.' + "1" * 500 + 'Z"', '"9999-12-31T23:59:59.999999999-14:00"',
     '""', "[]", "true"]
)  # fmt: skip
BODIES = st.one_of(
    damaged(json.dumps(EVENT).encode()),
    damaged(json.dumps([EVENT, {**EVENT, "number": 2}]).encode()),
    altered(EVENT).map(lambda event: json.dumps(event).encode()),
    st.lists(altered(EVENT) | VALUES, max_size=12).map(lambda events: json.dumps(events).encode()),
    INSTANTS.map(lambda time: b'{"sensor": "a", "number": 1, "time": %s}' % time.encode()),
    st.binary(max_size=40),
    st.sampled_from([b"[" * 50_000, b'{"a":' * 50_000, b"[" + b"{}," * 20_000 + b"{}]", b" " * 200_000,
    b'"' + b"x" * 200_000]),
)  # fmt: skip
NAMES = st.sampled_from(
    ["content-type", "content-encoding", "content-length", "accept", "authorization", "host", "x", "te"]
)
HEADERS = st.dictionaries(
    NAMES, st.text(st.characters(min_codepoint=32, max_codepoint=255, exclude_characters="\x7f"), max_size=20)
    | st.sampled_from(["gzip", "identity", "-1", "99999999999999999999", "Bearer", "Bearer  \u00e9", "Basic eDp5",
    "x" * 9_000]), max_size=3,
)  # fmt: skip
PATHS = TEXTS.map(
    lambda text: "".join(f"%{byte:02x}" if byte < 33 or byte in b"?#%" else chr(byte) for byte in text.encode())
)
ANSWERS = {200, 201, 400, 401, 403, 404, 405, 408, 409, 411, 413, 415, 422, 501, 503}


class Client:
    """A client in the process of the application, whose unexpected exceptions it raises. A context manager."""

    def __init__(self, app: FastAPI) -> None:
        self._runner = asyncio.Runner()
        self._lifespan = app.router.lifespan_context(app)
        self._http = httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://test")

    def request(self, method: str, path: str, **more: Any) -> httpx.Response:
        return self._runner.run(self._http.request(method, path, **more))

    def __enter__(self) -> Client:
        self._runner.run(self._lifespan.__aenter__())
        return self

    def __exit__(self, *exception: object) -> None:
        self._runner.run(self._lifespan.__aexit__(None, None, None))
        self._runner.close()


class Records:
    """A Kafka that takes everything."""

    away: str | None = None

    def __init__(self) -> None:
        self.taken: list[bytes] = []

    def send(self, messages: Sequence[Any]) -> asyncio.Future[list[str | None]]:
        sent = asyncio.get_running_loop().create_future()
        self.taken += [message.value for message in messages]
        sent.set_result([None] * len(messages))
        return sent

    def problem(self, patience: float) -> str | None:
        return None

    def close(self, patience: float) -> None: ...


@pytest.fixture(scope="module")
def records() -> Records:
    return Records()


@pytest.fixture(scope="module")
def gateway(records: Records, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    settings = Settings.model_validate({
        "kafka": {"bootstrap": "nowhere:1", "topic": "t"},
        "store": f"sqlite:///{tmp_path_factory.mktemp('claims')}/c.db",
        "fingerprint": {"fields": ["sensor", "number", "time"], "timestamp": "time"}, "bloom": {"capacity": 1_000},
        "event": {"required": {"sensor": "string", "number": "integer"}, "optional": {"time": "any"}},
        "limits": {"bodyBytes": 100_000, "batch": 10},
    })  # fmt: skip
    with Client(application_of(settings, make_sink=lambda _: records)) as client:
        yield client


@pytest.fixture(scope="module")
def drpc() -> Iterator[LocalDRPC]:
    """Its functions: one that answers with its args, and one that fails for some."""
    topology, drpc = TridentTopology(), LocalDRPC()
    topology.newDRPCStream("echo", drpc).each("args", lambda args: [args], "out").project("out")
    topology.newDRPCStream("number", drpc).each("args", lambda args: [float(args)], "out").project("out")
    with LocalCluster() as cluster:
        cluster.submitTopology("hostile", {}, topology.build())
        yield drpc


@pytest.fixture(scope="module")
def functions(drpc: LocalDRPC) -> Iterator[Client]:
    with Client(application(drpc, Access(), 8)) as client:
        yield client


@pytest.fixture(scope="module")
def guarded(drpc: LocalDRPC) -> Iterator[Client]:
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("TRIDENT_DRPC_TOKEN", "canary-token")
        access = access_of(None)
    with Client(application(drpc, access, 8)) as client:
        yield client


def asked(client: Client, method: str, path: str, **more: Any) -> Any:
    """The answer to a request; None if it is one that the client itself refuses to send."""
    with patience():
        try:
            answer = client.request(method, path, **more)
        except httpx.InvalidURL:
            return None
    assert answer.status_code in ANSWERS, (answer.status_code, answer.text)
    assert "Traceback" not in answer.text and len(answer.text) < 300_000
    return answer


def sent(headers: dict[str, str]) -> dict[str, bytes]:
    return {name: value.encode("latin-1") for name, value in headers.items()}


numbers = itertools.count(10**6)


@often(100, 1_500)
@given(body=BODIES, headers=HEADERS)
def test_any_body_of_events(gateway: Client, records: Records, body: bytes, headers: dict[str, str]) -> None:
    records.taken.clear()
    answer = asked(gateway, "POST", "/events", content=body, headers=sent(headers))
    told = answer.json()
    assert told.get("reason") or told.get("results") or answer.status_code < 300, told
    assert len(records.taken) == [each.get("status") for each in told.get("results", [told])].count("accepted")
    event = {**EVENT, "number": next(numbers)}
    assert [gateway.request("POST", "/events", json=event).status_code for _ in range(2)] == [201, 200]
    assert json.loads(records.taken[-1]) == event


@often(50, 400)
@given(path=PATHS, method=st.sampled_from(["GET", "PUT", "DELETE", "HEAD", "OPTIONS", "POST", "X"]), headers=HEADERS)
def test_any_path_of_the_gateway(gateway: Client, path: str, method: str, headers: dict[str, str]) -> None:
    for before in ("/events/", "/", "/metrics/"):
        asked(gateway, method, f"{before}{path}", headers=sent(headers))
    assert gateway.request("GET", "/healthz").json() == {"store": "ok", "kafka": "ok"}


@often(50, 800)
@given(name=PATHS, args=PATHS, method=st.sampled_from(["GET", "POST", "PUT"]), body=BODIES, headers=HEADERS)
def test_any_call_of_a_function(
    functions: Client, guarded: Client, name: str, args: str, method: str, body: bytes, headers: dict[str, str]
) -> None:
    more: dict[str, Any] = {"content": body} if method == "POST" else {}
    for client in (functions, guarded):
        for path in (f"/drpc/{name}", f"/drpc/echo/{args}", f"/drpc/number/{args}", f"/drpc/{name}/{args}"):
            answer = asked(client, method, path, headers=sent(headers), **more)
            if answer is not None and answer.status_code != 200 and answer.text:
                told = answer.json()
                assert len(told["errorMessage"]) > 20 and told["error"], told
                assert "canary" not in answer.text
            assert client is functions or answer is None or answer.status_code in (401, 404, 405)
    assert functions.request("POST", "/drpc/echo", content="a").json() == [["a"]]


RAW = st.one_of(
    damaged(b"POST /drpc/echo HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nabc", [b"\r\n", b"\x00",
    b"Content-Length: 9" * 2, b"chunked",
            b"Transfer-Encoding: chunked\r\n", b"\xff" * 40, b"x" * 70_000, b"GET / HTTP/9.9\r\n\r\n",
            b"ffffffffffffffffff\r\n"]),
    st.binary(max_size=60),
    st.sampled_from([b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
                     b"GET /drpc/echo/a HTTP/1.1\r\n" + b"a: b\r\n" * 30_000,
                     b"GET /" + b"a" * 200_000 + b" HTTP/1.1\r\n\r\n",
                     b"GET /drpc/echo/a HTTP/1.1\r\nHost: a\r\n\r\n" * 50]),
)  # fmt: skip


@often(15, 300)
@given(data=RAW)
def test_any_bytes_at_the_socket(drpc: LocalDRPC, data: bytes) -> None:
    with DRPCServer(drpc, {"drpc.http.port": 0}) as server, patience():
        with socket.create_connection(("127.0.0.1", server.port), 10) as raw, contextlib.suppress(ConnectionError):
            raw.sendall(data)
            raw.shutdown(socket.SHUT_WR)
            raw.settimeout(20)
            answer = b""
            while part := raw.recv(1 << 16):
                answer += part
            assert not answer or (answer.startswith(b"HTTP/1.1 ") and b"Traceback" not in answer), answer
            assert b" 500 " not in answer.partition(b"\r\n")[0], answer
        with DRPCClient("127.0.0.1", server.port) as client:
            assert client.execute("echo", "é") == [["é"]]
