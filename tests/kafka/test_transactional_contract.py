"""TransactionalTopicState inherits the contract of all states; what only a table has is said in Kafka's words here."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from contracts.crashing import in_attempt
from contracts.state import AppendContract
from kafka_contract import KILLED_AT, KafkaContract
from topic_reading import read

from states.kafka import TransactionalTopicState
from trident_py.errors import FailedException
from trident_py.state import SILENT, persist


class Readable(TransactionalTopicState):
    __doc__ = TransactionalTopicState.__doc__

    def stored(self) -> dict[tuple, int]:
        """By a plain read_committed consumer."""
        rows = [json.loads(record.value or b"null") for record in read(self.bootstrap, self.topic)]
        return dict(Counter((row["word"], row["n"]) for row in rows))


class TestTransactionalTopic(KafkaContract, AppendContract):
    bad_row = ("x", float("nan"))
    bad_words = ("row 13", "n is nan", "no JSON form", "Nothing of the batch is written")

    @pytest.fixture
    def factory(self, kafka: Any) -> Any:
        return Readable(kafka.bootstrap, kafka.create_topic(partitions=2))

    def test_of_two_tasks_of_one_partition_the_later_one_writes(self, factory: Any) -> None:
        """Speculation: the first is shut out in the middle, its batch fails and is replayed, and counts once."""
        driver = self.driver(factory)
        driver.participant.prepare(1, 0, 1)
        conf = driver.conf | {"trident.context": in_attempt(1, 0)}
        first, second = (factory.makeState(conf, None, 0, 1) for _ in range(2))
        first.beginCommit(1)
        first.insert(self.rows(1), False)
        assert persist(second, 1, self.updater, self.rows(1), SILENT)["written"] == 13
        with pytest.raises(FailedException, match="Another process took over this partition"):
            first.commit(1)
        first.rollback(1)
        self.batch(driver, 1, of=1, attempt=1)
        self.batch(driver, 2, of=1)
        self.holds(factory, range(1, 3))

    @pytest.mark.parametrize("point", KILLED_AT)
    def test_a_driver_killed_at_any_point_goes_on_where_it_was(
        self, factory: Any, tmp_path: Path, point: str
    ) -> None:
        self.goes_on(factory, tmp_path, point)
