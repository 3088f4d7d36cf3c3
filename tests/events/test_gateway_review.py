"""What a review of the gateway found: each test failed once."""

from __future__ import annotations

import json
import select
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import databases
import psutil
import pytest
from gateway_process import Gateway, event, records, until
from pydantic import ValidationError

from trident_py.errors import DefinitionError
from trident_py.events.claims import Claim
from trident_py.events.examining import Examined, Examiner
from trident_py.events.reading import events_of
from trident_py.events.settings import Settings
from trident_py.events.stores import store_of
from trident_py.secrets import shown


def settings(**more: Any) -> Settings:
    kafka = {"bootstrap": "localhost:1", "topic": "events", **more.pop("kafka", {})}
    return Settings.model_validate({"kafka": kafka, **more})


def examined(examiner: Examiner, events: list[dict[str, Any]]) -> list[Examined]:
    return examiner.examine(events_of(json.dumps(events).encode())[0])


@pytest.fixture
def own(kafka: Any, tmp_path: Path) -> Iterator[Callable[..., Gateway]]:
    made: list[Gateway] = []

    def start(**more: Any) -> Gateway:
        made.append(Gateway(tmp_path, kafka, f"sqlite:///{tmp_path}/events.db", **more))
        return made[-1].start()

    yield start
    for each in made:
        each.stop()


def test_a_resend_with_a_new_time_within_the_rounding_is_no_conflict() -> None:
    examiner = Examiner(settings(fingerprint={"fields": ["s"], "timestamp": "t", "roundSeconds": 60}))
    first, again, other, later = examined(examiner, [
        {"s": 1, "v": 7, "t": "2013-11-03T06:00:00Z"}, {"s": 1, "v": 7, "t": "2013-11-03T07:00:10+01:00"},
        {"s": 1, "v": 8, "t": "2013-11-03T06:00:20Z"}, {"s": 1, "v": 7, "t": "2013-11-03T06:01:00Z"},
    ])  # fmt: skip
    assert first.key == again.key
    assert (other.fingerprint, other.payload != first.payload) == (first.fingerprint, True)
    assert later.fingerprint != first.fingerprint


def test_an_instant_written_in_another_zone_is_no_conflict() -> None:
    examiner = Examiner(settings(fingerprint={"timestamp": "t"}))
    first, again = examined(examiner, [{"t": "2013-11-03T06:00:00Z"}, {"t": "2013-11-03T07:00:00+01:00"}])
    assert first.key == again.key


@pytest.mark.parametrize("url", [
    "mysql+pymysql://me:ge/heim@localhost/db", "redis://:ge/heim@localhost:1/0", "redis://localhost:1/0?password=geheim",
    "postgresql+psycopg://me@localhost/db?sslpassword=geheim&x=1", "redis://:ge@heim@localhost:1",
])  # fmt: skip
def test_no_part_of_a_password_is_shown_however_it_is_written(url: str) -> None:
    told = shown(url)
    assert "geheim" not in told.replace("/", "").replace("@", "")
    assert "heim" not in told
    assert "localhost" in told


def test_a_url_of_redis_that_cannot_be_read_is_told_without_its_password() -> None:
    with pytest.raises(DefinitionError) as told:
        store_of("redis://:ge/heim@localhost:1/0", 60)
    assert "ge'" not in str(told.value)
    assert "percent" in str(told.value)


def test_an_event_is_not_forgotten_while_its_claim_is_held() -> None:
    with pytest.raises(ValidationError, match="longer than leaseSeconds"):
        settings(expirySeconds=20, longestResendSeconds=5, leaseSeconds=30)


def test_a_producer_that_tells_errors_only_is_refused() -> None:
    with pytest.raises(ValidationError, match=r"delivery\.report\.only\.error"):
        settings(kafka={"settings": {"delivery.report.only.error": "true"}})


