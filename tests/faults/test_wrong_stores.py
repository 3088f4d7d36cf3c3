"""A store, a checkpoint, a driver or a number of partitions that is not the right one, for every state and store.

What can go on goes on exactly; what cannot ends with an error that names the thing, with nothing of the batch
written, and the next right start goes on exactly.
"""

from __future__ import annotations

import ctypes
import re
import shutil
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from states.sql.store import close_stores
from trident_py.model.retry import START_WAIT

from .forks import Driver, Start, live_through, run
from .read_only import change, limited, read_only
from .readings import Fold, Readings
from .steps import Fault
from .stores import EXACT, FACTORIES, TABLES, Urls, differences, read
from .test_lost_servers import SERVERS, ask

pytestmark = pytest.mark.one_of_each
SEED = 8
CAPABILITIES = 0x20080522  # the version of the kernel's call


def exact(urls: Urls, last: int, *states: str) -> None:
    assert differences(urls, Fold(Readings(SEED), last), states or EXACT) == []


def error_of(driver: Driver) -> tuple[str, str]:
    """The kind and the text of the error that ended it."""
    assert driver.told[-1][0] == "error", driver.told[-3:]
    return driver.told[-1][1:]


@pytest.mark.parametrize("state", EXACT)
def test_the_older_of_two_drivers_writes_nothing(database: str, tmp_path: Path, state: str) -> None:
    older = Driver(Start(database, tmp_path, 5, (ask("begin", state, 3),), SEED, only=(state,)))
    try:
        assert older.next() == "at"
        assert run(Start(database, tmp_path, 5, (), SEED, only=(state,))).told[-1] == ("done", 5)
        exact(database, 5, state)
        older.go_on()
        older.next()
    finally:
        older.close()
    kind, text = error_of(older)
    assert kind == "ZombieError"
    assert "has taken over" in text
    exact(database, 5, state)


def test_a_batch_begun_in_two_partitions_is_finished_in_three_or_one(urls: dict[str, str], tmp_path: Path) -> None:
    states = tuple(state for state in EXACT if state != "append")
    killed = [(2, 2, "committed", 0), (3, 3, "committed", 0), (3, 4, "published", 0), (1, 5, "publish", 0)]
    for partitions, txid, step, partition in killed:
        fault = Fault(step, states[-1], txid, partition)
        driver = run(Start(urls, tmp_path, 7, (fault,), SEED, partitions, states))
        assert driver.process.exitcode == -9, driver.told[-2:]
    assert run(Start(urls, tmp_path, 7, (), SEED, 2, states)).told[-1] == ("done", 7)
    exact(urls, 7, *states)


def test_an_append_begun_in_two_partitions_is_finished_in_two(database: str, tmp_path: Path) -> None:
    only = ("append",)
    fault = Fault("committed", "append", 3, 0)
    assert run(Start(database, tmp_path, 5, (fault,), SEED, 2, only)).process.exitcode == -9
    before = read(database, "SELECT * FROM appended")
    kind, text = error_of(run(Start(database, tmp_path, 5, (), SEED, 3, only)))
    assert kind == "StateError"
    assert "batch 3" in text
    assert "2" in text and "3" in text and "parallelismHint" in text
    assert sorted(read(database, "SELECT * FROM appended")) == sorted(before)
    assert run(Start(database, tmp_path, 5, (), SEED, 2, only)).told[-1] == ("done", 5)
    assert run(Start(database, tmp_path, 6, (), SEED, 3, only)).told[-1] == ("done", 6)
    exact(database, 6, *only)


@pytest.mark.parametrize("state", EXACT)
def test_a_deleted_checkpoint_is_told_with_the_choices(database: str, tmp_path: Path, state: str) -> None:
    assert run(Start(database, tmp_path, 3, (), SEED, only=(state,))).told[-1] == ("done", 3)
    start = Start(database, tmp_path, 5, (), SEED, only=(state,), checkpoints="another")
    kind, text = error_of(run(start))
    assert kind == "LineageError"
    for words in ("remembers batch 3", "restore the checkpoint", "topology.txid.base", "new table"):
        assert words in text
    exact(database, 3, state)
    assert run(Start(database, tmp_path, 5, (), SEED, only=(state,))).told[-1] == ("done", 5)
    exact(database, 5, state)
    shutil.rmtree(tmp_path / "another", ignore_errors=True)
    went_on = run(Start(**{**vars(start), "last": 7, "conf": (("topology.txid.base", 5),)}))
    assert went_on.told[-1] == ("done", 7)
    assert [event[1] for event in went_on.of("committed")] == [6, 7]
    exact(database, 7, state)


