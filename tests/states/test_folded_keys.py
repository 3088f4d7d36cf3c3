"""Keys that are two for the engine and one for the database are refused, not merged."""

from __future__ import annotations

import datetime
from decimal import Decimal
from typing import Any

import pytest

from states.sql import SqlMapState
from trident_py.errors import StateError

NOON = datetime.datetime(2026, 1, 1, 12)


@pytest.mark.parametrize(
    "ddl, keys", [("timestamp", (NOON, NOON.replace(tzinfo=datetime.UTC))), ("decimal(5)", (1, Decimal(1)))]
)
def test_two_keys_that_a_column_holds_as_one_are_refused(database: str, ddl: str, keys: tuple[Any, Any]) -> None:
    factory = SqlMapState.opaque(database, "t", f"k {ddl}", "n bigint")
    state = factory.makeState({}, None, 0, 1)
    state.beginCommit(1)
    if database.startswith("sqlite") and ddl == "timestamp":  # which keeps the zone as it was written
        state.multiPut([(key,) for key in keys], [1, 2])
        state.commit(1)
        assert len(factory.stored()) == 2
        return
    with pytest.raises(StateError, match="are one in the columns"):
        state.multiPut([(key,) for key in keys], [1, 2])
    state.rollback(1)
    assert factory.stored() == {}
