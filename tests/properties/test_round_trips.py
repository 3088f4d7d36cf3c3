"""What comes out is what went in, or an error: every source format, through chunk and exchange.

A run of many examples: ROUND_TRIPS=20000 python -m pytest tests/properties/test_round_trips.py --hypothesis-seed=1
"""

from __future__ import annotations

import csv
import datetime
import decimal
import io
import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import fastavro
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from trident_py import Fields, TridentError
from trident_py.extras.file_spout import readers
from trident_py.extras.file_spout.file_list import Files
from trident_py.extras.file_spout.spout import make_reader
from trident_py.kafka import Avro, Bytes, Json, Text
from trident_py.model.chunks import Chunk, Column, concat
from trident_py.spouts import FileSpout

from .values import OF_TYPE, anything, is_same

EXAMPLES = int(os.environ.get("ROUND_TRIPS", settings.default.max_examples))
often = settings(max_examples=EXAMPLES, deadline=None, database=None, suppress_health_check=list(HealthCheck))
Typed = tuple[str, list[Any]]


@st.composite
def typed_values(draw: st.DrawFn, types: tuple[str, ...] = tuple(OF_TYPE)) -> Typed:
    """A type, and values of it and some of anything."""
    ddl = draw(st.sampled_from(types))
    strange = anything if draw(st.integers(0, 5)) == 0 else st.none()
    return ddl, draw(st.lists(OF_TYPE[ddl] | strange, min_size=1, max_size=5))


def exchanged(chunks: Iterator[Chunk] | list[Chunk], name: str = "v") -> list[Any]:
    """The values of a field behind a process boundary."""
    crossed = [Chunk.decode(chunk.encode()) for chunk in chunks]
    return concat(crossed).pylist(name) if crossed else []


def check(ddl: str, values: list[Any], out: Callable[[list[Any]], list[Any]], errors: Any = TridentError) -> None:
    """All come out as they went in, or it is an error; then the same for each alone."""
    for given_values in (values, *([each] for each in values)):
        try:
            found = out(given_values)
        except errors:
            continue
        assert len(found) == len(given_values)
        for before, after in zip(given_values, found, strict=True):
            assert is_same(ddl, before, after), (ddl, before, after)


@often
@given(typed_values())
def test_a_tuple_comes_through_chunk_and_exchange(drawn: Typed) -> None:
    ddl, values = drawn
    check(ddl, values, lambda rows: exchanged([Chunk.of_rows(Fields(f"v {ddl}"), [(each,) for each in rows])]))


@often
@given(st.lists(anything | st.tuples(anything, anything) | st.dictionaries(st.text(max_size=2), anything), max_size=5))
def test_a_tuple_without_types_comes_through_chunk_and_exchange(values: list[Any]) -> None:
    found = exchanged([Chunk.of_rows(Fields("v"), [(each,) for each in values])])
    assert list(map(repr, found)) == list(map(repr, values))


def read(path: Path, kind: str, fields: list[str], block: int, start: int = 0, **options: Any) -> list[Chunk]:
    spout = FileSpout(str(path), fields, format=kind, **options)
    before, readers.BLOCK = readers.BLOCK, block
    try:
        files = Files({})
        reader = make_reader(spout, files, kind)
        end = pq.read_metadata(path).num_rows if kind == "parquet" else path.stat().st_size
        chunks = list(reader.read(files.identify(str(path)), start, end, Fields(*fields)))
        reader.close()
        return chunks
    finally:
        readers.BLOCK = before


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("round_trips") / "file"


@often
@given(st.lists(OF_TYPE["string"], min_size=1, max_size=6), st.integers(1, 40))
def test_lines_come_out_as_they_stand(file: Path, values: list[str], block: int) -> None:
    lines = ["".join(each.splitlines()) for each in values]
    try:
        file.write_bytes("".join(f"{line}\n" for line in lines).encode())
    except UnicodeEncodeError:
        file.write_bytes("".join(f"{line}\n" for line in lines).encode(errors="surrogatepass"))
        with pytest.raises(TridentError, match="not UTF-8"):
            read(file, "lines", ["v"], block)
        return
    assert exchanged(read(file, "lines", ["v"], block)) == lines


def written(value: Any) -> str:
    """A value as text, exact."""
    if isinstance(value, bool):
        return str(value).lower()
    return value.isoformat() if isinstance(value, datetime.date) else str(value)


CSV_TYPES = tuple(ddl for ddl in OF_TYPE if ddl != "binary")


