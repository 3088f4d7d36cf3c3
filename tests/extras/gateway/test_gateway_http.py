"""What a sensor, an operator and a monitor see of the gateway."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import pytest
from gateway_process import FIELDS, Gateway, client, event, records, send, until

from trident_py.events import Fingerprint

LIMITS = {"bodyBytes": 20_000, "batch": 50}


@pytest.fixture(scope="module")
def gateway(kafka: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    folder = tmp_path_factory.mktemp("gateway")
    bloom = {"capacity": 10_000}
    with Gateway(folder, kafka, f"sqlite:///{folder}/events.db", limits=LIMITS, bloom=bloom) as started:
        yield started


@pytest.fixture
def number(request: pytest.FixtureRequest) -> int:
    """A number that no other test uses."""
    return 1_000_000 + abs(hash(request.node.name)) % 1_000_000_000


def test_an_event_is_in_kafka_under_its_fingerprint_when_it_is_acknowledged(gateway: Gateway, number: int) -> None:
    answer = gateway.post(event(number, nested={"b": [1, None, "ü"], "a": 1.5}))
    assert answer.status_code == 201
    fingerprint = Fingerprint(FIELDS).of(event(number))
    assert answer.json() == {"status": "accepted", "fingerprint": fingerprint}
    [found] = [each for each in records(gateway.bootstrap, gateway.topic) if each.key == fingerprint]
    assert found.value == event(number, nested={"a": 1.5, "b": [1, None, "ü"]})
    assert found.headers["fingerprint"] == fingerprint
    assert len(found.headers["payload"]) == 32


def test_a_resend_is_acknowledged_as_duplicate_however_it_is_written(gateway: Gateway, number: int) -> None:
    first = gateway.post(event(number))
    turned = json.dumps(dict(reversed(event(number).items())), indent=4)
    again = gateway.post(None, json=None, content=turned)
    assert (first.status_code, again.status_code) == (201, 200)
    assert again.json() == {"status": "duplicate", "fingerprint": first.json()["fingerprint"]}
    assert [each.key for each in records(gateway.bootstrap, gateway.topic)].count(again.json()["fingerprint"]) == 1
    assert f"duplicate (1): {again.json()['fingerprint']}" in gateway.log


def texts(gateway: Gateway) -> list[bytes]:
    """The bytes of all records."""
    return [each.text for each in records(gateway.bootstrap, gateway.topic)]


def test_kafka_gets_the_bytes_that_the_sensor_sent(gateway: Gateway, number: int) -> None:
    one = b'{ "sensor": "\\u00e9\xc3\xa9",\t"number": %d, "celsius": 10.50, "x": [1E2, 9007199254740993.0]}' % number
    two = b'{"number":%d,"sensor":"\\/"}' % (number + 1)
    assert gateway.post(None, json=None, content=b" \r\n" + one + b"\n ").status_code == 201
    assert gateway.post(None, json=None, content=b"[ " + one + b"\n, " + two + b" ]").status_code == 200
    assert [each for each in texts(gateway) if str(number).encode() in each] == [one]
    assert texts(gateway).count(two) == 1


@pytest.mark.parametrize("one, other", [
    ("1700000000.123456701", "1700000000.123456702"),
    *(pytest.param(one, other, marks=pytest.mark.whole) for one, other in [
        ("9007199254740993.0", "9007199254740992.0"),
        ("1e-400", "0.0"),
        ("0.1000000000000000055511151231257827", "0.1"),
    ]),
])  # fmt: skip
def test_events_whose_numbers_a_float_folds_are_two_events(
    own: Callable[..., Gateway], one: str, other: str
) -> None:
    gateway = own(fingerprint={"fields": None, "timestamp": "time"}, event={"optional": {"time": "number"}})
    body = b'{"sensor": "a", "number": 1, "celsius": %s, "time": %s}'
    bodies = [body % (each.encode(), b"1") for each in (one, other)]
    bodies += [body % (b"1", b"1.%d" % at) for at in (123456701, 123456702)]
    codes = [gateway.post(None, json=None, content=each).status_code for each in (*bodies, *bodies)]
    assert codes == [201] * 4 + [200] * 4
    assert sorted(texts(gateway)) == sorted(bodies)


def test_another_event_with_the_same_fingerprint_is_a_conflict_and_is_not_produced(
    gateway: Gateway, number: int
) -> None:
    first = gateway.post(event(number))
    other = gateway.post(event(number, celsius=99))
    assert (other.status_code, other.json()["status"]) == (409, "conflict")
    assert "fingerprint" in other.json()["reason"]
    [found] = [each for each in records(gateway.bootstrap, gateway.topic) if each.key == first.json()["fingerprint"]]
    assert found.value == event(number)
    assert f"conflict (1): {first.json()['fingerprint']}" in gateway.log


def test_many_events_are_answered_one_by_one(gateway: Gateway, number: int) -> None:
    known = gateway.post(event(number)).json()["fingerprint"]
    body = [event(number), event(number + 1), {"sensor": "x"}, event(number + 1), event(number + 1, celsius=3), 7]
    answer = gateway.post(body)
    assert answer.status_code == 200
    results = answer.json().pop("results")
    expected = ["duplicate", "accepted", "invalid", "duplicate", "conflict", "invalid"]
    assert [each["status"] for each in results] == expected
    assert results[0]["fingerprint"] == known
    assert results[2]["reason"] == "number: is missing; an event needs: sensor, number"
    assert results[5]["reason"] == "an event is a JSON object, found a number"
    counts = {name: answer.json()[name] for name in ("accepted", "duplicate", "conflict", "invalid")}
    assert counts == {"accepted": 1, "duplicate": 2, "conflict": 1, "invalid": 2}


def test_of_two_events_with_one_fingerprint_in_a_request_the_store_decides_which_came_first(
    gateway: Gateway, number: int
) -> None:
    assert gateway.post(event(number, celsius=1)).status_code == 201
    answer = gateway.post([event(number, celsius=2), event(number, celsius=1), event(number, celsius=3)])
    assert [each["status"] for each in answer.json()["results"]] == ["conflict", "duplicate", "conflict"]


@pytest.mark.parametrize("body, code, reason", [
    (b"{", 400, "not JSON"),
    (b"", 400, "not JSON"),
    (b'{"sensor": "a", "number": NaN}', 400, "NaN"),
    (b'\xff\xfe{"', 400, "not JSON"),
    (b"[" * 9_000, 400, "not JSON"),
    (b"[]", 422, "empty"),
    (b"3", 422, "an event is a JSON object"),
    (b"null", 422, "an event is a JSON object, found null"),
    (b'{"sensor": "a"}', 422, "number: is missing; an event needs: sensor, number"),
    (b'{"sensor": 1, "number": true}', 422, "sensor: found a number; expected a string; number: found true or false"),
    (b'{"sensor": "a", "number": "1"}', 422, "number: found a string; expected an integer"),
    (b'{"sensor": "a", "number": 1, "celsius": "warm"}', 422, "celsius: found a string; expected a number or null"),
    (b'{"sensor": "\\ud800", "number": 1}', 422, "UTF-8"),
    (b'{"sensor": "a", "number": 1, "celsius": 1e999}', 422, "celsius"),
    (b'{"sensor": "a", "number": 1, "number": 2}', 422, "the event has the key 'number' twice"),
    (b'{"sensor": "a", "number": 1, "more": [{"x": 1, "x": 1}]}', 422, "field 'more[0]' has the key 'x' twice"),
    (b'{"sensor": "a", "number": 1, "celsius": -0}', 422, "field 'celsius' is -0.0"),
    (b'[{"sensor": "a"} 1]', 400, "Expecting ',' delimiter"),
    (b'{"sensor": "a"} 1', 400, "Extra data"),
    (b" " * 20_001, 413, "longer than 20000 bytes"),
    (json.dumps([event(1)] * 51).encode(), 413, "51 events in one request; send at most 50"),
])  # fmt: skip
def test_what_cannot_be_taken_is_refused_with_a_reason(gateway: Gateway, body: bytes, code: int, reason: str) -> None:
    answer = gateway.post(None, json=None, content=body)
    assert (answer.status_code, reason in answer.json()["reason"]) == (code, True), answer.text


def test_a_body_without_a_length_is_cut_off_at_the_limit(gateway: Gateway) -> None:
    def endless() -> Iterator[bytes]:
        for _ in range(100):
            yield b" " * 1_000

    try:
        assert gateway.post(None, json=None, content=endless()).status_code == 413
    except httpx.TransportError as error:  # the answer came and the connection went while the client was writing
        assert isinstance(error, httpx.WriteError | httpx.ReadError | httpx.RemoteProtocolError)


def test_how_far_an_event_got_can_be_asked(gateway: Gateway, number: int) -> None:
    fingerprint = gateway.post(event(number)).json()["fingerprint"]
    found = gateway.get(f"/events/{fingerprint}").json()
    assert (found["fingerprint"], found["status"], found["outcome"]) == (fingerprint, "produced", None)
    assert found["created"] <= found["changed"]
    assert "owner" not in found
    unknown = gateway.get("/events/unknown")
    assert (unknown.status_code, "never arrived" in unknown.json()["reason"]) == (404, True)


def test_the_numbers_are_told_to_prometheus(gateway: Gateway, number: int) -> None:
    def numbers() -> dict[str, float]:
        lines = [line for line in gateway.get("/metrics").text.splitlines() if not line.startswith("#")]
        return {name: float(value) for name, value in (line.rsplit(" ", 1) for line in lines)}

    before = numbers()
    for body in (event(number), event(number), event(number, celsius=1), {"number": 1}):
        gateway.post(body)
    after = numbers()
    counted = ("received", "accepted", "duplicate", "conflict", "invalid", "retry")
    assert [after[f"trident_events_{name}_total"] - before[f"trident_events_{name}_total"] for name in counted] == [
        4, 1, 1, 1, 1, 0,
    ]  # fmt: skip
    for step in ("request", "claim", "kafka", "status"):
        assert after[f'trident_events_seconds_count{{step="{step}"}}'] > 0
    assert after['trident_events_errors_total{where="kafka"}'] == 0


def test_the_service_describes_itself(gateway: Gateway) -> None:
    found = gateway.get("/openapi.json").json()
    assert set(found["paths"]) == {"/events", "/events/{fingerprint}", "/healthz", "/metrics"}
    codes = {"200", "201", "400", "408", "409", "413", "415", "422", "503"}
    assert set(found["paths"]["/events"]["post"]["responses"]) == codes
    assert gateway.get("/docs").status_code == 200
    assert gateway.get("/healthz").json() == {"store": "ok", "kafka": "ok"}


@pytest.fixture
def own(kafka: Any, tmp_path: Path) -> Iterator[Callable[..., Gateway]]:
    made: list[Gateway] = []

    def start(healthy: bool = True, **settings: Any) -> Gateway:
        made.append(Gateway(tmp_path, kafka, f"sqlite:///{tmp_path}/events.db", **settings))
        return made[-1].start(healthy=healthy)

    yield start
    for each in made:
        each.stop()


def test_a_store_that_is_busy_makes_the_sensor_come_again_and_the_event_is_taken_behind_it(
    own: Callable[..., Gateway], tmp_path: Path
) -> None:
    gateway = own(answerSeconds=0.5, leaseSeconds=30, limits={"inFlight": 3})
    busy = sqlite3.connect(tmp_path / "events.db", isolation_level=None)
    busy.execute("BEGIN IMMEDIATE")
    late = gateway.post([event(1), event(2), event(3)])
    assert (late.status_code, {each["status"] for each in late.json()["results"]}) == (503, {"retry"})
    full = gateway.post(event(4))
    assert (full.status_code, full.headers["Retry-After"]) == (503, "1")
    assert full.json()["reason"] == "3 events are in flight, of at most 3"
    busy.execute("COMMIT")
    busy.close()
    until(lambda: len(records(gateway.bootstrap, gateway.topic)) == 3, gateway)
    again = send([gateway.url], [event(1), event(2), event(3)])
    assert {each["status"] for each in again.last["results"]} == {"duplicate"}


def test_a_resend_while_the_first_is_on_its_way_waits_and_is_not_produced_twice(
    own: Callable[..., Gateway], tmp_path: Path
) -> None:
    gateway = own(leaseSeconds=30, answerSeconds=1)
    busy = sqlite3.connect(tmp_path / "events.db", isolation_level=None, check_same_thread=False)
    busy.execute("BEGIN IMMEDIATE")
    gateway.post(event(0))  # answered when its time is over; it keeps the store busy, so that the others go together

    def post(_: int) -> int:
        with client() as http:
            return http.post(f"{gateway.url}/events", json=event(1)).status_code

    with ThreadPoolExecutor(8) as threads:
        answers = [threads.submit(post, each) for each in range(8)]
        until(lambda: 'trident_events_seconds_count{step="request"} 1.0' in gateway.get("/metrics").text, gateway)
        busy.execute("COMMIT")
        codes = sorted(each.result() for each in answers)
    busy.close()
    assert codes.count(201) == 1
    assert set(codes) <= {200, 201, 503}
    assert [each.value["number"] for each in records(gateway.bootstrap, gateway.topic)].count(1) == 1


def test_a_resend_may_differ_in_the_fields_that_are_left_out(own: Callable[..., Gateway]) -> None:
    gateway = own(fingerprint={"without": ["attempt"]})
    codes = [gateway.post(event(1, attempt=each)).status_code for each in range(3)]
    assert codes == [201, 200, 200]
    assert gateway.post(event(1, celsius=99, attempt=3)).status_code == 409


def test_a_topic_that_is_missing_is_told_and_nothing_is_acknowledged(own: Callable[..., Gateway]) -> None:
    gateway = own(healthy=False, topic="missing")
    assert gateway.get("/healthz").json() == {
        "store": "ok", "kafka": "topic 'missing': UNKNOWN_TOPIC_OR_PART",
    }  # fmt: skip
    answer = gateway.post(event(1))
    assert (answer.status_code, answer.json()["status"]) == (503, "retry")


def test_an_event_that_kafka_finds_too_large_is_refused_for_good(own: Callable[..., Gateway], kafka: Any) -> None:
    gateway = own(topic=kafka.create_topic(max_message_bytes=2_000))
    answer = gateway.post(event(1, text="x" * 10_000))
    assert (answer.status_code, answer.json()["status"]) == (422, "invalid")
    assert "is too large for Kafka" in answer.json()["reason"]
    assert gateway.post(event(2)).status_code == 201
