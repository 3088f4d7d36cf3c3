"""The last value of each key of a topic, by a plain read_committed consumer that knows nothing of ours."""

from __future__ import annotations

import json
from typing import Any

from confluent_kafka import KafkaException
from topic_reading import Record, read


def latest(bootstrap: str, topic: str) -> dict[bytes, Record]:
    """The last record of each key, tombstones too. A key in two partitions is an error."""
    found: dict[bytes, Record] = {}
    for record in read(bootstrap, topic):
        assert record.key is not None
        before = found.get(record.key)
        assert before is None or before.partition == record.partition, (before, record)
        found[record.key] = record
    return found


def folded(bootstrap: str, topic: str) -> dict[tuple, Any]:
    """Text keys and their JSON values; {} where there is no topic yet."""
    try:
        records = latest(bootstrap, topic)
    except (KafkaException, AssertionError, KeyError):
        return {}
    return {(key.decode(),): json.loads(each.value) for key, each in records.items() if each.value is not None}


def headers(record: Record) -> dict[str, bytes | None]:
    return dict(record.headers or [])