@pytest.fixture(params=[*databases.kinds(), "redis"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    if request.param == "sqlite":
        yield databases.sqlite(tmp_path)
    elif request.param == "redis":
        yield request.getfixturevalue("redis")
    else:
        with databases.fresh(request.getfixturevalue(request.param)) as found:
            yield found


def test_a_claim_that_is_dropped_leaves_nothing_unless_it_is_another_s_or_further_on(url: str) -> None:
    store = store_of(url, 3600, "dropping")
    mine, his, done = (Claim(each, "hash") for each in ("mine", "his", "done"))
    store.claim([mine, done], "one", 60)
    store.claim([his], "two", 60)
    store.produced(["done"])
    store.drop(["mine", "his", "done", "not there"], "one")
    assert [store.get(each.fingerprint) is None for each in (mine, his, done)] == [True, False, False]
    assert store.claim([Claim("mine", "another hash")], "three", 60)[0].mine
    store.close()


@pytest.mark.slow
def test_the_clock_of_leases_does_not_jump_when_the_server_s_clocks_are_turned(
    own_server: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TZ", "EST5EDT,M3.2.0,M11.1.0")
    store = store_of(own_server("mariadb").url, 3600)
    for instant in (1383456600, 1383460200, 1383463800):  # 01:30 EDT, 01:30 EST, 02:30 EST
        with store._connection("read the clock") as connection:  # type: ignore[attr-defined]
            connection.exec_driver_sql(f"SET timestamp = {instant}")
            found = connection.exec_driver_sql(f"SELECT {store._dialect.now}").scalar()  # type: ignore[attr-defined]
            connection.exec_driver_sql("SET timestamp = DEFAULT")
        assert found == instant * 1000
    store.close()


@pytest.mark.slow
def test_a_sensor_that_breaks_off_leaves_no_trace_in_the_log(own: Callable[..., Gateway]) -> None:
    gateway = own()
    for _ in range(3):
        with socket.create_connection(("127.0.0.1", gateway.port)) as broken:
            broken.sendall(b'POST /events HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\n[{"sensor"')
    assert gateway.post(event(1)).status_code == 201
    gateway.stop()
    assert "Traceback" not in gateway.log


@pytest.mark.slow
def test_a_body_that_is_packed_is_refused_as_such(own: Callable[..., Gateway]) -> None:
    answer = own().post(None, json=None, content=b"\x1f\x8b", headers={"Content-Encoding": "gzip"})
    assert (answer.status_code, "gzip" in answer.json()["reason"]) == (415, True)


@pytest.mark.slow
def test_a_plain_fingerprint_is_found_under_its_own_url(own: Callable[..., Gateway]) -> None:
    gateway = own(fingerprint={"algorithm": "plain"})
    fingerprint = gateway.post(event(1, sensor="a/b ü")).json()["fingerprint"]
    assert gateway.get(f"/events/{fingerprint}").json()["status"] == "produced"
    assert [gateway.get(f"/events/{each}").status_code for each in ("%00", "%FF", "a%2Fb", "x" * 5000)] == [404] * 4


@pytest.mark.slow
def test_an_event_that_is_too_large_does_not_hold_its_fingerprint(own: Callable[..., Gateway], kafka: Any) -> None:
    gateway = own(topic=kafka.create_topic(max_message_bytes=2_000))
    assert gateway.post(event(1, text="x" * 10_000)).status_code == 422
    assert gateway.post(event(1, text="x")).status_code == 201
    assert [each.value["text"] for each in records(gateway.bootstrap, gateway.topic)] == ["x"]


HALF = b"POST /events HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n%s"


def half_bodies(port: int, count: int, size: int) -> list[socket.socket]:
    """Clients that stop before the last byte of a body, which the server has read so far."""
    slow = [socket.create_connection(("127.0.0.1", port)) for _ in range(count)]
    for each in slow:
        each.settimeout(60)
        each.sendall(HALF % (size, b" " * (size - 1)))
    return slow


@pytest.mark.slow
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


@pytest.mark.slow
def test_a_body_that_does_not_come_in_time_is_told_so_and_its_connection_closed(own: Callable[..., Gateway]) -> None:
    gateway = own(limits={"bodySeconds": 0.2})
    [slow] = half_bodies(gateway.port, 1, 1_000)
    with slow, slow.makefile("rb") as answer:
        told = answer.read()  # to the end of the connection
    assert told.startswith(b"HTTP/1.1 408") and b"within 0.2 s" in told


@pytest.mark.slow
@pytest.mark.parametrize("sent", [
    b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n",
    *(pytest.param(sent, marks=pytest.mark.whole) for sent in (b"", b"POST /events HT", b"\r\n")),
])  # fmt: skip
def test_a_connection_that_says_no_more_is_closed(own: Callable[..., Gateway], sent: bytes) -> None:
    gateway = own(limits={"idleSeconds": 0.2})
    with socket.create_connection(("127.0.0.1", gateway.port), timeout=60) as silent, silent.makefile("rb") as answer:
        silent.sendall(sent)
        answer.read()
    assert gateway.post(event(1)).status_code == 201


@pytest.mark.slow
@pytest.mark.parametrize("workers", [pytest.param(1, marks=pytest.mark.whole), 2])
def test_sigterm_ends_the_gateway_in_order_and_leaves_no_folder(
    own: Callable[..., Gateway], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, workers: int
) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path / "own"))
    (tmp_path / "own").mkdir()
    assert own(workers=workers).stop() == 0
    assert list((tmp_path / "own").glob("trident-events-*")) == []


@pytest.mark.slow
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


@pytest.mark.slow
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
from trident_py.events.producing import KafkaSink, Message
from trident_py.events.settings import KafkaSettings

async def run():
    given = {json.dumps({"bootstrap": kafka.bootstrap, "topic": kafka.create_topic()})}
    sink = KafkaSink(KafkaSettings.model_validate(given), 1000)
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
