"""A few rounds of the campaign (`make faults`), on every store and with every spout; and what a campaign says."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from needed import needed

from .campaign import one, unreached
from .drawn import BISECT, SPOUTS, Drawn, DrawnStart
from .forks import Driver, run
from .held import HELD
from .homes import STORES, home
from .injections import kinds
from .inputs import write
from .readings import PARTITIONS
from .records import table
from .requests import History, WrongReply
from .rounds import Round, points
from .steps import Fault

BATCHES = 6
BROKERS = (pytest.mark.whole("test_a_broker_killed_around_commit"), pytest.mark.servers)
ROUNDS = [
    pytest.param(store, spout, marks=BROKERS if store in ("kafka", "brokers") else ())
    for store, spout in zip(STORES, itertools.cycle(SPOUTS), strict=False)
]


@pytest.fixture
def place(request: pytest.FixtureRequest) -> Iterator[Any]:
    store = getattr(request, "param", "sqlite")
    with needed(store), home(store) as made:
        yield made


def first_seed(place: Any, spout: str) -> int:
    return next(seed for seed in range(1000) if Round(place, seed).drawn.spout == spout)


@pytest.mark.parametrize(("place", "spout"), ROUNDS, indirect=["place"])
def test_a_short_round_loses_and_doubles_nothing(place: Any, spout: str) -> None:
    """On each store, and with each spout; on Kafka in `make test-all`."""
    record = one(place, first_seed(place, spout), batches=BATCHES)
    assert (record["wrong"], record["lost"], record["doubled"]) == ("", 0, 0), record
    assert record["rows"] > 0
    assert any(fault["reached"] for fault in record["faults"])


def test_a_short_round_answers_requests(place: Any) -> None:
    seed = next(seed for seed in range(1000) if Round(place, seed).drawn.asked)
    record = one(place, seed, BATCHES)
    assert (record["wrong"], record["lost"], record["doubled"]) == ("", 0, 0), record
    assert record["answered"] > 0


ONE = [("asked", 1), ("answered", 1, {"w": 3}), ("committed", 1, 0, "")]
KILLED_WHILE_ASKED = [*ONE, ("asked", 2)]
DONE = ("done", 2)


@pytest.mark.parametrize(
    ("told", "words"),
    [
        ([*ONE, ("asked", 2), ("answered", 2, {"w": None}), DONE], "w is None, at least of batch 1"),
        ([*ONE, ("asked", 2), ("answered", 2, {"w": 8}), DONE], "w is 8, at least of batch 1"),
        ([("asked", 1), ("answered", 1, {"w": 7}), *ONE, DONE], "w is 3, at least of batch 2"),
        ([*KILLED_WHILE_ASKED, DONE], "had no reply"),
        ([*ONE, ("asked", 2), ("failed", 2, "StateError", "FAILED_REQUEST: away"), DONE], "nothing was away"),
        ([*ONE, ("asked", 2), ("failed", 2, "NoneType", "SERVER_SHUTDOWN: it failed"), DONE], "nothing was away"),
    ],
)
def test_a_reply_that_may_not_be_given_is_found(told: list[tuple], words: str) -> None:
    """After batch 1 the value is 3, after batch 2 it is 7."""
    with pytest.raises(WrongReply, match=words):
        History([[("w", 3)], [("w", 4)]]).judge(told, 0, may_fail=False)


def test_replies_that_may_be_given_are_counted() -> None:
    history = History([[("w", 3)], [("w", 4)]])
    assert history.judge(KILLED_WHILE_ASKED, 0, may_fail=False) == {"answered": 1}
    failed = [*ONE, ("failed", 2, "ConnectionLost", "FAILED_REQUEST: away"), ("asked", 3), ("answered", 3, {"w": 3})]
    assert history.judge(failed, 0, may_fail=True) == {"answered": 2, "failed": 1}


def test_a_seed_gives_a_round_again(place: Any) -> None:
    first, again = one(place, 3, BATCHES), one(place, 3, BATCHES)
    for name in ("topology", "faults", "starts", "rows"):
        assert first[name] == again[name]


def test_a_driver_that_wakes_up_before_a_poisoned_batch_is_told_that_it_is_the_older_one(tmp_path: Path) -> None:
    """Every attempt of it fails, also those that look for the tuple: it is not the tuple's fault."""
    drawn = Drawn("sqlite", "coordinated", ("trans",), 2, False, True)
    start = DrawnStart(f"sqlite:///{tmp_path}/store.db", tmp_path, 8, seed=24, conf=BISECT, drawn=drawn)
    poisoned = [txid for txid in range(2, 8) if len(start.input.batch(txid)) < len(start.input.sent(txid))]
    older = Driver(replace(start, faults=(Fault("recorded", "", poisoned[0], action="ask"),)))
    try:
        assert older.next() == "at"
        assert run(start).told[-1] == ("done", 8)
        older.go_on()
        older.next()
    finally:
        older.close()
    assert older.told[-1][:2] == ("error", "ZombieError"), older.told[-1]


