"""The word count of the group `small` on real Storm: `storm/WordCount.java` on the LocalCluster of Storm 2.8.3."""

from __future__ import annotations

import json
import shutil
import subprocess
import tempfile
from functools import cache
from pathlib import Path

from testbed.kafka_jars import cached, fetch
from testbed.service import ServiceMissing

HOME = Path(__file__).parent / "storm"
PROGRAM = HOME / "WordCount.java"
HEAP = "-Xmx8g"
INTERVAL = 1
"""Milliseconds between two batches, at least. With LocalCluster's own 50 a small batch would only wait."""


@cache
def jars() -> Path:
    """Storm's jars. Raises ServiceMissing if they are not there and cannot be fetched."""
    folder = cached("storm-2.8.3")
    fetch(HOME / "pom.xml", folder)
    return folder


def compiled(into: Path) -> None:
    """Raises ServiceMissing without a compiler."""
    compiler = shutil.which("javac")
    if compiler is None:
        raise ServiceMissing("javac, a part of the JDK, is not installed")
    command = [compiler, "-nowarn", "-cp", f"{jars()}/*", "-d", str(into), str(PROGRAM)]
    subprocess.run(command, check=True, capture_output=True, stdin=subprocess.DEVNULL)


def words(sentences: str, size: int, batches: int, pending: int, tasks: int) -> tuple[list[float], dict[str, int]]:
    """The seconds from the start to the success of each batch, and the counts at the end. Batch n holds the next lines
    of the file; ``pending``: how many batches are in flight at most; ``tasks``: those of the spout and of the state."""
    with tempfile.TemporaryDirectory(prefix="trident-bench-") as name:
        folder = Path(name)
        compiled(folder / "classes")
        java = [str(shutil.which("java")), HEAP, f"-Djava.io.tmpdir={folder}"]
        java += [f"-Dlog4j2.configurationFile={HOME}/log4j2.xml", "-cp", f"{folder}/classes:{jars()}/*", "WordCount"]
        arguments = [sentences, *map(str, (size, batches, pending, INTERVAL, folder / "counts", tasks))]
        done = subprocess.run([*java, *arguments], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=True)
        rows = (line.rsplit(" ", 1) for line in (folder / "counts").read_text().splitlines())
        return json.loads(done.stdout.splitlines()[-1]), {word: int(count) for word, count in rows}
