"""The table of dead letters by itself."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from states.sql import InsertIgnoreState, RowUpdater
from states.sql.ledger import Fence
from states.sql.rejects import Reject, Rejects, shortened
from states.sql.store import parsed, store_of
from trident_py.state import SILENT, persist
from trident_py.tuples import TridentTuple

FENCE = Fence("top", "st", 1, "")


def letters(url: str, table: str = "t_rejected") -> list[tuple]:
    with store_of(parsed(url)).reading() as connection:
        text = f'SELECT "topology", "state", "txid", "count", "reason", "row" FROM "{table}" ORDER BY 3, 6'
        return list(connection.execute(text).fetchall())


def write(rejects: Rejects, url: str, txid: int | None, *given: Reject) -> int:
    with store_of(parsed(url)).writing() as connection:
        return rejects.write(connection, txid, given)


def test_a_row_is_kept_once_for_each_batch_with_how_often_it_came(database: str) -> None:
    rejects = Rejects("t", FENCE)
    rejects.prepare(store_of(parsed(database)))
    one, other = Reject({"k": "a", "v": 1}, "because"), Reject({"k": "b", "v": None}, "therefore")
    for txid in (1, 1, 2):
        assert write(rejects, database, txid, one, other, one) == 3
    assert write(rejects, database, None, other) == 1
    one_text, other_text = '{"k": "a", "v": 1}', '{"k": "b", "v": null}'
    assert letters(database) == [
        ("top", "st", 0, 1, "therefore", other_text),
        ("top", "st", 1, 2, "because", one_text), ("top", "st", 1, 1, "therefore", other_text),
        ("top", "st", 2, 2, "because", one_text), ("top", "st", 2, 1, "therefore", other_text),
    ]  # fmt: skip


def test_nothing_is_written_when_the_transaction_is_not(database: str) -> None:
    rejects = Rejects("t", None)
    rejects.prepare(store_of(parsed(database)))
    with pytest.raises(RuntimeError):
        with store_of(parsed(database)).writing() as connection:
            rejects.write(connection, 1, [Reject({"k": 1}, "because")])
            raise RuntimeError
    assert letters(database) == []


def test_any_row_has_a_text(database: str) -> None:
    rejects = Rejects("t", FENCE)
    rejects.prepare(store_of(parsed(database)))
    loop: list[Any] = []
    loop.append(loop)
    rows = [{"k": b"\x00\xff"}, {"k": "half \ud800"}, {"k": {(1, 2): 3}}, {"k": loop}, {"k": object}, {"k": "ü🎉\x00"}]
    assert write(rejects, database, 1, *(Reject(row, "x" * 3000) for row in rows)) == len(rows)
    found = letters(database)
    assert len(found) == len(rows) and all(json.loads(row[5]).keys() == {"k"} for row in found)
    assert {len(row[4]) for row in found} == {500}
    assert '{"k": "00ff"}' in {row[5] for row in found}


def test_a_long_reason_keeps_its_beginning_and_its_end() -> None:
    assert shortened("short") == "short"
    text = shortened("begin" + "x" * 9999 + "end")
    assert len(text) == 500 and text.startswith("beginx") and text.endswith("xend") and " ... " in text


def test_the_table_is_made_once_and_found_again(database: str) -> None:
    for _ in range(2):
        Rejects("t", FENCE).prepare(store_of(parsed(database)))
    store = store_of(parsed(database))
    store.ready.clear()
    Rejects("t", FENCE).prepare(store)
    assert letters(database) == []


def test_bad_rows_of_several_files_lie_in_the_first(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/s.db"
    factory = InsertIgnoreState(url, "t", "k", ["k bigint", "v bigint"], onBadRow="dead-letter", files=3)
    rows = [TridentTuple.of(["k", "v"], row) for row in [*((i, i) for i in range(20)), ("bad", 1)]]
    for ignored in (0, 20):
        receipt = persist(factory.makeState({}, None, 0, 1), 1, RowUpdater(), rows, SILENT)
        assert receipt == {"partition": 0, "inserted": 20 - ignored, "ignored": ignored, "rejected": 1}
    assert [row[3] for row in letters(url)] == [1]
    assert len(factory.stored()) == 20
