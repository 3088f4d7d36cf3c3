"""`trident compare`: two states, of ours or Storm's, are told apart exactly, and the first divergent key is named."""

from __future__ import annotations

import datetime
import json
import tempfile
from decimal import Decimal
from pathlib import Path
from typing import Any

import databases
import pytest
import sqlalchemy as sa
from click.testing import CliRunner, Result
from hypothesis import given, settings
from hypothesis import strategies as st

import states
from states.sql.store import close_stores
from trident_py.cli import trident
from trident_py.extras.moving.divergence import Rules, Version
from trident_py.state import SILENT, OpaqueValue, TransactionalValue, persist
from trident_py.tuples import TridentTuple

SQL = {"type": "sql-map", "kind": "opaque", "table": "counts", "key": "word string", "value": "count bigint"}


def dump(file: Path, rows: Any) -> str:
    """Write JSON lines; the rows are pairs, so that a key may come twice."""
    pairs = rows.items() if isinstance(rows, dict) else rows
    file.write_text("".join(json.dumps({"key": key, "value": value}) + "\n" for key, value in pairs))
    return str(file)


def ours(folder: Path, rows: dict[Any, Any], **place: Any) -> str:
    """Fill a state of a states.yaml; return its name for the command."""
    file = folder / "states.yaml"
    every = SQL | {"url": f"sqlite:///{folder}/c.db"} | place
    state = {name: value for name, value in every.items() if value is not None}
    file.write_text(json.dumps({"states": {"c": state}}))
    if rows:
        states.load(file)["c"].open_values().put(list(rows), list(rows.values()))
    return f"{file}:c"


def run(*arguments: str) -> Result:
    return CliRunner().invoke(trident, ["compare", *arguments])


def told(*arguments: str) -> tuple[int, dict[str, Any]]:
    done = run(*arguments, "--json")
    assert done.exit_code in (0, 1), done.output
    return done.exit_code, json.loads(done.stdout)


TEXTS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), min_size=1, max_size=3)
ROWS = st.dictionaries(TEXTS, st.integers(-5, 5), max_size=12)


@settings(max_examples=30, deadline=None)
@given(rows=ROWS, data=st.data())
def test_drawn_changes_are_told_exactly(rows: dict[str, int], data: st.DataObject) -> None:
    changed = data.draw(st.sets(st.sampled_from(sorted(rows)))) if rows else set()
    gone = data.draw(st.sets(st.sampled_from(sorted(changed)))) if changed else set()
    new = data.draw(ROWS.map(lambda more: {key: value for key, value in more.items() if key not in rows}))
    other = {key: value + (key in changed) for key, value in rows.items() if key not in gone} | new
    with tempfile.TemporaryDirectory() as folder:
        left = dump(Path(folder) / "left", rows)
        right = ours(Path(folder), {(key,): value for key, value in other.items()}, kind="non-transactional")
        code, found = told(left, right, "--kind", "non-transactional")
    differ = changed | new.keys()
    assert code == (1 if differ else 0)
    assert (found["left"]["keys"], found["right"]["keys"]) == (len(rows), len(other))
    assert (found["equal"], found["different"]) == (len(rows) - len(changed), len(changed) - len(gone))
    assert (found["only_left"], found["only_right"]) == (len(gone), len(new))
    assert (found["first"] and found["first"]["key"]) == ([min(differ)] if differ else None)


def test_the_first_divergent_key_is_that_of_the_smallest_txid(tmp_path: Path) -> None:
    left = dump(tmp_path / "d", {"a": [9, 4, 3], "b": [7, 2, 1], "same": [9, 5, 4]})
    rows = {"a": OpaqueValue(9, 5, 3), "b": OpaqueValue(7, 3, 1), "same": OpaqueValue(8, 5, 4)}
    right = ours(tmp_path, {(key,): value for key, value in rows.items()})
    done = run(left, right, "--kind", "opaque")
    assert done.exit_code == 1
    assert done.output.splitlines()[2:] == [
        "  1 equal, 2 different, 0 only left, 0 only right",
        "  first: key ['b'], in batch 7",
        "    left   2 (txid 7, before it 1)",
        "    right  3 (txid 7, before it 1)",
        "  the tuples of its batch are not known: name the topology of its run (--topology), and its --checkpoint",
    ]
    assert told(left, right, "--kind", "opaque", "--txids")[1]["different"] == 3


