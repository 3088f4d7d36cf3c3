"""States files, topology files, the gateway's settings and access lists of DRPC: whatever is in them, a mistake is told
with the file, nothing hangs, and nothing is made."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from states import load
from trident_py import topology_files
from trident_py.errors import DefinitionError
from trident_py.extras.drpc_server.app import access_of
from trident_py.extras.gateway.settings import read_settings

from .drawing import altered, damaged, often, refusal

STATES = {
    "one": {"type": "sql-map", "kind": "opaque", "url": "sqlite:///a.db", "table": "one", "key": ["word string"],
            "value": ["count bigint"]},
    "two": {"type": "insert-ignore", "url": "mysql+pymysql://me:secret@h:1/db?charset=utf8mb4", "table": "t",
            "key": ["id int"], "columns": ["id int", "n decimal(10,2)"], "onConflict": "fail",
            "onBadRow": "dead-letter"},
    "three": {"type": "file", "uri": "out", "format": "csv", "visible": "batches"},
    "four": {"type": "transactional-topic", "bootstrap": "h:9092", "topic": "t", "settings": {"linger.ms": 5}},
    "five": {"type": "redis-map", "kind": "opaque", "url": "redis://:secret@h:6379/0"},
    "six": {"type": "sequence", "url": "sqlite:///a.db", "table": "s", "sender": ["who string"],
    "sequence": ["n bigint"]},
}  # fmt: skip
TOPOLOGY = {
    "name": "words", "storage": "checkpoints", "includes": [], "configuration": {"topology.guarantee": "exactly-once"},
    "states": {"counts": {"className": "trident_py.testing:MemoryMapState.Factory"}, "rows": STATES["two"]},
    "components": {"spout": {"className": "FixedBatchSpout", "constructorArgs": ["sentence", 2, ["a b"]]}},
    "streams": {
        "words": {"newStream": {"txId": "s", "spout": {"ref": "spout"}}, "operations": [
            {"each": {"inputFields": "sentence", "function": "trident_py.testing:Split", "functionFields": "w"}},
            {"groupBy": "w"}, {"persistentAggregate": {"state": "counts", "agg": "Count", "functionFields": "count"}},
        ]},
        "seen": {"newStream": {"txId": "z", "spout": {"ref": "spout"}}, "operations": ["shuffle",
            {"window": {"windowConfig": {"windowLength": 3, "slideLength": 2}, "inputFields": "sentence",
            "aggregator": "trident_py.testing:CountAsAggregator",
                        "functionFields": "n",
                        "state": {"className": "trident_py.windowing:InMemoryWindowsStoreFactory"}}}]},
    },
}  # fmt: skip
GATEWAY = {
    "kafka": {"bootstrap": "h:9092", "topic": "events", "settings": {"sasl.password": "secret"}, "deliverySeconds": 5},
    "store": "sqlite:///events.db", "fingerprint": {"fields": ["a"], "timestamp": "t", "roundSeconds": 5},
    "event": {"required": {"a": "string"}, "optional": {"t": "number"}}, "limits": {"batch": 10},
    "bloom": {"capacity": 10},
    "port": 8080, "workers": 1,
}  # fmt: skip
ACCESS = {"drpc.tokens": {"alice": "a", "bob": "b"}, "drpc.authorizer.acl": {"f": {"client.users": ["alice"]}}}

GOOD: dict[str, tuple[Any, Callable[[str], Any]]] = {
    "states.yaml": ({"states": STATES}, load),
    "trident.yml": (TOPOLOGY, lambda file: topology_files.load(file).build()),
    "events.yaml": (GATEWAY, read_settings),
    "acl.yaml": (ACCESS, access_of),
}
TOKENS = [
    b"&a ", b"*a ", b"<<: *a\n", b"&a [*a, *a]", b"!!bool x", b"!!int x", b"!!int ''", b"!!float x", b"!!timestamp x",
    b"!!binary x",
    b"!!null x", b"!!set {a}", b"!!omap [a]", b"!!python/object/apply:time.sleep [9]", b"!a ", b"!!str ", b"!!map ",
    b"? ", b"- ", b": ",
    b"|\n", b">\n", b"%YAML 9.9\n", b"---\n", b"...\n", b"#", b"\t", b"\x00", b"\xff", b"\xef\xbb\xbf", b"${", b"${X",
    b"${HOME}", b"$$",
    b"1e999", b".inf", b".nan", b"0x", b"0o9", b"2001-99-99", b"1:99:99", b"9" * 5_000, b"[" * 3_000, b"{a: " * 3_000,
    b"- " * 3_000,
    b'"\\0"', b'"\\ud800"', b'"\\U00110000"', b"x" * 100_000, b"~", b"''", b"{}", b"[]", b"=", b"<<",
]  # fmt: skip


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("yaml")


@pytest.fixture(params=list(GOOD))
def place(request: pytest.FixtureRequest, folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(folder)
    return folder / request.param


def refused_or_taken(place: Path, content: bytes) -> None:
    """Then the mended file is taken as before, and nothing else is in the folder."""
    good, read = GOOD[place.name]
    place.write_bytes(content)
    error = refusal(lambda: read(str(place)), place.name)
    assert error is None or isinstance(error, DefinitionError)
    assert "secret" not in str(error).replace("secret keys", "")
    place.write_text(json.dumps(good))
    read(str(place))
    assert [each.name for each in place.parent.iterdir()] == [place.name], "something was made"
    place.unlink()


@often(15, 400)
@given(data=st.data())
def test_a_damaged_file(place: Path, data: st.DataObject) -> None:
    good = yaml.safe_dump(GOOD[place.name][0], sort_keys=False).encode()
    refused_or_taken(place, data.draw(damaged(good, TOKENS)))


@often(15, 400)
@given(data=st.data())
def test_a_file_with_wrong_values(place: Path, data: st.DataObject) -> None:
    refused_or_taken(place, yaml.safe_dump(data.draw(altered(GOOD[place.name][0])), allow_unicode=True).encode())


def bomb(levels: int) -> str:
    lines = ["x-0: &a0 [lol, lol, lol, lol, lol, lol, lol, lol, lol]"]
    lines += [f"x-{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(1, levels)]
    return "\n".join(lines)


BOMBS = {
    "aliases": bomb(12),
    "merged": "x-0: &a0 {a: b}\n" + "\n".join(f"x-{n}: &a{n} {{<<: [{f'*a{n - 1}, ' * 9}]}}" for n in range(1, 12)),
    "merged into itself": "x-0: &a {<<: *a, b: c}",
    "nested lists": "a: " + "[" * 50_000, "nested mappings": "{a: " * 50_000, "nested blocks": "- " * 50_000,
    "closed lists": "a: " + "[" * 5_000 + "]" * 5_000,
    "a long line": "a: " + "x" * 5_000_000, "a long number": "a: " + "9" * 1_000_000,
    "a long name": "a" * 1_000_000 + ": b",
    "many dollars": "a: '" + "${A" * 100_000 + "'", "many quotes": "a: '" + "''" * 1_000_000 + "'",
    "many names": "a: b\n" * 20_000,
}  # fmt: skip


@pytest.mark.parametrize("name", BOMBS)
def test_a_file_that_grows_when_it_is_read(name: str, tmp_path: Path) -> None:
    file = tmp_path / "states.yaml"
    file.write_text(BOMBS[name])
    assert refusal(lambda: load(file), "states.yaml") is not None
