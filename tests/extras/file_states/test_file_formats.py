"""FileState: what the formats keep of each type, and how plain readers read it."""

from __future__ import annotations

import datetime
import decimal
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow.dataset as ds
import pytest
from contracts.crashing import Driver
from file_readers import manifest, visible
from spouts.harness import Player, flat

from states.files import DelimitedRecordFormat, FileState, RecordFormat, RowUpdater
from trident_py import Fields, LocalCluster, TridentTopology
from trident_py.errors import DefinitionError, StateError
from trident_py.spouts import FileSpout
from trident_py.testing import FixedBatchSpout
from trident_py.tuples import TridentTuple

UTC = datetime.UTC
TYPES = [
    "t string", "i int", "l bigint", "s smallint", "b tinyint", "d double", "f float", "o boolean", "x binary",
    "day date", "at timestamp", "local timestamp_ntz", "m decimal(20, 3)",
]  # fmt: skip
ROW: tuple = (
    "t\t\\\n'\"\"ü,;€\U0001f600", -5, 2**62 + 1, -(2**15), 127, 0.1, 1.5, True, b"\x00\xff\\",
    datetime.date(2026, 2, 3), datetime.datetime(2026, 2, 3, 4, 5, 6, 789, UTC),
    datetime.datetime(2026, 2, 3, 4, 5, 6, 789), decimal.Decimal("12345678901234567.125"),
)  # fmt: skip
EMPTY: tuple = ("", 0, 0, 0, 0, -0.0, 0.0, False, b"", datetime.date(1, 1, 1), datetime.datetime(1, 1, 1, tzinfo=UTC),
                datetime.datetime(9999, 12, 31, 23, 59, 59, 999999), decimal.Decimal("0.000"))  # fmt: skip
NULLS: tuple = (None,) * len(TYPES)
NAMES = [each.split()[0] for each in TYPES]


def tuples(names: list[str], *values: tuple) -> list[TridentTuple]:
    return [TridentTuple.of(names, each) for each in values]


def write(factory: FileState, names: list[str], *batches: list[tuple]) -> FileState:
    running = Driver(factory, RowUpdater())
    for txid, values in enumerate(batches, 1):
        running.batch(tuples(names, *values), txid, of=1)
    return factory


@pytest.mark.parametrize("format", ["parquet", "csv", "json"])
def test_every_type_comes_back_as_it_was(tmp_path: Path, format: str) -> None:
    left = ["x"] if format == "csv" else []
    types = [each for each in TYPES if each.split()[0] not in left]
    kept = [NAMES.index(each.split()[0]) for each in types]
    rows = [tuple(row[at] for at in kept) for row in (ROW, EMPTY, NULLS)]
    factory = write(FileState(tmp_path / "rows", format, types), [NAMES[at] for at in kept], rows, rows[:1])
    found = (repr(row).replace("zoneinfo.ZoneInfo(key='UTC')", "datetime.timezone.utc") for row in factory.read())
    assert Counter(found) == Counter(map(repr, [*rows, rows[0]]))


def test_a_null_alone_in_its_csv_row_is_refused(tmp_path: Path) -> None:
    """Readers skip a blank line: Arrow, pandas, Spark."""
    with pytest.raises(StateError, match=r"row 1 of the batch \(n=None\).*in csv the row of a null alone is a blank"):
        write(FileState(tmp_path / "rows", "csv", ["n bigint"]), ["n"], [(1,), (None,)])


