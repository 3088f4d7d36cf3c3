"""Connections and bodies of a gateway: sensors that break off, stall or hold on, and how a gateway ends."""

from __future__ import annotations

import asyncio
import json
import select
import socket
import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest
from gateway_process import Gateway, event, records, until

from trident_py.extras.gateway.app import Bodies, RequestRefused, _Body
from trident_py.extras.gateway.settings import Limits


@pytest.fixture
def own(kafka: Any, tmp_path: Path) -> Iterator[Callable[..., Gateway]]:
    made: list[Gateway] = []

    def start(**more: Any) -> Gateway:
        made.append(Gateway(tmp_path, kafka, f"sqlite:///{tmp_path}/events.db", **more))
        return made[-1].start()

    yield start
    for each in made:
        each.stop()


@pytest.fixture(scope="module")
def shared(kafka: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    """A gateway that is short of patience and of room, for tests whose events have numbers of their own."""
    folder = tmp_path_factory.mktemp("shared")
    settings = {"limits": {"bodySeconds": 0.2, "idleSeconds": 0.2}, "fingerprint": {"algorithm": "plain"}}
    topic = kafka.create_topic(max_message_bytes=2_000)
    gateway = Gateway(folder, kafka, f"sqlite:///{folder}/events.db", topic, **settings).start()
    yield gateway
    gateway.stop()


def test_a_sensor_that_breaks_off_leaves_no_trace_in_the_log(own: Callable[..., Gateway]) -> None:
    gateway = own()
    for _ in range(3):
        with socket.create_connection(("127.0.0.1", gateway.port)) as broken:
            broken.sendall(b'POST /events HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\n[{"sensor"')
    assert gateway.post(event(1)).status_code == 201
    gateway.stop()
    assert "Traceback" not in gateway.log


def test_a_body_gives_way_in_the_moment_in_which_its_time_is_over() -> None:
    bodies, taken = Bodies(Limits(bodySeconds=0.05, allBytes=10)), []

    async def stalling() -> AsyncIterator[bytes]:
        yield b"12345678"
        await asyncio.sleep(100)

    async def read() -> None:
        with pytest.raises(RequestRefused, match="503"):
            async with bodies.read(stalling()):
                pass

    def take_other() -> None:
        bodies._take(_Body(asyncio.timeout(30)), b"12345678")
        taken.append(bodies._bytes)

    async def run() -> None:
        reading = asyncio.create_task(read())
        await asyncio.sleep(0.01)
        (stalled,) = bodies._coming
        end = stalled.time.when()
        assert end is not None
        asyncio.get_running_loop().call_at(end + 1e-6, take_other)  # in the same turn of the loop
        await reading

    asyncio.run(run())
    assert taken == [8]


def test_a_body_that_is_packed_is_refused_as_such(shared: Gateway) -> None:
    answer = shared.post(None, json=None, content=b"\x1f\x8b", headers={"Content-Encoding": "gzip"})
    assert (answer.status_code, "gzip" in answer.json()["reason"]) == (415, True)


def test_a_plain_fingerprint_is_found_under_its_own_url(shared: Gateway) -> None:
    fingerprint = shared.post(event(1, sensor="a/b ü")).json()["fingerprint"]
    assert shared.get(f"/events/{fingerprint}").json()["status"] == "produced"
    assert [shared.get(f"/events/{each}").status_code for each in ("%00", "%FF", "a%2Fb", "x" * 5000)] == [404] * 4


def test_an_event_that_is_too_large_does_not_hold_its_fingerprint(shared: Gateway) -> None:
    assert shared.post(event(2, text="x" * 10_000)).status_code == 422
    assert shared.post(event(2, text="x")).status_code == 201
    found = [each.value for each in records(shared.bootstrap, shared.topic)]
    assert [value["text"] for value in found if value["number"] == 2] == ["x"]


HALF = b"POST /events HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n%s"


def half_bodies(port: int, count: int, size: int) -> list[socket.socket]:
    """Clients that stop before the last byte of a body, which the server has read so far."""
    slow = [socket.create_connection(("127.0.0.1", port)) for _ in range(count)]
    for each in slow:
        each.settimeout(60)
        each.sendall(HALF % (size, b" " * (size - 1)))
    return slow


def test_clients_that_stop_in_the_middle_of_a_body_block_no_other(own: Callable[..., Gateway]) -> None:
    gateway = own(limits={"allBytes": 4_200_000})
    slow = half_bodies(gateway.port, 5, 1_000_000)
    until(lambda: select.select(slow, [], [], 0)[0], gateway)  # there is no room for five
    codes = [gateway.post(event(number, text="x" * 300_000)).status_code for number in range(5)]
    assert codes == [201] * 5
    answered = next(iter(select.select(slow, [], [], 0)[0])).recv(1000)
    assert b" 503 " in answered and b"retry-after: 1" in answered.lower()
    for each in slow:
        each.close()


def test_a_body_that_does_not_come_in_time_is_told_so_and_its_connection_closed(shared: Gateway) -> None:
    [slow] = half_bodies(shared.port, 1, 1_000)
    with slow, slow.makefile("rb") as answer:
        told = answer.read()  # to the end of the connection
    assert told.startswith(b"HTTP/1.1 408") and b"within 0.2 s" in told


@pytest.mark.parametrize("sent", [
    b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n",
    *(pytest.param(sent, marks=pytest.mark.whole) for sent in (b"", b"POST /events HT", b"\r\n")),
])  # fmt: skip
def test_a_connection_that_says_no_more_is_closed(shared: Gateway, request: pytest.FixtureRequest, sent: bytes) -> None:
    with socket.create_connection(("127.0.0.1", shared.port), timeout=60) as silent, silent.makefile("rb") as answer:
        silent.sendall(sent)
        answer.read()
    assert shared.post(event(3, sensor=request.node.name)).status_code == 201


@pytest.mark.parametrize("workers", [pytest.param(1, marks=pytest.mark.whole), 2])
def test_sigterm_ends_the_gateway_in_order_and_leaves_no_folder(
    own: Callable[..., Gateway], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, workers: int
) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path / "own"))
    (tmp_path / "own").mkdir()
    assert own(workers=workers).stop() == 0
    assert list((tmp_path / "own").glob("trident-events-*")) == []


