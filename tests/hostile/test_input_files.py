"""Files of a FileSpout that are not what they should be: told with the file, and what is good comes once."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from spouts.harness import Player, flat

from trident_py.errors import SpoutError
from trident_py.spouts import FileSpout

from .drawing import FOREIGN, VALUES, damaged, often, refusal

FIELDS = "n bigint, t double, d decimal(9,2), s string, at timestamp_ntz, ok boolean"
ROWS = [
    (n, n / 4, f"{n}.25", f"row {n}, {'é' * (n % 3)}", f"2013-11-03T06:00:0{n % 10}", n % 2 == 0) for n in range(12)
]
NAMES = ["n", "t", "d", "s", "at", "ok"]
OPTIONS: dict[str, dict[str, Any]] = {
    "lines": {"fields": "line string"}, "csv": {"fields": FIELDS}, "multiline": {"fields": FIELDS, "multiline": True},
    "texts": {"fields": "n, s"}, "json": {"fields": FIELDS}, "objects": {"fields": "n, s"},
    "parquet": {"fields": FIELDS},
}  # fmt: skip
SUFFIX = {"multiline": "csv", "texts": "csv", "objects": "json", "lines": "txt"}


@cache
def good(kind: str) -> bytes:
    form = SUFFIX.get(kind, kind)
    if form == "txt":
        return "".join(f"{row[3]}\n" for row in ROWS).encode()
    if form == "csv":
        return "".join(
            [",".join(NAMES) + "\n", *(f'{n},{t},{d},"{s}",{at},{str(ok).lower()}\n' for n, t, d, s, at, ok in ROWS)]
        ).encode()
    if form == "json":
        return "".join(json.dumps(dict(zip(NAMES, row, strict=True))) + "\n" for row in ROWS).encode()
    table = pa.table([list(column) for column in zip(*ROWS, strict=True)], NAMES)
    at = table.column("at").cast(pa.timestamp("us"))
    sink = pa.BufferOutputStream()
    pq.write_table(
        table.set_column(4, "at", at).set_column(2, "d", table.column("d").cast(pa.decimal128(9, 2))),
        sink,
        row_group_size=5,
    )
    return sink.getvalue().to_pybytes()


def line(kind: str, values: list[Any]) -> bytes:
    """One row of wrong values."""
    if SUFFIX.get(kind, kind) == "json":
        return json.dumps(dict(zip(NAMES, values, strict=False))).encode() + b"\n"
    return ",".join(str(value).replace("\n", " ") for value in values).encode("utf-8", "replace") + b"\n"


def rows_of(kind: str, folder: Path) -> list[Any]:
    """Every row, in batches of 5 in two partitions, each emitted twice and equal."""
    form = SUFFIX.get(kind, kind)
    fields = [part.strip() for part in OPTIONS[kind]["fields"].replace("9,2", "9;2").split(",")]
    more = {key: value for key, value in OPTIONS[kind].items() if key != "fields"}
    spout = FileSpout(
        folder, [part.replace(";", ",") for part in fields], 5, "lines" if form == "txt" else form, **more
    )
    run, txid, rows = Player(spout, partitions=2), 1, []
    while not run.coordination.is_exhausted(txid):
        emitted = run.emit(txid)
        assert repr(run.emit(txid, 1)) == repr(emitted)
        rows += flat(emitted)
        run.commit(txid, 1)
        txid += 1
    return rows


@pytest.fixture(params=list(OPTIONS))
def kind(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    return {kind: tmp_path_factory.mktemp(kind) for kind in OPTIONS}


def refused_or_taken(kind: str, folder: Path, content: bytes) -> None:
    suffix = SUFFIX.get(kind, kind)
    for name in "ac":
        (folder / f"{name}.{suffix}").write_bytes(good(kind))
    bad = folder / f"b.{suffix}"
    bad.write_bytes(content)
    found: list[Any] = []
    error = refusal(lambda: found.extend(rows_of(kind, folder)), str(bad))
    assert error is None or isinstance(error, SpoutError)
    bad.write_bytes(good(kind))
    expected = rows_of(kind, folder)
    assert len(expected) == 3 * len(ROWS)
    if error is None:
        assert repr(found[:12] + found[-12:]) == repr(expected[:24]), "the good files around it"


@often(12, 300)
@given(data=st.data())
def test_a_damaged_file_among_good_ones(folders: dict[str, Path], kind: str, data: st.DataObject) -> None:
    refused_or_taken(kind, folders[kind], data.draw(damaged(good(kind), FOREIGN)))


@often(10, 200)
@given(data=st.data())
def test_rows_of_wrong_values(folders: dict[str, Path], kind: str, data: st.DataObject) -> None:
    if kind == "parquet":
        columns = data.draw(st.lists(st.sampled_from(WRONG), min_size=6, max_size=6))
        sink = pa.BufferOutputStream()
        pq.write_table(pa.table(columns, data.draw(st.permutations(NAMES))), sink)
        return refused_or_taken(kind, folders[kind], sink.getvalue().to_pybytes())
    rows = data.draw(st.lists(st.lists(VALUES, min_size=4, max_size=7), min_size=1, max_size=3))
    return refused_or_taken(kind, folders[kind], good(kind) + b"".join(line(kind, row) for row in rows))


WRONG = [
    pa.array([1, 2], pa.int64()), pa.array([None, 2**64 - 1], pa.uint64()), pa.array([1.5, float("nan")]),
    pa.array(["x", "1"]),
    pa.array([b"\xff", None], pa.binary()), pa.array([[1], []]), pa.array([{"a": 1}, None]), pa.array([True, None]),
    pa.nulls(2),
    pa.array([2**50, -(2**50)], pa.timestamp("ms")), pa.array(["1" * 30, None]).cast(pa.decimal128(38, 0)),
    pa.array([-1, 2**40], pa.timestamp("us")),
    pa.DictionaryArray.from_arrays([0, None], ["a"]), pa.array([1, 2], pa.duration("s")), pa.array([1, 2],
    pa.time64("us")),
]  # fmt: skip
