"""Storm's HTTP interface of DRPC: paths, status codes, errors, tokens, access lists; the client; the command."""

from __future__ import annotations

import http.client
import json
import socket
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from trident_py import DefinitionError, DRPCExecutionException, LocalCluster, LocalDRPC, TridentTopology
from trident_py.drpc import DRPCClient, default_drpc
from trident_py.extras.drpc_server.server import DRPCServer

Serve = Callable[..., int]
RUNS: list[Any] = []


def told(what: str) -> list[Any]:
    if what == "bad":
        raise ValueError("no such order: 17")
    return [what.upper()]


class Slow:
    """A function that answers when told."""

    def __init__(self) -> None:
        self.go, self.begun = threading.Event(), threading.Semaphore(0)

    def __call__(self, args: str) -> list[str]:
        self.begun.release()
        assert self.go.wait(30)
        return [args]


@pytest.fixture
def slow() -> Iterator[Slow]:
    slow = Slow()
    yield slow
    slow.go.set()


@pytest.fixture
def serve(slow: Slow) -> Iterator[Serve]:
    """``serve(**settings)``: the port of a server for the functions upper and slow."""
    clusters = []

    def start(**settings: Any) -> int:
        topology, drpc = TridentTopology(), LocalDRPC()
        topology.newDRPCStream("upper", drpc).each("args", told, "up").project("up")
        topology.newDRPCStream("slow", drpc).each("args", slow, "out").project("out")
        clusters.append(LocalCluster())
        conf = {"drpc.http.port": 0} | {key.replace("_", "."): value for key, value in settings.items()}
        running = clusters[-1].submitTopology("t", conf, topology.build())
        RUNS[:] = [running]
        return int(running.requests.url.rpartition(":")[2].partition("/")[0])  # type: ignore[union-attr]

    yield start
    slow.go.set()
    for cluster in clusters:
        cluster.shutdown()


def ask(port: int, method: str, path: str, body: bytes | None = None, **headers: str) -> tuple[int, Any, Any]:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    try:
        connection.request(method, path, body, headers)
        response = connection.getresponse()
        return response.status, json.loads(response.read()), response.headers
    finally:
        connection.close()


def test_storms_three_ways_to_call(serve: Serve) -> None:
    port = serve()
    for method, path, body, rows in (
        ("POST", "/drpc/upper", "ä b".encode(), [["Ä B"]]),
        ("GET", "/drpc/upper/%C3%A4%20b", None, [["Ä B"]]),
        ("GET", "/drpc/upper/a%2Fb", None, [["A/B"]]),
        ("GET", "/drpc/upper", None, [[""]]),
        ("GET", "/drpc/upper/", None, [[""]]),
        ("POST", "/drpc/upper", None, [[""]]),
    ):
        status, answer, headers = ask(port, method, path, body)
        assert (status, answer, headers["content-type"]) == (200, rows, "application/json"), path


def test_the_cause_of_a_failure_is_in_the_message(serve: Serve) -> None:
    status, answer, _ = ask(serve(), "POST", "/drpc/upper", b"bad")
    assert status == 400 and set(answer) == {"error", "errorMessage"} and answer["error"] == "FAILED_REQUEST"
    assert answer["errorMessage"].startswith("ValueError: no such order: 17")
    assert "in each told, partition 0, of the function 'upper'" in answer["errorMessage"]


def test_an_unknown_function_and_args_that_are_no_text_are_failed_requests(serve: Serve) -> None:
    port = serve()
    status, answer, _ = ask(port, "GET", "/drpc/nobody/x")
    assert (status, answer["error"]) == (400, "FAILED_REQUEST") and "slow, upper" in answer["errorMessage"]
    status, answer, _ = ask(port, "POST", "/drpc/upper", b"\xff")
    assert (status, answer["error"]) == (400, "FAILED_REQUEST") and "not UTF-8" in answer["errorMessage"]


@pytest.mark.parametrize(
    ("method", "path", "status"), [("GET", "/", 404), ("GET", "/drpc", 404), ("PUT", "/drpc/upper", 405)]
)
def test_other_paths_say_what_there_is(serve: Serve, method: str, path: str, status: int) -> None:
    found, answer, _ = ask(serve(), method, path)
    assert found == status and "POST /drpc/FUNCTION" in answer["errorMessage"]


def test_a_request_that_takes_too_long_is_504(serve: Serve) -> None:
    port = serve(drpc_request_timeout_secs=1)
    start = time.monotonic()
    status, answer, _ = ask(port, "GET", "/drpc/slow/x")
    assert (status, answer["error"]) == (504, "SERVER_TIMEOUT") and 0.9 < time.monotonic() - start < 3
    assert "'slow' did not answer within 1 s" in answer["errorMessage"]


