"""Names of tables and columns that would be SQL if they were not quoted, and values that would be if not bound."""

from __future__ import annotations

import pytest

from states.sql import AppendState, BatchState, InsertIgnoreState, RowUpdater, SqlMapState
from states.sql.store import close_stores
from trident_py import DefinitionError, LocalCluster, TridentTopology
from trident_py.operations.builtin import Count
from trident_py.spouts import FixedBatchSpout
from trident_py.testing import stored
from trident_py.testing.databases import connection

from .drawing import refusal

NAMES = ["a'; DROP TABLE kept; --", "select", "a:b\\", "(ü'"]
WORDS = ["'; DROP TABLE kept; --", '"', "`", "\\", "%s", ":a", "%(a)s", "?", "\\'", "é", "'); --"]


@pytest.mark.parametrize("name", ['a"b', "a`b", "a%sb", "a?", "a\0", ""])
def test_a_name_that_cannot_be_quoted_everywhere_is_refused(name: str) -> None:
    for made in (
        lambda: AppendState("sqlite:///a.db", name),
        lambda: AppendState("sqlite:///a.db", "t", columns=[name]),
    ):
        error = refusal(made, repr(name) if name else "")
        assert isinstance(error, DefinitionError)


@pytest.mark.parametrize("name", NAMES)
def test_a_name_is_a_name_and_a_value_a_value(database: str, name: str) -> None:
    with connection(database) as store:
        store.exec_driver_sql("CREATE TABLE kept (n int)")
    column = name.translate({ord(each): "_" for each in " ;-"})
    topology = TridentTopology()
    words = topology.newStream("s", FixedBatchSpout(column, 4, *[[word] for word in WORDS + WORDS]))
    counts = SqlMapState.opaque(database, f"{name}1", f"{column} string", "count bigint")
    words.groupBy(column).persistentAggregate(counts, Count(), "count")
    fields = [f"{column} string"]
    for state in (AppendState(database, f"{name}2", columns=fields), BatchState(database, f"{name}3", columns=fields),
                  InsertIgnoreState(database, f"{name}4", key=fields, columns=fields)):  # fmt: skip
        words.partitionPersist(state, [column], RowUpdater())
    with LocalCluster() as cluster:
        assert cluster.submitTopology("names", {}, topology.build()).awaitTermination(60)
    assert {word: value.curr for (word,), value in stored(counts).items()} == dict.fromkeys(WORDS, 2)
    with connection(database) as store:
        assert list(store.exec_driver_sql("SELECT n FROM kept")) == []
    close_stores()
