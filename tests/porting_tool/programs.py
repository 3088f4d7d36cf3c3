"""Java programs, without Storm, and what Java prints of them; here their translation must print the same.

``programs/NAME.java`` with ``programs/NAME.txt``; ``Generated.txt`` is of the program that `generator` makes of a seed.
``python -m tests.porting_tool.programs`` runs them in Java and writes the texts anew.
"""

from __future__ import annotations

import io
import shutil
import subprocess
from contextlib import redirect_stdout
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from testbed.service import ServiceMissing
from trident_py.extras.moving.port.modules import translate_files

from . import generator

FOLDER = Path(__file__).parent / "programs"
NAMES = [*sorted(path.stem for path in FOLDER.glob("*.java")), "Generated"]
SEED = 5


def source_of(name: str) -> str:
    return generator.program(name, SEED) if name == "Generated" else (FOLDER / f"{name}.java").read_text()


def read_record(name: str) -> str:
    return (FOLDER / f"{name}.txt").read_text()


def run_here(name: str, source: str, folder: Path) -> str:
    """What the translation prints. All of it must be translated."""
    path = folder / f"{name}.java"
    path.write_text(source)
    [module] = translate_files([path])
    assert module.report.findings == [], [(one.line, one.reason) for one in module.report.findings]
    names: dict[str, Any] = {"__name__": name}
    printed = io.StringIO()
    with redirect_stdout(printed):
        exec(
            compile(module.text, name, "exec", dont_inherit=True), names
        )  # the translation of a program of this folder
        (names["main"] if "main" in names else names[name].main)([])
    return printed.getvalue()


def run_in_java(sources: dict[str, str], folder: Path) -> dict[str, str]:
    """What Java prints. Raises ServiceMissing if there is no compiler."""
    if shutil.which("javac") is None:
        raise ServiceMissing("no javac on the path")
    for name, source in sources.items():
        (folder / f"{name}.java").write_text(source)
    files = [str(folder / f"{name}.java") for name in sources]
    _call("javac", "-nowarn", "-Xlint:none", "-d", str(folder), *files)
    return {name: _call("java", "-XX:TieredStopAtLevel=1", "-cp", str(folder), name) for name in sources}


def _call(*command: str) -> str:
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout


if __name__ == "__main__":
    with TemporaryDirectory() as folder:
        for name, printed in run_in_java({name: source_of(name) for name in NAMES}, Path(folder)).items():
            (FOLDER / f"{name}.txt").write_text(printed)
