"""The table of dead letters by itself."""

from __future__ import annotations

import json
import random
import string
from typing import Any

import databases
import pytest
from contracts.asking import POSTGRES, run
from contracts.crashing import Driver

from states.sql import AppendState, BatchState, InsertIgnoreState, RowUpdater, SequenceState, SqlMapState
from states.sql.ledger import SqlFence
from states.sql.rows.row_checks import Reject, Rejects, shorten
from states.sql.store import parse_url, store_of
from trident_py.errors import StateError
from trident_py.state import SILENT, persist
from trident_py.tuples import TridentTuple

FENCE = SqlFence("top", "st", 1, "")


def letters(url: str, table: str = "t_rejected") -> list[tuple]:
    with store_of(parse_url(url)).reading() as connection:
        text = f'SELECT "topology", "state", "txid", "count", "reason", "row" FROM "{table}" ORDER BY 3, 6'
        return list(connection.execute(text).fetchall())


def write(rejects: Rejects, url: str, txid: int | None, *given: Reject) -> int:
    with store_of(parse_url(url)).writing() as connection:
        return rejects.write(connection, txid, given)


def test_a_row_is_kept_once_for_each_batch_with_how_often_it_came(database: str) -> None:
    rejects = Rejects("t", FENCE, store_of(parse_url(database)))
    rejects.prepare()
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


def test_a_value_that_json_lacks_is_a_text_in_the_json_of_its_row(database: str) -> None:
    """NaN was no JSON to a database, and beside a number that is too long all values were texts."""
    rejects = Rejects("t", FENCE, store_of(parse_url(database)))
    rejects.prepare()
    write(rejects, database, 1, Reject({"k": 1, "v": float("nan"), "w": None, "x": 1 << 20_000}, "because"))
    wanted = '{"k": 1, "v": "nan", "w": null, "x": "<int: a number of 20,001 bits>"}'
    assert letters(database) == [("top", "st", 1, 1, "because", wanted)]


def test_an_object_without_a_text_is_the_same_row_in_a_replay(database: str) -> None:
    """Its place in memory was part of the row, so a replay by another process kept the row a second time."""
    rejects = Rejects("t", FENCE, store_of(parse_url(database)))
    rejects.prepare()
    first, second = object(), object()
    for value in (first, second):
        write(rejects, database, 1, Reject({"k": 1, "v": value, "w": [value], "x": {value: 1}}, "because"))
    shown = '{"k": 1, "v": "<object object>", "w": ["<object object>"], "x": "{<object object>: 1}"}'
    assert letters(database) == [("top", "st", 1, 1, "because", shown)]


def test_nothing_is_written_when_the_transaction_is_not(database: str) -> None:
    rejects = Rejects("t", None, store_of(parse_url(database)))
    rejects.prepare()
    with pytest.raises(RuntimeError):
        with store_of(parse_url(database)).writing() as connection:
            rejects.write(connection, 1, [Reject({"k": 1}, "because")])
            raise RuntimeError
    assert letters(database) == []


def test_any_row_has_a_text(database: str) -> None:
    rejects = Rejects("t", FENCE, store_of(parse_url(database)))
    rejects.prepare()
    loop: list[Any] = []
    loop.append(loop)
    rows = [{"k": b"\x00\xff"}, {"k": "half \ud800"}, {"k": {(1, 2): 3}}, {"k": loop}, {"k": object}, {"k": "ü🎉\x00"}]
    assert write(rejects, database, 1, *(Reject(row, "x" * 3000) for row in rows)) == len(rows)
    found = letters(database)
    assert len(found) == len(rows) and all(json.loads(row[5]).keys() == {"k"} for row in found)
    assert {len(row[4]) for row in found} == {500}
    assert '{"k": "00ff"}' in {row[5] for row in found}


def test_a_long_reason_keeps_its_beginning_and_its_end() -> None:
    assert shorten("short") == "short"
    text = shorten("begin" + "x" * 9999 + "end")
    assert len(text) == 500 and text.startswith("beginx") and text.endswith("xend") and " ... " in text


def test_the_table_is_made_once_and_found_again(database: str) -> None:
    for _ in range(2):
        Rejects("t", FENCE, store_of(parse_url(database))).prepare()
    store = store_of(parse_url(database))
    store.ready.clear()
    Rejects("t", FENCE, store).prepare()
    assert letters(database) == []


# -- what a server's limits refuse


def states(url: str, columns: list[str], **options: Any) -> list[Any]:
    return [
        InsertIgnoreState(url, "i", "k", columns, **options),
        InsertIgnoreState(url, "r", "k", columns, onConflict="report", **options),
        AppendState(url, "a", columns, **options),
    ]


def into(factory: Any, *rows: tuple, txid: int = 1) -> dict:
    tuples = [TridentTuple.of(["k", "v"], row) for row in rows]
    return persist(factory.makeState({}, None, 0, 1), txid, RowUpdater(), tuples, SILENT)


