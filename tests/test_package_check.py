"""The package ``states`` that comes with this one is found, or the import says which other one stands before it."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
USE = "import trident_py; from states.sql import AppendState; print(AppendState.__module__)"


def python(code: str, first: Path, cwd: Path) -> subprocess.CompletedProcess[str]:
    """Runs with ``first`` before everything else on the path."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(first), str(ROOT)])}
    command = [sys.executable, "-c", code]
    return subprocess.run(command, cwd=cwd, env=environment, capture_output=True, text=True, timeout=100)


@pytest.mark.parametrize("other", ["states.py", "states/__init__.py"])
def test_another_states_on_the_path_is_named_when_trident_py_is_imported(other: str, tmp_path: Path) -> None:
    (tmp_path / other).parent.mkdir(exist_ok=True)
    (tmp_path / other).write_text("raise SystemExit('it ran')")
    done = python(USE, tmp_path, tmp_path)
    last = done.stderr.strip().splitlines()[-1]
    assert last.startswith("ImportError: trident_py comes with a package called states, but Python finds another one")
    assert f"another one first: {tmp_path / other}. Rename that one, or start Python in another folder" in last


def test_the_command_line_says_it_too(tmp_path: Path) -> None:
    (tmp_path / "states.py").write_text("")
    done = python("import runpy; runpy.run_module('trident_py', run_name='__main__')", tmp_path, tmp_path)
    assert f"another one first: {tmp_path / 'states.py'}" in done.stderr.strip().splitlines()[-1]


def test_a_folder_of_that_name_is_no_package(tmp_path: Path) -> None:
    (tmp_path / "states").mkdir()
    (tmp_path / "states" / "counts.yaml").write_text("states: {}")
    assert python(USE, tmp_path, tmp_path).stdout == "states.sql.rows.append\n"


def test_ours_may_come_from_a_zip_file(tmp_path: Path) -> None:
    """As Spark's workers get it by --py-files."""
    skip = shutil.ignore_patterns("__pycache__")
    shutil.copytree(ROOT / "states", tmp_path / "in" / "states", ignore=skip)
    zipped = Path(shutil.make_archive(str(tmp_path / "states"), "zip", tmp_path / "in"))
    done = python(f"{USE}; import states; print(states.__file__)", zipped, tmp_path)
    assert done.stdout == f"states.sql.rows.append\n{zipped}/states/__init__.py\n", done.stderr