def test_pandas_and_arrow_read_the_folder(tmp_path: Path) -> None:
    rows = [("a", 1, 0.5), (None, None, None), ("", 3, 1e300)]
    names, types = ["t", "n", "d"], ["t string", "n bigint", "d double"]
    for format in ("parquet", "csv", "json"):
        write(FileState(tmp_path / format, format, types), names, rows, rows[:1])
        table = ds.dataset(tmp_path / format, format=format).to_table()
        found = Counter(map(repr, (tuple(row.values()) for row in table.to_pylist())))
        expected = Counter(map(repr, [*rows, rows[0]]))
        assert found == expected or format == "csv"  # Arrow reads "" in CSV as a null unless told otherwise
        assert table.num_rows == 4
    frame = pd.read_parquet(tmp_path / "parquet")
    assert next(iter(frame["t"])) == "a" and list(frame.columns) == names
    lines = pd.read_json(tmp_path / "json" / visible(tmp_path / "json")[1], lines=True)
    assert lines.to_dict("records") == [{"t": "a", "n": 1, "d": 0.5}]
    text = pd.read_csv(tmp_path / "csv" / visible(tmp_path / "csv")[1])
    assert text.to_dict("records") == [{"t": "a", "n": 1, "d": 0.5}]


@pytest.mark.parametrize("bad", [float("nan"), float("inf")])
def test_json_refuses_a_number_that_it_does_not_have(tmp_path: Path, bad: float) -> None:
    factory = FileState(tmp_path / "rows", "json", ["d double"])
    with pytest.raises(StateError, match=r"row 1 of the batch \(d=(nan|inf)\).*json has no such number"):
        write(factory, ["d"], [(1.0,), (bad,)])
    write(FileState(tmp_path / "other", "parquet", ["d double"]), ["d"], [(1.0,), (bad,)])


def test_a_file_that_is_large_goes_on_in_another_one(tmp_path: Path) -> None:
    """A file is measured after each block of rows; the names count on, and the partition has one receipt."""
    factory = FileState(tmp_path / "rows", "csv", ["n bigint"], rotate="100KB")
    write(factory, ["n"], [(n,) for n in range(200_000)])
    names = visible(tmp_path / "rows")
    assert names == ["part-0000000001-00000-001.csv", "part-0000000001-00000-002.csv",
                     "part-0000000001-00000-003.csv", "part-0000000001-00000.csv"]  # fmt: skip
    assert list(factory.read()) == [(n,) for n in range(200_000)]
    assert sum(file["rows"] for file in manifest(tmp_path / "rows")["files"]) == 200_000


@dataclass(frozen=True)
class Shout(RecordFormat):
    suffix = ".log"

    def format(self, tuple: TridentTuple) -> bytes:
        return f"{tuple.getString(0).upper()}!\n".encode()


def test_a_format_of_ones_own(tmp_path: Path) -> None:
    factory = write(FileState(tmp_path / "rows", Shout()), ["word"], [("a",), ("b",)], [("c",)])
    assert factory.stored() == {(b"A!",): 1, (b"B!",): 1, (b"C!",): 1}
    assert (tmp_path / "rows" / "part-0000000001-00000.log").read_text() == "A!\nB!\n"


def test_storms_delimited_record_format(tmp_path: Path) -> None:
    """As in Storm's TridentFileTopology: the fields sentence and key."""
    format = DelimitedRecordFormat(fieldDelimiter="|", fields=["sentence", "key"])
    write(FileState(tmp_path / "rows", format), ["key", "sentence", "more"], [(1, "the cow", 0), (2, "a man", None)])
    assert (tmp_path / "rows" / "part-0000000001-00000.txt").read_text() == "the cow|1\na man|2\n"


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "null"), (True, "true"), (False, "false"), (1, "1"), (1.0, "1.0"), (0.1, "0.1"), (-0.0, "-0.0"),
        (1e7, "1.0E7"), (9999999.0, "9999999.0"), (0.001, "0.001"), (0.0001, "1.0E-4"), (-2.5e-7, "-2.5E-7"),
        (123456789.125, "1.23456789125E8"), (1e22, "1.0E22"), (1.7976931348623157e308, "1.7976931348623157E308"),
        (float("nan"), "NaN"), (float("-inf"), "-Infinity"), (decimal.Decimal("1.50"), "1.50"), ("None", "None"),
    ],
)  # fmt: skip
def test_storms_delimited_record_format_writes_the_text_of_java(value: Any, text: str) -> None:
    """The numbers are what real Storm gave."""
    record = DelimitedRecordFormat().format(TridentTuple.of(["a", "b"], [value, "x"]))
    assert record.decode() == f"{text},x\n"


