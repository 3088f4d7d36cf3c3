"""Kafka by hand: Spark's own source and sink, and a bare confluent-kafka loop. A process for each function."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa

from testbed.kafka_jars import cached, fetch

from . import by_hand
from .by_hand import durations_of

POM = Path(__file__).parent / "jvm" / "pom.xml"
RECORD_BYTES = 100


def connector() -> str:
    """The jars of Spark's connector, fetched by Maven when they are missing, as ``spark.jars`` wants them."""
    jars = cached("spark-kafka-4.2.0")
    fetch(POM, jars)
    return ",".join(str(jar) for jar in sorted(jars.glob("*.jar")))


def session() -> Any:
    return by_hand.session({"spark.jars": connector(), "spark.sql.shuffle.partitions": "2"})


def source(spark: Any, bootstrap: str, topic: str, per_batch: int | None) -> Any:
    reader = spark.readStream.format("kafka").option("kafka.bootstrap.servers", bootstrap).option("subscribe", topic)
    reader = reader.option("startingOffsets", "earliest").option("kafka.isolation.level", "read_committed")
    return (reader if per_batch is None else reader.option("maxOffsetsPerTrigger", per_batch)).load()


def split_rows(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        words = [word for line in batch.column("value").to_pylist() for word in line.decode().split(" ")]
        yield pa.record_batch({"word": pa.array(words, pa.string())})


def word_count(bootstrap: str, topic: str, batches: int, per_batch: int) -> list[float]:
    """Spark's source, mapInArrow with a Python split, groupBy and count, the counts fetched to the driver."""
    spark = session()

    def body(frame: Any, batch_id: int) -> None:
        frame.select("value").mapInArrow(split_rows, "word string").groupBy("word").count().toArrow()

    return durations_of(source(spark, bootstrap, topic, per_batch), body, batches)


def pass_on(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    yield from batches


def small_batches(bootstrap: str, topic: str, batches: int, per_batch: int) -> list[float]:
    """Small batches from Kafka through one Python stage that does nothing."""
    spark = session()

    def body(frame: Any, batch_id: int) -> None:
        frame.select("value").mapInArrow(pass_on, "value binary").write.format("noop").mode("append").save()

    return durations_of(source(spark, bootstrap, topic, per_batch), body, batches)


def batches_of(bootstrap: str, topic: str, count: int, per_batch: int) -> list[list]:
    """Offset and value of the records of each batch that Spark's source makes."""
    found: list[list] = []

    def body(frame: Any, batch_id: int) -> None:
        rows = frame.selectExpr("offset", "CAST(value AS STRING) value").collect()
        found.append(sorted([row.offset, row.value] for row in rows))

    durations_of(source(session(), bootstrap, topic, per_batch), body, count)
    return [batch for batch in found if batch]


def fill_with_aborts(bootstrap: str, topic: str, transactions: int, rows: int) -> int:
    """Transactions of so many rows, each third one aborted; returns how many rows were committed."""
    from confluent_kafka import Producer

    producer = Producer({"bootstrap.servers": bootstrap, "transactional.id": f"filling-{topic}", "linger.ms": 5})
    producer.init_transactions()
    for number in range(transactions):
        producer.begin_transaction()
        for row in range(rows):
            producer.produce(topic, f"{number}-{row}".encode())
        producer.flush()
        if number % 3 == 1:
            producer.abort_transaction()
        else:
            producer.commit_transaction()
    return sum(rows for number in range(transactions) if number % 3 != 1)


def sink(bootstrap: str, topic: str, rows: int, rounds: int) -> list[float]:
    """Spark's own sink: records/s of each round, linger and idempotence as in our producers."""
    spark = session()
    frame = spark.range(0, rows, 1, 2).selectExpr(
        "CAST(lpad(CAST(id AS STRING), 12, '0') AS BINARY) AS key",
        f"CAST(lpad(CAST(id AS STRING), {RECORD_BYTES}, 'x') AS BINARY) AS value",
    )
    frame = frame.persist()
    frame.count()
    rates = []
    for _ in range(rounds):
        at = time.perf_counter()
        writer = frame.write.format("kafka").option("kafka.bootstrap.servers", bootstrap).option("topic", topic)
        writer.option("kafka.linger.ms", "5").option("kafka.acks", "all").save()
        rates.append(rows / (time.perf_counter() - at))
    return rates


def fill(bootstrap: str, topic: str, values: Iterator[bytes], partitions: int) -> int:
    """The values into the topic's partitions in turn; returns how many."""
    from confluent_kafka import Producer

    producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 20, "compression.type": "none"})
    count = 0
    for value in values:
        put(producer, topic, value, count % partitions)
        count += 1
    flush(producer, topic)
    return count


def put(producer: Any, topic: str, value: bytes, partition: int) -> None:
    """Produces a record. Waits while the producer's queue is full."""
    while True:
        try:
            return producer.produce(topic, value, partition=partition)
        except BufferError:
            producer.poll(0.1)


def flush(producer: Any, topic: str) -> None:
    if producer.flush(60) > 0:
        raise RuntimeError(f"not all records of topic {topic} were delivered")