@pytest.mark.parametrize("state", EXACT)
def test_a_dropped_table_is_told(database: str, tmp_path: Path, state: str) -> None:
    table = TABLES[state]
    driver = Driver(Start(database, tmp_path, 4, (ask("begin", state, 3),), SEED, only=(state,)))
    try:
        assert driver.next() == "at"
        change(database, f"DROP TABLE {table}")
        driver.go_on()
        driver.next()
    finally:
        driver.close()
    kind, text = error_of(driver)
    assert kind == "StateError"
    assert table in text
    kind, text = error_of(run(Start(database, tmp_path, 4, (), SEED, only=(state,))))  # it is not made again, empty
    assert kind == "StateError"
    assert f"table '{table}'" in text and "is gone" in text and "trident_layout" in text


@pytest.mark.parametrize("kind", SERVERS)
@pytest.mark.parametrize("state", EXACT)
def test_a_deadlock_with_somebody_else_is_tried_again(url_on: Any, tmp_path: Path, kind: str, state: str) -> None:
    url = url_on(kind)
    engine = sa.create_engine(url, poolclass=sa.NullPool)
    with locked_across(engine, state, 3) as crossed:
        start = Start(url, tmp_path, 4, (ask("begun", state, 3),), SEED, only=(state,))
        driver = live_through(start, lambda txid: crossed())
    reasons = " ".join(event[3].lower() for event in driver.of("replay"))
    assert "deadlock" in reasons
    exact(url, 4, state)


@contextmanager
def locked_across(engine: sa.Engine, state: str, txid: int) -> Iterator[Any]:
    """Another client that has what the partition will want, and then wants what the partition has."""
    import threading

    def crossed() -> None:
        connection = engine.connect()
        if engine.dialect.name == "postgresql":
            connection.execute(sa.text("SET deadlock_timeout = '1h'"))  # the driver is to be the one that notices
        connection.execute(sa.text("CREATE TABLE scratch (n int)"))
        connection.commit()
        for n in range(300):  # the lighter transaction is the victim
            connection.execute(sa.text(f"INSERT INTO scratch VALUES ({n}), ({n}), ({n}), ({n})"))
        own = f"UPDATE trident_part SET attempt = attempt + 1 WHERE txid = {txid} AND part = 0"
        if connection.execute(sa.text(own)).rowcount == 0:  # only append has its marks from the beginning
            connection.execute(
                sa.text(
                    "INSERT INTO trident_part (topology, state, txid, part, attempt, partitions, token)"
                    f" SELECT topology, state, {txid}, 0, 0, 0, 'other' FROM trident_fence"
                )
            )
        threads.append(threading.Thread(target=wants, args=(connection,)))
        threads[0].start()

    def wants(connection: sa.Connection) -> None:
        connection.execute(sa.text("UPDATE trident_fence SET time = 'other'"))
        connection.rollback()
        connection.close()

    threads: list[threading.Thread] = []
    yield crossed
    for thread in threads:
        thread.join(60)
        assert not thread.is_alive()


@pytest.fixture(scope="module")
def changed(own_server_of_module: Callable[[str], Any]) -> Callable[[str], Any]:
    """``changed("mariadb")``: a server of this module alone, whose settings a test may change for a while."""
    return cache(own_server_of_module)


