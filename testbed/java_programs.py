"""Java source files of the testbed, compiled once and kept in the user's cache."""

from __future__ import annotations

import os
import shutil
import subprocess
from functools import partial
from pathlib import Path
from zlib import crc32

from .kafka_jars import cached, fetch_once
from .service import ServiceMissing

FOLDER = Path(__file__).parent / "jvm"


def compiled(program: Path, classes: str) -> Path:
    """Returns the jar with the compiled program; compiles it first if it is missing. ``classes``: the class path that
    it needs. Raises ServiceMissing."""
    content = crc32(program.read_bytes() + classes.encode())
    wanted = cached(f"{program.stem.lower()}-{content:08x}")
    fetch_once(wanted, partial(_compile, program, classes))
    return wanted / "program.jar"


def _compile(program: Path, classes: str, into: Path) -> None:
    compiled = [tool("javac"), "-nowarn", "-cp", classes, "-d", f"{into}/classes", str(program)]
    packed = [tool("jar"), "--create", "--file", f"{into}/program.jar", "-C", f"{into}/classes", "."]
    for command in (compiled, packed):  # Java keeps no archive of classes that are in folders
        made = subprocess.run(command, capture_output=True, text=True)
        if made.returncode != 0:
            raise ServiceMissing(f"{command[0]} failed for {program}:\n{made.stderr[-2000:]}")


def tool(name: str) -> str:
    """A program of the JDK, of JAVA_HOME or of PATH. Raises ServiceMissing."""
    home = os.environ.get("JAVA_HOME")
    found = shutil.which(name, path=f"{home}/bin" if home else None)
    if found is None:
        raise ServiceMissing(f"{name} is not installed: sudo apt-get install openjdk-17-jdk-headless")
    return found
