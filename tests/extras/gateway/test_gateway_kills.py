"""The gateway, Kafka and the store are killed at every step; sensors resend until they see an ACK."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psutil
import pytest
from gateway_process import FIELDS, STARTED, Gateway, Record, Sent, client, event, records, send, until

from states.sql import InsertIgnoreState, RowUpdater
from trident_py import LocalCluster, TridentTopology
from trident_py.events import Fingerprint, ProcessedState, ProcessedUpdater
from trident_py.extras.gateway.canonical import payload_hash
from trident_py.extras.gateway.claims import Claim
from trident_py.extras.gateway.stores import store_of
from trident_py.testing import FixedBatchSpout

IN_A_REQUEST = 5
REQUESTS = 6
KILLED_IN = 3


@pytest.fixture
def gateways(tmp_path: Path) -> Iterator[Callable[..., Gateway]]:
    """``gateways(kafka, store=...)``: not started; stopped after the test."""
    made: list[Gateway] = []

    def make(broker: Any, store: str = f"sqlite:///{tmp_path}/events.db", **settings: Any) -> Gateway:
        made.append(Gateway(tmp_path, broker, store, **settings))
        return made[-1]

    yield make
    for each in made:
        each.stop()


def requests(count: int = REQUESTS) -> list[list[dict[str, Any]]]:
    return [[event(IN_A_REQUEST * n + each) for each in range(IN_A_REQUEST)] for n in range(count)]


def fingerprint_of(each: dict[str, Any]) -> str:
    return Fingerprint(FIELDS).of(each)


def stored(found: Sequence[Record], url: str, claims: str) -> dict[str, tuple[Any, ...]]:
    """The topology behind Kafka: rows under the fingerprint, then the events' status."""
    columns = ["fingerprint string", "sensor string", "number bigint"]
    rows = InsertIgnoreState(url, "readings", "fingerprint string", columns)
    topology = TridentTopology()
    tuples = [[each.key, each.value["sensor"], each.value["number"]] for each in found]
    spout = FixedBatchSpout(columns, 7, *tuples)
    stream = topology.newStream("events", spout)
    stream.partitionPersist(rows, ["fingerprint", "sensor", "number"], RowUpdater())
    stream.partitionPersist(ProcessedState(claims), ["fingerprint"], ProcessedUpdater())
    with LocalCluster() as cluster:
        assert cluster.submitTopology("events", {}, topology.build()).awaitTermination(30)
    return {key[0]: row for key, row in rows.stored().items()}


@pytest.mark.parametrize("step, in_kafka", [
    ("received", 1), ("claimed", 1), ("produced", None), ("delivered", 2), ("kept", 1),
])  # fmt: skip
def test_a_gateway_killed_at_a_step_loses_nothing_and_doubles_nothing(
    gateways: Callable[..., Gateway], kafka: Any, tmp_path: Path, step: str, in_kafka: int | None
) -> None:
    gateway = gateways(kafka)
    gateway.start(kill_at=step, call=KILLED_IN)
    answers: list[Sent] = []
    sensor = threading.Thread(target=lambda: answers.extend(send([gateway.url], body) for body in requests()))
    sensor.start()
    until(lambda: gateway.dead, gateway)
    gateway.start()
    sensor.join()

    assert [None in sent.codes for sent in answers] == [n == KILLED_IN - 1 for n in range(REQUESTS)]
    known = "accepted" if step != "kept" else "duplicate"  # the sensor saw no ACK, and gets one now
    assert {each["status"] for each in answers[KILLED_IN - 1].last["results"]} == {known}

    found = records(gateway.bootstrap, gateway.topic)
    sent = {fingerprint_of(each): each for body in requests() for each in body}
    assert {each.key: each.value for each in found} == sent
    counts = Counter(each.key for each in found)
    killed = {fingerprint_of(each) for each in requests()[KILLED_IN - 1]}
    assert {key: count for key, count in counts.items() if key not in killed} == dict.fromkeys(set(sent) - killed, 1)
    assert {counts[key] for key in killed} <= ({1, 2} if in_kafka is None else {in_kafka})

    rows = stored(found, f"sqlite:///{tmp_path}/rows.db", f"sqlite:///{tmp_path}/events.db")
    assert rows == {key: (each["sensor"], each["number"]) for key, each in sent.items()}
    assert {gateway.get(f"/events/{key}").json()["status"] for key in sent} == {"processed"}


@contextmanager
def sensors(gateway: Gateway) -> Iterator[list[Sent]]:
    """Four sensors send within the block; the list grows by what was acknowledged."""
    answers: list[Sent] = []
    ended, taking = threading.Event(), threading.Lock()
    bodies = iter(requests(2_000))

    def sensor() -> None:
        while not ended.is_set():
            with taking:
                body = next(bodies)
            answers.append(send([gateway.url], body))

    with ThreadPoolExecutor(4) as threads:
        running = [threads.submit(sensor) for _ in range(4)]
        try:
            until(lambda: len(answers) > 20, gateway)
            yield answers
            before = len(answers)
            until(lambda: len(answers) > before + 20, gateway)
        finally:
            ended.set()
        for each in running:
            each.result()


