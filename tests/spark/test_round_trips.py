"""What comes out of a source of Spark is what went in: every type of Spark that a field may have, and its edges."""

from __future__ import annotations

import datetime
import decimal
import itertools
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from properties.values import DECIMALS, DOUBLES, INSTANTS, INTEGERS, OF_TYPE, TEXT_EDGES, is_same

from trident_py import TridentTopology
from trident_py.model.chunks import arrow_type
from trident_py.spouts import SparkSpout
from trident_py.testing import collect

pytestmark = pytest.mark.spark
ROWS = 100
EXAMPLES = max(1, int(os.environ.get("ROUND_TRIPS", "200")) // ROWS)
DATES = [datetime.date.min, datetime.date.max, datetime.date(1582, 10, 10), datetime.date(1582, 10, 4)]
FLOATS = [*DOUBLES, float("inf"), float("-inf"), float("nan")]
EDGES: dict[str, Sequence[Any]] = {
    "string": TEXT_EDGES, "bigint": INTEGERS, "int": INTEGERS, "smallint": INTEGERS, "tinyint": INTEGERS,
    "double": FLOATS, "float": FLOATS, "date": DATES,
    "timestamp": [each.replace(tzinfo=datetime.UTC) for each in INSTANTS], "timestamp_ntz": INSTANTS,
    "binary": [b"", b"\0", bytes(range(256))],
}  # fmt: skip
SCHEMA = ", ".join(["n bigint", *(f"v{at} {ddl}" for at, ddl in enumerate(OF_TYPE))])
A_ROW = st.tuples(*(st.none() | strategy for strategy in OF_TYPE.values()))


def held(ddl: str, value: Any) -> Any:
    """The value if a DataFrame's column can hold it, else None."""
    try:
        return pa.array([value], arrow_type(ddl))[0].as_py()
    except (pa.ArrowException, OverflowError, UnicodeEncodeError, TypeError, ValueError):
        return None


def edges(ddl: str) -> list[Any]:
    given_edges = map(decimal.Decimal, DECIMALS) if ddl.startswith("decimal") else EDGES.get(ddl, [True, False])
    return [held(ddl, each) for each in given_edges]


@settings(max_examples=EXAMPLES, deadline=None, database=None, suppress_health_check=list(HealthCheck))
@given(st.lists(A_ROW, min_size=ROWS, max_size=ROWS))
def test_a_row_of_a_data_frame_comes_out_as_it_was(
    spark: Any, spark_cluster: Callable[..., Any], tmp_path_factory: pytest.TempPathFactory, drawn: list[tuple]
) -> None:
    folder: Path = tmp_path_factory.mktemp("frame")
    columns = [[held(ddl, row[at]) for row in drawn] for at, ddl in enumerate(OF_TYPE)]
    rows = [*zip(*columns, strict=True), *itertools.zip_longest(*map(edges, OF_TYPE))]
    arrays = [pa.array(column, arrow_type(ddl)) for column, ddl in zip(zip(*rows, strict=True), OF_TYPE, strict=True)]
    table = pa.table([pa.array(range(len(rows))), *arrays], ["n", *(f"v{at}" for at in range(len(OF_TYPE)))])
    spark.createDataFrame(table).coalesce(1).write.parquet(str(folder / "in"))
    spout = SparkSpout("parquet", {"path": str(folder / "in")}, schema=SCHEMA)
    topology = TridentTopology()
    collect(topology.newStream("frame", spout).partitionBy("n").parallelismHint(2), "rows")
    running = spark_cluster(folder / "checkpoints").submitTopology("t", {}, topology.build(), availableNow=True)
    assert running.awaitTermination(120)
    found = sorted(row for each in running.collected("rows").values() for row in each)
    assert [row[0] for row in found] == list(range(len(rows)))
    for before, (_, *after) in zip(rows, found, strict=True):
        for ddl, one, other in zip(OF_TYPE, before, after, strict=True):
            assert is_same(ddl, one, other), (ddl, one, other)
