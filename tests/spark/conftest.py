"""Driver processes that tests start and kill."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from .driving import Start, kill

ROOT = Path(__file__).parents[2]


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    """Starts driver processes; their scratch files go to a folder of the test's own.

    ``settings`` are those of the driver's session, ``account`` that of HDFS.
    """
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    paths = [str(ROOT), str(ROOT / "tests"), os.environ.get("PYTHONPATH", "")]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(paths), "TMPDIR": str(scratch)}
    made: list[subprocess.Popen] = []

    def starts(
        batches: int,
        how: str = "",
        checkpoints: str = str(tmp_path / "checkpoints"),
        settings: Mapping[str, str] | None = None,
        account: str | None = None,
    ) -> subprocess.Popen:
        arguments = [checkpoints, str(tmp_path / "out"), str(batches), how, json.dumps(settings or {})]
        command = [sys.executable, "-W", "error", "-m", "spark.driver", *arguments]
        own = environment if account is None else {**environment, "HADOOP_USER_NAME": account}
        pipe = subprocess.PIPE
        made.append(subprocess.Popen(command, env=own, stdout=pipe, stderr=pipe, text=True))
        return made[-1]

    yield starts
    for process in made:
        if process.returncode is None:
            kill(process)
