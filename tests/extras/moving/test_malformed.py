"""What a person may get wrong in a command that moves a topology: told in our words, and without a secret."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from click.testing import CliRunner

from trident_py.cli import trident

FOREIGN = re.compile(
    r"(?!State|Trident|Lineage|Definition)\b[A-Z]\w*(Error|Exception|Timeout)\b|build function failed|Traceback"
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


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a dump of Storm's values, a state of ours and an imported checkpoint."""
    monkeypatch.chdir(tmp_path)
    state = {"type": "sql-map", "kind": "opaque", "url": f"sqlite:///{tmp_path}/c.db", "table": "counts",
             "key": "word string", "value": "count bigint"}  # fmt: skip
    (tmp_path / "s.yaml").write_text(json.dumps({"states": {"counts": state}}))
    (tmp_path / "values.jsonl").write_text('{"key": "a", "value": [3, 2, 1]}\n')
    dump_nodes(tmp_path, {"a": 8, "b": 8})
    done = CliRunner().invoke(trident, [*OFFSETS, "--checkpoint", "ck"])
    assert done.exit_code == 0, done.output
    return tmp_path


OFFSETS = ("import", "offsets", "own_spouts:build", "--dump", "nodes.jsonl")
INTO = ("--into", "s.yaml:counts", "--checkpoint", "ck")


def dump_nodes(folder: Path, streams: dict[str, int], **more: object) -> None:
    nodes: dict[str, object] = {}
    for name, current in streams.items():
        nodes |= {f"{name}/coordinator/currtx": current, f"{name}/coordinator/meta/{current - 1}": "m",
                  f"{name}/user/p/{current - 1}": {"pos": f"{name}{current}"}}  # fmt: skip
    rows = [{"path": f"/transactional/{path}", "data": json.dumps(data)} for path, data in (nodes | more).items()]
    (folder / "nodes.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))


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
