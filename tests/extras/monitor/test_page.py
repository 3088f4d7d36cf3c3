"""A run with ``topology.http``: what the interface and the metrics say is what the events say."""

from __future__ import annotations

import base64
import contextlib
import http.client
import itertools
import json
import logging
import math
import re
import socket
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from datetime import datetime
from typing import Any

import pytest
from click.testing import CliRunner

from states.sql import SqlMapState
from trident_py import DefinitionError, Fields, LocalCluster, TridentTopology
from trident_py.cli import trident
from trident_py.cli.display import now
from trident_py.errors import FailedException, TopologyError
from trident_py.extras.event_lines.lines import EventLines
from trident_py.extras.monitor import app, timeline
from trident_py.extras.monitor.monitor import TOKEN, address_of_page
from trident_py.extras.monitor.views import configuration
from trident_py.metrics import AssignableMetric, CountMetric
from trident_py.operations import BaseFunction
from trident_py.operations.builtin import Count
from trident_py.spouts import IBatchSpout
from trident_py.state import BaseStateUpdater
from trident_py.testing import FeederBatchSpout, MemoryMapState

from .runs import FIELDS, counting, fetch, get, samples, until

Run = Callable[..., Any]


@pytest.fixture
def feeder() -> FeederBatchSpout:
    return FeederBatchSpout(FIELDS)


@pytest.fixture
def run(feeder: FeederBatchSpout) -> Iterator[Run]:
    """``run(topology, **settings)``: a run with a page on a free port; that of words, if no topology is given."""
    with LocalCluster() as cluster:

        def submit(topology: TridentTopology | None = None, **settings: Any) -> Any:
            conf = {"topology.http": 0} | {key.replace("__", "."): value for key, value in settings.items()}
            return cluster.submitTopology("words count", conf, (topology or counting(feeder)).build())

        yield submit


class Kept(BaseStateUpdater):
    def updateState(self, state: Any, tuples: Any, collector: Any) -> None:
        pass


def shown(running: Any) -> Any:
    """What Storm's interface says of the topology."""
    (head,) = get(running.http, "/api/v1/topology/summary")[1]["topologies"]
    return get(running.http, f"/api/v1/topology/{head['id']}")[1]


def act(running: Any, action: str, body: str | None = None, **headers: str) -> tuple[int, Any]:
    return get(running.http, f"/api/v1/topology/{shown(running)['id']}/{action}", "POST", body, **headers)


def told(running: Any) -> Counter[str]:
    return Counter(event.kind for event in running.events)


# -- what it says -----------------------------------------------------------------------------------------------------


def test_a_run_that_commits_replays_and_waits_says_what_its_events_say(run: Run, feeder: FeederBatchSpout) -> None:
    running = run()
    feeder.feed([("a",), ("b",), ("a",)])
    feeder.feed([("bad tuple",), ("b",)])
    feeder.feed([("c",)])
    until(lambda: told(running)["committed"] == 3)
    found, progress = shown(running), running.progress["words"]
    assert (found["name"], found["status"]) == ("words count", "ACTIVE")
    (spout,), (state,) = found["spouts"], found["states"]
    assert (spout["spoutId"], spout["emitted"], spout["type"]) == ("words", 6, "FeederBatchSpout")
    assert "backlog" not in spout  # a feeder cannot tell
    assert (state["state"], state["kind"], state["lastTxid"]) == ("counts", "opaque", 3)
    assert state["rows"] == progress.persisted["counts"] == 5  # the keys of each batch
    (promised,) = counting(feeder).build().guarantees()
    assert (state["guarantee"], state["reason"]) == (promised.guarantee, promised.reason)
    assert (found["topologyStats"][0]["emitted"], found["topologyStats"][0]["failed"]) == (6, 1)
    batches = get(running.http, "/api/batches")[1]["batches"]
    assert [each["txid"] for each in batches] == [1, 2, 3]
    assert [[attempt["outcome"] for attempt in each["attempts"]] for each in batches] == [
        ["committed"], ["replay", "committed"], ["committed"],
    ]  # fmt: skip
    assert [each["emitted"]["words"] for each in batches] == [3, 2, 1]
    assert "bad tuple" in batches[1]["attempts"][0]["reason"]
    assert batches[2]["seconds"] == pytest.approx(progress.seconds)
    events = get(running.http, "/api/events")[1]["events"]
    assert [(each["event"], each["txid"], each["attempt"], each["reason"]) for each in events] == running.events
    assert [each["txid"] for each in get(running.http, "/api/events?event=replay")[1]["events"]] == [2]
    assert len(get(running.http, "/api/batches?limit=2")[1]["batches"]) == 2