def test_what_a_killed_gateway_leaves_the_next_one_takes_away(
    own: Callable[..., Gateway], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path / "own"))
    (tmp_path / "own").mkdir()
    killed = own(workers=2)
    assert killed.process is not None
    workers = psutil.Process(killed.process.pid).children(recursive=True)
    [left] = (tmp_path / "own").glob("trident-events-*")
    for each in [psutil.Process(killed.process.pid), *workers]:
        each.kill()
    killed.process.wait()
    other = own(workers=2)
    [its] = (tmp_path / "own").glob("trident-events-*")
    assert its != left
    assert other.stop() == 0


def test_bodies_that_are_read_at_once_have_a_limit_together(own: Callable[..., Gateway]) -> None:
    gateway = own(limits={"bodyBytes": 1_000, "allBytes": 1_500})
    slow = [socket.create_connection(("127.0.0.1", gateway.port)) for _ in range(2)]
    for each in slow:
        each.sendall(b"POST /events HTTP/1.1\r\nHost: x\r\nContent-Length: 900\r\n\r\n" + b" " * 700)
    until(lambda: gateway.post(event(1, text="x" * 300)).status_code in (200, 201), gateway)
    until(lambda: select.select(slow, [], [], 0)[0], gateway)  # one of them had to give way, and is told
    for each in slow:
        each.close()


def test_the_thread_of_the_producer_outlives_an_error(kafka: Any) -> None:
    text = f"""
import asyncio
from trident_py.extras.gateway.producer import KafkaSink, Message
from trident_py.extras.gateway.settings import GatewayKafka

async def run():
    given = {json.dumps({"bootstrap": kafka.bootstrap, "topic": kafka.create_topic()})}
    sink = KafkaSink(GatewayKafka.model_validate(given), 1000)
    config, sink._config = sink._config, {{"no.such.setting": 1}}
    first, sink._fatal = sink._producer, True
    while not sink.away:
        await asyncio.sleep(0)
    sink._config = config
    while sink._producer is first:
        await asyncio.sleep(0)
    print(await asyncio.wait_for(sink.send([Message("a", b"1", "1")]), 20))
    await asyncio.to_thread(sink.close, 5)

asyncio.run(asyncio.wait_for(run(), 30))
"""
    ran = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, timeout=60)
    assert ran.stdout == "[None]\n", ran.stderr[-1000:]
