"""docs/txid_command.md: what it shows is what the commands print."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from states.sql.store import close_stores
from trident_py.cli import trident

ROOT = Path(__file__).parents[3]
PAGE = (ROOT / "docs" / "txid_command.md").read_text()
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.M | re.S)
OTHERWISE = {r"process \d+ on host [\w.-]+": "process 4711 on host mill", r"\b[0-9a-f]{32}\b": "0" * 32,
             r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\dZ": "a time"}  # fmt: skip


def told(text: str, folder: Path) -> str:
    """The text without what is another one each time."""
    text = text.replace(str(folder), "/home/you")
    for pattern, words in OTHERWISE.items():
        text = re.sub(pattern, words, text)
    return text


def printed(command: str, folder: Path) -> str:
    """A run is a process of its own, which may be killed."""
    words = shlex.split(command)
    settings = [word for word in words if "=" in word and words.index(word) < words.index("trident")]
    arguments = words[len(settings) + 1 :]
    if arguments[0] != "run":
        return CliRunner().invoke(trident, arguments).stdout
    environment = {**os.environ, **dict(word.split("=", 1) for word in settings), "PYTHONPATH": str(ROOT)}
    program = [sys.executable, "-m", "trident_py", *arguments]
    return subprocess.run(program, cwd=folder, env=environment, stdout=subprocess.PIPE, text=True, timeout=60).stdout


def test_the_commands_print_what_the_page_shows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    blocks = BLOCK.findall(PAGE)
    (tmp_path / "counting.py").write_text(next(text for kind, text in blocks if kind == "python"))
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    shown = "".join(text for kind, text in blocks if kind == "console")
    commands = re.findall(r"^\$ (.*)\n((?:(?!\$ ).*\n)*)", shown, re.M)
    made = "".join(f"$ {command}\n{printed(command, tmp_path)}" for command, _ in commands)
    close_stores()
    assert told(made, tmp_path) == told(shown, tmp_path)
