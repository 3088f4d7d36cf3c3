"""`make test` leaves cases to `make test-all`, but no promise, on no store."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections import defaultdict
from collections.abc import Hashable
from pathlib import Path
from typing import NamedTuple

import databases
import pytest
from contracts.state import StateContract
from tiers import COLLECTED, is_mysql, one_of_each, promise, sharers

ROOT = Path(__file__).parents[1]
DATABASES = tuple(databases.kinds())
SERVERS = tuple(databases.SERVERS)
STORES = {*DATABASES, "redis"}
TOPICS = "tests/kafka/test_transactional_contract.py::TestTransactionalTopic"
COMPACTED_TOPICS = "tests/kafka/test_compacted_contract.py::TestOpaque"
REDIS = "tests/extras/redis_states/test_redis_contract.py"

# Who passes the contract of all states (tests/contracts/state.py), and where.
CONTRACT = {
    **{f"tests/states/{name}": DATABASES for name in (
        "test_sql_map.py::TestTransactional", "test_sql_map.py::TestOpaque", "test_insert_ignore.py::TestInsertIgnore",
        "test_append.py::TestAppend", "test_batch.py::TestBatch", "test_batch.py::TestBatchWithKey",
        "test_sequence.py::TestHold",
    )},
    TOPICS: ("",),
    COMPACTED_TOPICS: ("",),
    **{f"{REDIS}::{name}": ("",) for name in ("TestOpaque", "TestTransactional")},
}  # fmt: skip

# What else is promised: a fault, and the tests that show it, with the stores on which they do: one test for each store.
FAULTS: dict[str, dict[str, tuple[str, ...]]] = {
    "a driver killed at a step": {
        "test_every_state.py::test_a_driver_killed_at_any_step": DATABASES,
        "test_every_state.py::test_a_driver_killed_before_any_statement": DATABASES,
        "test_file_state.py::test_a_driver_killed_at_any_step": ("files", "batches", "manifest"),
        "test_file_state.py::test_a_driver_killed_before_any_call_of_the_store": ("task", "publish"),
        "test_transactional_faults.py::test_a_driver_killed_at_every_step": ("",),
        "test_compacted_contract.py::TestOpaque::test_a_driver_killed_at_any_point": ("",),
        "test_redis_faults.py::test_a_driver_killed_at_every_step": ("",),
        "test_kill_points.py::test_what_it_left_is_whole_partitions_over_exact_batches": ("one", "published"),
    },
    "a driver killed before the checkpoint has the batch": {
        "test_every_state.py::test_a_driver_killed_before_the_checkpoint": DATABASES,
        "test_commit_log.py::test_a_batch_that_the_log_forgot": DATABASES,
    },
    "a worker killed": {
        "test_workers.py::test_a_worker_killed_at_any_point_of_a_commit": DATABASES,
        "test_transactional_spark.py::test_kafka_to_kafka_with_workers_killed": ("",),
        "test_retries.py::test_a_task_that_spark_retries": ("",),
    },
    "a server killed": {
        "test_lost_servers.py::test_a_server_killed_in_the_middle_of_a_batch": SERVERS,
        "test_transactional_faults.py::test_a_broker_killed_around_commit": ("",),
        "test_spout_crashes.py::test_a_broker_killed_while_batches_run": ("",),
    },
    "a connection lost at COMMIT": {
        "test_lost_servers.py::test_a_connection_cut_around_commit": SERVERS,
        "test_late_end_txn.py::test_a_late_commit_between_the_records": ("",),
    },
    "two drivers": {
        "test_wrong_stores.py::test_the_older_of_two_drivers": DATABASES,
        "test_transactional_faults.py::test_a_driver_that_sleeps_is_shut_out": ("",),
        "test_compacted_faults.py::test_a_driver_that_sleeps_is_shut_out": ("",),
        "test_redis_faults.py::test_a_driver_that_sleeps_is_shut_out": ("",),
        "test_runs.py::test_a_second_driver_on_a_checkpoint": ("",),
    },
    "another number of partitions": {
        "test_wrong_stores.py::test_a_batch_begun_in_two_partitions": DATABASES,
        "test_wrong_stores.py::test_an_append_begun_in_two_partitions": DATABASES,
        "test_transactional_faults.py::test_another_number_of_partitions": ("",),
        "test_compacted_faults.py::test_any_number_of_partitions": ("",),
        "test_redis_faults.py::test_any_number_of_partitions": ("",),
        "test_replays.py::test_a_forgotten_batch_may_be_replayed_in_another_number": ("",),
    },
    "a checkpoint lost": {
        "test_wrong_stores.py::test_a_deleted_checkpoint": DATABASES,
        "test_transactional_faults.py::test_a_lost_checkpoint_stops": ("",),
        "test_compacted_faults.py::test_a_lost_checkpoint_stops": ("",),
        "test_redis_faults.py::test_a_lost_checkpoint_stops": ("",),
        "test_lineage.py::test_a_lost_checkpoint_stops_with_the_choices": ("",),
    },
    "a store that is away at the start": {
        "test_retry.py::test_a_start_waits_for_a_database": SERVERS,
        "test_redis_faults.py::test_a_start_waits_for_a_server": ("",),
        "test_kafka_away.py::test_a_start_waits_for_brokers": ("transactional", "compacted"),
    },
    "an event sent again": {
        "test_gateway_stores.py::test_": (*DATABASES, "redis"),
        "test_gateway_kills.py::test_": ("",),
    },
    "a topology on Spark gives what Storm gave": {"tests/storm/test_spark.py::test_a_case_made_by_hand": ("",)},
}


class Case(NamedTuple):
    """A collected case, its promise (classes that inherit a test share it), those that share cases with it, and the
    tests of `make test` that keep its promise: None if it runs there itself."""

    id: str
    promise: str
    sharers: Hashable
    kept_by: tuple[str, ...] | None

    @property
    def test(self) -> str:
        return self.id.partition("[")[0]

    @property
    def stores(self) -> set[str]:
        """MySQL is one of two: what both of them must show is in the lists above."""
        named = STORES & set(re.split(r"[-\[\]]", self.id.partition("[")[2]))
        return {"mariadb" if is_mysql(store) else store for store in named}


@pytest.fixture(scope="module")
def cases(request: pytest.FixtureRequest) -> list[Case]:
    """All that `make test-all` runs. Skips where only some of the tests were collected."""
    items = request.config.stash[COLLECTED]
    if len(items) < 14_000:
        if os.environ.get("CI") == "true":
            pytest.fail(f"{len(items)} tests were collected, which are not all")
        pytest.skip("needs all tests: run pytest tests -k test_tiers")
    return [case_of(item) for item in items]


def case_of(item: pytest.Item) -> Case:
    assert isinstance(item, pytest.Function)
    marks = [*item.iter_markers("whole")]
    kept_by = tuple(name for mark in marks for name in mark.args) if marks else None
    return Case(item.nodeid, promise(item), sharers(item), kept_by)


@pytest.fixture(scope="module")
def quick(cases: list[Case]) -> list[str]:
    return [case.id for case in cases if case.kept_by is None]


def test_a_test_has_a_case_in_make_test_or_names_those_that_keep_its_promise(
    cases: list[Case], quick: list[str]
) -> None:
    there = {case.promise for case in cases if case.kept_by is None}
    kept: dict[str, set[str]] = defaultdict(set)
    for case in cases:
        if case.promise not in there:
            kept[case.promise].update(case.kept_by or ())
    assert [test for test, names in kept.items() if not names] == []
    for test, names in kept.items():
        assert [name for name in names if not any(name in id_ for id_ in quick)] == [], test


def test_no_test_is_left_without_a_store_in_make_test(cases: list[Case]) -> None:
    on: dict[Hashable, set[str]] = defaultdict(set)
    always: dict[Hashable, set[str]] = defaultdict(set)
    for case in cases:
        on[case.sharers] |= case.stores
        if case.kept_by is None:
            always[case.sharers] |= case.stores
    assert {tests: on[tests] - stores for tests, stores in always.items() if stores != on[tests]} == {}


def test_every_promise_of_the_contract_is_kept_on_every_store_in_make_test(quick: list[str]) -> None:
    promises = [name for name in vars(StateContract) if name.startswith("test_")]
    assert len(promises) > 25
    pairs = [(promise, store) for promise in promises for store in DATABASES]
    missing = {(promise, store) for promise, store in pairs if not shown(quick, f"::{promise}", store)}
    in_kafka = [id_ for id_ in quick if id_.startswith((TOPICS, COMPACTED_TOPICS))]
    in_redis = [id_ for id_ in quick if id_.startswith(REDIS)]
    missing |= {(promise, "kafka") for promise in promises if not shown(in_kafka, f"::{promise}", "")}
    assert missing | {(promise, "redis") for promise in promises if not shown(in_redis, f"::{promise}", "")} == set()


@pytest.mark.parametrize("state", CONTRACT)
def test_every_state_keeps_promises_on_every_store_in_make_test(quick: list[str], state: str) -> None:
    assert [store for store in CONTRACT[state] if not shown(quick, f"{state}::", store)] == []


@pytest.mark.parametrize("fault", FAULTS)
def test_what_happens_after_a_fault_is_shown_on_every_store_in_make_test(quick: list[str], fault: str) -> None:
    assert [test for test in FAULTS[fault] if not shown(quick, test, "")] == []
    wanted = {store for stores in FAULTS[fault].values() for store in stores}
    assert wanted - {store for store in wanted if any(shown(quick, test, store) for test in FAULTS[fault])} == set()


def shown(quick: list[str], test: str, store: str) -> bool:
    """A case of a test, named by how it begins; with this word in its brackets."""
    return any(test in id_ and store in id_.partition("[")[2] for id_ in quick)


def test_one_of_each_takes_every_value_and_few_cases() -> None:
    made = [[("store", store), ("state", state)] for store in range(3) for state in range(8)]
    chosen = [made[number] for number in sorted(one_of_each(made))]
    assert len(chosen) == 8
    assert {value for case in chosen for value in case} == {value for case in made for value in case}
    assert sorted(sum(("store", store) in case for case in chosen) for store in range(3)) == [2, 3, 3]


def collect(folder: Path, modules: dict[str, str]) -> list[str]:
    """Return the cases that `make test` takes of these modules."""
    (folder / "conftest.py").write_text(
        f"import sys\nsys.path[:0] = {[str(Path(__file__).parent), str(Path(__file__).parents[1])]!r}\n"
        "import pytest\nfrom tiers import leave_out\n"
        "@pytest.hookimpl(tryfirst=True)\ndef pytest_collection_modifyitems(items):\n    leave_out(items)\n"
    )
    (folder / "pytest.ini").write_text("[pytest]\nmarkers =\n    whole\n    one_of_each\n    dear\n")
    for name, text in modules.items():
        (folder / f"{name}.py").write_text(text)
    args = ["-m", "pytest", "--collect-only", "-q", "-m", "not whole", "-p", "no:cacheprovider", str(folder)]
    said = subprocess.run([sys.executable, *args], capture_output=True, text=True, cwd=folder)
    assert said.returncode == 0, said.stdout + said.stderr
    return sorted(line for line in said.stdout.splitlines() if "::" in line)


def test_modules_whose_tests_have_one_name_share_no_cases(tmp_path: Path) -> None:
    text = (
        "import pytest\n\nclass TestOpaque:\n    @pytest.mark.one_of_each\n"
        "    @pytest.mark.parametrize('store', ['sqlite', 'mariadb'])\n    def test_a_promise(self, store): ...\n"
    )
    assert collect(tmp_path, dict.fromkeys(("test_one", "test_other"), text)) == [
        f"{module}.py::TestOpaque::test_a_promise[{store}]"
        for module in ("test_one", "test_other")
        for store in ("mariadb", "sqlite")
    ]


def test_the_tests_of_a_dear_module_share_their_cases(tmp_path: Path) -> None:
    collected = collect(
        tmp_path,
        {
            "test_dear": "import pytest\n\npytestmark = pytest.mark.dear\n"
            "@pytest.mark.parametrize('store', ['sqlite', 'mariadb'])\ndef test_one(store): ...\n"
            "@pytest.mark.parametrize('store', ['sqlite', 'mariadb'])\ndef test_other(store): ...\n"
            "def test_alone(): ...\n"
        },
    )
    assert sorted(line.partition("[")[0] for line in collected) == [
        f"test_dear.py::{name}" for name in ("test_alone", "test_one", "test_other")
    ]
    assert {line.partition("[")[2] for line in collected} == {"", "sqlite]", "mariadb]"}
