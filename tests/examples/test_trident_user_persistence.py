"""The port of UserPersistenceTridentTopology: each user's row has the department that the query found."""

from __future__ import annotations

import datetime
import sqlite3
from pathlib import Path
from typing import Any

import pytest
from ported import finished, printed

from examples import trident_user_persistence
from examples.trident_user_persistence import UserSpout
from trident_py import LocalCluster

PETER, BOB = (1, "peter", "R&D"), (2, "bob", "Finance")


def written(cluster: Any, folder: Path) -> list[tuple]:
    file = folder / "users.db"
    trident_user_persistence.setUp(str(file))
    finished(cluster, trident_user_persistence.build(f"sqlite:///{file}", UserSpout(limit=200)))
    with sqlite3.connect(file) as db:
        return db.execute("select user_id, user_name, dept_name, create_date from user").fetchall()


def check(rows: list[tuple]) -> None:
    assert len(rows) == 200
    assert {row[:3] for row in rows} == {PETER, BOB}
    today = datetime.date.today()
    assert {row[3] for row in rows} <= {str(today), str(today - datetime.timedelta(days=1))}


def test_the_rows_are_storms(tmp_path: Path) -> None:
    with LocalCluster() as cluster:
        check(written(cluster, tmp_path))


def test_the_module_prints_its_users(tmp_path: Path) -> None:
    lines = printed("trident_user_persistence", f"sqlite:///{tmp_path}/users.db", "--local")
    assert {line.rpartition(", ")[0] for line in lines} <= {"(1, 'peter', 'R&D'", "(2, 'bob', 'Finance'"} and lines


@pytest.mark.spark
@pytest.mark.whole("test_the_rows_are_storms")
def test_the_rows_are_the_same_on_spark(spark_cluster: Any, tmp_path: Path) -> None:
    check(written(spark_cluster(), tmp_path))