def test_the_phases_of_a_batch_are_all_of_its_time(run: Run, feeder: FeederBatchSpout) -> None:
    running = run()
    feeder.feed([("a",)])
    (batch,) = until(lambda: [each for each in get(running.http, "/api/batches")[1]["batches"] if each["ended"]])
    (attempt,) = batch["attempts"]
    named = {(each["phase"], each["state"]) for each in attempt["phases"]}
    assert named == {("describe", ""), ("emit", ""), ("execute", ""), ("commit", "counts"), ("finish", "")}
    assert attempt["where"] == "driver"
    began, ended = (datetime.fromisoformat(attempt[each]).timestamp() for each in ("began", "ended"))
    assert sum(each["seconds"] for each in attempt["phases"]) == pytest.approx(ended - began, abs=0.002)  # of a clock


def test_the_metrics_are_those_of_the_events(run: Run, feeder: FeederBatchSpout) -> None:
    running = run()
    for batch in ([("a",), ("b",)], [("bad",)], [("c",)]):
        feeder.feed(batch)
    until(lambda: told(running)["committed"] == 3)
    found, progress = samples(running.http), running.progress["words"]
    assert found["trident_txid{component=words}"] == progress.txid == 3
    assert found["trident_batches_total{component=words,outcome=committed}"] == told(running)["committed"] == 3
    assert found["trident_batches_total{component=words,outcome=replay}"] == told(running)["replay"] == 1
    assert found["trident_attempts_total{component=words}"] == 4
    assert found["trident_tuples_total{spout=words}"] == progress.emitted["words"] == 4
    assert found["trident_rows_total{outcome=persisted,state=counts}"] == progress.persisted["counts"] == 4
    for phase in ("emit", "process", "commit"):
        assert found[f"trident_batch_seconds_count{{component=words,phase={phase}}}"] == 3
        assert found[f"trident_batch_seconds_bucket{{component=words,le=+Inf,phase={phase}}}"] == 3
        assert found[f"trident_batch_seconds_sum{{component=words,phase={phase}}}"] > 0
    (*_, last) = get(running.http, "/api/events?event=committed")[1]["events"]
    at = datetime.fromisoformat(last["time"]).timestamp()
    assert found["trident_last_commit_timestamp_seconds{component=words}"] == pytest.approx(at, abs=5)
    assert "trident_backlog{spout=words}" not in found


class Counted(BaseFunction):
    def prepare(self, conf: dict, context: Any) -> None:
        self.seen = context.registerMetric("seen", CountMetric(), 60)

    def execute(self, tuple: Any, collector: Any) -> None:
        self.seen.incr()
        collector.emit([1])


def test_metrics_of_user_code_and_backlogs_are_there_if_they_can_be_told(run: Run) -> None:
    feeder, topology = FeederBatchSpout(FIELDS), TridentTopology()
    topology.newStream("words", feeder).each("word", Counted(), "one").peek(lambda _: None)
    running = run(topology)
    feeder.feed([("a",), ("b",)])
    running.progress["words"].backlog = {"words": {"0": 3, "1": 4}}
    found = until(lambda: samples(running.http))
    assert (found["trident_user{component=words,field=0,name=seen}"], found["trident_backlog{spout=words}"]) == (2, 7)


class Measured(BaseFunction):
    def prepare(self, conf: dict, context: Any) -> None:
        self.mean = context.registerMetric("mean", AssignableMetric(), 60)

    def execute(self, tuple: Any, collector: Any) -> None:
        self.mean.setValue({("a", 1): math.nan})


def test_a_metric_that_json_cannot_hold_leaves_the_page_alone(run: Run) -> None:
    feeder, topology = FeederBatchSpout(FIELDS), TridentTopology()
    topology.newStream("words", feeder).each("word", Measured(), "one")
    running = run(topology)
    feeder.feed([("a",)])
    until(lambda: samples(running.http)["trident_batches_total{component=words,outcome=committed}"])
    assert "\"metrics\": {\"mean\": {\"0\": {\"('a', 1)\": null}}}" in json.dumps(shown(running))


