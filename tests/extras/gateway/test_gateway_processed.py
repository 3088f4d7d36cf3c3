"""ProcessedState: a topology tells the gateway's store which events are done."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import databases
import pytest
from sqlalchemy import make_url

from trident_py import LocalCluster, TridentTopology
from trident_py.errors import DefinitionError, FailedException, StateError, TopologyError
from trident_py.events import ProcessedState, ProcessedUpdater
from trident_py.extras.gateway.claims import Claim
from trident_py.extras.gateway.stores import store_of
from trident_py.testing import Crashing, FixedBatchSpout

NAMES = ["a", "b", "c", "d", "e"]


@pytest.fixture(params=["sqlite", "redis"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    found: str = f"sqlite:///{tmp_path}/events.db" if request.param == "sqlite" else request.getfixturevalue("redis")
    return found


@pytest.fixture
def table(tmp_path: Path) -> str:
    return f"events_{abs(hash(tmp_path))}"


@pytest.fixture
def store(url: str, table: str) -> Any:
    made = store_of(url, 3600, table)
    made.claim([Claim(name, "hash") for name in NAMES], "gateway", 60)
    made.produced(NAMES[:4])  # the status of the last is not kept yet when the topology is done with it
    yield made
    made.close()


def run(factory: Any, *rows: tuple[str, str]) -> Any:
    topology = TridentTopology()
    stream = topology.newStream("events", FixedBatchSpout(["fingerprint string", "outcome string"], 2, *rows))
    stream.partitionPersist(factory, ["fingerprint", "outcome"], ProcessedUpdater())
    with LocalCluster() as cluster:
        running = cluster.submitTopology("done", {}, topology.build())
        assert running.awaitTermination(30)
    return topology.build().guarantees()


def statuses(store: Any) -> dict[str, tuple[str, str | None]]:
    return {name: (store.get(name).status, store.get(name).outcome) for name in NAMES}


def test_an_event_is_processed_when_its_batch_is_done_whether_it_succeeded_or_was_refused(
    store: Any, url: str, table: str
) -> None:
    rows = [("a", "succeeded"), ("b", "refused"), ("c", "succeeded"), ("e", "refused"), ("gone", "succeeded")]
    run(ProcessedState(url, outcome="outcome", table=table), *rows)
    store.produced(["e"])  # the gateway comes late
    assert statuses(store) == {
        "a": ("processed", "succeeded"), "b": ("processed", "refused"), "c": ("processed", "succeeded"),
        "d": ("produced", None), "e": ("processed", "refused"),
    }  # fmt: skip
    assert store.get("gone") is None


@pytest.mark.parametrize("at", ["beginCommit", "commit", "afterCommit"])
def test_a_replayed_batch_changes_nothing_and_the_first_outcome_stands(
    store: Any, url: str, table: str, at: str
) -> None:
    factory = ProcessedState(url, outcome="outcome", table=table)
    crashing = Crashing(factory, at, {(1, 0), (2, 0)}, how="fail")
    run(crashing, ("a", "succeeded"), ("b", "refused"), ("b", "succeeded"), ("a", "refused"))
    assert (statuses(store)["a"], statuses(store)["b"]) == (("processed", "succeeded"), ("processed", "refused"))


def test_nothing_is_written_before_the_commit(store: Any, url: str, table: str) -> None:
    state = ProcessedState(url, table=table).makeState({}, None, 0, 1)
    state.beginCommit(1)
    state.add([("a", "succeeded")])
    state.rollback(1)
    state.beginCommit(1)
    assert state.commit(1) == {"processed": 0}
    assert statuses(store)["a"] == ("produced", None)


def test_the_table_of_guarantees_knows_it(store: Any, url: str, table: str) -> None:
    [found] = run(ProcessedState(url, table=table), ("a", "succeeded"))
    assert found.guarantee == "exactly once in effect"
    assert "first outcome stands" in found.reason


def test_a_wrong_outcome_ends_the_run_with_the_field_and_what_there_is(store: Any, url: str, table: str) -> None:
    with pytest.raises(TopologyError) as found:
        run(ProcessedState(url, outcome="outcome", table=table), ("a", "perhaps"))
    assert isinstance(found.value.__cause__, StateError)
    assert "field 'outcome' holds 'perhaps'; an outcome is 'succeeded' or 'refused'" in str(found.value)


def test_a_store_that_is_away_fails_the_batch() -> None:
    state = ProcessedState("redis://:geheim@localhost:1/0").makeState({}, None, 0, 1)
    state.beginCommit(1)
    state.add([("a", "succeeded")])
    with pytest.raises(FailedException, match="unavailable or busy") as found:
        state.commit(1)
    assert "geheim" not in str(found.value)


def test_a_redis_that_is_a_replica_now_fails_the_batch_and_does_not_end_the_run(own_server: Any) -> None:
    primary = own_server("redis")
    url = own_server("redis", replicaof=f"127.0.0.1 {primary.port}").url
    store = store_of(url, 3600)
    with pytest.raises(FailedException, match="read only replica"):
        store.claim([Claim("a", "hash")], "gateway", 60)
    store.close()


@pytest.mark.parametrize("strange", ["a\0b", "\ud800"])
def test_a_fingerprint_that_no_store_can_hold_is_unknown(database: str, strange: str) -> None:
    state = ProcessedState(database).makeState({}, None, 0, 1)
    state.beginCommit(1)
    state.add([(strange, "succeeded")])
    assert state.commit(1) == {"processed": 0}


@pytest.mark.parametrize("database", databases.SERVERS, indirect=True)
@pytest.mark.parametrize("wrong", [{"database": "none"}, {"username": "nobody"}], ids=["database", "user"])
def test_a_server_that_answers_no_ends_the_run(database: str, wrong: dict[str, str]) -> None:
    store = store_of(make_url(database).set(**wrong).render_as_string(hide_password=False))
    with pytest.raises(StateError, match=r"could not read an event: .*(none|nobody)"):
        store.get("a")
    store.close()


def test_the_factory_is_a_plain_value_that_shows_no_password() -> None:
    factory = ProcessedState("mysql+pymysql://me:geheim@localhost/x", outcome="o")
    assert pickle.loads(pickle.dumps(factory)) == factory
    assert "geheim" not in repr(factory)
    with pytest.raises(DefinitionError, match="no store for 'mongodb'"):
        ProcessedState("mongodb://x")
