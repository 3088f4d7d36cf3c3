"""`trident compare` on what topologies write out: rows of our states, of tables, and of files, in all pairs."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from decimal import Decimal
from itertools import product
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import sqlalchemy as sa
from test_compare import run, told

import states
from trident_py import Fields, LocalCluster, TridentTopology
from trident_py.operations.builtin import Count
from trident_py.testing import FixedBatchSpout

Rows = Sequence[tuple[Any, ...]]
COLUMNS = ["id bigint", "word string", "price decimal(9,2)"]
NAMES = ("id", "word", "price")
ROWS: Rows = [(1, "a", "1.50"), (2, "b, c", "2.25"), (3, "", "3.00"), (4, "d\nd", None)]


def as_csv(folder: Path, rows: Rows) -> str:
    with (folder / "rows.csv").open("w", newline="") as file:
        for row in (NAMES, *rows):
            file.write(",".join("" if part is None else f'"{part}"' for part in row) + "\n")
    return f"{folder}/rows.csv"


def as_lines(folder: Path, rows: Rows) -> str:
    lines = (json.dumps(dict(reversed(list(zip(NAMES, row, strict=True))))) for row in rows)
    (folder / "rows.jsonl").write_text("\n".join(lines))
    return f"{folder}/rows.jsonl"


def as_parquet(folder: Path, rows: Rows) -> str:
    columns = dict(zip(NAMES, map(list, zip(*rows, strict=True)), strict=True))
    pq.write_table(pa.table(columns), folder / "rows.parquet")
    return f"{folder}/rows.parquet"


def as_state(folder: Path, rows: Rows, **place: Any) -> str:
    """Run a topology that writes the rows, two in a batch, into a state of ours."""
    file = folder / "states.yaml"
    file.write_text(json.dumps({"states": {"rows": {"columns": COLUMNS, **place}}}))
    topology = TridentTopology()
    spout = FixedBatchSpout(Fields(*COLUMNS), 2, *((*row[:2], row[2] and Decimal(row[2])) for row in rows))
    topology.newStream("s", spout).partitionPersist(states.load(file)["rows"], Fields(*NAMES), states.RowUpdater())
    with LocalCluster() as cluster:
        assert cluster.submitTopology("t", {}, topology.build()).awaitTermination(60)
    return f"{file}:rows"


def as_inserted(folder: Path, rows: Rows) -> str:
    return as_state(folder, rows, type="insert-ignore", url=f"sqlite:///{folder}/s.db", table="rows", key="id bigint")


def as_numbered(folder: Path, rows: Rows) -> str:
    place = {"url": f"sqlite:///{folder}/s.db", "table": "rows", "key": "id bigint", "txid": "batch"}
    return as_state(folder, rows, type="insert-ignore", **place)


def as_appended(folder: Path, rows: Rows) -> str:
    return as_state(folder, rows, type="append", url=f"sqlite:///{folder}/s.db", table="rows")


def as_batches(folder: Path, rows: Rows) -> str:
    return as_state(folder, rows, type="batch", url=f"sqlite:///{folder}/s.db", table="rows")


def as_files(folder: Path, rows: Rows, format: str) -> str:
    return as_state(folder, rows, type="file", uri=f"{folder}/files", format=format)


FORMS: dict[str, Callable[[Path, Rows], str]] = {
    "csv": as_csv, "lines": as_lines, "parquet": as_parquet, "insert-ignore": as_inserted, "append": as_appended,
    "batch": as_batches,
    "file csv": lambda folder, rows: as_files(folder, rows, "csv"),
    "file json": lambda folder, rows: as_files(folder, rows, "json"),
    "file parquet": lambda folder, rows: as_files(folder, rows, "parquet"),
}  # fmt: skip
TYPES = ("--type", "id bigint", "--type", "price decimal(9,2)")


@pytest.fixture(scope="module")
def places(tmp_path_factory: pytest.TempPathFactory) -> dict[tuple[str, str], str]:
    """The rows in every form; once as they are, and once with another price in the third one."""
    changed = [(*row[:2], "3.01") if row[0] == 3 else row for row in ROWS]
    both = {"same": ROWS, "changed": changed}
    return {(form, how): make(tmp_path_factory.mktemp("rows"), both[how]) for (form, make), how in
            product(FORMS.items(), both)}  # fmt: skip


@pytest.mark.parametrize(("left", "right"), list(product(FORMS, FORMS)))
def test_rows_of_all_forms(left: str, right: str, places: dict[tuple[str, str], str]) -> None:
    common = (places[left, "same"], places[right, "same"], *TYPES)
    code, found = told(*common, "--key", "id")
    assert (code, found["left"]["keys"], found["equal"]) == (0, 4, 4)
    code, found = told(places[left, "changed"], *common[1:], "--key", "id")
    assert (code, found["equal"], found["different"], found["first"]["key"]) == (1, 3, 1, [3])
    assert (found["first"]["left"]["value"]["price"], found["first"]["right"]["value"]["price"]) == ("3.01", "3.00")
    assert told(places[left, "changed"], *common[1:], "--key", "id", "--tolerance", "0.01")[0] == 0
    assert told(places[left, "changed"], *common[1:], "--key", "id", "--ignore", "price")[0] == 0


@pytest.mark.parametrize("form", ["csv", "append", "file parquet"])
def test_rows_without_a_key_are_counted(form: str, tmp_path: Path) -> None:
    (tmp_path / "l").mkdir()
    left, right = FORMS[form](tmp_path / "l", [*ROWS, ROWS[1], ROWS[1]]), as_lines(tmp_path, [*ROWS, ROWS[1]])
    code, found = told(left, right, *TYPES)
    assert (code, found["left"]["keys"], found["equal"], found["different"]) == (1, 6, 3, 1)
    assert found["first"]["key"] == [{"id": 2, "word": "b, c", "price": "2.25"}]
    assert (found["first"]["left"]["value"], found["first"]["right"]["value"]) == (3, 2)
    assert told(left, left, *TYPES)[1]["equal"] == 4


def test_the_txid_comes_from_a_column_of_the_batch_or_from_the_files(tmp_path: Path) -> None:
    rows = [(n, "w", "1.00") for n in range(1, 9)]  # batch 4 has 7 and 8
    (tmp_path / "files").mkdir()
    place = {"url": f"sqlite:///{tmp_path}/s.db", "table": "rows", "txid": "batch"}
    copy = as_lines(tmp_path, [row for row in rows if row[0] != 7])
    inserted = as_state(tmp_path, rows, type="insert-ignore", key="id bigint", **place)
    for ours in (inserted, as_files(tmp_path / "files", rows, "csv")):
        done = run(ours, copy, "--key", "id", *TYPES)
        assert "first: key [7], in or before batch 4\n" in done.output, done.output
    table = ("--table", "rows", "--key", "id", "--batch", "batch", *TYPES)
    assert told(place["url"], inserted, *table)[0] == 0
    assert told(place["url"], copy, *table)[1]["first"]["txid"] == 4


def test_numbers_of_a_sender(tmp_path: Path) -> None:
    rows = [(n, "w", f"{n}.00") for n in (1, 2, 3)]
    place = {"type": "sequence", "url": f"sqlite:///{tmp_path}/s.db", "table": "rows"}
    ours = as_state(tmp_path, rows, sender="word", sequence="id", **place)
    code, found = told(ours, as_lines(tmp_path, [*rows[:2], (3, "w", "4.00")]))
    assert (code, found["equal"], found["first"]["key"]) == (1, 2, ["w", 3])


@pytest.mark.servers
def test_the_last_values_in_a_compacted_topic(kafka: Any, tmp_path: Path) -> None:
    place = {"type": "compacted-topic", "bootstrap": kafka.bootstrap, "topic": tmp_path.name, "key": "id bigint"}
    file = tmp_path / "states.yaml"
    file.write_text(json.dumps({"states": {"rows": {**place, "value": ["count bigint"], "kind": "opaque"}}}))
    topology = TridentTopology()
    ids = topology.newStream("s", FixedBatchSpout(Fields("id bigint"), 1, (1,), (2,), (2,)))
    ids.groupBy("id").persistentAggregate(states.load(file)["rows"], Count(), Fields("count"))
    with LocalCluster() as cluster:
        assert cluster.submitTopology("t", {}, topology.build()).awaitTermination(60)
    (tmp_path / "rows.csv").write_text("id,count\n1,1\n2,1\n")
    types = ("--type", "id bigint", "--type", "count bigint")
    code, found = told(f"{file}:rows", f"{tmp_path}/rows.csv", "--key", "id", *types)
    assert (code, found["equal"], found["first"]["key"], found["first"]["txid"]) == (1, 1, [2], 3)


def test_other_names_on_both_sides(tmp_path: Path) -> None:
    (tmp_path / "o").mkdir()
    left, right = tmp_path / "l.csv", as_inserted(tmp_path / "o", [(1, "a", "1.50"), (2, "b", "2.00")])
    left.write_text("number,text,price,at\nx1,a,1.50,7\nx2,b,2.01,7\n")
    keys = tmp_path / "keys.csv"
    keys.write_text("x1,1\nx2,2\n")
    names = ("--rename", "number=id", "--rename", "text=word", "--ignore", "at", "--map", str(keys))
    untyped = as_lines(tmp_path, [("1", "a", "1.50"), ("2", "b", "2.00")])
    assert told(str(left), untyped, "--key", "id", *names)[1]["first"]["key"] == ["2"]
    left.write_text("number,text,price,at\n7,a,1.50,7\n8,b,2.01,7\n")
    keys.write_text("7,1\n8,2\n")
    code, found = told(str(left), right, *names)
    assert (code, found["equal"], found["first"]["key"]) == (1, 1, [2])
    assert told(str(left), right, *names, "--tolerance", "0.01")[0] == 0


def test_a_map_and_its_rows(tmp_path: Path) -> None:
    storm = tmp_path / "storm"
    rows = [{"key": key, "value": [3, {"n": n, "by": "x"}, None]} for key, n in (("a", 1), ("b", 2))]
    storm.write_text("\n".join(map(json.dumps, rows)))
    (tmp_path / "t.csv").write_text("word,count,by\na,1,x\nb,2,x\n")
    names = (str(storm), f"{tmp_path}/t.csv", "--kind", "opaque", "--key", "word", "--rename", "n=count")
    assert told(*names)[1]["different"] == 2
    assert told(*names, "--type", "count bigint")[0] == 0


def test_a_name_that_is_not_there_is_told(tmp_path: Path) -> None:
    left, ours, storm = as_csv(tmp_path, ROWS), as_numbered(tmp_path, ROWS), tmp_path / "storm"
    storm.write_text('{"key": "a", "value": [1, {"n": 2, "by": "x"}, null]}')
    (tmp_path / "t.csv").write_text("word,count,by\na,2,x\n")
    (tmp_path / "empty.csv").write_text("id,word,price\n")
    opaque = (str(storm), f"{tmp_path}/t.csv", "--kind", "opaque", "--key", "word", "--type", "count bigint")
    for arguments, text in {
        (left, ours, "--batch", "txn"): "--batch txn: no side has this column; there are batch, id, price, word",
        (left, left, "--key", "id", "--batch", "txn"): "--batch txn: no side has this column; there are id, price",
        (left, ours, "--rename", "wort=word"): "rows.csv has no name 'wort'; there are id, price, word",
        (left, ours, "--rename", "word=wort"): "has no name 'wort'; there are batch, id, price, word",
        (*opaque, "--rename", "m=count"): "--rename m=count: /storm has no name 'm'; there are by, n",
        (*opaque, "--rename", "n=c"): "--rename n=c: /t.csv has no name 'c'; there are by, count, word",
    }.items():  # fmt: skip
        done = run(*arguments)
        shown = " ".join(done.output.replace(str(tmp_path), "").split())
        assert (text in shown, done.exit_code) == (True, 2), done.output
    assert told(*opaque, "--rename", "n=count")[0] == 0
    assert told(f"{tmp_path}/empty.csv", left, "--key", "id", "--rename", "wort=word")[1]["only_right"] == len(ROWS)


def test_a_state_keeps_its_own_column_of_the_batch(tmp_path: Path) -> None:
    left, ours = tmp_path / "l.csv", as_numbered(tmp_path, [(1, "a", "1.50")])
    left.write_text("id,word,price,txn\n1,a,1.51,3\n")
    found = told(str(left), ours, "--batch", "txn")[1]["first"]
    assert (found["left"]["txid"], found["right"]["txid"]) == (3, 1), found
    assert found["right"]["value"] == {"word": "a", "price": "1.50"}


def test_a_table_of_storm_with_other_names(tmp_path: Path) -> None:
    url, right = f"sqlite:///{tmp_path}/s.db", tmp_path / "right.csv"
    engine = sa.create_engine(url)
    with engine.begin() as connection:
        connection.execute(sa.text("CREATE TABLE t (wort text, n int)"))
        connection.execute(sa.text("INSERT INTO t VALUES ('a', 2)"))
    engine.dispose()
    right.write_text("word,count\na,2\n")
    table = ("--kind", "non-transactional", "--table", "t", "--key", "word", "--value", "count")
    names = ("--rename", "wort=word", "--rename", "n=count", "--type", "count bigint")
    assert told(url, str(right), *table, *names)[0] == 0


def test_rows_that_cannot_be_compared(tmp_path: Path) -> None:
    left, url = as_csv(tmp_path, ROWS), f"sqlite:///{tmp_path}/s.db"
    ours = as_inserted(tmp_path, ROWS)
    storm = tmp_path / "storm"
    storm.write_text('{"key": "a", "value": [1, 2, null]}')
    broken, keys = tmp_path / "b.jsonl", tmp_path / "keys.csv"
    broken.write_text('{"id": 1}\n[1]\n')
    keys.write_text("1\n")
    for arguments, text in {
        (left, ours, "--key", "word2"): "rows.csv: a row has no column 'word2'; it has: id, word, price",
        (left, left, "--batch", "word"): "'a' is no txid; name its column with --batch",
        (left, as_lines(tmp_path, ROWS), "--tolerance", "1"): "have no key to find the other row by: name --key",
        (left, str(storm), "--kind", "opaque"): "rows.csv has rows without a key,",
        (str(broken), left): "b.jsonl, line 2: expected an object, got [1]",
        (url, ours): "rows of which --table?",
        (left, ours, "--key", "id", "--rename", "x"): "--rename x: expected LEFT=RIGHT",
        (left, ours, "--key", "id", "--map", str(keys)): "line 1: expected as many fields for the right key",
        (left, ours, "--key", "id", "--type", "word bigint"): "a value does not fit the declared",
        (left, str(tmp_path / "none.csv"), "--key", "id"): "no file at",
    }.items():  # fmt: skip
        done = run(*arguments)
        assert text in " ".join(done.output.split()) and done.exit_code == 2, done.output
    engine = sa.create_engine(url)
    with engine.begin() as connection:
        connection.execute(sa.text("DROP TABLE rows"))
    engine.dispose()
    assert told(ours, ours)[1]["left"]["keys"] == 0


def test_two_keys_that_a_map_makes_one_are_told(tmp_path: Path) -> None:
    left, right, keys = tmp_path / "l.csv", tmp_path / "r.csv", tmp_path / "keys.csv"
    left.write_text("id,n\nx,1\ny,1\n")
    right.write_text("id,n\na,1\n")
    keys.write_text("x,a\ny,a\n")
    done = run(str(left), str(right), "--key", "id", "--map", str(keys))
    assert (done.exit_code, "key ['a'] of the right side is there twice" in done.output) == (2, True), done.output


def test_keys_of_a_map_take_the_types_of_rows(tmp_path: Path) -> None:
    storm, ours = tmp_path / "storm", as_inserted(tmp_path, [(1, "a", "1.50"), (2, "b", "2.00")])
    storm.write_text('{"key": "1", "value": "a"}\n{"key": "2", "value": "c"}')
    code, found = told(str(storm), ours, "--kind", "non-transactional", "--value", "word")
    assert (code, found["equal"], found["first"]["key"]) == (1, 1, [2])
