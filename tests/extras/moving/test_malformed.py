"""What a person may get wrong in a command that moves a topology: told in our words, and without a secret."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from click.testing import CliRunner
from own_spouts import dump_nodes, fill

from trident_py.cli import trident
from trident_py.errors import DefinitionError
from trident_py.extras.moving.kafka_offsets import read_progress
from trident_py.extras.moving.storm_stream import StormStream, find_committed

FOREIGN = re.compile(
    r"\b(?!(State|Trident|Lineage|Spout|Definition)Error)\w+(Error|Exception|Timeout|Warning)\b|build function failed"
)
URLS = [
    "redis://:geheim@localhost:1/0", "redis://me:geheim@localhost:1", "redis://:ge/heim@localhost:1/0",
    "redis://localhost:1/0?password=geheim", "redis://:ge@heim@localhost:1", "redis://:ge#heim@localhost:1",
    "redis://u:12/geheim@localhost:1/0", "redis://:geheim@localhost:heim/0", "redis://:geheim-host:1/0",
    "mysql+pymysql://me:geheim@localhost:1/db", "mysql+pymysql://me@localhost:1/db?password=geheim",
    "mysql+pymysql://me:ge/heim@localhost:1/db", "mysql+pymysql://me:ge?heim@localhost:1/db",
    "mysql+pymysql://me:ge@heim@localhost:1/db", "mysql+pymysql://me:geheim@localhost:heim/db",
    "mysql+pymysql:/me:geheim@localhost://x", "postgresql+psycopg://me@localhost:1/db?password=geheim",
    "postgresql+psycopg://me@localhost:1/db?sslpassword=geheim&x=1", "oracle://me:geheim@localhost:1/x",
    "nothing://me:geheim@localhost:1/x", "mysql//me:geheim@localhost/db", "me:geheim@localhost",
]  # fmt: skip


def run(*arguments: str) -> tuple[int, str]:
    """Run a command; return its exit code and what it says. It says no exception of another library."""
    done = CliRunner().invoke(trident, arguments)
    shown = " ".join(done.output.split())
    assert done.exit_code in (1, 2) and shown, done.output
    assert not FOREIGN.search(shown), shown
    return done.exit_code, shown


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a state of ours, s.yaml:counts, an imported checkpoint, and a damaged one."""
    place = tmp_path_factory.mktemp("moved")
    fill(place)
    dump_nodes(place, {"a": 8, "b": 8})
    (damaged := place / "damaged/own_spouts/a%2Bb").mkdir(parents=True)
    (damaged / "journal").write_bytes(b"x\n" * 100)
    dump = ("--dump", f"{place}/nodes.jsonl", "--checkpoint", f"{place}/ck")
    done = CliRunner().invoke(trident, ["import", "offsets", "own_spouts:build", *dump])
    assert done.exit_code == 0, done.output
    return place