@often
@given(typed_values(CSV_TYPES), st.integers(1, 40))
def test_a_value_in_csv_comes_out_or_is_an_error(file: Path, drawn: Typed, block: int) -> None:
    ddl, values = drawn

    def out(rows: list[Any]) -> list[Any]:
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n", quoting=csv.QUOTE_ALL)
        writer.writerows([("v", "w"), *((written(each), "x") for each in rows if each is not None)])
        file.write_bytes(text.getvalue().encode(errors="surrogatepass"))
        start = len('"v","w"\n')
        found = exchanged(read(file, "csv", [f"v {ddl}"], block, start, nulls="no value", multiline=True))
        rest = iter(found)
        return [None if each is None else next(rest) for each in rows]

    ours = [each for each in values if each is None or type(each) in KINDS[ddl]]
    check(ddl, ours or [None], out)


KINDS: dict[str, set[type]] = {
    "string": {str}, "double": {float, int}, "float": {float, int}, "boolean": {bool}, "date": {datetime.date},
    "timestamp": {datetime.datetime}, "timestamp_ntz": {datetime.datetime},
    **{ddl: {int} for ddl in ("bigint", "int", "smallint", "tinyint")},
    **{ddl: {decimal.Decimal, int} for ddl in OF_TYPE if ddl.startswith("decimal")},
}  # fmt: skip


def as_json(value: Any) -> str:
    """A value as JSON, its numbers to the last digit."""
    if isinstance(value, decimal.Decimal):
        return str(value)
    if isinstance(value, datetime.date):
        return json.dumps(value.isoformat())
    return json.dumps(value)


def objects(values: list[Any], more: str = "") -> list[bytes]:
    return [f'{{"v":{as_json(each)}{more}}}'.encode() for each in values]


JSON_TYPES = CSV_TYPES
# what makes Python's reader take the block: a field without a type, or a value that Arrow's reader refuses
BESIDE = st.sampled_from(["", ',"w":"\\ud800"', ',"w":[1,-0]', ',"w":1e-400', ',"w":{"a":1}', ',"v2":NaN'])


@often
@example(("decimal(18,2)", [decimal.Decimal("1234567890123456.78")]), "", 60, True)
@example(("decimal(38,18)", [decimal.Decimal("123456789012345678901234567890.12345678")]), "", 60, True)
@given(typed_values(JSON_TYPES), BESIDE, st.integers(1, 60), st.booleans())
def test_a_value_in_json_comes_out_or_is_an_error(
    file: Path, drawn: Typed, beside: str, block: int, alone: bool
) -> None:
    ddl, values = drawn
    values = [each for each in values if each is None or type(each) in KINDS[ddl]] or [None]
    fields = [f"v {ddl}"] if alone else [f"v {ddl}", "w"]

    def out(rows: list[Any]) -> list[Any]:
        lines = objects(rows, beside)
        file.write_bytes(b"\n".join(lines) + b"\n")
        found = exchanged(read(file, "json", fields, block))
        assert [*map(repr, found)] == [*map(repr, exchanged([Chunk(Json(*fields).columns("value", lines), len(rows))]))]
        return found

    check(ddl, values, out)


NUMBER = st.builds(
    "{}{}{}{}".format, st.sampled_from(["", "-"]), st.integers(0, 10**20) | st.just(0),
    st.sampled_from(["", ".0", ".5", ".1000000000000000055", ".00"]),
    st.sampled_from(["", "e2", "E-3", "e400", "e-400"]),
)  # fmt: skip
SAID = NUMBER | st.sampled_from(
    ["NaN", "Inf", "Infinity", "-Infinity", "null", "true", '"1"', '"\\u0000"', '"\\ud800"', "[]", "-"]
)
PLAIN = ("double", "bigint", "int", "string", "boolean")


@often
@given(st.sampled_from(PLAIN), st.lists(SAID, min_size=1, max_size=4), SAID)
def test_it_does_not_matter_which_records_came_together(ddl: str, said: list[str], other: str) -> None:
    def column(records: list[str]) -> Any:
        raw = [f'{{"v":{each}}}'.encode() for each in records]
        try:
            return exchanged([Chunk(Json(f"v {ddl}").columns("value", raw), len(raw))])
        except TridentError:
            return None

    alone = {each: column([each]) for each in (*said, other)}
    together = column([*said, other])
    assert (together is None) == (None in alone.values())
    if together is not None:
        assert [*map(repr, together)] == [repr(alone[each][0]) for each in (*said, other)]  # type: ignore[index]
    for each in said:
        mixed = column_beside_a_list(ddl, each)
        assert repr(mixed) == repr(alone[each])


