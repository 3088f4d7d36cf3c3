"""The word count into a SQL table: Storm's counts, and its answers after each batch."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Any

import pytest
from ported import finished, printed, until

from examples import trident_word_count_sql, word_count
from trident_py import LocalCluster, LocalDRPC

MOST = [("the", 5), ("to", 3), ("and", 2), ("be", 2)]


def rows(file: Path) -> list[tuple]:
    with sqlite3.connect(file) as db:
        return db.execute("select word, count from word_counts order by count desc, word").fetchall()


def check(cluster: Any, file: Path) -> None:
    finished(cluster, word_count.build(state=trident_word_count_sql.counts(f"sqlite:///{file}")))
    found = rows(file)
    assert found[:4] == MOST
    assert len(found) == 28 and {count for _, count in found[4:]} == {1}


def test_the_table_has_storms_counts(tmp_path: Path) -> None:
    with LocalCluster() as cluster:
        check(cluster, tmp_path / "counts.db")


def test_the_answers_after_each_batch_are_storms(tmp_path: Path) -> None:
    state, drpc = trident_word_count_sql.counts(f"sqlite:///{tmp_path}/counts.db"), LocalDRPC()
    seen = {}

    def ask(txid: int) -> None:
        seen[txid] = dict(drpc.execute("words", "cat the dog jumped"))

    with LocalCluster() as cluster:
        until(cluster, word_count.build(cycle=True, state=state, drpc=drpc), 4, then=ask)
    assert 4 in seen
    assert seen == {n: {"the": 5 * (n // 2) + 4 * (n % 2), "jumped": (n + 1) // 2} for n in seen}


def test_the_module_prints_the_answer_and_the_counts(tmp_path: Path) -> None:
    lines = printed("trident_word_count_sql", f"sqlite:///{tmp_path}/counts.db", "--local")
    assert lines[:5] == ["DRPC RESULT: [['jumped', 1], ['the', 5]]", "  5 the", "  3 to", "  2 and", "  2 be"]


@pytest.mark.spark
@pytest.mark.whole("test_the_table_has_storms_counts")
def test_the_table_has_storms_counts_on_spark(spark_cluster: Any, tmp_path: Path) -> None:
    check(spark_cluster(), tmp_path / "counts.db")