class Unusual(BaseFunction):
    def prepare(self, conf: dict, context: Any) -> None:
        self.all = context.registerMetric("half\ud800", AssignableMetric(), 60)

    def execute(self, tuple: Any, collector: Any) -> None:
        self.all.setValue({"long": 10**400, "a.b": 1, "a": {"b": 2}})


def test_a_metric_that_prometheus_cannot_hold_leaves_the_others(run: Run) -> None:
    feeder, topology = FeederBatchSpout(FIELDS), TridentTopology()
    topology.newStream("words", feeder).each("word", Unusual(), "one")
    running = run(topology)
    feeder.feed([("a",)])
    until(lambda: samples(running.http)["trident_batches_total{component=words,outcome=committed}"])
    users = {name: value for name, value in samples(running.http).items() if name.startswith("trident_user")}
    assert users == {"trident_user{component=words,field=0.a.b,name=half\\ud800}": 2}


def test_generations_are_those_of_the_states(run: Run, tmp_path: Any) -> None:
    feeder, topology = FeederBatchSpout(FIELDS), TridentTopology()
    state = SqlMapState.opaque(f"sqlite:///{tmp_path}/c.db", "counts", "word string", "n bigint")
    topology.newStream("words", feeder).groupBy("word").persistentAggregate(state, Count(), "n", stateName="counts")
    running = run(topology)
    feeder.feed([("a",)])
    assert samples(running.http)["trident_generation{state=counts}"] == 1
    (found,) = shown(running)["states"]
    assert found["generation"] == 1 and found["size"] >= 4096  # a page of SQLite's


def test_a_page_that_is_open_is_told_the_sizes(run: Run, feeder: FeederBatchSpout, tmp_path: Any) -> None:
    topology = TridentTopology()
    state = SqlMapState.opaque(f"sqlite:///{tmp_path}/c.db", "counts", "word string", "n bigint")
    topology.newStream("words", feeder).groupBy("word").persistentAggregate(state, Count(), "n", stateName="counts")
    running = run(topology)
    until(lambda: told(running)["started"])
    with contextlib.closing(http.client.HTTPConnection(running.http.removeprefix("http://"), timeout=30)) as connection:
        connection.request("GET", "/api/stream")
        lines = (line for line in connection.getresponse() if line.startswith(b"data: "))
        assert any(json.loads(line[6:])["states"][0]["size"] for line in itertools.islice(lines, 20))
        feeder.close()


# -- health -----------------------------------------------------------------------------------------------------------


def test_it_is_alive_and_ready_while_it_commits_or_is_idle(run: Run, feeder: FeederBatchSpout) -> None:
    running = run()
    assert get(running.http, "/healthz") == (200, "alive\n")
    until(lambda: get(running.http, "/readyz") == (200, "ready\n"))
    feeder.feed([("a",)])
    assert get(running.http, "/readyz") == (200, "ready\n")


def test_a_batch_that_does_not_end_is_not_ready(run: Run) -> None:
    go, feeder, topology = threading.Event(), FeederBatchSpout(FIELDS), TridentTopology()
    topology.newStream("words", feeder).map(lambda word: (go.wait(30), word)[1]).peek(lambda _: None)
    running = run(topology, topology__http__ready__seconds=0.2)
    feeder.feed([("a",)], wait=False)
    status, text = until(lambda: "txid" in (found := get(running.http, "/readyz"))[1] and found)  # it has started
    assert text.startswith("words: txid 1 is not committed; ") and status == 503
    assert get(running.http, "/healthz")[0] == 200
    go.set()
    until(lambda: get(running.http, "/readyz")[0] == 200)


