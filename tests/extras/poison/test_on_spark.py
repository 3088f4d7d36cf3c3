"""Poison tuples on Spark, where each task commits by itself."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from states.sql import AppendState, BatchState
from trident_py import DefinitionError, Fields, TridentTopology
from trident_py.spouts import SparkSpout

from .support import CONF, Row, agree, build, letters, table

pytestmark = pytest.mark.spark

SMALL = [[[Row("r1", "a", 1), Row("r2", "b", 2, 1, "first")], [Row("r3", "c", 4)]], [[Row("r4", "a", 8)], []]]
LARGE = [
    [[Row("r1", "a", 1), Row("r2", "b", 2, 1, "second")], [Row("r3", "c", 4), Row("r4", "d", 8, 1, "side")]],
    [[Row("r5", "a", 16)], []],
    [[Row("r6", "b", 32), Row("r7", "c", 64, 1, "first")], [Row("r8", "e", 128, 1, "second"), Row("r9", "a", 256)]],
]


def test_a_poison_tuple_becomes_a_letter_and_the_rest_commits(
    spark_cluster: Callable[..., Any], tmp_path: Path
) -> None:
    built = build("append", tmp_path, SMALL)
    running = spark_cluster().submitTopology("t", CONF, built.topology)
    assert running.awaitTermination(240)
    agree("append", tmp_path, SMALL, built, running)


@pytest.mark.whole("test_a_poison_tuple_becomes_a_letter_and_the_rest_commits")
@pytest.mark.parametrize("kind", ["memory", "sql-opaque", "sql-transactional", "insert-ignore", "batch", "window"])
def test_every_state_holds_what_a_fold_of_the_healthy_tuples_holds(
    spark_cluster: Callable[..., Any], tmp_path: Path, kind: str
) -> None:
    built = build(kind, tmp_path, LARGE)
    running = spark_cluster().submitTopology("t", CONF, built.topology)
    assert running.awaitTermination(600)
    agree(kind, tmp_path, LARGE, built, running)


@pytest.mark.whole("test_a_poison_tuple_becomes_a_letter_and_the_rest_commits")
def test_a_source_of_spark_has_letters_too(spark_cluster: Callable[..., Any], tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    lines = [json.dumps({"id": f"r{number}", "n": number}) for number in range(9)]
    (tmp_path / "in" / "rows.json").write_text("\n".join(lines))

    def check(values: Any) -> Any:
        return (values[0], 100 // (values[1] - 3))

    def made(hint: int) -> Any:
        topology = TridentTopology()
        spout = SparkSpout("json", {"path": str(tmp_path / "in")}, schema="id string, n bigint")
        rows = topology.newStream("rows", spout).parallelismHint(hint)
        url = f"sqlite:///{tmp_path}/out.db"
        kept = AppendState(url, "kept", columns=Fields("id string", "part bigint"))
        rows.map(check, Fields("id", "part")).partitionPersist(kept, ["id", "part"])
        rows.deadLetters().partitionPersist(BatchState(f"sqlite:///{tmp_path}/letters.db", "letters"))
        return topology.build()

    cluster = spark_cluster(tmp_path / "checkpoints")
    with pytest.raises(DefinitionError, match="in no fixed order"):
        cluster.submitTopology("t", CONF, made(2))
    running = cluster.submitTopology("t", CONF, made(1), availableNow=True)
    assert running.awaitTermination(240)
    assert [row[3:5] for row in letters(tmp_path)] == [(3, '["r3", 3]')]
    assert len(table(tmp_path / "out.db", "SELECT id FROM kept")) == 8
