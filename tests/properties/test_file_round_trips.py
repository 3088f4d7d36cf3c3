"""What FileState writes, FileSpout reads back, in every format; and what it reads, FileState writes again.

A run of many examples: ROUND_TRIPS=20000 python -m pytest tests/properties/test_file_round_trips.py --hypothesis-seed=1
"""

from __future__ import annotations

import math
import shutil
from pathlib import Path
from typing import Any

import pytest
from contracts.crashing import Driver
from hypothesis import example, given
from hypothesis import strategies as st
from spouts.harness import Player, flat

from states.files import FileState, RowUpdater
from trident_py.errors import TridentError
from trident_py.model.chunks import Column, convert, to_list
from trident_py.spouts import FileSpout
from trident_py.tuples import TridentTuple

from .test_round_trips import Typed, often, typed_values
from .values import is_same

FORMATS = st.sampled_from(["parquet", "csv", "json"])


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("file_round_trips") / "rows"


def write(folder: Path, format: str, columns: list[str], rows: list[tuple]) -> FileState:
    """Writes the rows as the only batch of a new folder."""
    shutil.rmtree(folder, ignore_errors=True)
    factory = FileState(folder, format, columns, sync="never")
    Driver(factory, RowUpdater()).batch([TridentTuple.of(["v", "w"][: len(columns)], row) for row in rows], 1, of=1)
    return factory


def read(folder: Path, columns: list[str], size: int, partitions: int) -> list[tuple]:
    player = Player(FileSpout(folder, columns, batchSize=size, multiline=True), partitions=partitions)
    try:
        return flat(player.to_end())
    finally:
        player.close()


def accepted(ddl: str, values: list[Any]) -> list[Any]:
    """Those of the values that a column of this type holds, as it holds them."""
    kept: list[Any] = []
    for each in values:
        try:
            column: Column = convert([each], ddl, "v")
        except TridentError:
            continue
        kept += to_list(column)
    return kept


def cannot(format: str, ddl: str, values: list[Any], alone: bool) -> bool:
    """Whether a format has no way to write these values."""
    if format == "csv":
        return ddl == "binary" or (alone and None in values)
    return format == "json" and any(isinstance(each, float) and not math.isfinite(each) for each in values)


@often
@example(("string", ["", "NA", None, "two\nlines", '12" vinyl', "\ufeff", "a\rb\r\n"]), "csv", "json", False, 1, 2)
@example(("bigint", [1, None, 3]), "csv", "parquet", True, 1, 1)
@example(("binary", [b"", b"\0\xff", None]), "json", "parquet", True, 2, 1)
@given(typed_values(), FORMATS, FORMATS, st.booleans(), st.integers(1, 3), st.integers(1, 2))
def test_what_is_written_is_read_and_written_again(
    folder: Path, drawn: Typed, first: str, second: str, alone: bool, size: int, partitions: int
) -> None:
    ddl, values = drawn[0], accepted(*drawn)
    columns = [f"v {ddl}"] if alone else [f"v {ddl}", "w string"]
    rows = [(each,) if alone else (each, f"{at}\n") for at, each in enumerate(values)]
    for format in (first, second):
        if cannot(format, ddl, values, alone):
            with pytest.raises(TridentError, match=format):
                write(folder, format, columns, rows)
            return
        factory = write(folder, format, columns, rows)
        found = read(folder, columns, size, partitions) if rows else []
        for before, after, own in zip(rows, found, factory.read(), strict=True):
            assert is_same(ddl, before[0], after[0]) and is_same(ddl, before[0], own[0]), (format, before, after, own)
            assert before[1:] == after[1:] == own[1:]
        rows = found
