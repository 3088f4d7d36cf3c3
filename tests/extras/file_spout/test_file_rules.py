"""The list of rules that docs/files.md gives: each reader is held to each of them."""

import bz2
import gzip
import lzma
import zipfile
from io import BytesIO

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from spouts.harness import Player, flat

from trident_py.errors import SpoutError
from trident_py.spouts import FileSpout
from trident_py.tuples import TransactionAttempt

TEXT = {"lines": "one\ntwo ü\n", "csv": "v,w\none,1\ntwo ü,2\n", "json": '{"v": "one"}\n{"v": "two ü"}\n'}
ROWS = [("one",), ("two ü",)]


@pytest.fixture(params=list(TEXT))
def kind(request):
    return request.param


@pytest.fixture
def text(kind):
    return TEXT[kind]


def read(tmp_path, kind, content, fields="v", **settings):
    (tmp_path / "x").write_bytes(content)
    return flat(Player(FileSpout(tmp_path / "x", fields, format=kind, **settings)).to_end())


def zipped(content):
    with zipfile.ZipFile(out := BytesIO(), "w") as file:
        file.writestr("x", content)
    return out.getvalue()


@pytest.mark.parametrize("field", ["v", "v string"])
def test_a_mark_at_the_beginning_is_dropped(tmp_path, kind, text, field):
    assert read(tmp_path, kind, text.encode("utf-8-sig"), field, batchSize=1) == ROWS


def test_a_mark_elsewhere_is_text(tmp_path):
    assert read(tmp_path, "lines", "one\n\ufefftwo\n".encode(), batchSize=1) == [("one",), ("\ufefftwo",)]
    assert read(tmp_path, "csv", "v,w\n\ufeffone,1\n".encode(), batchSize=1) == [("\ufeffone",)]
    assert read(tmp_path, "csv", '\ufeff"v\n1",w\none,1\n'.encode(), "w", multiline=True) == [("1",)]


@pytest.mark.parametrize("field", ["v", "v string"])
def test_lines_end_with_lf_or_cr_lf_and_the_last_one_may_lack_it(tmp_path, kind, text, field):
    for content in (text, text.replace("\n", "\r\n"), text.rstrip("\n"), text.replace("\n", "\r\n").rstrip("\r\n")):
        assert read(tmp_path, kind, content.encode(), field, batchSize=1) == ROWS


def test_line_ends_of_cr_alone_are_refused_with_the_remedy(tmp_path, kind, text):
    with pytest.raises(SpoutError, match=r"x\b.*a line ends with CR alone; convert the line ends to LF"):
        read(tmp_path, kind, text.replace("\n", "\r").encode())


def test_cr_alone_is_text_in_a_line_and_between_quotes_and_refused_elsewhere(tmp_path):
    assert read(tmp_path, "lines", b"10%\r20%\n") == [("10%\r20%",)]
    assert read(tmp_path, "csv", b'v,w\n"a\rb",1\n') == [("a\rb",)]
    with pytest.raises(SpoutError, match="x, line 3: a line ends with CR alone"):
        read(tmp_path, "csv", b"v\na\nb\rc\n")


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be", "utf-32", "utf-32-le", "utf-32-be"])
def test_wide_text_is_refused_with_the_remedy(tmp_path, kind, text, encoding):
    with pytest.raises(SpoutError, match=r"x is UTF-16 or UTF-32; convert it to UTF-8"):
        read(tmp_path, kind, text.encode(encoding))


def test_other_text_is_refused_with_the_remedy(tmp_path, kind, text):
    with pytest.raises(SpoutError, match=r"x, (line|after byte) \d+: .*convert it to UTF-8"):
        read(tmp_path, kind, text.encode("latin-1"))


@pytest.mark.parametrize(
    "name, compress", [("gzip", gzip.compress), ("bzip2", bz2.compress), ("xz", lzma.compress), ("zip", zipped),
                       ("zstd", lambda content: bytes(pa.Codec("zstd").compress(content))),
                       ("lz4", lambda content: bytes(pa.Codec("lz4").compress(content)))])  # fmt: skip
def test_compressed_content_is_refused_whatever_its_name(tmp_path, kind, text, name, compress):
    with pytest.raises(SpoutError, match=rf"x is compressed \({name}\) and cannot be read in parts; decompress it"):
        read(tmp_path, kind, compress(text.encode()))