def test_more_requests_than_run_and_wait_are_503_with_a_time_to_come_again(serve: Serve, slow: Slow) -> None:
    port = serve(drpc_worker_threads=1, drpc_queue_size=1)
    with ThreadPoolExecutor(2) as pool:
        first = [pool.submit(ask, port, "GET", f"/drpc/slow/{n}") for n in range(2)]
        assert slow.begun.acquire(timeout=30)
        while RUNS[0].requests.waiting < 1:
            time.sleep(0.01)
        status, answer, headers = ask(port, "GET", "/drpc/upper/x")
        assert (status, answer["error"], headers["retry-after"]) == (503, "SERVER_BUSY", "1")
        slow.go.set()
        assert [answered.result(30)[:2] for answered in first] == [(200, [["0"]]), (200, [["1"]])]
    assert ask(port, "GET", "/drpc/upper/x")[0] == 200


def test_requests_of_a_run_that_is_stopped_are_503(slow: Slow) -> None:
    topology = TridentTopology()
    topology.newDRPCStream("slow").each("args", slow, "out").project("out")
    conf = {"drpc.http.port": 0, "drpc.worker.threads": 1}
    with LocalCluster() as cluster, ThreadPoolExecutor(3) as pool:
        running = cluster.submitTopology("t", conf, topology.build())
        port = int(running.requests.url.rpartition(":")[2].partition("/")[0])  # type: ignore[union-attr]
        first = pool.submit(ask, port, "GET", "/drpc/slow/a")
        assert slow.begun.acquire(timeout=30)
        second = pool.submit(ask, port, "GET", "/drpc/slow/b")
        while running.requests.waiting < 1:  # type: ignore[union-attr]
            time.sleep(0.01)
        stopping = pool.submit(running.stop)
        while default_drpc().functions():
            time.sleep(0.01)
        slow.go.set()
        assert first.result(30)[:2] == (200, [["a"]])
        status, answer, _ = second.result(30)
        assert (status, answer["error"]) == (503, "SERVER_SHUTDOWN") and "was stopped" in answer["errorMessage"]
        stopping.result(30)
    with pytest.raises(OSError):
        ask(port, "GET", "/drpc/slow/c")


def test_a_token_opens_every_function(serve: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRIDENT_DRPC_TOKEN", "s3cret-token")
    port = serve()
    for headers in ({}, {"Authorization": "Bearer wrong"}, {"Authorization": "Basic s3cret-token"}):
        status, answer, found = ask(port, "GET", "/drpc/upper/x", **headers)
        assert (status, answer["error"], found["www-authenticate"]) == (401, "Not Authorized", "Bearer")
        assert "s3cret" not in answer["errorMessage"]
    assert ask(port, "GET", "/drpc/upper/x", Authorization="bearer s3cret-token")[:2] == (200, [["X"]])


ACL = """\
drpc.tokens:
  alice: ${ALICE_TOKEN}
  bob: bobs
drpc.authorizer.acl:
  upper: {client.users: [alice], invocation.user: storm}
  nobody: {client.users: []}
"""


def test_what_an_access_list_does_not_name_is_denied(
    serve: Serve, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ALICE_TOKEN", "alices")
    file = tmp_path / "drpc-auth-acl.yaml"
    file.write_text(ACL)
    port = serve(drpc_authorizer_acl_filename=str(file))
    expected = {("alices", "upper"): 200, ("bobs", "upper"): 403, ("alices", "slow"): 403, ("alices", "nobody"): 403,
                ("alices", "unknown"): 403, ("eves", "upper"): 401}  # fmt: skip
    found = {
        (token, function): ask(port, "GET", f"/drpc/{function}/x", Authorization=f"Bearer {token}")[0]
        for token, function in expected
    }
    assert found == expected
    _, answer, _ = ask(port, "GET", "/drpc/slow/x", Authorization="Bearer alices")
    assert answer == {"error": "Not Authorized", "errorMessage": "alice may not call the function 'slow'"}


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("drpc.tokens: {a: b}\n", r"the file has two parts: drpc\.tokens"),
        ("drpc.tokens: {a: b}\ndrpc.authorizer.acl: {f: {users: [a]}}\n", r"2: .*has the key client\.users"),
        ("drpc.tokens: {a: b}\ndrpc.authorizer.acl: {f: {client.users: [c]}}\n", r"'c' has no token in drpc\.tokens"),
        ("drpc.tokens: {a: '', b: x}\ndrpc.authorizer.acl: {}\n", "a token is a text that is not empty"),
        ("drpc.tokens: {a: x, b: x}\ndrpc.authorizer.acl: {}\n", "this is also the token of a"),
        ("drpc.tokens: {a: '${NOT_SET_AT_ALL}'}\ndrpc.authorizer.acl: {}\n", "NOT_SET_AT_ALL is not set"),
    ],
)
def test_a_wrong_access_list_is_refused_when_the_topology_is_submitted(
    serve: Serve, tmp_path: Path, text: str, error: str
) -> None:
    file = tmp_path / "acl.yaml"
    file.write_text(text)
    with pytest.raises(DefinitionError, match=error):
        serve(drpc_authorizer_acl_filename=str(file))


def test_other_machines_need_a_token(serve: Serve) -> None:
    with pytest.raises(DefinitionError, match="other machines could call every function without a token"):
        serve(drpc_http_host="0.0.0.0")


def test_a_taken_port_is_an_error_of_the_submission(serve: Serve) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken, pytest.raises(DefinitionError, match="cannot listen at"):
        serve(drpc_http_port=taken.getsockname()[1])