def away(gateway: Gateway, harm: Callable[[], Any], repair: Callable[[], Any]) -> list[Sent]:
    """While sensors send, something is away until the gateway has told it."""
    with sensors(gateway) as answers:
        harm()
        until(lambda: gateway.post(event(-1)).status_code == 503, gateway)
        until(lambda: gateway.get("/healthz").status_code == 503, gateway)
        repair()
    return answers


def whole(gateway: Gateway, answers: list[Sent], codes: set[int | None]) -> None:
    """All that was acknowledged is in Kafka, at most twice; nothing else is, but for the probe. No other codes came."""
    found = records(gateway.bootstrap, gateway.topic)
    acknowledged = {each["fingerprint"] for sent in answers for each in sent.last["results"]}
    counts = Counter(each.key for each in found if each.value["number"] >= 0)
    assert set(counts) == acknowledged
    assert max(counts.values()) <= 2
    assert {code for sent in answers for code in sent.codes} <= codes


def test_while_kafka_is_away_sensors_are_told_to_come_again_and_nothing_is_lost(
    gateways: Callable[..., Gateway], own_kafka: Callable[..., Any]
) -> None:
    broker = own_kafka()
    gateway = gateways(broker, kafka={"deliverySeconds": 3}, leaseSeconds=4, answerSeconds=1).start()
    answers = away(gateway, broker.kill, broker.restart)
    whole(gateway, answers, {200, 503})


@pytest.mark.parametrize("kind", ["mysql", "redis"])
def test_while_the_store_is_away_sensors_are_told_to_come_again_and_nothing_is_lost(
    gateways: Callable[..., Gateway], kafka: Any, own_server: Callable[..., Any], kind: str
) -> None:
    server = own_server(kind)
    gateway = gateways(kafka, server.url, answerSeconds=1).start()
    answers = away(gateway, server.kill, server.start)
    whole(gateway, answers, {200, 503})


@pytest.mark.whole("test_two_workers_of_one_gateway_take_each_event_once_and_count_together")
def test_a_worker_that_is_killed_is_replaced_and_nothing_is_lost(
    gateways: Callable[..., Gateway], kafka: Any
) -> None:
    gateway = gateways(kafka, workers=2).start()
    assert gateway.process is not None
    children = psutil.Process(gateway.process.pid).children()
    worker = next(each for each in children if "spawn_main" in " ".join(each.cmdline()))
    with sensors(gateway) as answers:
        worker.kill()
        until(lambda: gateway.log.count(STARTED) == 3, gateway)
    whole(gateway, answers, {200, 503, None})


def test_of_two_gateways_that_get_a_resend_after_the_lease_one_takes_it_over(
    gateways: Callable[..., Gateway], kafka: Any, tmp_path: Path
) -> None:
    one = gateways(kafka).start()
    two = gateways(kafka, topic=one.topic).start()
    store = store_of(f"sqlite:///{tmp_path}/events.db")
    due = [event(number) for number in range(40)]
    store.claim([Claim(fingerprint_of(each), payload_hash(each)) for each in due], "a dead one", -1.0)
    store.close()
    start = threading.Barrier(2)

    def resend(gateway: Gateway) -> list[int]:
        with client() as http:
            codes = []
            for each in due:
                start.wait()
                codes.append(http.post(f"{gateway.url}/events", json=each).status_code)
            return codes

    with ThreadPoolExecutor(2) as threads:
        found = list(zip(*threads.map(resend, [one, two]), strict=True))
    assert {tuple(sorted(pair)) for pair in found} <= {(201, 503), (200, 201)}
    assert Counter(each.key for each in records(one.bootstrap, one.topic)) == Counter(map(fingerprint_of, due))
    taken = [line for each in (one, two) for line in each.get("/metrics").text.splitlines()
             if line.startswith("trident_events_taken_over_total")]  # fmt: skip
    assert sum(float(line.split()[1]) for line in taken) == 40


def test_two_workers_of_one_gateway_take_each_event_once_and_count_together(
    gateways: Callable[..., Gateway], kafka: Any
) -> None:
    gateway = gateways(kafka, workers=2).start()
    with ThreadPoolExecutor(6) as threads:
        bodies = [body for body in requests(30) for _ in range(3)]
        answers = list(threads.map(lambda body: send([gateway.url], body), bodies))
    accepted = sum(each["status"] == "accepted" for sent in answers for each in sent.last["results"])
    found = records(gateway.bootstrap, gateway.topic)
    assert len(found) == len({each.key for each in found}) == 30 * IN_A_REQUEST >= accepted
    assert f"trident_events_accepted_total {30 * IN_A_REQUEST}.0" in gateway.get("/metrics").text
    assert gateway.log.count(STARTED) == 2
    assert gateway.stop() == 0
