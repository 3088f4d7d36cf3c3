"""The rows of a batch in the order of their keys."""

from __future__ import annotations

import datetime
import decimal
import random
from typing import Any

import pyarrow as pa
import pytest

from states.columns.arrow import KeyedRows
from states.columns.values import Column

DRAW = random.Random(3)
KEYS: dict[str, Any] = {
    "string": [f"{DRAW.randrange(300):x}ü" for _ in range(1000)],
    "bigint": [DRAW.randrange(-300, 300) for _ in range(1000)],
    "double": [DRAW.randrange(1, 300) / 7 for _ in range(1000)],
    "boolean": [DRAW.random() < 0.5 for _ in range(1000)],
    "binary": [DRAW.randbytes(1) for _ in range(1000)],
    "date": [datetime.date(2026, 1, 1) + datetime.timedelta(DRAW.randrange(300)) for _ in range(1000)],
    "decimal(5,1)": [decimal.Decimal(DRAW.randrange(300)) / 10 for _ in range(1000)],
}


def rows(ddls: list[str], *keys: list) -> KeyedRows:
    columns = [Column(f"k{i}", ddl, True) for i, ddl in enumerate(ddls)]
    number = pa.array(range(len(keys[0])))
    return KeyedRows([*columns, Column("n", "bigint")], [*map(pa.array, keys), number])


def order(made: KeyedRows) -> list[int]:
    return [position for part in made.in_key_order() for position in part.to_pylist()]


@pytest.mark.parametrize("ddl", KEYS)
@pytest.mark.parametrize("at_once", [100_000, 100, 3])
def test_rows_are_sorted_by_key_and_equal_keys_stay_in_their_order(
    ddl: str, at_once: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("states.columns.arrow._AT_ONCE", at_once)
    keys = KEYS[ddl]
    made = rows([ddl], keys)
    assert order(made) == sorted(range(1000), key=lambda i: (keys[i], i))
    first = [n for part in made.in_key_order() for n in part.filter(made.first(part)).to_pylist()]
    assert sorted(first) == sorted({key: i for i, key in reversed(list(enumerate(keys)))}.values())


@pytest.mark.parametrize("at_once", [100_000, 10])
def test_keys_of_two_columns(at_once: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("states.columns.arrow._AT_ONCE", at_once)
    pairs = list(zip(KEYS["boolean"], KEYS["date"], strict=True))
    made = rows(["boolean", "date"], KEYS["boolean"], KEYS["date"])
    assert order(made) == sorted(range(1000), key=lambda i: (*pairs[i], i))
    positions = pa.array(order(made))
    assert len(positions.filter(made.first(positions))) == len(set(pairs))


def test_rows_that_are_sorted_already_stay_as_they_are() -> None:
    for keys in ([], [1], [1, 1, 2, 3, 3]):
        assert order(rows(["bigint"], pa.array(keys, pa.int64()))) == list(range(len(keys)))  # type: ignore[arg-type]


def test_rows_go_to_a_driver_in_the_form_of_the_column() -> None:
    at = datetime.datetime(2026, 1, 2, 3, 4, 5)
    ddls = {"k": "date", "t": "timestamp", "z": "timestamp", "d": "decimal(5,2)"}
    columns = [Column(name, ddl, name == "k") for name, ddl in ddls.items()]
    arrays = [
        pa.array([at.date()]), pa.array([at], pa.timestamp("us")), pa.array([at], pa.timestamp("us", "UTC")),
        pa.array([decimal.Decimal("1.50")]),
    ]  # fmt: skip
    wanted = ("2026-01-02", "2026-01-02 03:04:05.000000", "2026-01-02 03:04:05.000000+00:00", "1.50")
    assert KeyedRows(columns, arrays).python() == [wanted]
    assert KeyedRows(columns, arrays).python_keys() == [wanted[:1]]
