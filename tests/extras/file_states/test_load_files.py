"""`type: file` in a states file."""

from __future__ import annotations

import inspect
import re
from pathlib import Path

import pytest

import states
from states.files import FileState
from trident_py.errors import DefinitionError
from trident_py.extras.files.models import FileSettings

PAGE = Path(__file__).parents[3] / "docs" / "states.md"


def loaded(folder: Path, settings: str) -> FileState:
    (folder / "states.yaml").write_text(f"states:\n  rows: {{type: file, {settings}}}\n")
    made = states.load(folder / "states.yaml")["rows"]
    assert isinstance(made, FileState)
    return made


def test_a_file_makes_what_code_would_make(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KEY", "hush")
    made = loaded(
        tmp_path,
        "uri: 's3://bucket/rows', format: csv, columns: [word string, n bigint], visible: manifest, rotate: 5MB, "
        "compact: 1GB, retention: 30d, grace: 60, storage: {access_key: me, secret_key: '${KEY}', region: x}",
    )
    storage = {"access_key": "me", "secret_key": "hush", "region": "x"}
    assert made == FileState(
        "s3://bucket/rows", "csv", ["word string", "n bigint"], storage, "manifest", "5MB", "1GB", "30d", 60
    )
    assert "hush" not in repr(made)
    assert loaded(tmp_path, f"uri: {tmp_path}/rows") == FileState(tmp_path / "rows")


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ("format: csv", "uri"),
        ("uri: /tmp/x, format: orc", "found 'orc'.*parquet, csv, json"),
        ("uri: /tmp/x, compact: 1MB", "Use visible='manifest'"),
        ("uri: /tmp/x, columns: [a nosuch]", "column 'a': unknown type 'nosuch'"),
        ("uri: /tmp/x, rotate: x", "rotate must be a whole number"),
        ("uri: /tmp/x, table: t", "table"),
    ],
)
def test_what_cannot_be_is_told_with_its_line(tmp_path: Path, settings: str, words: str) -> None:
    with pytest.raises(DefinitionError, match=rf"(?s)states.yaml:2: .*{words}"):
        loaded(tmp_path, settings)


def test_every_key_is_an_argument_of_the_factory_and_stands_on_the_users_page() -> None:
    assert set(FileSettings.model_fields) == set(inspect.signature(FileState).parameters)
    section = PAGE.read_text().partition("\n### file\n")[2].partition("\n#")[0]
    assert re.findall(r"^\| `([A-Za-z.]+)` \|", section, re.MULTILINE) == list(FileSettings.model_fields)


def test_check_looks_at_the_folder_and_writes_nothing(tmp_path: Path) -> None:
    made = loaded(tmp_path, f"uri: {tmp_path}/rows")
    assert [(each.level, each.text) for each in made.check()] == [
        ("creates", f"folder {tmp_path}/rows with its ledger")
    ]
    assert not (tmp_path / "rows").exists()
    (tmp_path / "rows").mkdir()
    (tmp_path / "rows" / "mine.csv").write_text("")
    assert [each.level for each in made.check()] == ["error"]
