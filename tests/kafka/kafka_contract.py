"""What the contract of all states says in Kafka's words. Inherit it before the contract's own class."""

from __future__ import annotations

import gc
import pickle
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, ClassVar

import pytest
from confluent_kafka.admin import AlterConfigOpType, ConfigEntry, ConfigResource, ResourceType
from contracts.crashing import POINTS, Worker
from servers.waiting import soon

from states.kafka import CompactedTopicState
from states.kafka.marks import DRIVER, Mark, MarkPlace
from states.kafka.topic_admin import make
from trident_py.errors import DefinitionError, LineageError, StateError

ALWAYS = ("after updateState", "after one of two", "after all commits")
KILLED_AT = [pytest.param(point, marks=[] if point in ALWAYS else [pytest.mark.whole])
             for point in POINTS if point != "inside publish"]  # fmt: skip


class KafkaContract:
    tells_in_attempt: ClassVar[int] = 1
    tells_size: ClassVar[bool] = False

    def backup(self, factory: Any) -> Callable[[], None]:
        """Only of the marks: they tell what is complete."""
        place = MarkPlace(factory.cluster, factory.topic, "contract", "s")
        kept = {part: place.read(part) for part in (0, 1, DRIVER)}

        def restore() -> None:
            for part, mark in kept.items():
                place.write(part, mark or Mark(), "put back a mark")

        return restore

    # No request reads marks there.
    test_commits_of_an_earlier_attempt_do_not_stand_for_those_of_a_later_one = None
    test_commits_of_an_older_driver_do_not_stand_for_those_of_a_newer_one = None

    def test_a_commit_that_the_store_has_lost_is_repeated(self: Any, factory: Any) -> None:
        """No request reads marks at the end of a batch: it is told as soon as an attempt has failed."""
        driver = self.batches(factory, 2)
        restore = self.backup(factory)
        self.batch(driver, 3)
        restore()
        with pytest.raises(StateError, match="its last complete batch is 2, and this driver has completed batch 3"):
            self.batch(driver, 4, attempt=1)

    taken_words = ("could not commit batch 2", "did not accept a record", "MSG_SIZE_TOO_LARGE")

    def place(self: Any, factory: Any) -> str:
        return str(factory.topic)

    @contextmanager
    def taking_less(self: Any, factory: Any) -> Iterator[None]:
        """The topic takes no record, but the marks of transactions."""
        admin = factory.cluster.admin()
        for size in ("80", "1000000"):
            entry = ConfigEntry("max.message.bytes", size, incremental_operation=AlterConfigOpType.SET)
            topic = ConfigResource(ResourceType.TOPIC, factory.topic, incremental_configs=[entry])
            admin.incremental_alter_configs([topic])[topic].result(30)
            if size == "80":
                yield

    def test_the_factory_is_a_picklable_value_without_secrets(self, factory: Any) -> None:
        copy = pickle.loads(pickle.dumps(factory))
        assert copy == factory == replace(factory)
        assert hash(copy) == hash(factory)
        assert factory.kind
        secret = replace(factory, settings={"sasl.password": "hush", "sasl.username": "me"})
        assert "hush" not in repr(secret) + repr(secret.makeState({}, None, 0, 1)) + repr(secret.cluster)
        assert secret != factory
        with pytest.raises(DefinitionError) as told:
            replace(factory, settings={"sasl.password": "hush", "acks": 1})
        assert "hush" not in str(told.value)

    def test_a_bad_row_is_named_and_nothing_of_the_batch_is_written(self: Any, factory: Any) -> None:
        driver = self.driver(factory)
        self.batch(driver, 1)
        before = factory.stored()
        with pytest.raises(StateError) as told:
            driver.run(self.rows(2, self.bad_row), 2, of=1)
        for words in (self.place(factory), *self.bad_words):
            assert words in str(told.value)
        assert factory.stored() == before
        self.batch(driver, 2, attempt=1)
        self.holds(factory, range(1, 3))

    def test_an_older_driver_cannot_publish(self: Any, factory: Any) -> None:
        """What it has committed is visible already; its publish changes nothing."""
        old = self.driver(factory)
        receipts = old.run(self.rows(1), 1)
        new = self.driver(factory)
        before = factory.stored()
        old.publish(1, 0, receipts)
        assert factory.stored() == before
        self.batch(new, 1)
        self.holds(factory, range(1, 2))

    def gone(self: Any, factory: Any) -> None:
        """The topic is deleted, and its marks with it."""
        admin, place = factory.cluster.admin(), MarkPlace(factory.cluster, factory.topic, "contract", "s")
        admin.delete_topics([factory.topic])[factory.topic].result(30)
        assert soon(lambda: factory.topic not in admin.list_topics().topics)
        assert soon(lambda: all(place.read(part) is None for part in ("driver", 0, 1)))

    def erase(self: Any, factory: Any) -> None:
        """A new topic under the old name."""
        self.gone(factory)
        if isinstance(factory, CompactedTopicState):
            factory.ensure_topic()
        else:
            make(factory.cluster, factory.cluster.admin(), factory.topic, 2)

    def test_a_topic_that_was_deleted_is_refused_and_not_made_anew(self: Any, factory: Any) -> None:
        self.batches(factory, 3)
        self.gone(factory)
        with pytest.raises(LineageError, match="knows nothing of this state"):
            self.on(factory, 3)
        assert factory.topic not in factory.cluster.admin().list_topics().topics

    def test_several_workers_write_their_partitions_at_once(self: Any, factory: Any) -> None:
        """Each partition in a process of its own."""
        driver = self.driver(factory)
        gc.collect()
        workers = [Worker(driver, self.fields) for _ in range(4)]
        try:
            for txid in range(1, 4):
                driver.participant.prepare(txid, 0, 4)
                for only, worker in enumerate(workers):
                    worker.tell(self.grouped(self.values(txid)), txid, 4, only)
                driver.publish(txid, 0, [receipt for worker in workers for receipt in worker.receipts()])
        finally:
            for worker in reversed(workers):
                worker.close()
        self.holds(factory, range(1, 4))
