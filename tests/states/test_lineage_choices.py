"""The ways on after a lost checkpoint, each one setting away."""

from __future__ import annotations

import re
from typing import Any
from unittest import mock

import pytest
from contracts.asking import run as ask
from contracts.crashing import opened

from states.sql import AppendState, InsertIgnoreState, RowUpdater, SqlMapState, ledger
from states.sql.store import close_stores
from trident_py.errors import LineageError, StateError
from trident_py.state import SILENT, persist
from trident_py.tuples import Fields, TridentTuple

pytestmark = pytest.mark.dear

ROW = Fields("word string", "n bigint")


def conf_of(lineage: str, **more: Any) -> dict:
    return {"topology.name": "choices", "trident.state.name": "s", "trident.lineage": lineage, **more}


def start(factory: Any, lineage: str, **more: Any) -> tuple[Any, dict]:
    participant = factory.participant()
    return participant, opened(participant, conf_of(lineage, **more))


def write(factory: Any, participant: Any, conf: dict, txid: int, *words: str) -> None:
    participant.prepare(txid, 0, 1)
    state = factory.makeState(conf, None, 0, 1)
    receipt = persist(state, txid, RowUpdater(), [TridentTuple.of(ROW, (word, txid)) for word in words], SILENT)
    participant.publish(txid, 0, [receipt])


@pytest.mark.parametrize("kind", ["insert-ignore", "append"])
def test_a_new_lineage_begins_at_txid_1_where_no_value_carries_a_txid(database: str, kind: str) -> None:
    rows: Any = AppendState(database, "rows", ROW)
    if kind == "insert-ignore":
        rows = InsertIgnoreState(database, "rows", "word", ROW)
    old, conf = start(rows, "first")
    for txid in (1, 2, 3):
        write(rows, old, conf, txid, f"w{txid}")
    with pytest.raises(LineageError) as told:
        start(rows, "second")
    (named,) = re.findall(r'conf\["topology.lineage.abandon"\] = \'(\w+)\'', str(told.value))
    assert named == "first"
    with pytest.raises(LineageError, match="is 'third', which is another lineage"):
        start(rows, "second", **{"topology.lineage.abandon": "third"})
    new, conf = start(rows, "second", **{"topology.lineage.abandon": "first"})
    assert new.remembered(conf).last == 3  # until the first batch is about to be written
    write(rows, new, conf, 1, "v1")
    assert len(rows.stored()) == 4
    start(rows, "second", **{"topology.lineage.abandon": "first"})  # the setting may stay: it means nothing now
    with pytest.raises(LineageError, match="remembers batch 1"):
        start(rows, "third", **{"topology.lineage.abandon": "first"})


def test_a_map_whose_values_carry_txids_cannot_begin_anew(database: str) -> None:
    words = SqlMapState.opaque(database, "words", "word string", "n bigint")
    old, conf = start(words, "first")
    old.prepare(1, 0, 1)
    state = words.makeState(conf, None, 0, 1)
    state.beginCommit(1)
    state.multiPut([("a",)], [1])
    state.commit(1)
    old.publish(1, 0, [])
    with pytest.raises(LineageError, match="cannot help: the table's values carry txids up to 1"):
        start(words, "second", **{"topology.lineage.abandon": "first"})


def test_a_ledger_of_the_first_version_gets_the_column_of_the_run(database: str) -> None:
    factory = AppendState(database, "rows", ROW)
    write(factory, *start(factory, "first"), 1, "a")
    ask(database, "ALTER TABLE trident_fence DROP COLUMN run")
    close_stores()
    new, conf = start(factory, "first", **{"trident.run": "t-other"})
    assert new.remembered(conf).run == ""
    write(factory, new, conf, 2, "b")
    assert new.remembered(conf).run == "other"


def test_a_ledger_of_a_later_format_is_refused_and_left_alone(database: str) -> None:
    factory = AppendState(database, "rows", ROW)
    write(factory, *start(factory, "first"), 1, "a")
    ask(database, "ALTER TABLE trident_fence ADD COLUMN format bigint DEFAULT 2")
    close_stores()
    before = ask(database, "SELECT * FROM trident_fence")
    with pytest.raises(StateError, match="its ledger has format 2, this version of trident_py reads 1: start it with"):
        start(factory, "first")
    assert ask(database, "SELECT * FROM trident_fence") == before


def test_two_drivers_may_add_the_column_at_once(database: str) -> None:
    write(AppendState(database, "rows", ROW), *start(AppendState(database, "rows", ROW), "first"), 1, "a")
    with mock.patch.object(ledger, "has_run", side_effect=[True, False, True, True]):
        new, _ = start(AppendState(database, "rows", ROW), "first")
    assert new.fence.generation == 2
