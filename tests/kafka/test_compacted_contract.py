"""CompactedTopicState inherits the contract of all states, in its kinds. What is there is read by a plain consumer."""

from __future__ import annotations

import itertools
import os
from pathlib import Path
from typing import Any

import pytest
from compacted_reading import folded
from contracts.state import KeyedContract, MapContract, RowContract
from kafka_contract import ALWAYS, KILLED_AT, KafkaContract

from states.kafka import CompactedTopicState
from trident_py.errors import FailedException, LineageError
from trident_py.state import SILENT

FACTS: dict[str, Any] = {"partitions": 2}
_COUNT = itertools.count()


class CompactedContract(KafkaContract, KeyedContract):
    """What differs from a table: names, how a secret is given, and that there is nothing to publish."""

    @pytest.fixture
    def factory(self, kafka: Any) -> Any:
        return self.make(kafka.bootstrap)

    def topic(self) -> str:
        return f"contract-{os.getpid()}-{next(_COUNT)}"

    def found(self, factory: Any) -> dict[tuple, Any]:
        """By a consumer of its own; the state's own reading must say the same."""
        there = folded(factory.bootstrap, factory.topic)
        assert {key: self.current(value) for key, value in factory.stored().items()} == there
        return there

    def current(self, stored: Any) -> Any:
        return stored

    def test_of_two_tasks_of_one_partition_the_older_is_shut_out(self, factory: Any) -> None:
        """Spark has started it twice: one is fenced when it commits, and the batch is tried again."""
        driver = self.driver(factory)
        driver.participant.prepare(1, 0, 1)
        first, second = (factory.makeState(driver.conf, None, 0, 1) for _ in range(2))
        for state in (first, second):
            state.beginCommit(1)
            self.updater.updateState(state, self.rows(1), SILENT)
        second.commit(1)
        with pytest.raises(FailedException, match="took over this partition"):
            first.commit(1)
        first.rollback(1)
        self.batch(driver, 1, attempt=1)
        self.batch(driver, 2)
        self.holds(factory, range(1, 3))

    @pytest.mark.parametrize("point", ALWAYS)
    def test_a_driver_killed_at_any_point_goes_on_where_it_was(
        self, factory: Any, tmp_path: Path, point: str
    ) -> None:
        """The kinds differ in what they do with what is there already; `TestOpaque` dies at every point."""
        self.goes_on(factory, tmp_path, point)


@pytest.mark.whole("test_compacted_contract.py::TestOpaque")
class TestPlain(CompactedContract, RowContract):
    bad_words = ("row 12", "word='x', n=1.5", "'n'", "bigint", "1.5", "Nothing of the batch is written")

    def make(self, url: str) -> CompactedTopicState:
        return CompactedTopicState(url, self.topic(), "word string", "n bigint", **FACTS)

    def expected(self, batches: list[list[tuple]]) -> dict[tuple, Any]:
        return {(word,): n for batch in batches for word, n in batch}

    def test_a_new_lineage_from_txid_1_is_let_in_when_told(self, factory: Any) -> None:
        """No value carries a txid, so nothing of the new batches can be taken for a replay."""
        self.batch(self.driver(factory), 1)
        self.batch(self.driver(factory, "second", **{"topology.lineage.abandon": "first"}), 1)
        self.holds(factory, range(1, 2))


class CompactedMapContract(CompactedContract, MapContract):
    def current(self, stored: Any) -> Any:
        return stored[1]

    def test_values_carry_txids_so_a_lineage_cannot_be_abandoned(self, factory: Any) -> None:
        self.batch(self.driver(factory), 1)
        with pytest.raises(LineageError, match="carry txids up to 1"):
            self.driver(factory, "second", **{"topology.lineage.abandon": "first"})


@pytest.mark.whole("test_compacted_contract.py::TestOpaque")
class TestTransactional(CompactedMapContract):
    def make(self, url: str) -> CompactedTopicState:
        return CompactedTopicState.transactional(url, self.topic(), "word string", "count bigint", **FACTS)


class TestOpaque(CompactedMapContract):
    def make(self, url: str) -> CompactedTopicState:
        return CompactedTopicState.opaque(url, self.topic(), "word string", "count bigint", **FACTS)

    @pytest.mark.parametrize("point", KILLED_AT)
    def test_a_driver_killed_at_any_point_goes_on_where_it_was(
        self, factory: Any, tmp_path: Path, point: str
    ) -> None:
        super().test_a_driver_killed_at_any_point_goes_on_where_it_was(factory, tmp_path, point)