@pytest.mark.parametrize("kind", SERVERS)
def test_a_server_that_is_read_only_for_a_moment(changed: Any, tmp_path: Path, kind: str) -> None:
    """A planned failover, at every step of a batch, of each state in turn: the batch is replayed until it may write."""
    server = changed(kind)
    url = server.create_database()
    theirs = limited(url)
    steps = ["begin", "begun", "half", "written", "committed", "publish", "published"]
    hurt = [(state, steps[i % len(steps)]) for i, state in enumerate(EXACT)]
    faults = tuple(ask(step, state, txid, txid % 2) for txid, (state, step) in enumerate(hurt, 2))

    def failing_over(txid: int) -> None:
        read_only(server.url, True)
        threading.Timer(0.3, read_only, (server.url, False)).start()

    last = len(hurt) + 2
    driver = live_through(Start(theirs, tmp_path, last, faults, SEED), failing_over)
    told = [event[-1] for event in driver.of("replay")]
    assert len(told) >= len(hurt) // 2 and all(re.search("(?i)read.only", text) for text in told), told
    exact(url, last)


@pytest.mark.parametrize("kind", SERVERS)
def test_a_server_that_is_read_only_answers_whoever_only_reads(changed: Any, kind: str) -> None:
    """A DRPC request makes a state of its own, and again after each lost connection."""
    server = changed(kind)
    maps = FACTORIES["opaque"](limited(server.create_database()))
    writing = maps.makeState({}, None, 0, 1)
    writing.beginCommit(1)
    writing.multiPut([["cow"]], [5])
    writing.commit(1)
    close_stores()
    read_only(server.url, True)
    try:
        assert maps.makeState({}, None, 0, 1).multiGet([["cow"]]) == [5]
    finally:
        read_only(server.url, False)
        close_stores()


def test_a_server_that_stays_read_only_ends_the_run(changed: Any, tmp_path: Path) -> None:
    server = changed("mysql")
    url = server.create_database()
    theirs = limited(url)
    start = Start(theirs, tmp_path, 3, (ask("begin", "opaque", 2),), SEED, conf=((START_WAIT, 0.3),))
    driver = Driver(start)
    try:
        assert driver.next() == "at"
        read_only(server.url, True)
        driver.go_on()
        driver.next()
    finally:
        driver.close()
        read_only(server.url, False)
    assert driver.of("replay")
    assert re.search(rf"(?is)read.only.*took no writes for 0\.3 s \({START_WAIT}\)", error_of(driver)[1])
    assert run(Start(theirs, tmp_path, 3, (), SEED)).told[-1] == ("done", 3)
    exact(url, 3)


@pytest.mark.parametrize("state", EXACT)
def test_a_full_disk_under_sqlite(tmp_path: Path, state: str) -> None:
    """The files of the driver may not grow any more: the system says so, as it does when a disk is full."""
    url = f"sqlite:///{tmp_path}/trident.sqlite"
    assert run(Start(url, tmp_path, 2, (), SEED, only=(state,))).told[-1] == ("done", 2)
    size = (tmp_path / "trident.sqlite").stat().st_size
    driver = run(Start(url, tmp_path, 60, (), SEED, only=(state,), file_limit=size + 4096))
    kind, text = error_of(driver)
    assert kind in ("StateError", "OSError"), text
    done = max([2, *(event[1] for event in driver.of("committed"))])
    assert run(Start(url, tmp_path, done + 2, (), SEED, only=(state,))).told[-1] == ("done", done + 2)
    exact(url, done + 2, state)


@dataclass(frozen=True)
class WithoutRights(Start):
    """One start of a driver to which the rights of files apply, though it may belong to root."""

    def topology(self) -> Any:
        nothing = (ctypes.c_uint32 * 6)()
        assert ctypes.CDLL(None).capset((ctypes.c_uint32 * 2)(CAPABILITIES, 0), nothing) == 0
        return super().topology()


def test_a_sqlite_that_may_not_be_written_for_a_while_is_told(tmp_path: Path) -> None:
    folder = tmp_path / "store"
    folder.mkdir()
    file = folder / "trident.sqlite"
    start = WithoutRights(f"sqlite:///{file}", tmp_path, 4, seed=SEED)
    assert run(replace(start, last=2)).told[-1] == ("done", 2)
    file.chmod(0o444)
    kind, text = error_of(run(start))
    assert kind == "StateError"
    assert f"no permission to write the file {file}" in text
    exact(start.url, 2)
    file.chmod(0o644)
    assert run(start).told[-1] == ("done", 4)
    exact(start.url, 4)
