"""Requests over states in servers, beside batches: none of them hides a complete batch."""

from __future__ import annotations

from typing import Any

import databases
import pytest

from states.kafka import CompactedTopicState
from states.sql import SqlMapState
from trident_py import LocalCluster

from .load import answers_beside_batches

BATCHES = 12


@pytest.mark.parametrize("database", databases.SERVERS, indirect=True)
def test_requests_see_every_complete_batch_of_a_state_in_a_database(database: str) -> None:
    factory = SqlMapState.opaque(database, "counts", "word string", "n bigint")
    with LocalCluster() as cluster:
        wrong, asked = answers_beside_batches(cluster, factory, BATCHES)
    assert wrong == [] and min(asked) > 0


def test_requests_see_every_complete_batch_of_a_compacted_topic(kafka: Any) -> None:
    factory = CompactedTopicState(kafka.bootstrap, "drpc-counts", key="word string", value="n bigint", kind="opaque")
    with LocalCluster() as cluster:
        wrong, asked = answers_beside_batches(cluster, factory, BATCHES)
    assert wrong == [] and min(asked) > 0
