"""A store that is replaced or changed while a process lives that had it open: a notebook, a worker of Spark's."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
import sqlalchemy as sa
from contracts.crashing import Driver
from faults.backups import dump, restore

from states.sql import AppendState, InsertIgnoreState, RowUpdater
from trident_py.errors import StateError
from trident_py.state import SILENT, persist
from trident_py.tuples import Fields, TridentTuple

pytestmark = pytest.mark.dear

FIELDS = Fields("word string")
ROOT = Path(__file__).parents[2]
DRIVER = """
import json, sys
from states.sql import InsertIgnoreState
driver = InsertIgnoreState(sys.argv[1], "kept", "word", ["word string"]).participant()
print(driver.open(json.loads(sys.argv[2])))
driver.prepare(1, 0, 1)
"""


def rows(url: str) -> AppendState:
    return AppendState(url, "rows", ["word string"])


def batch(driver: Driver, txid: int) -> None:
    driver.batch([TridentTuple.of(FIELDS, (f"w{txid}",))], txid, of=1)


def change(url: str, text: str) -> None:
    engine = sa.create_engine(url, poolclass=sa.NullPool)
    with engine.begin() as connection:
        connection.execute(sa.text(text))


def test_what_an_earlier_run_had_open_is_not_written_when_the_store_was_restored(database: str, tmp_path: Path) -> None:
    first = Driver(rows(database), RowUpdater())
    batch(first, 1)
    backup = dump(database, tmp_path / "backup")
    batch(first, 2)
    restore(database, backup)
    second = Driver(rows(database), RowUpdater())
    assert second.participant.remembered(second.conf).written == 1
    batch(second, 2)
    restored = dump(database, tmp_path / "again")
    restore(database, restored)
    assert rows(database).stored() == {("w1",): 1, ("w2",): 1}


@pytest.mark.parametrize("database", ["sqlite"], indirect=True)
def test_a_file_replaced_under_a_running_driver_ends_it(database: str, tmp_path: Path) -> None:
    empty = dump(database, tmp_path / "empty")
    driver = Driver(rows(database), RowUpdater())
    batch(driver, 1)
    restore(database, empty)
    with pytest.raises(StateError, match="no such table"):
        batch(driver, 2)


def test_a_table_that_was_changed_since_an_earlier_run_of_the_process_is_looked_at_again(database: str) -> None:
    batch(Driver(rows(database), RowUpdater()), 1)
    table = "`rows`" if database.startswith("mysql") else '"rows"'
    change(database, f"ALTER TABLE {table} RENAME COLUMN word TO other")
    with pytest.raises(StateError, match=r"table 'rows' in .* has no column 'word'; it has: other"):
        batch(Driver(rows(database), RowUpdater()), 2)
    change(database, f"DROP TABLE {table}")
    with pytest.raises(StateError, match=r"table 'rows' .* is gone"):
        batch(Driver(rows(database), RowUpdater()), 2)


def test_a_process_that_outlives_a_run_looks_at_the_tables_of_the_next_run_again(database: str, tmp_path: Path) -> None:
    """As a worker of Spark's does, whose driver is another process."""
    empty = dump(database, tmp_path / "empty")
    conf = {"topology.name": "t", "trident.state.name": "s", "trident.lineage": "one"}
    tuples = [TridentTuple.of(FIELDS, ("a",))]
    for run in ("first", "second"):
        driver = [sys.executable, "-c", DRIVER, database, json.dumps(conf)]
        opened = subprocess.run(driver, capture_output=True, text=True, check=True, cwd=ROOT)
        own = {**conf, "trident.generation": int(opened.stdout), "trident.run": run}
        state = InsertIgnoreState(database, "kept", "word", ["word string"]).makeState(own, None, 0, 1)
        assert persist(state, 1, RowUpdater(), tuples, SILENT) == {"partition": 0, "inserted": 1, "ignored": 0}
        restore(database, empty)
