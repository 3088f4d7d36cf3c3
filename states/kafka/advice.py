"""Translates Kafka's errors and adds the user's next step where there is one."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from trident_py.errors import StateError
from trident_py.kafka.clients import Cluster, code_of, errors

_TRANSACTIONAL = "the operations Write and Describe on the transactional ids with the prefix trident/"
_ADVICE = {
    "TRANSACTIONAL_ID_AUTHORIZATION_FAILED": f"Allow this user {_TRANSACTIONAL}",
    "CLUSTER_AUTHORIZATION_FAILED": f"Allow this user IdempotentWrite on the cluster, and {_TRANSACTIONAL}",
    "GROUP_AUTHORIZATION_FAILED": "Allow this user the operation Read on the groups with the prefix trident/ "
                                  "(and on the spout's group, if its offsets are committed here)",
    "TOPIC_AUTHORIZATION_FAILED": "Allow this user the operations Write and Describe on the topic",
    "UNSUPPORTED_VERSION": "Brokers must be version 2.5 or newer",
    "_UNSUPPORTED_FEATURE": "Brokers must be version 2.5 or newer",
    "OFFSET_METADATA_TOO_LARGE": "Raise the brokers' offset.metadata.max.bytes to 4096, or shorten the names",
    "INVALID_TRANSACTION_TIMEOUT": "Lower transaction.timeout.ms in the settings, or raise the brokers' "
                                   "transaction.max.timeout.ms",
    "UNKNOWN_TOPIC_OR_PART": "Create the topic, or let the state create it with partitions=<number>",
    "_UNKNOWN_TOPIC": "Create the topic, or let the state create it with partitions=<number>",
    "MSG_SIZE_TOO_LARGE": "Make the record smaller, or raise message.max.bytes in the settings and max.message.bytes "
                          "of the topic. If it is smaller than that: brokers refuse records that are sent together as "
                          "a whole, so set batch.size in the settings below max.message.bytes",
    "INVALID_RECORD": "A compacted topic takes records with a key only",
    "UNKNOWN_MEMBER_ID": "The group has members of its own; give the spout a groupId that nobody else uses",
}  # fmt: skip


@contextlib.contextmanager
def kafka_errors(cluster: Cluster, doing: str) -> Iterator[None]:
    """Like ``trident_py.kafka.clients.errors``: a passing error fails the batch, any other raises StateError with
    advice."""
    try:
        with errors(cluster, doing):
            yield
    except StateError as error:
        advice = advice_on(code_of(error.__cause__))
        if not advice:
            raise
        raise StateError(f"{error}{advice}") from error.__cause__


def advice_on(code: str) -> str:
    """Return the advice for an error code, to follow the error's text; "" if there is none."""
    return f". {_ADVICE[code]}" if code in _ADVICE else ""
