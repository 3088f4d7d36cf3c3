"""Hosts of their own: what is killed, cut, slowed or paused is so for its peers, and nothing is left behind."""

from __future__ import annotations

import shutil
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from needed import HOSTS, needed

from testbed.hosts import Host, Network
from testbed.keeper import runs
from trident_py.errors import DefinitionError, TridentError

ROOT = Path(__file__).parents[2]
pytestmark = pytest.mark.whole("test_an_executor_lost_between_two_commits")  # only what is whole uses hosts
PORT = 8000
SERVE = [sys.executable, "-I", "-m", "http.server", str(PORT), "--directory", "/usr"]
FETCH = """
import sys, urllib.request
try:
    print(len(urllib.request.urlopen(sys.argv[1], timeout=float(sys.argv[2])).read()))
except OSError as error:
    print(type(getattr(error, "reason", error)).__name__)
"""


@pytest.fixture(scope="module")
def network() -> Iterator[Network]:
    """Hosts a and b; b serves /usr. Each test leaves it healed."""
    with needed(HOSTS):
        network = Network()
    with network:
        network.host("a")
        serve(network.host("b"))
        yield network


def serve(host: Host) -> None:
    host.run(SERVE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def said(host: Host, *command: str) -> str:
    output = host.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT).communicate()[0]
    return output.decode().strip()


def fetched(network: Network, url: str = f"http://b:{PORT}/include/", seconds: float = 1.0) -> str:
    """What host a gets from host b: a number of bytes, or the name of an error."""
    return said(network.hosts["a"], sys.executable, "-I", "-c", FETCH, url, str(seconds))


def until_it_serves(network: Network) -> None:
    end = time.monotonic() + 20
    while not fetched(network).isdigit() and time.monotonic() < end:
        time.sleep(0.05)
    assert fetched(network).isdigit()


def test_a_host_has_a_name_an_address_and_files_of_its_own(network: Network, tmp_path: Path) -> None:
    a, b = network.hosts["a"], network.hosts["b"]
    a.path("/tmp/mine").write_text("a")
    there = [{*said(host, "ls", "/tmp").split()} - {*ROOT.parts} for host in (a, b)]  # our sources may be in /tmp
    assert (said(a, "hostname"), there) == ("a", [{"mine"}, set()])
    assert said(a, "getent", "hosts", "b").split() == [b.address, "b"]
    assert said(a, "ls", "/usr") == said(b, "ls", "/usr")  # what is not private is the machine's


def test_a_private_folder_hides_neither_our_sources_nor_this_python(tmp_path: Path) -> None:
    """They may be in one: a checkout in /tmp."""
    sources, environment, mine = tmp_path / "checkout", tmp_path / "environment", tmp_path / "mine"
    for name in ("testbed", "trident_py"):
        shutil.copytree(ROOT / name, sources / name)
    for folder in (environment / "bin", mine):
        folder.mkdir(parents=True)
    script = f"""
import subprocess, sys
from testbed.hosts import Network
sys.prefix = "{environment}"
with Network() as network:
    host = network.host("c", ["{tmp_path}", "{mine}"])
    host.run(["ls", "{tmp_path}", "{sources}", "{environment}", "{mine}"]).wait()
    host = network.host("d", ["{tmp_path}", "{sources}"])
    host.run(["ls", "{tmp_path}", "{sources}"]).wait()
"""
    with needed(HOSTS):
        done = subprocess.run([sys.executable, "-c", script], cwd=sources, capture_output=True, text=True)
    lines = [line for line in done.stdout.splitlines() if line]
    assert done.stderr == "" and lines == [
        f"{tmp_path}:", "checkout", "environment", "mine", f"{sources}:", "testbed", "trident_py",
        f"{environment}:", "bin", f"{mine}:", f"{tmp_path}:", "checkout", "environment", f"{sources}:",
    ]  # fmt: skip


def test_a_cut_loses_packets_in_silence_until_it_is_healed(network: Network) -> None:
    until_it_serves(network)
    network.cut("a", "b")
    assert fetched(network) == "TimeoutError"
    network.heal()
    assert fetched(network, seconds=20).isdigit()


def test_a_slow_host_is_slow_both_ways_and_loses_nothing(network: Network) -> None:
    until_it_serves(network)
    whole = fetched(network, f"http://b:{PORT}/bin/bash", seconds=60)
    network.slow("b", 150)
    begun = time.monotonic()
    assert fetched(network, f"http://b:{PORT}/bin/bash", seconds=60) == whole
    assert time.monotonic() - begun > 0.6  # to connect and to ask: two ways there and back
    network.heal()
    assert fetched(network, seconds=20).isdigit()


def test_a_paused_host_answers_when_it_goes_on(network: Network) -> None:
    until_it_serves(network)
    network.hosts["b"].pause()
    assert fetched(network) == "TimeoutError"
    network.hosts["b"].resume()
    assert fetched(network, seconds=20).isdigit()


def test_a_killed_host_is_silent_and_comes_back_empty_under_its_name(network: Network) -> None:
    until_it_serves(network)
    b = network.hosts["b"]
    b.path("/tmp/kept").write_text("?")
    pids = b.processes()
    network.kill("b")
    assert not any(map(runs, pids))
    assert fetched(network) == "TimeoutError"
    with pytest.raises(TridentError, match=r"host b is down; Network\.boot\('b'\)"):
        b.run(["true"])
    serve(network.boot("b"))
    until_it_serves(network)
    assert {*said(b, "ls", "/tmp").split()} <= {*ROOT.parts}


def test_hosts_reach_a_server_of_this_machine_and_can_be_cut_from_it(network: Network) -> None:
    with ThreadingHTTPServer(("127.0.0.1", 0), SimpleHTTPRequestHandler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        port = server.server_address[1]
        assert fetched(network, f"http://127.0.0.1:{port}/") == "ConnectionRefusedError"
        network.reach(port)
        assert fetched(network, f"http://127.0.0.1:{port}/", seconds=20).isdigit()
        network.gate("a", port).refuse = True
        assert fetched(network, f"http://127.0.0.1:{port}/") in ("ConnectionResetError", "RemoteDisconnected")
        server.shutdown()


def test_a_name_that_is_taken_or_no_name_is_refused(network: Network) -> None:
    for name in ("a", "switch", "no name", "b" * 11):
        with pytest.raises(DefinitionError, match="new name"):
            network.host(name)


def test_a_host_outlives_the_thread_that_boots_it(network: Network) -> None:
    thread = threading.Thread(target=lambda: serve(network.host("c")))
    thread.start()
    thread.join()
    c = network.hosts["c"]
    time.sleep(0.2)
    assert runs(c.pid)
    assert len(c.processes()) > 1
    network.kill("c")


def test_hosts_end_with_the_process_that_made_them() -> None:
    script = "from testbed.hosts import Network as N; n = N(); h = n.host('c'); " \
             "h.run(['sleep', '300']); print(h.pid, flush=True); input()"  # fmt: skip
    with subprocess.Popen([sys.executable, "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as made:
        assert made.stdout is not None
        pid = int(made.stdout.readline())
        made.kill()
    end = time.monotonic() + 10
    while Path(f"/proc/{pid}").exists() and time.monotonic() < end:
        time.sleep(0.02)
    assert not Path(f"/proc/{pid}").exists()


def test_this_process_stays_in_its_own_network(network: Network) -> None:
    before = Path("/proc/thread-self/ns/net").readlink()
    listener = network.hosts["a"].listen(9_999)
    assert Path("/proc/thread-self/ns/net").readlink() == before
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", 9_999), timeout=2)
    listener.close()
