"""A request of a transaction that the broker gets late, inside the next transaction of the same producer.

librdkafka sends an EndTxn again by itself when its connection breaks. The first one may still be on its way, and ends
whatever transaction is open when it arrives, as long as the producer's epoch is the same.
"""

from __future__ import annotations

import contextlib
import struct
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from contracts.crashing import Driver, in_attempt
from topic_reading import values

from states.kafka import RowUpdater, TransactionalTopicState
from states.kafka.marks import MarkPlace
from states.kafka.sender import Witness
from trident_py.errors import FailedException, StateError
from trident_py.state import SILENT, persist
from trident_py.testing.proxy import HOST, CuttingProxy
from trident_py.tuples import TridentTuple

TXN_OFFSET_COMMIT = b"\x00\x1c\x00\x03"  # key and version


@pytest.fixture(scope="module")
def broker(own_kafka_of_module: Callable[..., Any]) -> Iterator[Any]:
    """All clients reach it through the proxy, whose address it tells them."""
    with CuttingProxy(HOST, 0) as proxy:
        made = own_kafka_of_module(**{"advertised.listeners": f"PLAINTEXT://{HOST}:{proxy.port}"})
        proxy.target = (HOST, made.port)
        made.proxy = proxy
        yield made


class Run:
    """A topology's driver and its only task, whose state is kept from batch to batch, as on a cluster."""

    def __init__(self, broker: Any, **settings: Any) -> None:
        self.proxy: CuttingProxy = broker.proxy
        topic = broker.create_topic()
        self.factory = TransactionalTopicState(broker.bootstrap, topic, value="v", settings=settings)
        producer = MarkPlace(self.factory.cluster, topic, "contract", "s").transactional_id(0)
        self.end_txn = struct.pack(">ihh", 30 + len(producer.encode()), 26, 1)  # size, key and version of an EndTxn
        self.start()

    def start(self) -> None:
        """A new driver, as after a crash."""
        self.driver = Driver(self.factory, RowUpdater())
        self.state = self.factory.makeState(self.driver.conf, None, 0, 1)

    def prepared(self, txid: int, attempt: int = 0) -> Any:
        self.driver.participant.prepare(txid, attempt, 1)
        self.state._fence.__dict__["context"] = in_attempt(txid, attempt)
        return self.state

    def batch(self, txid: int, *rows: str, attempt: int = 0) -> None:
        persist(self.prepared(txid, attempt), txid, RowUpdater(), tuples(*rows), SILENT)

    def until_done(self, txid: int, *rows: str) -> None:
        for attempt in range(5):
            try:
                return self.batch(txid, *rows, attempt=attempt)
            except FailedException:
                continue
            except StateError:
                self.start()  # the run has ended, and is started again
        raise AssertionError("it fails again and again")

    def stored(self) -> Counter:
        return values(self.factory.bootstrap, self.factory.topic)


def tuples(*rows: str) -> list[TridentTuple]:
    return [TridentTuple.of(["v"], (each,)) for each in rows]


def test_a_late_commit_before_the_records_loses_none(broker: Any) -> None:
    """It would commit the mark of batch 3 alone: the records come after it, are refused, and the replay finds its
    mark."""
    run = Run(broker, **{"linger.ms": 10_000})
    run.batch(1, "one")
    run.proxy.cut_on(run.end_txn, "held")
    run.batch(2, "two")
    assert run.proxy.held
    run.proxy.deliver_on(b"three")
    run.until_done(3, "three")
    run.until_done(4, "four")
    assert run.stored() == Counter(["one", "two", "three", "four"])


def test_a_late_commit_between_the_records_doubles_none(broker: Any) -> None:
    """It would commit the first half of batch 3 without its mark, and the replay writes it again."""
    run = Run(broker)
    run.batch(1, "one")
    run.proxy.cut_on(run.end_txn, "held")
    run.batch(2, "two")
    assert run.proxy.held
    run.proxy.deliver_on(b"second half")
    state = run.prepared(3)
    with contextlib.suppress(FailedException, StateError):
        state.beginCommit(3)
        state.insert(tuples("first half"), False)
        state._producer.producer.flush()
        state.insert(tuples("second half"), False)
        state.commit(3)
    run.start()
    run.until_done(3, "first half", "second half")
    assert run.stored() == Counter(["one", "two", "first half", "second half"])