def column_beside_a_list(ddl: str, said: str) -> Any:
    """As Python's own reader takes it: Arrow's has no field without a type."""
    raw = [f'{{"v":{said},"w":[]}}'.encode()]
    try:
        return exchanged([Chunk(Json(f"v {ddl}", "w").columns("value", raw), 1)])
    except TridentError:
        return None


FILE_TYPES: dict[str, pa.DataType] = {
    "string": pa.string(), "bigint": pa.int64(), "int": pa.int32(), "smallint": pa.int16(), "double": pa.float64(),
    "float": pa.float32(), "boolean": pa.bool_(), "binary": pa.binary(), "date": pa.date32(),
    "timestamp": pa.timestamp("us", "UTC"), "timestamp_ntz": pa.timestamp("us"),
    "decimal(38,18)": pa.decimal128(38, 18), "decimal(18,2)": pa.decimal128(18, 2),
}  # fmt: skip
NUMERIC = ("bigint", "int", "smallint", "double", "decimal(38,18)", "decimal(18,2)")


@often
@given(typed_values(tuple(FILE_TYPES)), st.sampled_from(tuple(FILE_TYPES)), st.booleans())
def test_a_value_in_parquet_comes_out_or_is_an_error(file: Path, drawn: Typed, declared: str, same: bool) -> None:
    ddl, values = drawn
    declared = ddl if same else declared
    try:
        column = pa.array([v if type(v) in KINDS.get(ddl, {bytes}) else None for v in values], FILE_TYPES[ddl])
    except (pa.ArrowException, OverflowError, UnicodeEncodeError):
        return
    pq.write_table(pa.table({"v": column}), file)
    try:
        found = exchanged(read(file, "parquet", [f"v {declared}"], 1))
    except TridentError:
        assert declared != ddl
        return
    before = column.to_pylist()
    if declared == ddl:
        assert all(is_same(ddl, a, b) for a, b in zip(before, found, strict=True)), (before, found)
    elif {ddl, declared} <= set(NUMERIC):
        for one, other in zip(before, found, strict=True):  # a decimal becomes the nearest double
            assert one == other or one != one or float(one) == float(other)
    elif "string" not in (ddl, declared) and "float" not in (ddl, declared):
        assert {str(a)[:10] for a in before} == {str(b)[:10] for b in found} or {ddl, declared} == {"string", "binary"}


@often
@given(st.lists(st.none() | st.binary(max_size=6), min_size=1, max_size=5))
def test_bytes_and_text_of_kafka_come_out_as_they_are(raw: list[bytes | None]) -> None:
    assert exchanged([Chunk(Bytes().columns("v", raw), len(raw))]) == raw
    try:
        texts: Any = [None if each is None else each.decode() for each in raw]
    except UnicodeDecodeError:
        with pytest.raises(pa.ArrowInvalid):
            Text().columns("v", raw)
        return
    assert exchanged([Chunk(Text().columns("v", raw), len(raw))]) == texts == Text().objects(raw)


AVRO: dict[str, Any] = {
    "string": "string", "bigint": "long", "int": "int", "double": "double", "float": "float", "boolean": "boolean",
    "binary": "bytes", "date": {"type": "int", "logicalType": "date"},
    "timestamp": {"type": "long", "logicalType": "timestamp-micros"},
    "decimal(38,18)": {"type": "bytes", "logicalType": "decimal", "precision": 38, "scale": 18},
}  # fmt: skip


@often
@given(typed_values(tuple(AVRO)))
def test_a_value_in_avro_comes_out_or_is_an_error(drawn: Typed) -> None:
    ddl, values = drawn
    form = Avro({"type": "record", "name": "r", "fields": [{"name": "v", "type": ["null", AVRO[ddl]]}]})
    schema = fastavro.parse_schema(json.loads(form.schema))

    def out(rows: list[Any]) -> list[Any]:
        raw = []
        for each in rows:
            stream = io.BytesIO()
            try:
                fastavro.schemaless_writer(stream, schema, {"v": each}, strict=True)
            except Exception:
                raise TridentError("not written") from None
            raw.append(stream.getvalue())
        return exchanged([Chunk(form.columns("value", raw), len(raw))])

    ours = [each for each in values if each is None or type(each) in KINDS.get(ddl, {bytes})]
    if ddl == "timestamp":
        ours = [each for each in ours if isinstance(each, datetime.datetime) and each.tzinfo]  # others as local times
    check(ddl, ours or [None], out)


def test_arrow_columns_are_what_they_were(file: Path) -> None:
    column: Column = pa.array([1, None, 2**63 - 1], pa.int64())
    assert exchanged([Chunk({"v": column}, 3)]) == [1, None, 2**63 - 1]
