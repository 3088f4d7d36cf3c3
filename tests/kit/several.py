"""One topology with a state of each way to commit: per key, per row, and as a whole batch."""

from __future__ import annotations

from typing import Any

from states.files import FileState
from states.redis import RedisMapState
from states.sql import BatchState, InsertIgnoreState, SqlMapState
from trident_py import TridentTopology
from trident_py.operations.builtin import Count, Sum

FIELDS = ("id string", "word string", "n bigint")
BATCHES = [[(f"{batch}-{k}", "abc"[k % 3], 10 * batch + k) for k in range(6)] for batch in range(1, 4)]


def in_sql(spout: Any, store: str) -> Any:
    topology = TridentTopology()
    rows = topology.newStream("rows", spout).parallelismHint(2)
    words = rows.groupBy("word")
    sums = SqlMapState.opaque(store, "sums", "word string", "total bigint")
    words.persistentAggregate(sums, "n", Sum(), "total").parallelismHint(2)
    by_id = rows.partitionBy("id")
    by_id.partitionPersist(InsertIgnoreState(store, "once", key="id", columns=FIELDS)).parallelismHint(2)
    by_id.partitionPersist(BatchState(store, "whole", columns=FIELDS)).parallelismHint(2)
    return topology.build()


def in_redis(spout: Any, store: str) -> Any:
    topology = TridentTopology()
    words = topology.newStream("rows", spout).parallelismHint(2).groupBy("word")
    words.persistentAggregate(RedisMapState.opaque(store, "counts"), Count(), "count").parallelismHint(2)
    return topology.build()


def in_files(spout: Any, store: str) -> Any:
    topology = TridentTopology()
    rows = topology.newStream("rows", spout).parallelismHint(2).partitionBy("id")
    rows.partitionPersist(FileState(store, columns=FIELDS)).parallelismHint(2)
    return topology.build()
