"""What every store of claims promises, on each kind of store."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import databases
import pytest
import sqlalchemy as sa
from gateway_stores import names

from trident_py.errors import DefinitionError, FailedException, StateError
from trident_py.extras.gateway.claims import NEW, PROCESSED, PRODUCED, Claim, ClaimAnswer
from trident_py.extras.gateway.stores import store_of
from trident_py.extras.redis.server import check_url
from trident_py.model.secrets import redact_url

pytestmark = pytest.mark.dear

LEASE = 60.0
HERE = Path(__file__).parent


@pytest.fixture(params=[*databases.kinds(), "redis"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    if request.param == "sqlite":
        yield databases.sqlite(tmp_path)
    elif request.param == "redis":
        yield request.getfixturevalue("redis")
    else:
        with databases.fresh(request.getfixturevalue(request.param)) as found:
            yield found


@pytest.fixture
def table() -> str:
    return f"events_{uuid.uuid4().hex[:8]}"


@pytest.fixture
def another(url: str, table: str) -> Iterator[Callable[..., Any]]:
    made = []

    def make(expiry: float = 3600) -> Any:
        made.append(store_of(url, expiry, table))
        return made[-1]

    yield make
    for each in made:
        each.close()


@pytest.fixture
def store(another: Callable[..., Any]) -> Any:
    return another()


def claimed(store: Any, *fingerprints: str, owner: str = "one", lease: float = LEASE, **more: Any) -> list[ClaimAnswer]:
    return store.claim([Claim(each, f"hash of {each[:20]}") for each in fingerprints], owner, lease, **more)  # type: ignore[no-any-return]


def test_the_first_claim_of_an_event_is_won(store: Any) -> None:
    assert [known.won for known in claimed(store, "b", "a")] == [True, True]
    entry = store.get("a")
    assert (entry.status, entry.owner, entry.payload, entry.outcome) == (NEW, "one", "hash of a", None)
    assert entry.lease - entry.created == pytest.approx(LEASE, abs=1)
    assert entry.created == pytest.approx(time.time(), abs=5)


def test_a_second_claim_learns_what_is_known_in_the_order_it_asked(store: Any) -> None:
    claimed(store, "a", "b")
    store.produced(["b"])
    a, new, b = claimed(store, "a", "new", "b", owner="two")
    assert (a.won, a.status, new.won, b.won, b.status) == (False, NEW, True, False, PRODUCED)
    assert 0 < a.lease <= LEASE
    assert a.payload == "hash of a"


def test_the_hint_of_a_bloom_filter_changes_no_answer(another: Callable[..., Any]) -> None:
    claimed(another(), "known", "due", lease=-1.0)
    another().produced(["known"])
    asked = ("unknown", "known", "due", "forgotten")
    found = claimed(another(), *asked, owner="two", likely={"unknown", "known", "due"})
    assert [(each.won, each.taken) for each in found] == [(True, False), (False, False), (True, True), (True, False)]


def test_an_event_is_taken_over_only_after_its_lease(store: Any) -> None:
    claimed(store, "held")
    claimed(store, "due", lease=-1.0)
    held, due = claimed(store, "held", "due", owner="two")
    assert (held.won, held.taken, due.won, due.taken) == (False, False, True, True)
    assert not claimed(store, "due", owner="three")[0].won


def test_a_claim_is_not_taken_over_for_another_event_with_its_fingerprint(store: Any) -> None:
    claimed(store, "due", lease=-1.0)
    [found] = store.claim([Claim("due", "another hash")], "two", LEASE)
    assert (found.won, found.payload) == (False, "hash of due")


def test_a_claim_that_was_given_back_is_free_at_once(store: Any) -> None:
    claimed(store, "mine", owner="one")
    claimed(store, "his", owner="two")
    store.release(["mine", "his"], "one")
    mine, his = claimed(store, "mine", "his", owner="three")
    assert (mine.taken, his.won) == (True, False)


def test_a_status_never_goes_back(store: Any) -> None:
    claimed(store, "a", "b")
    store.processed([("a", "succeeded"), ("a", "refused"), ("b", "refused")])
    store.processed([("b", "succeeded"), ("not there", "succeeded")])
    store.produced(["a", "b", "not there"])
    store.release(["a"], "one")
    found = [store.get(each) for each in ("a", "b")]
    assert [(each.status, each.outcome) for each in found] == [(PROCESSED, "succeeded"), (PROCESSED, "refused")]
    assert store.get("not there") is None


@pytest.mark.parametrize(
    "names", [("a", "A", "a ", "ä", "\u00e4", "a\u0308"), ("x" * 255, "x" * 254 + "y"), ("'", "%s", "?", ":a")]
)
def test_different_fingerprints_are_different_events(store: Any, names: tuple[str, ...]) -> None:
    distinct = list(dict.fromkeys(names))
    assert all(known.won for known in claimed(store, *distinct))
    store.produced(distinct[:1])
    assert [store.get(each).status for each in distinct] == [PRODUCED] + [NEW] * (len(distinct) - 1)


def test_more_than_one_statement_can_hold_is_claimed_whole(store: Any) -> None:
    many = names(2_345)
    assert all(known.won for known in claimed(store, *many))
    store.produced(many[:2_000])
    found = claimed(store, *many, owner="two")
    assert [known.status for known in found] == [PRODUCED] * 2_000 + [NEW] * 345


def test_of_several_processes_exactly_one_gets_each_event(url: str, table: str) -> None:
    command = [sys.executable, str(HERE / "gateway_stores.py"), url, table, "600"]
    running = [
        subprocess.Popen([*command, owner], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        for owner in ("ann", "bob", "eve")
    ]
    won = []
    for each in running:
        output, errors = each.communicate(timeout=60)
        assert each.returncode == 0, errors
        won += output.split()
    assert sorted(won) == names(600)


def test_of_many_who_take_over_at_once_one_wins(another: Callable[..., Any]) -> None:
    due = names(40)
    claimed(another(), *due, lease=-1.0)
    stores, found, start = [another() for _ in range(4)], [], threading.Barrier(4)

    def take(number: int) -> None:
        for name in due:  # read first, so that all see the lease that has run out before one takes it over
            start.wait()
            [known] = claimed(stores[number], name, owner=f"owner {number}", likely={name})
            found.extend([name] if known.won else [])

    threads = [threading.Thread(target=take, args=[number]) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(found) == due


def test_what_is_older_than_its_time_is_forgotten_and_nothing_else(another: Callable[..., Any], url: str) -> None:
    store = another(expiry=0.3)
    claimed(store, *names(20))
    end = time.monotonic() + 20
    while store.get("event-00003") is not None and time.monotonic() < end:
        store.expire(0.3)
    assert store.get("event-00003") is None
    claimed(another(), "young")
    assert another().expire(3600) == 0
    assert another().get("young").status == NEW


@pytest.mark.parametrize("kind", [*databases.SERVERS, "redis"])
def test_a_store_that_is_killed_keeps_what_it_answered(own_server: Callable[..., Any], kind: str) -> None:
    server = own_server(kind)
    store = store_of(server.url, 3600)
    claimed(store, "before")
    store.produced(["before"])
    server.kill()
    with pytest.raises(FailedException, match="unavailable or busy"):
        claimed(store, "meanwhile")
    server.start()
    before, after = claimed(store, "before", "after", owner="two")
    assert (before.won, before.status, after.won) == (False, PRODUCED, True)
    store.close()


@pytest.mark.parametrize("database", ["postgresql"], indirect=True)
def test_a_schema_that_the_url_names_has_claims_of_its_own(database: str) -> None:
    engine = sa.create_engine(database)
    with engine.begin() as connection:
        connection.exec_driver_sql("CREATE SCHEMA app")
    url = sa.make_url(database).update_query_dict({"options": "-csearch_path=app"})
    stores = [store_of(each, 60) for each in (database, url.render_as_string(hide_password=False))]
    assert [claimed(each, "a")[0].won for each in stores] == [True, True]
    with engine.connect() as connection:
        assert connection.exec_driver_sql("SELECT count(*) FROM app.trident_events").scalar() == 1
    engine.dispose()
    for each in stores:
        each.close()


def test_a_password_of_a_store_is_never_shown() -> None:
    for url in (
        "redis://:geheim@localhost:1/0",
        "redis://me:geheim@localhost:1",
        "mysql+pymysql://me:geheim@localhost:1/db",
        "mysql+pymysql://me@localhost:1/db?password=geheim",
        "postgresql+psycopg://me@localhost:1/db?password=geheim",
        "redis://localhost:1/0?password=geheim",
    ):
        assert "geheim" not in redact_url(url)
        store = store_of(url, 60)
        with pytest.raises(FailedException) as told:
            store.get("x")
        assert "geheim" not in str(told.value)
        store.close()


def test_an_error_that_names_a_table_like_a_lock_is_final(tmp_path: Path) -> None:
    url = databases.sqlite(tmp_path)
    with closing(sqlite3.connect(tmp_path / url.rpartition("/")[2])) as file:
        file.execute("CREATE TABLE locked (changed INTEGER)")
    store = store_of(url, 60, "locked")
    with pytest.raises(StateError, match="locked"):
        claimed(store, "a")
    store.close()


@pytest.mark.parametrize("scheme", ["mysql+pymysql", "postgresql+psycopg", "redis"])
def test_a_name_that_no_host_can_have_is_told_as_what_waiting_does_not_help(scheme: str) -> None:
    store = store_of(f"{scheme}://me:hush@db..example/0", 60)
    with closing(store), pytest.raises(StateError, match=r"could not .*label empty.*Check ") as told:
        store.expire(60)
    assert "hush" not in str(told.value)


@pytest.mark.parametrize("url", ["", "mongodb://x", "sqlite://", "sqlite:///:memory:", "oracle://x/y"])
def test_what_is_no_store_is_refused(url: str) -> None:
    with pytest.raises(DefinitionError):
        store_of(url, 60).get("x")


@pytest.mark.parametrize("url", [
    "mysql+pymysql://me:ge/heim@localhost/db", "redis://:ge/heim@localhost:1/0", "redis://localhost:1/0?password=geheim",
    "postgresql+psycopg://me@localhost/db?sslpassword=geheim&x=1", "redis://:ge@heim@localhost:1",
])  # fmt: skip
def test_no_part_of_a_password_is_shown_however_it_is_written(url: str) -> None:
    told = redact_url(url)
    assert "geheim" not in told.replace("/", "").replace("@", "")
    assert "heim" not in told
    assert "localhost" in told


@pytest.mark.parametrize("url", [
    "redis://:ge/heim@localhost:1/0", "redis://u:12/geheim@localhost:1/0", "redis://u:12?geheim@localhost:1/0",
    "redis://u:12#geheim@localhost:1/0",
])  # fmt: skip
@pytest.mark.parametrize("read", [lambda url: store_of(url, 60), check_url], ids=["store", "state"])
def test_a_url_of_redis_that_cannot_be_read_is_told_without_its_password(
    url: str, read: Callable[[str], Any]
) -> None:
    with pytest.raises(DefinitionError) as told:
        read(url)
    assert "ge'" not in str(told.value) and "heim" not in str(told.value)
    assert "percent" in str(told.value)


def test_a_claim_that_is_dropped_leaves_nothing_unless_it_is_another_s_or_further_on(url: str) -> None:
    store = store_of(url, 3600, "dropping")
    mine, his, done = (Claim(each, "hash") for each in ("mine", "his", "done"))
    store.claim([mine, done], "one", 60)
    store.claim([his], "two", 60)
    store.produced(["done"])
    store.drop(["mine", "his", "done", "not there"], "one")
    assert [store.get(each.fingerprint) is None for each in (mine, his, done)] == [True, False, False]
    assert store.claim([Claim("mine", "another hash")], "three", 60)[0].won
    store.close()


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
