"""Pipelines for `end_to_end`, each in a process of its own (measure.py): they run until somebody closes their input.

By hand means: Spark's Kafka source and from_json, and PyMySQL. Sums and the number of the batch are committed in one
transaction of the driver; rows go in with INSERT IGNORE, from the tasks. Both are exact when a batch is repeated. The
consumer without Spark is one process with confluent-kafka and PyMySQL, as exact.
"""

from __future__ import annotations

import json
import select
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

from states.sql import InsertIgnoreState, SqlMapState
from trident_py import Fields, TridentTopology
from trident_py.kafka import Json, KafkaSpout
from trident_py.operations.builtin import Sum

from .kafka_by_hand import session, source
from .ours import on_local, on_spark

COLUMNS = "id bigint, sensor string, amount bigint"
PER_BATCH = 100_000
PARTITIONS = 2
ROW = "sensor VARCHAR(190) COLLATE utf8mb4_bin"
TABLES = (
    f"CREATE TABLE sums ({ROW} PRIMARY KEY, amount BIGINT)",
    "CREATE TABLE done (batch BIGINT)",
    f"CREATE TABLE events (id BIGINT PRIMARY KEY, {ROW}, amount BIGINT)",
    "INSERT INTO done VALUES (-1)",
)
ADD = "INSERT INTO sums VALUES (%s, %s) ON DUPLICATE KEY UPDATE amount = amount + VALUES(amount)"
IGNORE = "INSERT IGNORE INTO events VALUES (%s, %s, %s)"


def stream(topology: TridentTopology, bootstrap: str, topic: str) -> Any:
    spout = KafkaSpout(bootstrap, topic, fields="value", value=Json(COLUMNS), maxRecordsPerBatch=PER_BATCH)
    return topology.newStream("events", spout).parallelismHint(PARTITIONS)


def to_sums(topology: TridentTopology, bootstrap: str, topic: str, url: str) -> None:
    state = SqlMapState.opaque(url, "sums", "sensor string", "amount bigint")
    sums = stream(topology, bootstrap, topic).groupBy("sensor").persistentAggregate(state, "amount", Sum(), "sum")
    sums.parallelismHint(PARTITIONS)


def to_rows(topology: TridentTopology, bootstrap: str, topic: str, url: str) -> None:
    state = InsertIgnoreState(url, "events", "id", COLUMNS.split(", "))
    stream(topology, bootstrap, topic).partitionPersist(state, Fields("id", "sensor", "amount"))


PIPELINES: dict[str, Callable[..., None]] = {"sums": to_sums, "rows": to_rows}


def ours(pipeline: str, where: str, bootstrap: str, topic: str, url: str) -> bool:
    topology = TridentTopology()
    PIPELINES[pipeline](topology, bootstrap, topic, url)
    with on_local() if where == "LocalCluster" else on_spark() as (cluster, _):
        running = cluster.submitTopology("events", {}, topology.build())
        sys.stdin.read()
        running.stop()
    return True


@cache
def connected(port: int, database: str) -> Any:
    """The connection of this process."""
    import pymysql

    cursor: Any = pymysql.cursors.Cursor
    cursor.max_stmt_length = 4 << 20  # of executemany, whose statements PyMySQL fills up to it
    return pymysql.connect(host="127.0.0.1", port=port, user="root", database=database, ssl_disabled=True)


def add_sums(frame: Any, batch_id: int, port: int, database: str) -> None:
    """The sums of a batch and its number, in one transaction."""
    from pyspark.sql import functions as F

    rows = frame.groupBy("sensor").agg(F.sum("amount")).collect()
    connection = connected(port, database)
    with connection.cursor() as cursor:
        cursor.execute("SELECT batch FROM done FOR UPDATE")
        if cursor.fetchone()[0] < batch_id:
            cursor.executemany(ADD, [tuple(row) for row in rows])
            cursor.execute("UPDATE done SET batch = %s", [batch_id])
    connection.commit()


def insert_rows(frame: Any, batch_id: int, port: int, database: str) -> None:
    """The rows of a batch, a transaction for each partition."""

    def insert(rows: Iterator[Any]) -> None:
        connection = connected(port, database)
        with connection.cursor() as cursor:
            cursor.executemany(IGNORE, [tuple(row) for row in rows])
        connection.commit()

    frame.foreachPartition(insert)


BY_HAND: dict[str, Callable[[Any, int, int, str], None]] = {"sums": add_sums, "rows": insert_rows}


def by_hand(pipeline: str, bootstrap: str, topic: str, port: int, database: str) -> bool:
    from pyspark.sql import functions as F

    spark = session()
    connection = connected(port, database)
    with connection.cursor() as cursor:
        for statement in TABLES:
            cursor.execute(statement)
    connection.commit()
    text = F.col("value").cast("string")
    events = source(spark, bootstrap, topic, PER_BATCH).select(F.from_json(text, COLUMNS).alias("e")).select("e.*")

    def body(frame: Any, batch_id: int) -> None:
        BY_HAND[pipeline](frame, batch_id, port, database)

    with tempfile.TemporaryDirectory(prefix="trident-bench-") as folder:
        query = events.writeStream.foreachBatch(body).option("checkpointLocation", folder).start()
        sys.stdin.read()
        query.stop()
    return True


def consumer(pipeline: str, bootstrap: str, topic: str, port: int, database: str) -> bool:
    """A consumer without Spark: what it has polled is summed up, or inserted, and committed with the offsets."""
    from confluent_kafka import Consumer, TopicPartition

    connection = connected(port, database)
    with connection.cursor() as cursor:
        for statement in (*TABLES, "CREATE TABLE offsets (part INT PRIMARY KEY, next BIGINT)"):
            cursor.execute(statement)
    connection.commit()
    polling = Consumer({"bootstrap.servers": bootstrap, "group.id": topic, "enable.auto.commit": False})
    polling.assign([TopicPartition(topic, part, 0) for part in range(PARTITIONS)])
    while not select.select([sys.stdin], [], [], 0)[0]:
        messages = polling.consume(PER_BATCH, 0.005)
        if messages:
            write(connection, pipeline, [json.loads(message.value() or b"") for message in messages], ends_of(messages))
    return True


def ends_of(messages: list[Any]) -> dict[int, int]:
    return {message.partition(): message.offset() + 1 for message in messages}


def write(connection: Any, pipeline: str, events: list[dict[str, Any]], ends: dict[int, int]) -> None:
    """The events and their offsets, in one transaction."""
    sums: Counter[str] = Counter()
    for event in events:
        sums[event["sensor"]] += event["amount"]
    rows = [(event["id"], event["sensor"], event["amount"]) for event in events]
    with connection.cursor() as cursor:
        cursor.executemany(*((ADD, list(sums.items())) if pipeline == "sums" else (IGNORE, rows)))
        cursor.executemany("REPLACE INTO offsets VALUES (%s, %s)", list(ends.items()))
    connection.commit()
