"""Connections cut around COMMIT, servers killed and restarted, locks that never come: in every state, on real servers.

One driver lives through all of it; a word with the test at each step lets the fault happen exactly there.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import databases
import pytest
import sqlalchemy as sa

from trident_py.testing.proxy import CuttingProxy, commit_of

from .forks import Start, live_through, run
from .readings import Fold, Readings, sizes
from .steps import Fault
from .stores import EXACT, differences

pytestmark = pytest.mark.one_of_each
SEED = 6
SERVERS = databases.SERVERS
CUTS = ("before", "during", "lost", "after")


def ask(step: str, state: str, txid: int, partition: int = 0) -> Fault:
    return Fault(step, state, txid, partition, action="ask")


@pytest.mark.parametrize("kind", SERVERS)
@pytest.mark.parametrize("state", EXACT)
def test_a_connection_cut_around_commit(url_on: Any, tmp_path: Path, kind: str, state: str) -> None:
    """Before: rolled back and replayed. During and after: the ledger is asked, nothing is guessed."""
    url = url_on(kind)
    steps = ["written"] * 4 + ["publish"] * 4
    faults = tuple(ask(step, state, txid) for txid, step in enumerate(steps, 2))
    last = len(steps) + 2
    with proxy_to(url) as proxy:
        start = Start(proxy.through(url), tmp_path, last, faults, SEED, only=(state,))
        live_through(start, lambda txid: proxy.cut_on(commit_of(url), (CUTS * 2)[txid - 2]))
        assert proxy.cuts == len(faults)
    assert differences(url, Fold(Readings(SEED), last), (state,)) == []


@pytest.mark.parametrize("kind", SERVERS)
def test_a_server_killed_in_the_middle_of_a_batch_and_restarted(own_server: Any, tmp_path: Path, kind: str) -> None:
    server = own_server(kind)
    url = server.create_database()
    steps = ["begin", "begun", "half", "written", "committed", "publish", "published"]
    hurt = [(state, steps[i % len(steps)]) for i, state in enumerate(EXACT)]
    faults = tuple(ask(step, state, txid, txid % 2) for txid, (state, step) in enumerate(hurt, 2))

    def killed(txid: int) -> None:
        server.kill()
        threading.Timer(0.3, server.restart).start()

    last = len(hurt) + 2
    driver = live_through(Start(url, tmp_path, last, faults, SEED), killed)
    assert len(driver.of("replay")) >= len(hurt) // 2
    assert differences(url, Fold(Readings(SEED), last)) == []


@pytest.mark.parametrize("kind", SERVERS)
@pytest.mark.parametrize("state", EXACT)
def test_a_lock_that_does_not_come(url_on: Any, tmp_path: Path, kind: str, state: str) -> None:
    url = url_on(kind)
    engine = sa.create_engine(url, poolclass=sa.NullPool)
    held: list[Any] = []

    def hold(txid: int) -> None:
        held.append(engine.connect())
        held[-1].execute(sa.text("UPDATE trident_fence SET time = 'held'"))

    def let_go(event: tuple) -> None:
        if event[0] == "replay" and held:
            held.pop().close()

    faults = (ask("begin", state, 2), ask("begin", state, 4, 1))
    start = Start(url, tmp_path, 5, faults, SEED, only=(state,), lock_seconds=1)
    driver = live_through(start, hold, heard=let_go)
    reasons = [event[3] for event in driver.of("replay")]
    assert len(reasons) >= 2
    assert all("holds a lock on it" in reason for reason in reasons), reasons
    assert differences(url, Fold(Readings(SEED), 5), (state,)) == []


@pytest.mark.parametrize("kind", SERVERS)
@pytest.mark.parametrize("state", ["batch", "keyed"])
def test_a_reader_never_sees_a_part_of_a_batch(url_on: Any, tmp_path: Path, kind: str, state: str) -> None:
    """While drivers are killed at every step, in two partitions."""
    url = url_on(kind)
    readings, last = Readings(SEED), 9
    table = {"batch": "batched", "keyed": "keyed"}[state]
    assert run(Start(url, tmp_path, 1, (), SEED, only=(state,))).told[-1] == ("done", 1)
    allowed = set(sizes(readings, last)) if state == "batch" else {
        len(Fold(readings, n).by_id()) for n in range(last + 1)
    }  # fmt: skip
    with polled(url, f"SELECT count(*) FROM {table}") as seen:
        for txid, step in enumerate(["begun", "written", "committed", "publish", "statement", "statement"], 2):
            partition = -1 if step == "statement" else txid % 2
            fault = Fault(step, state, txid, partition, number=txid - 3)
            run(Start(url, tmp_path, last, (fault,), SEED, only=(state,)))
        assert run(Start(url, tmp_path, last, (), SEED, only=(state,))).told[-1] == ("done", last)
    assert {count for (count,) in seen} <= allowed
    assert len(seen) > 20
    assert differences(url, Fold(readings, last), (state,)) == []


def proxy_to(url: str) -> CuttingProxy:
    where = sa.make_url(url)
    return CuttingProxy(str(where.host), int(where.port or 0))


@contextmanager
def polled(url: str, text: str) -> Iterator[list[tuple]]:
    """What a reader sees that asks again and again, while the block runs."""
    seen: list[tuple] = []
    stop = threading.Event()
    engine = sa.create_engine(url, isolation_level="READ COMMITTED")

    def poll() -> None:
        while not stop.wait(0.003):
            with engine.connect() as connection:
                seen.extend(map(tuple, connection.execute(sa.text(text))))
        engine.dispose()

    thread = threading.Thread(target=poll)
    thread.start()
    try:
        yield seen
    finally:
        stop.set()
        thread.join()