def test_a_driver_that_wakes_up_behind_its_last_commit_commits_nothing_in_its_spout(tmp_path: Path) -> None:
    """Its emitters would move a position back that a newer driver has moved on."""
    drawn = Drawn("sqlite", "committer", ("rows",), 1, False, False)
    start = DrawnStart(f"sqlite:///{tmp_path}/store.db", tmp_path, 5, drawn=drawn)
    older = Driver(replace(start, faults=(Fault("committed", "rows", 2, action="ask"),)))
    try:
        assert older.next() == "at"
        assert run(start).told[-1] == ("done", 5)
        older.go_on()
        older.next()
    finally:
        older.close()
    assert older.told[-1][:2] == ("error", "ZombieError"), older.told[-1]
    for partition in range(PARTITIONS):
        assert (tmp_path / f"committed-{partition}").read_text().split() == ["1", "2", "3", "4", "5"]


def test_a_decision_that_a_full_disk_does_not_let_go_keeps_its_files(tmp_path: Path) -> None:
    """The files that a decided batch was to show were deleted, and each start failed for good."""
    drawn = Drawn("files", "files", tuple(HELD["files"]), 1, False, False)
    start = DrawnStart(f"{tmp_path}/files", tmp_path, 19, drawn=drawn)
    write(start.input, tmp_path, start.url)
    full = run(replace(start, faults=(Fault("publish", "files", 17, action="full"),)))
    assert full.told[-1][0] == "error"
    assert run(start).told[-1] == ("done", 19)
    assert all(found == expected for found, expected in HELD["files"]["files"].pairs(start.url, start.input.fold()))


def test_each_point_and_each_kind_has_its_turn() -> None:
    place = home("sqlite")
    rounds = [Round(place, seed) for seed in range(len(points("sqlite")))]
    assert {one.point for one in rounds} == set(points("sqlite"))
    assert {one.turn for one in rounds} == set(kinds(place))


RECORD = {
    "store": "sqlite", "seed": 4, "turn": {"point": ["rows", "half"], "kind": "disk full"},
    "faults": [{"kind": "driver killed", "state": "rows", "step": "half", "reached": True},
               {"kind": "disk full", "state": "rows", "step": "begun", "reached": False}],
    "replays": 0, "rows": 1200, "answered": 7, "lost": 0, "doubled": 0, "undecided": 1,
}  # fmt: skip


def test_a_fault_that_is_never_reached_fails_the_campaign() -> None:
    assert unreached([RECORD]) == ["sqlite: disk full"]
    reached = {**RECORD, "faults": [{**fault, "reached": True} for fault in RECORD["faults"]]}
    assert unreached([RECORD, reached]) == []


def test_the_table_is_made_of_the_records() -> None:
    lines = table([RECORD, {**RECORD, "seed": 5}, {**RECORD, "store": "kafka", "seed": 9}])
    assert lines[0] == "| fault | sqlite | kafka | all |"
    assert "| driver killed | 2 | 1 | 3 |" in lines
    assert "| rows compared | 2,400 | 1,200 | 3,600 |" in lines
    assert "| DRPC requests answered | 14 | 7 | 21 |" in lines
    assert "| **lost** | 0 | 0 | 0 |" in lines
    assert lines[-1] == "| seeds | 4-5 | 9 |  |"