def test_a_late_mark_does_not_stand_over_the_new_one(broker: Any) -> None:
    """A TxnOffsetCommit of batch 2 that comes behind that of batch 3: a new driver would write batch 3 again."""
    run = Run(broker)
    run.batch(1, "one")
    run.proxy.cut_on(TXN_OFFSET_COMMIT, "held")
    run.batch(2, "two")
    assert run.proxy.held
    run.proxy.deliver_on(run.end_txn)
    run.until_done(3, "three")
    run.start()
    run.until_done(3, "three")
    assert run.stored() == Counter(["one", "two", "three"])


def test_a_break_that_librdkafka_keeps_to_itself_is_noticed_too(broker: Any) -> None:
    """Of two breaks of one connection in 30 s it reports the first one only."""
    run = Run(broker)
    run.batch(1, "one")
    for txid in (2, 3, 4):
        run.proxy.cut_on(run.end_txn, "held")
        run.batch(txid, f"{txid}")
        assert run.proxy.held
        assert not run.state._producer.is_open
        run.proxy.deliver()
    assert run.stored() == Counter(["one", "2", "3", "4"])


def test_a_break_that_was_not_reported_at_all_is_noticed_too(broker: Any) -> None:
    """The user keeps librdkafka quiet."""
    run = Run(broker, **{"log.connection.close": False, "log_level": 0})
    run.batch(1, "one")
    run.proxy.cut_on(run.end_txn, "held")
    run.batch(2, "two")
    assert not run.state._producer.is_open
    run.proxy.deliver_on(b"three")
    run.until_done(3, "three")
    assert run.stored() == Counter(["one", "two", "three"])


def test_a_transaction_that_somebody_else_ended_is_replayed(broker: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """If it comes to that in spite of all, the batch fails, never the run."""
    monkeypatch.setattr(Witness, "clean", True)
    run = Run(broker, **{"linger.ms": 10_000})
    run.batch(1, "one")
    run.proxy.cut_on(run.end_txn, "held")
    run.batch(2, "two")
    run.proxy.deliver_on(b"three")
    with pytest.raises(FailedException, match=r"transaction was ended by|has ended the transaction"):
        run.batch(3, "three")


@pytest.mark.parametrize("lines", [
    [],
    [("ENDTXN", "EndTxn returned _TRANSPORT in state X")],
    [("ENDTXN", "EndTxn returned NO_ERROR in state X"), ("ENDTXN", "EndTxn returned NO_ERROR in state X")],
    [("FAIL", "Disconnected"), ("ENDTXN", "EndTxn returned NO_ERROR in state X")],
    [("REQTMOUT", "Timed out"), ("ENDTXN", "EndTxn returned NO_ERROR in state X")],
    [("ENDTXN", "words of another version")],
])  # fmt: skip
def test_a_commit_without_proof_is_not_clean(lines: list[tuple[str, str]]) -> None:
    witness = Witness({})
    for facility, text in lines:
        witness.log(10, "%s [%s] %s", facility, "rdkafka", text)
    assert not witness.clean


def test_a_producer_that_has_lost_a_broker_is_not_used_again() -> None:
    """Not only in the transaction in which it was lost: a group's coordinator may have been there."""
    witness = Witness({})
    for where, lost in (("bootstrap", False), ("1", True)):
        witness.log(10, "%s [%s] %s", "FAIL", "rdkafka", f"h:1/{where}: Decommissioning this broker (_DESTROY_BROKER)")
        witness.begin()
        assert witness.lost_broker is lost


@pytest.mark.parametrize(("settings", "shown"), [
    ({}, ["warning", "information"]), ({"log_level": "4"}, ["warning"]), ({"log_level": "0"}, []),
    ({"debug": "msg"}, ["warning", "information", "detail"]),
])  # fmt: skip
def test_what_is_logged_is_what_the_user_wants(
    settings: dict[str, str], shown: list[str], caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(1, "trident_py.kafka.librdkafka")
    witness = Witness(settings)
    assert witness.settings["debug"].startswith(settings.get("debug", "eos"))
    for level, text in ((30, "warning"), (20, "information"), (10, "detail")):
        witness.log(level, "%s [%s] %s", "ANY", str(settings), text)
    assert [record.args[-1] for record in caplog.records] == shown  # type: ignore[index]
