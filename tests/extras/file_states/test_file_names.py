"""Columns of files under any name: blanks, dots, quotes, none at all."""

from __future__ import annotations

from pathlib import Path

import pytest
from contracts.crashing import Driver
from spouts.harness import Player, flat

from states.files import FileState, RowUpdater
from trident_py import Fields
from trident_py.spouts import FileSpout
from trident_py.tuples import TridentTuple

NAMES = ["wind speed", "a.b", "", " ", "birth date", 'a "quoted" name', "a, b", "two\nlines", "`"]


@pytest.mark.parametrize("format", ["csv", "json", "parquet"])
def test_columns_of_any_name_are_written_and_read(tmp_path: Path, format: str) -> None:
    columns = Fields.of_names(NAMES, dict.fromkeys(NAMES, "bigint"))
    driver = Driver(FileState(tmp_path / "rows", format, columns), RowUpdater())
    row = tuple(range(len(NAMES)))
    for txid in (1, 2):
        driver.batch([TridentTuple.of(columns, row)], txid, of=1)
    for fields in (columns, Fields.of_names(reversed(NAMES))):
        spout = FileSpout(tmp_path / "rows", fields, multiline=True)
        (found, again) = flat(Player(spout).to_end())
        assert found == again == tuple(row[NAMES.index(name)] if fields is columns or format != "csv" else
                                       str(row[NAMES.index(name)]) for name in fields)  # fmt: skip
    player = Player(FileSpout(tmp_path / "rows", ["`wind speed` double", "a.b"], multiline=True))
    assert flat(player.to_end())[0] == (0.0, "1" if format == "csv" else 1)
