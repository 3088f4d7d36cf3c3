"""The commands on a topology file: init, run, run --dry-run, explain, check, schema, and which file they take."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import shlex
import sqlite3
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import jsonschema
import pytest
from click.testing import CliRunner

from states.sql.store import close_stores
from trident_py.cli import trident as command_line
from trident_py.cli.spark_options import SUBMIT_ARGUMENTS, SparkOptions
from trident_py.extras.topology_files.file import Draft

ROOT = Path(__file__).parents[3]
COUNTS = [("cow", 1), ("jumped", 1), ("man", 1), ("moon", 1), ("over", 1), ("the", 3), ("to", 1), ("went", 1)]


class Done(NamedTuple):
    returncode: int
    stdout: str
    stderr: str


def trident(folder: Path, *arguments: str) -> Done:
    """Runs a command as a process in this folder would, and forgets the modules of the user."""
    paths = [*sys.path]
    try:
        with contextlib.chdir(folder):
            done = CliRunner().invoke(command_line, list(arguments), catch_exceptions=False)
    finally:
        close_stores()
        sys.path[:] = paths
        sys.modules.pop("words", None)
    return Done(done.exit_code, done.stdout, done.stderr)


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """What `trident init` writes."""
    done = trident(tmp_path, "init", "shop")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines()[-1] == "Run it: cd ./shop && trident run --local"
    return tmp_path / "shop"


def contents(folder: Path) -> dict[str, str]:
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else "folder"
        for path in folder.rglob("*")
    }


def counts(project: Path) -> list[tuple[str, int]]:
    with sqlite3.connect(project / "counts.db") as database:
        return database.execute("SELECT word, count FROM counts ORDER BY word").fetchall()


def test_a_new_project_runs(project: Path) -> None:
    done = trident(project, "run", "--local")
    assert done.returncode == 0, done.stderr
    assert done.stderr.splitlines()[0] == f"topology of {project}/trident.yml"
    assert counts(project) == COUNTS
    again = trident(project, "run", "--local")
    assert again.returncode == 0 and "shop: there was no new batch" in again.stderr
    assert counts(project) == COUNTS


@pytest.mark.whole("test_a_new_project_runs")
def test_a_new_project_runs_as_a_process_and_its_own_test_passes(project: Path) -> None:
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-W", "error", "-m", "trident_py", "run", "--local"]
    done = subprocess.run(command, cwd=project, capture_output=True, text=True, env=environment, timeout=120)
    assert done.returncode == 0, done.stderr
    assert counts(project) == COUNTS
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(project)]
    own = subprocess.run(command, cwd="/", capture_output=True, text=True, env=environment, timeout=120)
    assert "1 passed" in own.stdout, own.stdout


def test_typed_paths_begin_in_the_folder_of_the_command(project: Path) -> None:
    typed = ("--events", "events.jsonl", "--checkpoint", "typed")
    done = trident(project.parent, "run", "shop/trident.yml", "--local", *typed)
    assert done.returncode == 0, done.stderr
    assert {"events.jsonl", "typed"} <= {path.name for path in project.parent.iterdir()}
    assert not {"events.jsonl", "typed"} & {path.name for path in project.iterdir()}


@pytest.mark.parametrize("kind", ["folder", "file", "link"])
def test_init_overwrites_nothing(kind: str, tmp_path: Path) -> None:
    if kind == "folder":
        (tmp_path / "shop").mkdir()
    elif kind == "file":
        (tmp_path / "shop").write_text("mine")
    else:
        (tmp_path / "shop").symlink_to("nowhere")
    before = contents(tmp_path)
    done = trident(tmp_path, "init", "shop")
    assert done.returncode == 2
    refusal = f"{tmp_path}/shop exists already, and nothing in it is overwritten. Choose another name"
    assert done.stderr == f"error: {refusal}\n"
    assert contents(tmp_path) == before


@pytest.mark.parametrize("name", ["2024", "null", "a: b", "it's", "y #z", "@a", 'the "q"', "${HOME}", "été"])
def test_a_new_project_has_its_name(name: str, tmp_path: Path) -> None:
    done, project = trident(tmp_path, "init", name), tmp_path / name
    assert (done.returncode, Draft(project / "trident.yml").name) == (0, name)
    assert trident(project, "run", "--dry-run").returncode == 0
    shown = ["sh", "-c", done.stdout.splitlines()[-1].removeprefix("Run it: ").partition(" && ")[0]]
    assert subprocess.run(shown, cwd=tmp_path, check=False).returncode == 0


def test_init_refuses_a_name_that_cannot_be_a_folder(tmp_path: Path) -> None:
    done = trident(tmp_path, "init", "a/b")
    assert done.returncode == 2 and "'a/b'" in done.stderr and contents(tmp_path) == {}


def test_a_dry_run_writes_nothing(project: Path) -> None:
    before = contents(project)
    done = trident(project, "run", "--dry-run")
    assert done.returncode == 0, done.stderr
    assert "exactly once" in done.stderr
    assert [" ".join(line.split()) for line in done.stdout.splitlines()[1:]] == [
        f"creates: the file {project}/counts.db",
        "creates: table 'counts' (word string, txid bigint, count bigint, prev_count bigint), key (word)",
    ]
    assert contents(project) == before


def test_a_dry_run_leaves_a_database_that_is_there_alone(project: Path) -> None:
    assert trident(project, "run", "--local").returncode == 0
    before = contents(project), counts(project)
    done = trident(project, "run", "--dry-run", "--json")
    events = [json.loads(line) for line in done.stdout.splitlines()]
    assert [event["event"] for event in events] == ["guarantee", "state"]
    assert [finding["level"] for finding in events[1]["findings"]] == ["ok"]
    after = contents(project)
    assert {name: text for name, text in after.items() if "-shm" not in name} == {
        name: text for name, text in before[0].items() if "-shm" not in name
    }  # SQLite's shared memory notes every reader
    assert counts(project) == before[1]


def test_a_dry_run_fails_where_the_run_would(project: Path) -> None:
    with sqlite3.connect(project / "counts.db") as database:
        database.execute("CREATE TABLE counts (something TEXT)")
    done = trident(project, "run", "--dry-run")
    assert done.returncode == 1 and "error:" in done.stdout
    states = project / "states.yaml"
    states.write_text(states.read_text().replace("kind: opaque  ", "kind: non-transactional  "))
    done = trident(project, "run", "--dry-run")
    assert done.returncode == 2 and "topology.guarantee" in done.stderr
    wrong = ("--set", "topology.guarantee=null", "--set", "drpc.http.port=x")
    assert trident(project, "run", "--dry-run", *wrong).returncode == 2


def test_a_file_is_found_upwards(project: Path) -> None:
    inside = project / "a" / "b"
    inside.mkdir(parents=True)
    done = trident(inside, "run", "--local")
    assert done.returncode == 0 and f"topology of {project}/trident.yml" in done.stderr
    assert counts(project) == COUNTS and not any(inside.iterdir())
    (inside / "trident.yaml").write_text("name: other\n")
    told = trident(inside, "explain").stderr
    assert told.startswith(f"topology of {inside}/trident.yaml\nerror: {inside}/trident.yaml:1")
    (inside / "trident.yml").write_text("name: other\n")
    assert "has both trident.yml and trident.yaml" in trident(inside, "explain").stderr


def test_a_file_may_be_named_and_then_nothing_is_looked_for(project: Path) -> None:
    other = project.parent
    done = trident(other, "run", "--local", "shop/trident.yml", "--checkpoint", "mine", "--name", "another")
    assert done.returncode == 0 and "topology of" not in done.stderr
    assert "another: txid 2" in done.stderr and counts(project) == COUNTS
    assert (other / "mine" / "another").is_dir() and not (project / "checkpoints").exists()


def test_no_file_is_told_with_the_next_step(tmp_path: Path) -> None:
    for command in (["run", "--local"], ["explain"], ["check"]):
        done = trident(tmp_path, *command)
        assert done.returncode == 2
        assert done.stderr == (
            f"error: no trident.yml or trident.yaml in {tmp_path} or a folder above it; name a file or MODULE:build, "
            "or make a project: trident init NAME\n"
        )


def test_explain_shows_a_file_in_all_forms(project: Path) -> None:
    text = trident(project, "explain").stdout
    assert "#0 spout sentences: FileSpout" in text and "exactly once" in text
    assert trident(project, "explain", "trident.yml", "--format", "mermaid").stdout.startswith("flowchart")
    assert trident(project, "explain", "--format", "dot").stdout.startswith("digraph")


def test_check_knows_both_kinds_of_files(project: Path) -> None:
    before = contents(project)
    for arguments in ((), ("trident.yml",), ("states.yaml",)):
        done = trident(project, "check", *arguments)
        assert done.returncode == 0, done.stderr
        assert f"  creates: the file {project}/counts.db" in done.stdout
    assert contents(project) == before
    (project / "trident.yml").write_text("name: a\nstates: {}\nstraems: {}\n")
    done = trident(project, "check")
    assert done.returncode == 2 and "trident.yml:3: straems: a topology file has no such key" in done.stderr


def test_the_schema_is_printed(project: Path) -> None:
    printed = json.loads(trident(project, "schema").stdout)
    jsonschema.Draft202012Validator.check_schema(printed)
    assert printed["title"] == "A topology of trident_py" and printed["required"] == ["name"]


def test_the_command_line_precedes_the_file(project: Path) -> None:
    done = trident(project, "run", "--local", "--set", "topology.guarantee=nonsense")
    assert done.returncode == 2 and "nonsense" in done.stderr


def test_sparks_settings_of_the_file_stand_between_the_command_line_and_the_environment(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv(SUBMIT_ARGUMENTS, "--conf spark.a=environment pyspark-shell")
    monkeypatch.delenv("PYSPARK_GATEWAY_PORT", raising=False)
    SparkOptions(None, ("spark.a=typed",), None, None, None).apply("shop", {"spark.a": "file", "spark.b": "true"})
    words = shlex.split(os.environ[SUBMIT_ARGUMENTS])
    settings = [words[place + 1] for place, word in enumerate(words) if word == "--conf"]
    assert settings == ["spark.app.name=shop", "spark.a=environment", "spark.a=file", "spark.b=true", "spark.a=typed"]
    assert dict(setting.split("=") for setting in settings)["spark.a"] == "typed"


def test_the_paths_of_sparks_files_begin_where_the_command_was_typed(tmp_path: Path) -> None:
    options = SparkOptions(None, (), "a.py,hdfs://x/b.zip", "/env.tar.gz#env", "my.conf").within(tmp_path)
    assert options.py_files == f"{tmp_path}/a.py,hdfs://x/b.zip"
    assert (options.archives, options.properties_file) == ("/env.tar.gz#env", f"{tmp_path}/my.conf")