def test_a_start_that_waits_for_a_store_says_for_which_and_can_be_stopped(run: Run) -> None:
    feeder, topology = FeederBatchSpout(FIELDS), TridentTopology()
    state = SqlMapState.opaque("postgresql+psycopg://nobody:s3cret@127.0.0.1:9/none", "counts", "word string")
    topology.newStream("words", feeder).groupBy("word").persistentAggregate(state, Count(), "n", stateName="counts")
    running = run(topology)
    until(lambda: told(running)["waiting"])
    found = shown(running)["diagnosis"]
    assert found["kind"] == "waiting" and found["sentence"].startswith("waiting for state counts, up to ")
    status, text = get(running.http, "/readyz")
    assert status == 503 and "waiting for state counts" in text
    assert "s3cret" not in text + json.dumps(shown(running)) + fetch(running.http, "/api/topology.txt")[2]
    assert act(running, "kill/0")[0] == 200 and running.awaitTermination(60)


# -- the page ---------------------------------------------------------------------------------------------------------


def test_the_page_loads_nothing_from_elsewhere(run: Run) -> None:
    status, kind, page = fetch(run().http, "/")
    assert (status, kind) == (200, "text/html; charset=utf-8")
    assert "http://" not in page and "https://" not in page and "src=" not in page and "@import" not in page
    for part in ('lang="en"', 'name="viewport"', 'aria-live="polite"', "<h1", "<h2", "<button", "prefers-color-scheme"):
        assert part in page
    assert "innerHTML" not in page and "insertAdjacentHTML" not in page and "document.write" not in page


def test_the_page_runs_its_own_script_only(run: Run) -> None:
    running = run()
    connection = http.client.HTTPConnection(running.http.removeprefix("http://"))
    connection.request("GET", "/")
    headers = connection.getresponse().headers
    connection.close()
    policy = headers["content-security-policy"]
    assert "default-src 'none'" in policy and "script-src 'sha256-" in policy and "frame-ancestors 'none'" in policy
    assert (headers["cache-control"], headers["x-content-type-options"]) == ("no-store", "nosniff")


def test_the_stream_tells_each_change_and_the_end(run: Run, feeder: FeederBatchSpout) -> None:
    running = run()
    connection = http.client.HTTPConnection(running.http.removeprefix("http://"), timeout=30)
    connection.request("GET", "/api/stream")
    response = connection.getresponse()
    assert response.headers["content-type"].startswith("text/event-stream")
    told = (json.loads(line[6:]) for line in response if line.startswith(b"data: "))
    said = [next(told)]
    feeder.feed([("a",)])
    feeder.close()
    said += told
    connection.close()
    assert (said[0]["over"], said[-1]["over"]) == (False, True)
    assert said[-1]["diagnosis"] == {"kind": "ended", "sentence": "ended after txid 1"}
    assert [each["txid"] for each in said[-1]["batches"]] == [1]


def test_the_topology_is_drawn_or_told(run: Run) -> None:
    running = run()
    status, kind, picture = fetch(running.http, "/api/topology.svg")
    assert status == 404 or (kind == "image/svg+xml" and "<svg" in picture and "words" in picture)
    assert "spout words: FeederBatchSpout" in get(running.http, "/api/topology.txt")[1]


def test_secrets_do_not_appear() -> None:
    conf = {"db.password": "s3", "my.url": "mysql://me:s3cret@h/db", "kafka": {"sasl.password": "s3", "n": 1},
            "list": ["token=s3", True], "object": object}  # fmt: skip
    found = configuration(conf)
    assert "s3" not in json.dumps(found) and found["kafka"]["n"] == 1 and found["list"][1] is True


def test_a_reason_hides_its_secrets_and_stays_text(run: Run, feeder: FeederBatchSpout) -> None:
    running = run()
    feeder.feed([("bad <script>alert(1)</script> mysql://me:s3cret@h/db",)])
    until(lambda: told(running)["committed"] == 1)
    for path in ("/api/events", "/api/batches"):
        _, kind, text = fetch(running.http, path)
        assert kind == "application/json" and "<script>alert(1)</script>" in text and "s3cret" not in text


def test_two_components_are_told_apart(run: Run) -> None:
    one, other, topology = FeederBatchSpout(FIELDS), FeederBatchSpout(FIELDS), TridentTopology()
    topology.newStream("one", one).peek(lambda _: None)
    topology.newStream("other", other).peek(lambda _: None)
    running = run(topology)
    one.feed([("a",), ("b",)])
    other.feed([("c",)])
    other.feed([("d",)])
    until(lambda: running.txids == {"one": 1, "other": 2})
    found = samples(running.http)
    assert [found[f"trident_txid{{component={name}}}"] for name in ("one", "other")] == [1, 2]
    assert [found[f"trident_tuples_total{{spout={name}}}"] for name in ("one", "other")] == [2, 2]
    batches = get(running.http, "/api/batches?component=other")[1]["batches"]
    assert [each["txid"] for each in batches] == [1, 2]