@pytest.mark.parametrize(
    ("left", "right", "since"),
    [
        (Version(4, 7, 3, True), Version(5, 7, 3, True), (7, True)),
        (Version(4, 7, 3, True), Version(4, 7, 2, True), (6, False)),
        (Version(4, 7, 3, True), Version(3, 5, 2, True), (7, True)),
        (Version(4, 7, 3, True), Version(2, 5, 1, True), (6, False)),
        (Version(1, 7, None, True), None, (7, True)),
        (Version(4, 7, 3, True), None, (6, False)),
        (Version(4, 7), Version(5, 7), (7, False)),
        (Version(4, 7, 3, True), Version(5, 7), (7, False)),
        (Version(4, 7, 3, True), Version(5), (7, False)),
        (Version(4), Version(5), (None, False)),
    ],
)
def test_since_which_batch(left: Version | None, right: Version | None, since: Any) -> None:
    for found in (Rules().diverge(("k",), left, right), Rules().diverge(("k",), right, left)):
        assert (found.txid, found.exact) == since


def test_numbers_within_the_tolerance_are_equal(tmp_path: Path) -> None:
    left = dump(tmp_path / "l", {"a": 1.0, "b": [1, {"x": 2.5}], "nan": float("nan"), "null": None, "t": True})
    right = dump(tmp_path / "r", {"a": 1.25, "b": [1, {"x": 2.25}], "nan": float("nan"), "null": None, "t": True})
    common = (left, right, "--kind", "non-transactional")
    assert [told(*common, "--tolerance", by)[1]["different"] for by in ("0", "0.2", "0.25")] == [2, 2, 0]
    assert Rules().same(Decimal("0.1"), 0.1) and Rules(tolerance=0.5).same(2**70, Decimal(2**70) + Decimal("0.5"))
    for one, other in ((float("nan"), 1.0), (None, 0), (True, 1), (float("inf"), 2**2000), ("1", 1)):
        assert not Rules(tolerance=1e9).same(one, other)
    assert run(dump(tmp_path / "n", {"a": None}), dump(tmp_path / "e", {}), *common[2:]).exit_code == 1


@pytest.mark.parametrize("last", ["8", "9"])
def test_decimals_count_with_all_their_digits(last: str, tmp_path: Path) -> None:
    """A double holds 16 of them, and would make the last ones equal."""
    amount = Decimal("12345678901234567890.18")
    right = ours(tmp_path, {("a",): OpaqueValue(3, amount, None)}, value="total decimal(30,2)")
    (left := tmp_path / "d").write_text(f'{{"key": "a", "text": "[3, 12345678901234567890.1{last}, null]"}}\n')
    (rows := tmp_path / "d.jsonl").write_text(f'{{"word": "a", "sum": 12345678901234567890.1{last}, "rate": 0.1}}\n')
    of_rows = ("--key", "word", "--value", "total", "--rename", "sum=total")
    for found in (told(str(left), right, "--kind", "opaque"), told(str(rows), right, *of_rows)):
        assert found[0] == int(last == "9"), found
        assert found[1]["first"] is None or found[1]["first"]["left"]["value"] == "12345678901234567890.19"