@pytest.mark.parametrize("multiline", [False, True])
def test_a_quoted_text_is_a_text_and_a_quoted_null_elsewhere_a_null(tmp_path, multiline):
    content = b'v,n,m\n"NA",1,2\nNA,"NA","NA"\n"","",""\n,,\n'
    fields = ["v", "n double", "m decimal(5,1)"]
    rows = read(tmp_path, "csv", content, fields, multiline=multiline)
    assert rows == [("NA", 1.0, 2), (None, None, None), ("", None, None), (None, None, None)]


def test_a_quote_inside_a_value_is_text(tmp_path):
    content = b'v,w\n1,a\n2,b\n3,12" vinyl'
    assert read(tmp_path, "csv", content, ["v", "w"], batchSize=1, multiline=True)[2:] == [("3", '12" vinyl')]


@pytest.mark.parametrize("multiline, advice", [(False, "set multiline=True"), (True, "close it")])
def test_a_quote_that_is_not_closed_is_named(tmp_path, multiline, advice):
    for content, line in ((b'v,w\n1,a\n2,"b\n3,c\n', 3), (b'v,w\n1,a\n2,"b', 3)):
        with pytest.raises(SpoutError, match=rf"x, line {line}: a quote is not closed; .*{advice}"):
            read(tmp_path, "csv", content, batchSize=1, multiline=multiline)


def test_an_error_names_the_line_behind_blank_ones_and_longer_values(tmp_path):
    with pytest.raises(SpoutError, match=r"x, line 6: .*'cold'"):
        read(tmp_path, "csv", b'v,w\n\n1,"two\nlines"\n\ncold,x\n', "v double", multiline=True)


def test_a_row_of_nulls_between_tabs_is_a_row(tmp_path):
    assert read(tmp_path, "csv", b"v\tw\n1\t2\n\t\n", batchSize=1, delimiter="\t") == [("1",), (None,)]


@pytest.mark.parametrize("written, declared", [
    ("2013-01-01 06:00:00", ("timestamp", "timestamp_ntz")), ("2013-01-01 06:00:00Z", ("timestamp_ntz", "timestamp"))])
def test_a_time_with_or_without_a_zone_says_which_type(tmp_path, written, declared):  # fmt: skip
    zone = "UTC" if written.endswith("Z") else None
    pq.write_table(pa.table({"v": pa.array([0], pa.timestamp("us", zone))}), out := BytesIO())
    csv, json = f"v,w\n{written},1\n".encode(), f'{{"v": "{written}"}}\n'.encode()
    for kind, content in (("csv", csv), ("json", json), ("parquet", out.getvalue())):
        with pytest.raises(SpoutError, match=rf"x, (line|column).*; declare {declared[1]}\b"):
            read(tmp_path, kind, content, f"v {declared[0]}")
        assert len(read(tmp_path, kind, content, f"v {declared[1]}")) == 1


def test_bytes_in_json_are_base64(tmp_path):
    assert read(tmp_path, "json", b'{"v": "AP8="}\n{"v": null}\n', "v binary") == [(b"\0\xff",), (None,)]
    with pytest.raises(SpoutError, match=r"x, line 1: field 'v' is declared binary.*'\?' is not Base64"):
        read(tmp_path, "json", b'{"v": "?"}\n', "v binary")


@pytest.mark.parametrize("field", ["v", "v float", "v double", "v decimal(5,2)"])
def test_a_float16_is_a_float(tmp_path, field):
    pq.write_table(pa.table({"v": pa.array([np.float16(1.5), None], pa.float16())}), out := BytesIO())
    assert read(tmp_path, "parquet", out.getvalue(), field) == [(1.5,), (None,)]


def test_rows_are_counted_whatever_the_columns_are_called(tmp_path):
    (tmp_path / "x").write_bytes(b'wind speed,"",w,w,v\n1,2,3,4,5\n')
    player = Player(FileSpout(tmp_path / "x", "v", format="csv"))
    player.emit(1)
    (task,) = player.tasks.values()
    assert [chunk.length for chunk in task.chunks(TransactionAttempt(1, 0), player.payload(1), [])] == [1]