# -- what may be done -------------------------------------------------------------------------------------------------


def test_a_pause_begins_no_batch_until_it_goes_on(run: Run, feeder: FeederBatchSpout) -> None:
    running = run()
    feeder.feed([("a",)])
    assert act(running, "deactivate")[1]["topologyOperation"] == "deactivate"
    until(running.inactive.is_set)
    feeder.feed([("b",)], wait=False)
    until(lambda: shown(running)["diagnosis"]["kind"] == "paused")
    assert not running.awaitTermination(0.3) and running.txid == 1
    assert shown(running)["status"] == "INACTIVE" and get(running.http, "/readyz")[0] == 200
    assert act(running, "activate")[0] == 200
    until(lambda: running.txid == 2)
    assert [kind for kind in told(running) if "activated" in kind] == ["deactivated", "activated"]


@pytest.mark.parametrize("paused", [False, True])
def test_a_stop_ends_the_run_after_its_batch(run: Run, feeder: FeederBatchSpout, paused: bool) -> None:
    running = run()
    feeder.feed([("a",)])
    if paused:
        running.deactivate()
        feeder.feed([("b",)], wait=False)
    assert act(running, "kill/0")[0] == 200
    assert running.awaitTermination(30) and running.txid == 1
    with pytest.raises(OSError):
        get(running.http, "/healthz")


