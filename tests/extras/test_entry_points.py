"""Extras by entry point: what is loaded, and what a user is told who lacks one, or a library that it needs."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
import zipfile
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

import trident_py.topology_files
from trident_py import DefinitionError, entry_points
from trident_py.cli import trident
from trident_py.entry_points import COMMANDS, EXTRAS

ROOT = Path(__file__).parents[2]
HEAVY = {"confluent_kafka", "fastapi", "pydantic", "pyspark", "redis", "sqlalchemy", "sqlglot", "uvicorn", "yaml"}
HOME = "trident_py.extras."
LACKS = "needs topology_files, which this installation lacks: pip install --force-reinstall trident-py"


@pytest.fixture
def installed(monkeypatch: pytest.MonkeyPatch) -> dict[str, EntryPoint]:
    """The only entry points, of both groups."""
    points: dict[str, EntryPoint] = {}
    monkeypatch.setattr(entry_points, "_points", lambda group: points)
    return points


def test_the_help_lists_the_commands_of_extras_and_loads_nothing_heavy() -> None:
    code = "import sys, trident_py.cli\ntry: trident_py.cli.trident(['--help'])\nexcept SystemExit: pass\n"
    code += f"assert not {HEAVY} & set(sys.modules), {HEAVY} & set(sys.modules)"
    done = subprocess.run([sys.executable, "-W", "error", "-c", code], check=True, capture_output=True, text=True)
    assert all(f"  {name} " in done.stdout for name in ("events", "init", "schema", "run")), done.stdout


def test_a_command_whose_library_is_missing_says_what_to_install(
    installed: dict[str, EntryPoint], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "needy.py").write_text("import there_is_no_such_library")
    monkeypatch.syspath_prepend(tmp_path)
    installed["events"] = EntryPoint("events", "needy:events [events]", COMMANDS)
    installed["own"] = EntryPoint("own", "needy:own", COMMANDS)
    done = CliRunner().invoke(trident, ["events", "serve", "--config", "events.yaml"])
    told = "error: trident events needs there_is_no_such_library: pip install 'trident-py[events]'\n"
    assert (done.exit_code, done.stderr) == (2, told)
    done = CliRunner().invoke(trident, ["own", "--help"])
    told = "error: trident own needs there_is_no_such_library: pip install there_is_no_such_library\n"
    assert (done.exit_code, done.stderr) == (2, told)
    assert "trident events needs" in CliRunner().invoke(trident, ["--help"]).stdout


def test_a_command_whose_extra_is_missing_says_so(installed: dict[str, EntryPoint]) -> None:
    done = CliRunner().invoke(trident, ["events", "serve"])
    assert done.exit_code == 2 and f"an entry point of the group {COMMANDS}" in done.stderr
    installed["events"] = EntryPoint("events", "trident_py.extras.gone.cli:events", COMMANDS)
    done = CliRunner().invoke(trident, ["events", "serve"])
    assert done.exit_code == 2
    assert "error: trident events needs trident_py.extras.gone.cli, which this installation lacks" in done.stderr


@pytest.mark.parametrize("arguments", [["run", "trident.yml"], ["explain"], ["check"]])
def test_without_topology_files_a_file_says_what_is_missing(
    arguments: list[str], installed: dict[str, EntryPoint], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    done = CliRunner().invoke(trident, arguments)
    assert (done.exit_code, done.stderr) == (2, f"error: a topology file {LACKS}\n")


def test_without_topology_files_a_states_file_is_checked(installed: dict[str, EntryPoint], tmp_path: Path) -> None:
    file = tmp_path / "states.yaml"
    file.write_text(f"states: {{a: {{type: append, url: 'sqlite:///{tmp_path}/a.db', table: t}}}}")
    assert "a (append)" in CliRunner().invoke(trident, ["check", str(file)]).stdout


@pytest.mark.parametrize("line", [
    "from states.files import DelimitedRecordFormat, FileState, RecordFormat",
    "from states.redis import *",
    "from states.redis import RedisMapState, RedisStoreMapper",
    "from trident_py.drpc import DRPCClient",
    "from trident_py.events import Fingerprint, ProcessedState, ProcessedUpdater, application_of, store_of",
    "from trident_py.events.claims import Claim",
    "from trident_py.events.fingerprints import Fingerprint",
    "from trident_py.events.linter import lint",
    "from trident_py.topology_files import NAMES, Defined, Draft, find_file, is_topology, load",
])  # fmt: skip
def test_the_public_names_are_those_of_the_extra(line: str) -> None:
    found: dict[str, Any] = {}
    exec(line, found)
    assert all(getattr(value, "__module__", HOME).startswith(HOME) for value in found.values() if callable(value))
    with pytest.raises(ImportError, match="cannot import name 'nothing'"):
        exec(f"{line.partition('import')[0]} import nothing")


def test_without_an_extra_its_public_names_say_what_is_missing(installed: dict[str, EntryPoint]) -> None:
    with pytest.raises(DefinitionError, match="needs topology_files, which"):
        trident_py.topology_files.load()
    assert entry_points.find("topology_files") is None
    with pytest.raises(DefinitionError, match=LACKS):
        entry_points.load("a topology file", "topology_files", EXTRAS)


def run_without_ours(code: str, ours: Path, folder: Path) -> subprocess.CompletedProcess[str]:
    """Run Python with the libraries that are installed, but our packages from ``ours``."""
    libraries = folder / "libraries"
    libraries.mkdir()
    for installed in Path(sysconfig.get_path("purelib")).iterdir():
        if "trident" not in installed.name:
            (libraries / installed.name).symlink_to(installed)
    paths = {"PYTHONPATH": f"{ours}{os.pathsep}{libraries}", "AWS_REGION": "us-east-1", "PATH": os.defpath}
    return subprocess.run([sys.executable, "-S", "-c", code], env=paths, capture_output=True, text=True, cwd=folder)


def test_without_the_extras_of_states_the_others_are_made(tmp_path: Path) -> None:
    without = shutil.ignore_patterns("redis", "moving", "__pycache__")
    shutil.copytree(ROOT / "trident_py", tmp_path / "trident_py", ignore=without)
    (tmp_path / "states").symlink_to(ROOT / "states")
    url = f"sqlite:///{tmp_path}/c.db"
    for name, keys in {"sql": f"sql-map, url: '{url}', table: t", "redis": "redis-map, url: 'redis://h:1/0'"}.items():
        (tmp_path / name).write_text(f"states: {{c: {{type: {keys}, kind: opaque}}}}")
    code = (
        "import states, states.redis\nfrom trident_py import DefinitionError\n"
        "sql = states.load('sql')['c']\nprint(sql, sql.stored(), sep='\\n')\n"
        "for use in (lambda: states.load('redis'), lambda: states.redis.RedisMapState, sql.open_values):\n"
        "    try: use()\n    except DefinitionError as error: print(error)\n"
    )
    done = run_without_ours(code, tmp_path, tmp_path)
    lacks = "needs {}, which this installation lacks: pip install --force-reinstall trident-py"
    state, *told = done.stdout.splitlines() or [""]
    assert (done.stderr, told) == ("", [
        "{}",
        f"redis:1: states.c.type: type redis-map: it {lacks.format('trident_py.extras.redis.models')}",
        f"states.redis {lacks.format('trident_py.extras.redis.public_names')}",
        f"{state} {lacks.format('trident_py.extras.moving.sql_values')}",
    ])  # fmt: skip


def test_modules_that_spark_sends_find_their_extras(tmp_path: Path) -> None:
    """As an archive, where nothing was installed and so there is no metadata."""
    archive = tmp_path / "sent.zip"
    with zipfile.ZipFile(archive, "w") as sent:
        for file in (each for name in ("trident_py", "states") for each in (ROOT / name).rglob("*.*")):
            sent.write(file, file.relative_to(ROOT))
    code = (
        "import importlib.metadata as metadata, trident_py\n"
        "assert not list(metadata.distributions(name='trident-py')) and '.zip' in trident_py.__file__\n"
        "from states.files import FileState\nfrom states.loading import find_types\n"
        "print(FileState('hdfs://h/x').folder().where, FileState('s3://b/x').folder().where)\n"
        "print(find_types()['append'].package)\n"
    )
    done = run_without_ours(code, archive, tmp_path)
    assert (done.stdout, done.stderr) == ("hdfs://h/x s3://b/x\ntrident-py ?\n", "")