def test_a_column_is_ignored(tmp_path: Path) -> None:
    right = ours(tmp_path, {("a",): OpaqueValue(3, (1, 5), None)}, value=["count bigint", "sum bigint"])
    left = dump(tmp_path / "d", {"a": [3, [1, 6], None]})
    assert told(left, right, "--kind", "opaque")[0] == 1
    assert told(left, right, "--kind", "opaque", "--ignore", "sum")[0] == 0
    objects = [dump(tmp_path / name, {"a": {"x": 1, "at": at}}) for at, name in enumerate("lr")]
    assert told(*objects, "--kind", "non-transactional", "--ignore", "at")[0] == 0


def test_a_null_on_one_side_only_is_told(tmp_path: Path) -> None:
    right = ours(tmp_path, {("a",): None, ("b",): 1, ("c",): 2}, kind="non-transactional")
    left = dump(tmp_path / "d", {"b": 1})
    assert "  1 on one side only with the value null, no key" in run(
        left, right, "--kind", "non-transactional"
    ).output
    found = told(left, right, "--kind", "non-transactional")[1]
    assert (found["only_right"], found["only_null"]) == (2, 1)
    found = told(dump(tmp_path / "d", {"a": 3, "b": 1, "c": 2}), right, "--kind", "non-transactional")[1]
    assert (found["different"], found["only_null"]) == (1, 0)


NOON = datetime.datetime(2026, 1, 1, 12, tzinfo=datetime.UTC)


@pytest.mark.parametrize("database", databases.SERVERS, indirect=True)
def test_times_of_a_server_have_their_zone(database: str, tmp_path: Path) -> None:
    """In keys and values of maps and rows, beside SQLite, which keeps it. A table of another program has no zones."""
    sides = []
    for name, url in (("left", database), ("right", f"sqlite:///{tmp_path}/c.db")):
        (folder := tmp_path / name).mkdir()
        map_ = {"kind": "transactional", "key": "at timestamp", "value": ["last timestamp"], "url": url}
        sides.append(ours(folder, {(NOON,): TransactionalValue(1, NOON)}, **map_))
        file = folder / "rows.yaml"
        every = {"type": "insert-ignore", "url": url, "table": "rows", "key": "at timestamp", "columns": [
            "at timestamp", "last timestamp", "n bigint"]}  # fmt: skip
        file.write_text(json.dumps({"states": {"rows": every}}))
        state = states.load(file)["rows"].makeState({}, None, 0, 1)
        rows = [TridentTuple.of(["at", "last", "n"], row) for row in ((NOON, NOON, 1), (NOON.replace(hour=1), None, 2))]
        persist(state, None, states.RowUpdater(), rows, SILENT)
        sides.append(f"{file}:rows")
    close_stores()
    assert told(sides[0], sides[2])[1]["equal"] == 1
    assert told(sides[1], sides[3])[1]["equal"] == 2
    for ours_ in (sides[1], sides[3]):
        assert told(database, ours_, "--table", "rows", "--key", "at")[1]["equal"] == 2


def test_keys_take_the_declared_types(tmp_path: Path) -> None:
    right = ours(tmp_path, {(7, "mon"): OpaqueValue(3, 1, None)}, key=["user bigint", "day string"])
    assert told(dump(tmp_path / "d", {"7|mon": [3, 1, None]}), right, "--kind", "opaque", "--split", "|")[0] == 0