def test_records_are_lines_for_a_file_spout(tmp_path: Path) -> None:
    rows = [("",), ("NA",), ('12" vinyl',), ("a\rb",), ("ü\u2028\x85",), ("",)]
    factory = write(FileState(tmp_path / "rows", DelimitedRecordFormat()), ["v"], rows)
    assert flat(Player(FileSpout(tmp_path / "rows", "v", batchSize=2)).to_end()) == rows
    assert [line.decode() for (line,) in factory.read()] == [value for (value,) in rows]


@pytest.mark.parametrize("record", ["text", "", None])
def test_a_record_that_is_not_bytes_is_refused(tmp_path: Path, record: Any) -> None:
    class Wrong(RecordFormat):
        def format(self, tuple: TridentTuple) -> bytes:
            return record  # type: ignore[no-any-return]

    with pytest.raises(StateError, match=rf"Wrong.format returned {type(record).__name__}, not bytes"):
        write(FileState(tmp_path / "rows", Wrong()), ["word"], [("a",)])


@pytest.mark.parametrize("bad", ["\ud800", 1 << 20_000], ids=["half", "long"])
def test_a_value_that_has_no_text_is_refused(bad: Any) -> None:
    with pytest.raises(StateError, match=r"DelimitedRecordFormat: .* has no text: "):
        DelimitedRecordFormat().format(TridentTuple.of(["a", "b"], ["x", bad]))


@pytest.mark.parametrize("end", ["/x", "\0"])
def test_a_suffix_that_no_file_name_has_is_refused(tmp_path: Path, end: str) -> None:
    class Wrong(Shout):
        suffix = end

    with pytest.raises(DefinitionError, match=r"Wrong.suffix ends the names of files, and '.*' has / or NUL"):
        FileState(tmp_path / "rows", Wrong())


def test_a_long_text_comes_back_from_csv(tmp_path: Path) -> None:
    """Arrow reads a megabyte at a time, in which a row must have an end."""
    rows = [("a",), ("b\n" * 2_000_000,), ("c",)]
    factory = write(FileState(tmp_path / "rows", "csv", columns=["v string"]), ["v"], rows)
    assert list(factory.read()) == rows


def test_in_a_topology(tmp_path: Path) -> None:
    values = [("a", 1), ("b", 2), ("a", 1), ("c", 3), ("a", 1)]
    factory, out = FileState(tmp_path / "rows"), []
    topology = TridentTopology()
    stream = topology.newStream("s", FixedBatchSpout(Fields("word string", "n bigint"), 2, *values))
    state = stream.partitionBy("word").partitionPersist(factory, Fields("word", "n"), RowUpdater(), Fields("word", "n"))
    state.parallelismHint(3).newValuesStream().peek(lambda row: out.append(tuple(row)))
    assert [(each.guarantee, each.state_kind) for each in topology.guarantees()] == [("exactly once", "batch")]
    with LocalCluster() as cluster:
        assert cluster.submitTopology("t", {}, topology.build()).awaitTermination(60)
    assert factory.stored() == Counter(values) == Counter(out)


def test_fields_without_a_type_are_told(tmp_path: Path) -> None:
    topology = TridentTopology()
    topology.newStream("s", FixedBatchSpout("word", 2, ("a",))).partitionPersist(FileState(tmp_path / "rows"))
    with pytest.raises(DefinitionError, match="the fields word have no type"):
        topology.build()


def test_a_query_behind_the_update_is_refused(tmp_path: Path) -> None:
    """There is none that it would answer."""
    from trident_py.errors import DefinitionError
    from trident_py.operations.builtin import TupleCollectionGet

    topology = TridentTopology()
    stream = topology.newStream("s", FixedBatchSpout(Fields("word string"), 2, ("a",)))
    state = stream.partitionPersist(FileState(tmp_path / "rows"))
    with pytest.raises(DefinitionError):
        stream.stateQuery(state, TupleCollectionGet(), ["x"])
        topology.build()
