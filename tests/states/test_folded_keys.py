"""Keys that are two for the engine and one for the database are refused, not merged."""

from __future__ import annotations

import datetime
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from semantics.support import Batches

from states import RowUpdater
from states.columns.arrow import refusals
from states.columns.values import Column, RefusedValue
from states.sql import InsertIgnoreState, SqlMapState
from trident_py import LocalCluster, TopologyError, TridentTopology
from trident_py.errors import StateError
from trident_py.operations.builtin import Count

NOON = datetime.datetime(2026, 1, 1, 12)
ZONED = NOON.replace(tzinfo=datetime.UTC)
REFUSED = "has (a|no) time zone|are two keys"


@pytest.mark.parametrize("ddl, keys", [("timestamp", (NOON, ZONED)), ("decimal(5)", (Decimal(1), 1))])
def test_two_keys_that_a_column_holds_as_one_are_refused(database: str, ddl: str, keys: tuple[Any, Any]) -> None:
    factory = SqlMapState.opaque(database, "t", f"k {ddl}", "n bigint")
    state = factory.makeState({}, None, 0, 1)
    state.beginCommit(1)
    if database.startswith("sqlite") and ddl == "timestamp":  # which keeps the zone as it was written
        state.multiPut([(key,) for key in keys], [1, 2])
        state.commit(1)
        assert len(factory.stored()) == 2
        return
    with pytest.raises(StateError, match=REFUSED):
        state.multiPut([(key,) for key in keys], [1, 2])
    state.rollback(1)
    assert factory.stored() == {}


def finished(topology: TridentTopology) -> None:
    with LocalCluster() as cluster:
        cluster.submitTopology("folded", None, topology.build()).awaitTermination(60)


@pytest.mark.parametrize("hint", [1, 4])
@pytest.mark.parametrize("ddl, keys", [("timestamp", (NOON, ZONED)), ("decimal(5,2)", (Decimal(1), 1))])
def test_a_count_of_such_keys_is_refused_in_any_number_of_partitions(
    database: str, ddl: str, keys: tuple[Any, Any], hint: int
) -> None:
    factory = SqlMapState.transactional(database, "t", f"k {ddl}", "n bigint")
    topology = TridentTopology()
    stream = topology.newStream("s", Batches("k", [[(key,) for key in keys * 2]])).parallelismHint(4)
    stream.groupBy("k").persistentAggregate(factory, [], Count(), "n").parallelismHint(hint)
    if database.startswith("sqlite") and ddl == "timestamp":
        finished(topology)
        assert [row.value for row in factory.stored().values()] == [2, 2]
        return
    with pytest.raises(TopologyError, match=REFUSED):
        finished(topology)
    assert factory.stored() == {}


@pytest.mark.parametrize("hint", [1, 4])
def test_rows_of_such_keys_are_refused_and_none_is_dropped(database: str, hint: int) -> None:
    factory = InsertIgnoreState(database, "t", "k", ["k timestamp", "n bigint"])
    topology = TridentTopology()
    rows = [(NOON, 1), (NOON, 2), (ZONED, 3), (ZONED, 4)]
    stream = topology.newStream("s", Batches(["k", "n"], [rows])).partitionBy("k")
    stream.partitionPersist(factory, ["k", "n"], RowUpdater()).parallelismHint(hint)
    if database.startswith("sqlite"):
        finished(topology)
        assert len(factory.stored()) == 2
        return
    with pytest.raises(TopologyError, match="has a time zone, the others here have none"):
        finished(topology)
    assert factory.stored() == {}


def test_all_strangers_of_a_batch_are_dead_letters() -> None:
    column = Column("at", "timestamp", True, ("zone",))
    assert set(refusals(column, [NOON, ZONED, None, NOON, ZONED])) == {1, 2, 4}
    assert refusals(column, [ZONED, ZONED]) == {} == refusals(column, pa.array([ZONED]))


PLAIN: dict[str, list[tuple[Any, Any]]] = {
    "bigint": [(np.int8(1), 1), (pd.NA, None), (np.uint64(2**63 - 1), 2**63 - 1)],
    "double": [(np.float32(0.5), 0.5), (np.float64(1), 1.0), (pd.NaT, None)],
    "string": [(np.str_("a"), "a"), (pd.NA, None)],
    "boolean": [(np.bool_(True), True), (pd.NA, None)],
    "binary": [(np.bytes_(b"a"), b"a"), (memoryview(b"b"), b"b"), (pd.NA, None)],
    "date": [(np.datetime64("2026-01-01"), NOON.date()), (pd.NaT, None), (np.datetime64("NaT"), None)],
    "timestamp": [(pd.Timestamp(NOON), NOON), (np.datetime64(NOON), NOON), (pd.NaT, None), (pd.NA, None)],
    "decimal(20,2)": [(np.int64(1), Decimal(1)), (pd.NA, None)],
    "json": [(np.float64(1.5), 1.5), (np.int64(1), 1), (pd.NA, None)],
}


@pytest.mark.parametrize("ddl", PLAIN)
def test_scalars_of_numpy_and_pandas_are_stored_as_what_they_mean(database: str, ddl: str) -> None:
    factory = SqlMapState.nonTransactional(database, "t", "k bigint", f"v {ddl}")
    state = factory.makeState({}, None, 0, 1)
    state.beginCommit(1)
    state.multiPut([(np.int64(i),) for i in range(len(PLAIN[ddl]))], [given for given, _ in PLAIN[ddl]])
    state.commit(1)
    assert [factory.stored().get((i,)) for i in range(len(PLAIN[ddl]))] == [wanted for _, wanted in PLAIN[ddl]]


@pytest.mark.parametrize("ddl", PLAIN)
@pytest.mark.parametrize("value", [pd.Timestamp(1), np.timedelta64(1, "ns"), np.array(["a"]), np.longdouble(1) / 3])
def test_what_no_column_holds_exactly_is_refused(ddl: str, value: Any) -> None:
    for key in (False, ddl != "json"):
        with pytest.raises(RefusedValue):
            Column("v", ddl, key).encode([value])
    with pytest.raises(RefusedValue, match=r"cannot hold null|two keys"):
        Column("v", "date" if ddl == "json" else ddl, True).encode([pd.NaT])