def test_the_log_level_is_set_in_the_driver(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    fallback = logging.StreamHandler()
    fallback.setLevel(logging.WARNING)
    monkeypatch.setattr(logging, "lastResort", fallback)
    running, log = run(), logging.getLogger("trident_py.there.is.none")
    body = json.dumps({"namedLoggerLevels": {log.name: {"target_level": "DEBUG"}}})
    assert act(running, "logconfig", body)[0] == 200 and log.level == logging.DEBUG
    log.setLevel(logging.NOTSET)
    assert fallback.level == logging.DEBUG  # what prints where nobody has set up logging
    for wrong in ("", "[]", '{"namedLoggerLevels": {"a": {"target_level": "LOUD"}}}', "x" * 100_000):
        status, answer = act(running, "logconfig", wrong)
        assert status in (400, 413) and "level" in answer["errorMessage"]


def test_debug_tells_what_a_batch_does(run: Run, feeder: FeederBatchSpout, caplog: pytest.LogCaptureFixture) -> None:
    running = run()
    with caplog.at_level(logging.DEBUG, "trident_py"):
        feeder.feed([("a",)])
        until(lambda: told(running)["committed"])
    said = [record.message for record in caplog.records if record.levelno == logging.DEBUG]
    phases = ["describe", "execute", "execute", "commit counts", "execute", "finish"]
    assert [text for text in said if "txid 1, " in text][:6] == [f"words: txid 1, attempt 0: {each}" for each in phases]


def status_of_stream(running: Any) -> int:
    with contextlib.closing(http.client.HTTPConnection(running.http.removeprefix("http://"), timeout=30)) as connection:
        connection.request("GET", "/api/stream")
        return connection.getresponse().status


@pytest.mark.parametrize(("size", "grace"), [(10, 60), (30_000_000, 0.5)])
def test_a_page_that_stays_open_gives_its_place_back(
    run: Run, monkeypatch: pytest.MonkeyPatch, size: int, grace: float
) -> None:
    for name, value in {"STREAMS": 1, "STREAM_SECONDS": 0.5, "STREAM_GRACE": grace}.items():
        monkeypatch.setattr(app, name, value)
    monkeypatch.setattr(app.views, "live", lambda record: "x" * size)
    running = run()
    with socket.create_connection(("127.0.0.1", int(running.http.rpartition(":")[2]))) as idle:
        idle.sendall(b"GET /api/stream HTTP/1.1\r\nHost: localhost\r\n\r\n")
        until(lambda: idle.recv(1))  # and reads no more
        assert status_of_stream(running) == 503
        until(lambda: status_of_stream(running) == 200)


def test_an_old_batch_comes_from_the_file_of_events_or_the_page_says_where_it_would_be(
    run: Run, feeder: FeederBatchSpout, tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(timeline, "KEPT", 2)
    running = run()
    with EventLines(False, str(tmp_path / "events.jsonl"), False) as lines:
        for batch in ([("a",)], [("bad",)], [("b",)], [("c",)]):
            feeder.feed(batch)
        until(lambda: running.txid == 4)
        assert [each["txid"] for each in get(running.http, "/api/batches")[1]["batches"]] == [3, 4]
        found = get(running.http, "/api/batches?txid=2")[1]
        assert found["batches"] == [] and "older than the" in found["note"] and "--events FILE" in found["note"]
        lines.begin(running.name, counting(feeder).build().guarantees())
        for event in running.events:
            lines.event(now(), event, running.progress["words"])
        (batch,) = get(running.http, "/api/batches?txid=2")[1]["batches"]
        assert [each["outcome"] for each in batch["attempts"]] == ["replay", "committed"] and batch["ended"]
        assert "bad" in batch["attempts"][0]["reason"]
        assert get(running.http, "/api/batches?txid=9")[1] == {"batches": [], "note": "there is no batch 9 here"}


def test_another_topology_or_path_is_not_there(run: Run) -> None:
    running = run()
    assert get(running.http, "/api/v1/topology/other/kill/0", "POST")[0] == 404
    assert get(running.http, "/api/v1/topology/other")[0] == get(running.http, "/no")[0] == 404
    assert act(running, "activate", Origin="null")[0] == 403
    assert get(running.http, f"/api/v1/topology/{shown(running)['id']}/kill/0")[0] == 405
    assert get(running.http, "/api/batches?limit=x")[0] == 400


# -- who may ----------------------------------------------------------------------------------------------------------


def test_without_a_token_only_this_machine_and_this_page_may(run: Run) -> None:
    running = run()
    assert running.http.startswith("http://127.0.0.1:")
    for host in ("evil.example", "evil.example:80", "127.0.0.1.evil.example"):
        status, answer = get(running.http, "/api/events", Host=host)
        assert status == 403 and "on this machine only" in answer["errorMessage"]
    host = running.http.removeprefix("http://")
    port = host.partition(":")[2]
    assert get(running.http, "/api/events", Host=f"localhost:{port}")[0] == 200
    status, answer = act(running, "kill/0", Origin="http://evil.example")
    assert status == 403 and running.isActive and "evil.example" in answer["errorMessage"]
    assert act(running, "activate", Origin=f"http://{host}")[0] == 200


def test_with_a_token_only_who_has_it_may(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(TOKEN, "open sesame")
    running = run()
    assert get(running.http, "/api/events")[0] == 401
    for given in ("Bearer wrong", "Basic ???", "Basic b3Blbg==", "Other x", ""):
        assert get(running.http, "/api/events", Authorization=given)[0] == 401
    basic = base64.b64encode(b"anybody:open sesame").decode()
    for given in ("Bearer open sesame", f"Basic {basic}"):
        assert get(running.http, "/api/events", Authorization=given, Host="far.example")[0] == 200
    assert get(running.http, "/healthz")[0] == 200 and get(running.http, "/metrics")[0] == 401


def test_other_machines_need_a_token(run: Run) -> None:
    with pytest.raises(DefinitionError, match=rf"other machines could see and stop the run .* Set {TOKEN}"):
        run(topology__http="0.0.0.0:0")


def test_a_port_that_is_taken_refuses_the_start(run: Run, feeder: FeederBatchSpout) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        with pytest.raises(DefinitionError, match=r"the page of the run cannot listen at .* another topology\.http"):
            run(topology__http=taken.getsockname()[1])


@pytest.mark.parametrize("value", ["x", "1.2.3.4", ":80", "host:", "host:99999", -1, 1.5, True])
def test_an_address_that_is_none_refuses_the_start(run: Run, value: Any) -> None:
    with pytest.raises(DefinitionError, match=r"topology.http is .*\[HOST:\]PORT"):
        run(topology__http=value)


def test_addresses() -> None:
    told = {8080: ("127.0.0.1", 8080), "0": ("127.0.0.1", 0), "db:1": ("db", 1), "[::1]:80": ("::1", 80)}
    assert {value: address_of_page(value) for value in told} == told


# -- ends -------------------------------------------------------------------------------------------------------------


def test_the_page_ends_with_a_run_that_fails(run: Run, feeder: FeederBatchSpout) -> None:
    running = run()
    feeder.feed([("worse",)], wait=False)
    with pytest.raises(TopologyError, match="no such word: worse"):
        running.awaitTermination(30)
    with pytest.raises(OSError):
        get(running.http, "/healthz")


class Away(IBatchSpout):
    """A spout whose source does not answer."""

    def getOutputFields(self) -> Fields:
        return FIELDS

    def open(self, conf: dict, context: Any) -> None: ...

    def emitBatch(self, batchId: int, collector: Any) -> None:
        raise FailedException("the source is away")

    def ack(self, batchId: int) -> None: ...

    def close(self) -> None: ...


def test_a_batch_that_is_replayed_says_why(run: Run) -> None:
    topology = TridentTopology()
    topology.newStream("words", Away()).peek(lambda _: None)
    running = run(topology)
    until(lambda: told(running)["replay"] > 2)
    kind, sentence = until(lambda: tuple(shown(running)["diagnosis"].values()))
    assert kind == "replaying" and sentence.startswith("replaying txid 1, attempt ") and "is away" in sentence
    (batch,) = get(running.http, "/api/batches")[1]["batches"]
    assert {each["outcome"] for each in batch["attempts"]} <= {"replay", "running"}


def test_without_its_extra_a_page_says_what_is_missing(monkeypatch: pytest.MonkeyPatch, run: Run) -> None:
    monkeypatch.setattr("trident_py.entry_points._points", lambda group: {})
    with pytest.raises(DefinitionError, match=r"topology\.http needs monitor, which this installation lacks"):
        run()


def test_a_terminal_shows_a_run_and_the_exit_code_says_whether_it_is_well(run: Run, feeder: FeederBatchSpout) -> None:
    running = run()
    feeder.feed([("a",), ("bad tuple",)])
    until(lambda: told(running)["committed"] == 1)
    shown_well = CliRunner().invoke(trident, ["status", running.http])
    assert shown_well.exit_code == 0, shown_well.output
    assert re.search(r"^words +1 +2 +1 +\d{4}-\d\d-\d\d \d\d:\d\d:\d\d[+-]\d\d:\d\d$", shown_well.stdout, re.M)
    assert re.search(r"replay: txid 1, attempt 0: .*bad tuple", shown_well.stdout)
    as_json = json.loads(CliRunner().invoke(trident, ["status", running.http, "--json"]).stdout)
    assert as_json["components"][0]["txid"] == 1
    running.stop()
    gone = CliRunner().invoke(trident, ["status", running.http])
    assert gone.exit_code == 1
    assert "does not answer as a run does" in gone.output


def test_the_terminal_gives_the_token(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(TOKEN, "open sesame")
    running = run()
    assert CliRunner().invoke(trident, ["status", running.http]).exit_code == 0
    monkeypatch.setenv(TOKEN, "open barley")
    refused = CliRunner().invoke(trident, ["status", running.http])
    assert refused.exit_code == 1
    assert "401" in refused.output
    assert "barley" not in refused.output


def test_the_status_tells_of_a_tuple_that_is_excluded(run: Run) -> None:
    feeder = FeederBatchSpout(["word string"])
    topology = TridentTopology()
    words = topology.newStream("words", feeder)
    words.each("word", lambda word: [int(word)], "n").partitionPersist(MemoryMapState.Factory(), ["word", "n"], Kept())
    words.deadLetters().partitionPersist(MemoryMapState.Factory(), ["tuple"], Kept())
    running = run(topology, topology__poison="bisect")
    feeder.feed([("1",), ("one",), ("2",)])
    until(lambda: told(running)["committed"] == 1)
    last = CliRunner().invoke(trident, ["status", running.http]).stdout.splitlines()[-1]
    assert "poison: txid 1, attempt" in last and "tuple 1 of partition 0 of spout words is excluded as poison" in last
