"""FileState and Spark: what `spark.read` sees of a folder, and a topology on Spark that writes one."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from contracts.crashing import Driver
from remotes import Remote

from states.files import FileState, RowUpdater
from trident_py import Fields, TridentTopology
from trident_py.testing import FixedBatchSpout
from trident_py.tuples import TridentTuple

pytestmark = pytest.mark.spark
COLUMNS = ["word string", "n bigint"]


def batch(txid: int, size: int = 20) -> list[TridentTuple]:
    return [TridentTuple.of(["word", "n"], (f"w{n}", txid)) for n in range(size)]


def values(*txids: int) -> Counter[tuple]:
    return Counter(tuple(row) for txid in txids for row in batch(txid))


def read(spark: Any, folder: Any, format: str = "parquet") -> Counter[tuple]:
    reader = spark.read if format == "parquet" else spark.read.schema("word string, n bigint")
    options = {"header": True, "escape": '"', "multiLine": True} if format == "csv" else {}
    rows = reader.load(str(folder), format=format, **options).select("word", "n").collect()
    return Counter(map(tuple, rows))


MODES = [pytest.param("files", marks=pytest.mark.whole), pytest.param("batches", marks=pytest.mark.whole), "manifest"]


@pytest.mark.parametrize("mode", MODES)
def test_spark_sees_whole_batches_and_each_row_once(spark: Any, tmp_path: Path, mode: str) -> None:
    """It reads while batches are published and, where they are, compacted and deleted."""
    more = {"compact": "1MB", "grace": "30s"} if mode == "manifest" else {}
    factory = FileState(tmp_path / "rows", columns=COLUMNS, visible=mode, **more)
    running = Driver(factory, RowUpdater())
    running.batch(batch(1), 1)
    over, published = threading.Event(), [1]

    def publish() -> None:
        while not over.is_set():
            txid = published[-1] + 1
            running.run(batch(txid), txid, of=4, only={0, 1})
            running.batch(batch(txid), txid, of=4, attempt=1)
            published.append(txid)

    writer = threading.Thread(target=publish)
    writer.start()
    try:
        seen = [read(spark, factory.uri) for _ in range(12)]
    finally:
        over.set()
        writer.join()
    for found in seen:
        assert found == values(*range(1, max(n for _, n in found) + 1))
    assert len({len(found) for found in seen}) > 2
    assert read(spark, factory.uri) == values(*published) == factory.stored()


@pytest.mark.parametrize("format", ["csv", "json"])
def test_spark_reads_the_other_formats(spark: Any, tmp_path: Path, format: str) -> None:
    factory = FileState(tmp_path / "rows", format, COLUMNS)
    running = Driver(factory, RowUpdater())
    strange = [TridentTuple.of(["word", "n"], row) for row in [("a\n\"b\",c", 1), (None, None), ("ü\\", -5)]]
    running.batch(strange, 1)
    assert read(spark, factory.uri, format) == Counter(map(tuple, strange)) == factory.stored()


def test_spark_reads_a_folder_whose_name_is_odd(spark: Any, tmp_path: Path) -> None:
    factory = FileState(tmp_path / "a b%41ü", columns=COLUMNS)
    running = Driver(factory, RowUpdater())
    for txid in range(1, 26):  # more lists than are kept
        running.batch(batch(txid, 2), txid)
    assert sum(read(spark, factory.uri).values()) == 50


def topology(factory: FileState, rows: list[tuple]) -> Any:
    topology = TridentTopology()
    stream = topology.newStream("s", FixedBatchSpout(Fields("word string", "n bigint"), 3, *rows))
    stream.partitionBy("word").partitionPersist(factory).parallelismHint(2)
    return topology.build()


def test_a_topology_on_spark_writes_files(spark: Any, spark_cluster: Callable[..., Any], tmp_path: Path) -> None:
    rows = [(f"w{n % 5}", n) for n in range(20)]
    factory = FileState(tmp_path / "rows")
    running = spark_cluster().submitTopology("t", {}, topology(factory, rows))
    assert running.awaitTermination(120)
    assert factory.stored() == read(spark, factory.uri) == Counter(rows)


def test_a_topology_on_spark_writes_to_a_store(
    spark: Any, spark_cluster: Callable[..., Any], remote: Remote, request: pytest.FixtureRequest
) -> None:
    """And a Spark that knows nothing of ours reads it there."""
    server = request.getfixturevalue(remote.kind)
    rows = [(f"w{n % 5}", n) for n in range(20)]
    factory = FileState(f"{remote.uri}/rows", storage=server.storage, visible="manifest")
    running = spark_cluster().submitTopology("t", {}, topology(factory, rows))
    assert running.awaitTermination(120)
    assert factory.stored() == read(spark, factory.uri) == Counter(rows)