def test_dead_letters_go_back_with_the_rows_of_their_batch(database: str) -> None:
    columns = ["k bigint", "v varchar(5)"]
    for factory in (
        InsertIgnoreState(database, "i", "k", columns, onBadRow="dead-letter", txid="batch"),
        AppendState(database, "a", columns, onBadRow="dead-letter", txid="batch"),
    ):
        driver = Driver(factory, RowUpdater(), **{"trident.state.name": factory.table})
        for txid in (1, 2):
            rows = [TridentTuple.of(["k", "v"], row) for row in ((txid, "good"), (-txid, "too long"))]
            driver.batch(rows, txid)
        back = factory.participant()
        assert back.can_rewind(driver.conf, 1) is None
        back.open(driver.conf | {"trident.txid": 2})
        back.rewind(1)
        assert run(database, f"SELECT k FROM {factory.table}") == [(1,)]
        assert [letter[2] for letter in letters(database, f"{factory.table}_rejected")] == [1], factory


@POSTGRES
def test_a_text_too_long_for_an_index_is_kept_aside(database: str) -> None:
    """54000: program limit exceeded."""
    noise = "".join(random.Random(1).choices(string.ascii_letters, k=9000))
    run(database, "CREATE TABLE a (k TEXT, v TEXT)", "CREATE INDEX ON a (k)")
    for factory in states(database, ["k string", "v string"], onBadRow="dead-letter"):
        receipt = into(factory, ("a", "x"), (noise, "y"), ("b", "z"))
        assert (receipt["inserted"], receipt["rejected"]) == (2, 1), factory
        ((*_, reason, row),) = letters(database, f"{factory.table}_rejected")
        assert "index row" in reason and json.loads(row)["k"] == noise


@pytest.mark.parametrize("local_infile", [0, 1])
def test_a_row_longer_than_a_packet_is_written_or_kept_aside(own_server: Any, local_infile: int) -> None:
    """1153: a longer statement ends the connection, so no replay could ever pass it."""
    url = own_server("mariadb", max_allowed_packet=1 << 20, local_infile=local_infile).create_database()
    long = "y'" * (1 << 20)
    for factory in states(url, ["k string", "v string"], onBadRow="dead-letter"):
        receipt = into(factory, ("a", "x"), ("long", long), ("b", "z" * 400_000), ("c", "z" * 400_000))
        assert (receipt["inserted"], receipt["rejected"]) == (3 + local_infile, 1 - local_infile), factory
        if local_infile:
            assert long in str(factory.stored())
            continue
        ((*_, reason, row),) = letters(url, f"{factory.table}_rejected")
        assert "max_allowed_packet" in reason and f"({len(long)} characters)" in json.loads(row)["v"]
    if not local_infile:
        for factory in states(url, ["k string", "v string"]):
            with pytest.raises(StateError, match=r"row 1 of the batch: the row has .* bytes.*max_allowed_packet"):
                into(factory, ("a", "x"), ("long", long), txid=2)


@pytest.mark.parametrize("kind", databases.MYSQLS)
def test_a_value_longer_than_a_packet_ends_the_run_where_no_row_is_kept_aside(own_server: Any, kind: str) -> None:
    """It read as a lost server, so the batch was replayed for ever. The limit is that of the server to the byte."""
    url = own_server(kind, max_allowed_packet=1 << 20, local_infile=0).create_database()
    columns = ["k bigint", "n bigint", "v string"]
    for factory in (SequenceState(url, "s", "k", "n", columns), BatchState(url, "b", columns)):
        driver = Driver(factory, RowUpdater(), **{"trident.state.name": factory.table})
        with pytest.raises(StateError, match=r"a statement of 1048\d{3} bytes .*max_allowed_packet is 1048576.*Raise"):
            driver.batch([TridentTuple.of(["k", "n", "v"], (1, 1, "x" * (1 << 20)))], 1)
    factory = SqlMapState.opaque(url, "m", "k bigint", "v string")
    state = factory.makeState({}, None, 0, 1)
    state.beginCommit(1)
    with pytest.raises(StateError, match=r"\(INSERT INTO \"m\" \.\.\.\) is longer than the server takes"):
        state.multiPut([[1]], ["x" * (1 << 20)])
    state.rollback(1)
    assert factory.stored() == {}
    most = (1 << 20) - 2 - len("SELECT ''")
    with store_of(parse_url(url)).reading() as connection:
        assert connection.execute(f"SELECT '{'x' * most}'").fetchone() == ("x" * most,)
        with pytest.raises(StateError, match="a statement of 1048575 bytes"):
            connection.execute(f"SELECT '{'x' * (most + 1)}'")


@pytest.mark.parametrize("local_infile", [0, 1])
def test_bytes_longer_than_a_packet_are_kept_aside(own_server: Any, local_infile: int) -> None:
    url = own_server("mariadb", max_allowed_packet=1 << 20, local_infile=local_infile).create_database()
    for factory in states(url, ["k string", "v binary"], onBadRow="dead-letter"):
        receipt = into(factory, ("a", b"x"), ("long", b"y" * (2 << 20)), ("b", b"z"))
        assert (receipt["inserted"], receipt["rejected"]) == (2, 1), factory