@pytest.fixture
def place(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder, with a dump of nodes and one of values."""
    monkeypatch.chdir(folder)
    fill(folder)
    dump_nodes(folder, {"a": 8, "b": 8})
    return folder


OFFSETS = ("import", "offsets", "own_spouts:build", "--dump", "nodes.jsonl")
INTO = ("--into", "s.yaml:counts", "--checkpoint", "ck")


@pytest.mark.parametrize("url", URLS)
def test_no_part_of_a_password_is_shown(url: str, place: Path) -> None:
    lay = ("--hash", "h") if url.startswith("redis") else ("--table", "t", "--key", "k", "--value", "v")
    for command in (
        ("import", "state", "--from", url, "--kind", "opaque", *lay, *INTO),
        ("import", "state", "--from", url, "--kind", "opaque", *lay, "--in-place", *INTO[2:]),
        ("import", "state", "--from", "values.jsonl", "--kind", "opaque", "--into", url, *INTO[2:]),
        ("compare", url, "s.yaml:counts", "--kind", "opaque", *lay),
    ):
        _, shown = run(*command)
        assert "heim" not in shown, shown
        assert "trident-py[mysql]" not in shown or "oracle" not in url


NODES = {
    "no JSON": b'{"path"', "no UTF-8": b'\xff\xfe{"path"', "no object": b"[]\n7\n", "nothing": b"",
    "no data": b'{"path": "/transactional"}', "a number": b'{"path": 7, "data": 7}', "deep": b"[" * 100_000,
    **{f"{name} {value}": json.dumps({"path": f"/transactional/a/coordinator/{name}", "data": value}).encode()
       for name, values in {"currattempts": ('["x"]', '{"x": 0}', "5", "true", "x"), "meta/8": ("x", "[" * 100_000),
                            "currtx": ('"x"', "true", "1.5", "x", "[]", "{}", "-3")}.items() for value in values},
}  # fmt: skip


@pytest.mark.parametrize("content", NODES.values(), ids=[name[:30] for name in NODES])
def test_nodes_that_storm_did_not_write(content: bytes, place: Path) -> None:
    (place / "nodes.jsonl").write_bytes(content)
    run(*OFFSETS, "--checkpoint", "new")
    assert not (place / "new").exists()


@pytest.mark.parametrize("arguments", [
    ("--dump", "."), ("--dump", "none"), ("--zookeeper", "localhost:x"), ("--zookeeper", ""), ("--zookeeper", "a:b:c"),
    ("--group", "g"), ("--group", ""), ("--dump", "nodes.jsonl", "--root", ""),
    ("--dump", "nodes.jsonl", "--root", "/"), ("--dump", "nodes.jsonl", "--start", "t=1"),
    ("--dump", "nodes.jsonl", "--start", "t@0=-1"), ("--dump", "nodes.jsonl", "--start", "t@0=1", "--start", "t@0=2"),
    ("--dump", "nodes.jsonl", "--stream", "a=x", "--stream", "a=y"), ("--dump", "nodes.jsonl", "--stream", "a"),
    ("--dump", "nodes.jsonl", "--txid", "x"), ("--dump", "nodes.jsonl", "--txid", "1"),
    ("--dump", "nodes.jsonl", "--checkpoint", "nothing://x/y"), ("--dump", "nodes.jsonl", "--checkpoint", "s.yaml"),
])  # fmt: skip
def test_options_of_import_offsets(arguments: tuple[str, ...], place: Path) -> None:
    run("import", "offsets", "own_spouts:build", "--checkpoint", "new", *arguments)
    assert not (place / "new").exists()


KAFKA = [5, "x", [], {"firstOffset": "a", "lastOffset": "b"}, {"firstOffset": 5}, {"offset": []}, {"topic": []}, True]


@pytest.mark.parametrize("meta", KAFKA, ids=repr)
@pytest.mark.parametrize("txid", [7, 8])
def test_metadata_that_no_kafka_spout_wrote(txid: int, meta: object) -> None:
    for partition in ("t@0", "partition_0", "p", "t@"):
        written = StormStream("s", 8, frozenset({8}), {7: 5, 8: meta}, {partition: {txid: meta}})
        with pytest.raises(DefinitionError, match=r"not one of Kafka|neither lastOffset nor nextOffset"):
            read_progress(written, find_committed([written]), ["t"])


VALUES = [
    b"x", b"\xff\n", b"7", b"[]", b'{"key": "a"}', b'{"value": 1}', b'{"key": [[1, 2]], "value": [3, 1, null]}',
    b'{"key": {}, "value": [3, 1, null]}', b'{"key": [], "value": [3, 1, null]}', b'{"key": "a", "text": 5}',
    b'{"key": "a", "text": "x"}', b'{"key": "a", "value": [true, 1, null]}', b'{"key": "a", "value": ["3", 1, null]}',
    b'{"key": "a", "value": [3, 1, null, 4]}', b'{"key": "a", "value": [3, "x", null]}',
    b'{"key": 7, "value": [3, 1, null]}', b'{"key": null, "value": [3, 1, null]}',
    b'{"key": "a", "value": [9, 1, null]}', b'{"key": "\\ud800", "value": [3, 1, null]}',
    b'{"key": "a", "value": [3, 99999999999999999999, null]}', b'{"key": "a", "value": [3, NaN, null]}', b"[" * 100_000,
    b'{"key": "a", "text": "' + b"[" * 100_000 + b'"}', b'{"key": ["a", "b"], "value": [3, 1, null]}',
]  # fmt: skip


@pytest.mark.parametrize("line", VALUES, ids=lambda line: line[:40].decode("latin-1"))
def test_values_that_storm_did_not_write(line: bytes, place: Path) -> None:
    (place / "values.jsonl").write_bytes(line)
    run("import", "state", "--from", "values.jsonl", "--kind", "opaque", *INTO)
    compared = CliRunner().invoke(trident, ["compare", "values.jsonl", "s.yaml:counts", "--kind", "opaque"])
    assert compared.exit_code in (1, 2) and not FOREIGN.search(compared.output), compared.output


@pytest.mark.parametrize("arguments", [
    ("--from", "."), ("--from", "none"), ("--from", ""), ("--split", ""), ("--into", "s.yaml"),
    ("--into", "s.yaml:none"), ("--into", "none.yaml:c"), ("--into", "values.jsonl:c"), ("--into", ":c"),
    ("--into", ""), ("--into", ".:c"), ("--checkpoint", "none"), ("--checkpoint", "s.yaml"), ("--checkpoint", ""),
    ("--in-place",), ("--checkpoint", "nothing://x/y/z"), ("--checkpoint", "s3:"), ("--checkpoint", "damaged"),
    ("--hash", "h"),
    ("--from", "sqlite:///none/none.db", *(lay := ("--table", "t", "--key", "k", "--value", "v"))),
    ("--from", "sqlite:///s.yaml", *lay), ("--from", "sqlite:///.", *lay), ("--from", "sqlite:///c.db", *lay),
    ("--from", "sqlite:///c.db", "--table", "counts", *lay[2:]),
    ("--from", "sqlite:///c.db"), ("--from", "://", *lay), ("--from", "unix://"),
    ("--from", "redis://localhost:1/0?socket_timeout=x", "--hash", "h"), ("--from", "rediss://[::1/0"),
])  # fmt: skip
def test_options_of_import_state(arguments: tuple[str, ...], place: Path) -> None:
    given = {"--from": "values.jsonl", "--into": "s.yaml:counts", "--checkpoint": "ck", "--kind": "opaque"}
    others = [part for name, value in given.items() if name not in arguments for part in (name, value)]
    run("import", "state", *others, *arguments)


@pytest.mark.parametrize("arguments", [
    ("values.jsonl", "s.yaml"), ("values.jsonl", "s.yaml:none"), ("values.jsonl", "."), ("", "s.yaml:counts"),
    (".", "s.yaml:counts"), ("values.jsonl", "none.yaml:c"), ("none", "none"), ("sqlite:///c.db", "s.yaml:counts"),
    ("values.jsonl", "s.yaml:counts", "--tolerance", "nan"), ("values.jsonl", "s.yaml:counts", "--tolerance", "inf"),
    ("values.jsonl", "s.yaml:counts", "--tolerance", "x"), ("values.jsonl", "s.yaml:counts", "--ignore", ""),
    ("values.jsonl", "s.yaml:counts", "--split", ""), ("values.jsonl", "s.yaml:counts", "--checkpoint", "none"),
    ("s.yaml", "s.yaml:counts"), ("s.yaml:counts", "s.yaml:counts"), ("values.jsonl", "redis://u:geheim@h/0"),
])  # fmt: skip
def test_options_of_compare(arguments: tuple[str, ...], place: Path) -> None:
    assert run("compare", "--kind", "opaque", *arguments)[0] == 2