def test_a_table_of_storm(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/storm.db"
    engine = sa.create_engine(url)
    with engine.begin() as connection:
        connection.execute(sa.text("CREATE TABLE t (word text, txid int, value int, before int)"))
        connection.execute(sa.text("INSERT INTO t VALUES ('a', 3, 2, 1), ('b', 4, 2, 1)"))
    engine.dispose()
    lay = ("--table", "t", "--key", "word", "--value", "value", "--txid", "txid", "--previous", "before")
    right = ours(tmp_path, {("a",): OpaqueValue(3, 2, 1), ("b",): OpaqueValue(4, 9, 1)})
    code, found = told(url, right, "--kind", "opaque", "--txids", *lay)
    assert (code, found["equal"], found["first"]["key"], found["first"]["txid"]) == (1, 1, ["b"], 4)


def test_a_key_that_comes_twice(tmp_path: Path) -> None:
    other = dump(tmp_path / "r", {"a": 1})
    assert run(dump(tmp_path / "l", [("a", 1), ("a", 1)]), other, "--kind", "non-transactional").exit_code == 0
    done = run(dump(tmp_path / "l", [("a", 1), ("a", 2)]), other, "--kind", "non-transactional")
    assert (done.exit_code, "key ['a'] comes twice, with 1 and 2" in done.output) == (2, True), done.output


def test_what_cannot_be_compared_is_said(tmp_path: Path) -> None:
    left, state = dump(tmp_path / "l", {"a": 1}), ours(tmp_path, {("a",): OpaqueValue(3, 1, None)})
    plain, nowhere = ("--kind", "non-transactional"), "redis://:secret@127.0.0.1:1/0"
    for arguments, text in {
        (left, dump(tmp_path / "k", {7: 1}), *plain): "and int in",
        (left, dump(tmp_path / "v", {"a": "1"}), *plain): "the values have other types: number in",
        (left, dump(tmp_path / "f", [(["a", "b"], 1)]), *plain): "the keys have other types: str in",
        (left, state, *plain, "--txids"): "is non-transactional, and SqlMapState(opaque",
        (left, state, *plain, "--ignore", "sum"): "--ignore sum: no value has this column; there are count",
        (left, state, *plain, "--ignore", "count"): "--ignore count: nothing of a value is left to compare",
        (dump(tmp_path / "m", {"a": {"x": 1}}), f"{tmp_path}/m", *plain, "--ignore", "x"): "--ignore x: nothing of",
        (left, state, *plain, "--tolerance", "nan"): "--tolerance nan: name a number that is finite",
        (left, state, *plain, "--tolerance", "inf"): "--tolerance inf: name a number that is finite",
        (left, state, *plain, "--hash", "h"): "--hash goes with neither side",
        (left, state): "--kind says how Storm writes the values",
        (left, left, *plain, "--checkpoint", "c"): "--checkpoint is for one side of Storm's and one of ours",
        (left, str(tmp_path / "none"), *plain): "none: no such file, and no URL",
        (left, f"{state}x", *plain): "has no state 'cx'",
        (left, nowhere, *plain): "right cannot be read: the strings at redis://:***@127.0.0.1:1/0: Error 111 ",
        (left, left, "--kind", "opaque"): "cannot be read: key ['a']: 1 is not [currTxid, curr, prev]",
    }.items():  # fmt: skip
        done = run(*arguments)
        shown = " ".join(done.output.split())
        assert text in shown and "secret" not in shown, done.output
        assert done.exit_code == 2, done.output


@pytest.mark.servers
def test_redis_on_both_sides(redis: str, tmp_path: Path) -> None:
    import redis as client

    name = tmp_path.name
    server = client.from_url(redis)
    server.hset(name, mapping={f"w{n}": f"[{n % 9 + 1},{n},null]" for n in range(2000)})
    state = ours(tmp_path, {}, type="redis-map", url=redis, hash=name, table=None, key=None, value=None)
    common = (redis, state, "--kind", "opaque", "--hash", name, "--txids")
    code, found = told(*common)
    assert (code, found["left"]["keys"], found["equal"]) == (0, 2000, 2000)
    copy = dump(tmp_path / "copy", {f"w{n}": [n % 9 + 1, n + (n == 77), None] for n in range(2000)})
    code, found = told(copy, *common[1:4], "--txids")
    assert (code, found["equal"], found["first"]["key"], found["first"]["txid"]) == (1, 1999, ["w77"], 6)


def test_both_global_aggregates_have_one_key(tmp_path: Path) -> None:
    right = ours(tmp_path, {("any",): OpaqueValue(3, 2, 1)}, key=None)
    assert told(dump(tmp_path / "d", {"$REDIS-MAP-STATE-GLOBAL": [3, 2, 1]}), right, "--kind", "opaque")[0] == 0