def test_two_runs_share_a_server(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        conf = {"drpc.http.port": free.getsockname()[1]}
    port = conf["drpc.http.port"]
    with LocalCluster() as cluster:
        runs = []
        for function in ("one", "two"):
            topology = TridentTopology()
            topology.newDRPCStream(function, LocalDRPC()).each("args", lambda args, f=function: [f], "f").project("f")
            runs.append(cluster.submitTopology(function, conf, topology.build()))
        assert [ask(port, "GET", f"/drpc/{name}")[1] for name in ("one", "two")] == [[["one"]], [["two"]]]
        for _ in range(2):  # as by the user, and at the end of a block
            runs[0].stop()
            assert [ask(port, "GET", f"/drpc/{name}")[0] for name in ("one", "two")] == [400, 200]
        runs[1].stop()
        with pytest.raises(OSError):
            ask(port, "GET", "/drpc/two")


def test_a_function_of_a_shared_server_belongs_to_one_running_topology() -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        conf = {"drpc.http.port": free.getsockname()[1]}
    port = conf["drpc.http.port"]

    def built(answer: str) -> Any:
        topology = TridentTopology()
        topology.newDRPCStream("f", LocalDRPC()).each("args", lambda args: [answer], "f").project("f")
        return topology.build()

    with LocalCluster() as cluster:
        first = cluster.submitTopology("first", conf, built("one"))
        with pytest.raises(DefinitionError, match="the topology 'first', which still runs, answers the function 'f'"):
            cluster.submitTopology("second", conf, built("two"))
        assert ask(port, "GET", "/drpc/f")[1] == [["one"]]
        first.stop()
        third = cluster.submitTopology("third", conf, built("three"))
        assert ask(port, "GET", "/drpc/f")[1] == [["three"]]
        third.stop()
        with pytest.raises(OSError):  # nor does the second, which was refused, hold the server
            ask(port, "GET", "/drpc/f")


def test_a_server_of_ones_own(serve: Serve) -> None:
    drpc, topology = LocalDRPC(), TridentTopology()
    topology.newDRPCStream("upper", drpc).each("args", told, "up").project("up")
    with LocalCluster() as cluster:
        cluster.submitTopology("t", {}, topology.build())
        with DRPCServer(drpc, {"drpc.http.port": 0}) as server:
            assert server.url == f"http://127.0.0.1:{server.port}/drpc"
            assert ask(server.port, "GET", "/drpc/upper/x")[1] == [["X"]]


def test_the_client_executes_as_the_local_drpc_does(serve: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRIDENT_DRPC_TOKEN", "s3cret-token")
    port = serve(drpc_request_timeout_secs=1)
    with DRPCClient({}, "localhost", port) as client:
        assert client.execute("upper", "ä b") == [["Ä B"]] == client.execute("upper", "ä b")
        with pytest.raises(DRPCExecutionException, match="no such order: 17") as failed:
            client.execute("upper", "bad")
        assert failed.value.get_type() == "FAILED_REQUEST"
        with pytest.raises(DRPCExecutionException, match="did not answer within 1 s") as late:
            client.execute("slow", "x")
        assert late.value.type == "SERVER_TIMEOUT"
        assert "s3cret" not in repr(client)
    with pytest.raises(DRPCExecutionException, match="needs the header Authorization"):
        DRPCClient("localhost", port, token="wrong").execute("upper", "x")
    with pytest.raises(DRPCExecutionException, match=r"within 0\.1 s") as silent:
        DRPCClient(None, "localhost", port, 0.1).execute("slow", "x")
    assert silent.value.type == "SERVER_TIMEOUT"


def test_a_client_without_a_server_says_so() -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    with pytest.raises(DRPCExecutionException, match="no DRPC server answers: ConnectionRefusedError") as gone:
        DRPCClient("127.0.0.1", port).execute("f", "x")
    assert gone.value.type == "SERVER_SHUTDOWN"


def test_an_idle_connection_that_the_server_has_closed_is_opened_again(
    serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("trident_py.extras.drpc_server.web_server.IDLE_SECONDS", 0.2)
    port = serve()
    with DRPCClient("127.0.0.1", port) as client:
        for _ in range(3):
            assert client.execute("upper", "x") == [["X"]]
            time.sleep(0.4)


def test_sixteen_clients_at_once(serve: Serve) -> None:
    port = serve()
    with DRPCClient("127.0.0.1", port) as client, ThreadPoolExecutor(16) as pool:
        answers = list(pool.map(lambda n: client.execute("upper", f"a{n}"), range(200)))
    assert answers == [[[f"A{n}"]] for n in range(200)]


def test_without_its_extra_a_server_says_what_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("trident_py.entry_points._points", lambda group: {})
    topology = TridentTopology()
    topology.newDRPCStream("upper", LocalDRPC()).each("args", told, "up").project("up")
    with LocalCluster() as cluster, pytest.raises(DefinitionError, match="the DRPC server needs drpc_server, which"):
        cluster.submitTopology("requests", {"drpc.http.port": 0}, topology.build())
