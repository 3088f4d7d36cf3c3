"""stateQuery on SQL states from Spark's workers: they share no memory with those that have written."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from states.sql import SqlMapState
from trident_py import TridentTopology
from trident_py.operations.builtin import Count, MapGet, SnapshotGet, TupleCollectionGet
from trident_py.spouts import FixedBatchSpout
from trident_py.testing import collect

pytestmark = pytest.mark.spark
WORDS = ["the", "cow", "jumped", "over", "the", "moon", "the", "man", "went", "to", "the", "store"]
COUNTED = {word: WORDS.count(word) for word in WORDS}


def spout(field: str, values: list, size: int = 100) -> FixedBatchSpout:
    return FixedBatchSpout(field, size, *[(value,) for value in values])


def run(cluster: Any, name: str, topology: TridentTopology) -> Any:
    running = cluster.submitTopology(name, {}, topology.build())
    assert running.awaitTermination(120)
    return running


def writing(words: SqlMapState, total: SqlMapState) -> TridentTopology:
    topology = TridentTopology()
    stream = topology.newStream("words", spout("word", WORDS, 7))
    stream.groupBy("word").persistentAggregate(words, Count(), "count").parallelismHint(2)
    stream.persistentAggregate(total, Count(), "count")
    return topology


def asking(words: SqlMapState, total: SqlMapState, want: list[str]) -> TridentTopology:
    topology = TridentTopology()
    counted = topology.newStaticState(words)
    stream = topology.newStream("asked", spout("word", want))
    whole = topology.newStaticState(total)
    found = stream.groupBy("word").stateQuery(counted, "word", MapGet(), "count").parallelismHint(3)
    collect(found, "one")
    collect(stream.stateQuery(whole, SnapshotGet(), "total"), "total")
    again = topology.newStream("again", spout("q", [1])).broadcast()
    listed = topology.newStaticState(words)
    collect(again.stateQuery(listed, TupleCollectionGet(), ["w", "n"]).parallelismHint(3), "all")
    return topology


@pytest.mark.parametrize("database", ["sqlite", "mariadb"], indirect=True)
def test_a_topology_on_spark_answers_what_another_one_has_stored(spark_cluster: Any, database: str) -> None:
    words = SqlMapState.opaque(database, "counts", "word string", "count bigint")
    total = SqlMapState.transactional(database, "total")
    cluster, want = spark_cluster(), [*COUNTED, "nobody", "The"]
    run(cluster, "write", writing(words, total))
    running = run(cluster, "ask", asking(words, total, want))
    assert sorted(running.collected("one")[1], key=repr) == sorted(((w, COUNTED.get(w)) for w in want), key=repr)
    assert sorted(running.collected("total")[1]) == sorted((w, len(WORDS)) for w in want)
    assert sorted(running.collected("all")[1]) == sorted((1, w, n) for w, n in COUNTED.items())


def test_each_partition_of_a_batch_on_spark_reads_once(spark_cluster: Any, own_server: Any, tmp_path: Path) -> None:
    url = own_server("mariadb").url
    words = SqlMapState.opaque(url, "counts", "word string", "count bigint")
    cluster, engine = spark_cluster(), sa.create_engine(url, poolclass=sa.NullPool)
    topology = TridentTopology()
    stream = topology.newStream("words", spout("word", WORDS))
    stream.groupBy("word").persistentAggregate(words, Count(), "count")
    run(cluster, "write", topology)
    with engine.connect() as connection:
        connection.execute(sa.text("SET GLOBAL log_output = 'TABLE', GLOBAL general_log = ON"))
    topology = TridentTopology()
    stream = topology.newStream("asked", spout("word", [f"w{n}" for n in range(200)], 100))
    found = stream.partitionBy("word").stateQuery(topology.newStaticState(words), "word", MapGet(), "count")
    collect(found.parallelismHint(2), "found")
    told = run(cluster, "ask", topology).collected("found")
    assert [len(rows) for rows in told.values()] == [100, 100]
    with engine.connect() as connection:
        asked = (
            "SELECT count(*) FROM mysql.general_log WHERE command_type = 'Query'"
            """ AND argument LIKE 'SELECT%FROM "counts"%' AND argument NOT LIKE '%general_log%'"""
            " AND argument NOT LIKE '%LIMIT 0'"  # which tells only the columns
        )
        assert connection.execute(sa.text(asked)).scalar() == 4  # two batches in two partitions
