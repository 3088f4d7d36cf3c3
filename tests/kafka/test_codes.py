"""Every error code of the installed client has one meaning; those that pass fail the batch, the others end the run."""

from __future__ import annotations

import re
from concurrent.futures import Future
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException

import states.kafka
import trident_py.kafka
from states.kafka.advice import _ADVICE
from trident_py.errors import FailedException, StateError
from trident_py.kafka.blocking_calls import offsets_of
from trident_py.kafka.clients import Cluster, errors, is_fenced, is_passing
from trident_py.kafka.error_codes import PASSING, TABLE, Meaning, find_meaning, is_known

CODES = {
    name: code for name in dir(KafkaError) if isinstance(code := getattr(KafkaError, name), int)
    and name.lstrip("_").isupper()
}  # fmt: skip
# What Kafka's Java client (4.1) calls retriable: org.apache.kafka.common.protocol.Errors, RetriableException.
RETRIABLE = {
    2, 3, 5, 6, 7, 9, 13, 14, 15, 16, 19, 20, 41, 51, 56, 70, 71, 72, 74, 75, 78, 80, 83, 84, 88, 89, 100, 103, 122,
    123, 133,
}  # fmt: skip
NEWER = 32_000
AT = Cluster.of("127.0.0.1:1")


def test_every_code_of_the_installed_client_stands_in_the_table_once() -> None:
    told = [name for names in TABLE.values() for name in names]
    assert len(told) == len(set(told))
    assert set(told) == set(CODES), "a newer client has other codes: say what each means"
    assert {KafkaError(code).name() for code in CODES.values()} == set(CODES)


def test_what_kafkas_own_client_tries_again_passes_here_or_is_looked_at() -> None:
    meanings = {name: find_meaning(name) for name, code in CODES.items() if code in RETRIABLE}
    assert len(meanings) == len(RETRIABLE)
    assert {name for name, meaning in meanings.items() if meaning not in PASSING} == {
        "UNKNOWN_TOPIC_OR_PART", "UNKNOWN_TOPIC_ID",
    }  # fmt: skip


@pytest.mark.parametrize("name", CODES)
def test_a_code_that_passes_fails_the_batch_and_others_end_the_run(name: str) -> None:
    error = KafkaException(KafkaError(CODES[name], "as the broker says"))
    expected = FailedException if find_meaning(name) in PASSING else StateError
    assert is_passing(error) is (expected is FailedException)
    assert is_fenced(error) is (find_meaning(name) is Meaning.FENCED)
    with pytest.raises(expected, match=f"{name}: as the broker says") as told, errors(AT, "write"):
        raise error
    assert ("security.protocol" in str(told.value)) is (find_meaning(name) is Meaning.SHUT)


def test_a_topic_is_made_later_while_the_controller_has_fenced_all_brokers() -> None:
    """As a broker of Kafka 4.1 says it; too many replicas have the same code."""
    replicas = KafkaError.INVALID_REPLICATION_FACTOR
    fenced = "Unable to replicate the partition 1 time(s): All brokers are currently fenced, or have all their log"
    with pytest.raises(FailedException, match="this will be retried"), errors(AT, "create topic 'x'"):
        raise KafkaException(KafkaError(replicas, fenced))
    few = "The target replication factor of 3 cannot be reached because only 1 broker(s) are registered."
    with pytest.raises(StateError, match="only 1 broker"), errors(AT, "create topic 'x'"):
        raise KafkaException(KafkaError(replicas, few))


def test_a_code_that_nobody_knows_yet_fails_the_batch_and_says_so() -> None:
    error = KafkaError(NEWER, "something new")
    assert not is_known(error.name())
    unknown = r"something new\. This library does not know the code"
    with pytest.raises(FailedException, match=unknown), errors(AT, "write"):
        raise KafkaException(error)


def test_a_broker_that_goes_while_it_is_asked_fails_the_batch() -> None:
    """librdkafka says so where it learns of it before its request is answered."""
    with pytest.raises(FailedException, match="_DESTROY_BROKER"), errors(AT, "read the mark"):
        raise KafkaException(KafkaError(KafkaError._DESTROY_BROKER))


def test_advice_and_code_name_codes_that_exist() -> None:
    assert set(_ADVICE) <= set(CODES)
    assert not [name for name in _ADVICE if find_meaning(name) in PASSING]
    for package in (states.kafka, trident_py.kafka):
        for path in Path(str(package.__file__)).parent.glob("*.py"):
            used = re.findall(r"KafkaError\.(\w+)", path.read_text())
            assert set(used) <= set(CODES), path


def test_no_module_keeps_a_list_of_codes_of_its_own() -> None:
    """Which codes pass is said in one place; a single one may be named where it has its own way on."""
    lists = re.compile(r"[(\[{]\s*\"_?[A-Z]+(?:_[A-Z]+)*\",\s*\"_?[A-Z]+(?:_[A-Z]+)+\"")
    found = [
        (path.name, match) for package in (states.kafka, trident_py.kafka)
        for path in Path(str(package.__file__)).parent.glob("*.py") for match in lists.findall(path.read_text())
        if set(re.findall(r"\"(\w+)\"", match)) & set(CODES)
    ]  # fmt: skip
    assert found == []


def test_a_record_that_cannot_be_read_is_not_passed_over(kafka: Any) -> None:
    from confluent_kafka import Message

    from states.kafka.compacted.local_table import LocalTable

    table = LocalTable(Cluster.of(kafka.bootstrap), kafka.create_topic(cleanup_policy="compact"))
    with pytest.raises(KafkaException, match="_BAD_MSG"):
        table._take([Message(error=KafkaError(KafkaError._BAD_MSG, "checksum"))])


class Electing:
    """An AdminClient whose first answers come before the partitions have leaders."""

    def __init__(self, *codes: str) -> None:
        self.codes = list(codes)

    def list_offsets(self, wanted: dict[str, Any], **settings: Any) -> dict[str, Future[Any]]:
        future: Future[Any] = Future()
        if self.codes:
            future.set_exception(KafkaException(KafkaError(CODES[self.codes.pop(0)])))
        else:
            future.set_result(SimpleNamespace(offset=7))
        return dict.fromkeys(wanted, future)


def test_offsets_are_asked_for_again_while_a_leader_is_being_chosen() -> None:
    electing = Electing("LEADER_NOT_AVAILABLE", "NOT_LEADER_FOR_PARTITION")
    assert offsets_of(electing, {"part": None}, None, 1) == {"part": 7}
    refused = Electing("TOPIC_AUTHORIZATION_FAILED", "LEADER_NOT_AVAILABLE")
    with pytest.raises(KafkaException, match="TOPIC_AUTHORIZATION_FAILED"):
        offsets_of(refused, {"part": None}, None, 1)
    assert len(refused.codes) == 1
