"""The jars of the Kafka broker for tests: pinned in jvm/pom.xml, fetched by Maven once per version.

    python -m testbed.kafka_jars           fetches them if they are missing and prints their folder
    python -m testbed.kafka_jars --there   reports by its exit code whether they exist

They are stored outside the sources, in ``$TRIDENT_KAFKA_JARS`` or the user's cache
(``~/.cache/trident_py/kafka-4.3.1``).
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

from .service import ServiceMissing

POM = Path(__file__).parent / "jvm" / "pom.xml"
FETCH = "dependency:copy-dependencies"
VARIABLE = "TRIDENT_KAFKA_JARS"


def version() -> str:
    """Returns the broker's version in the pom."""
    match = re.search(r"<kafka\.version>(.+?)</kafka\.version>", POM.read_text())
    assert match is not None
    return match.group(1)


def folder() -> Path:
    """Returns the folder of the jars, which may not exist yet."""
    path = os.environ.get(VARIABLE)
    return Path(path) if path else cached(f"kafka-{version()}")


def cached(name: str) -> Path:
    """Returns a folder in the user's cache."""
    cache = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    return Path(cache).expanduser() / "trident_py" / name


def jars() -> Path:
    """Returns the folder with the jars; fetches it first if it is missing (some 45 MB). Raises ServiceMissing."""
    wanted = folder()
    fetch(POM, wanted)
    if not there():
        raise ServiceMissing(f"{wanted} has no Kafka broker; remove it, or point {VARIABLE} to the broker's jars")
    return wanted


def fetch(pom: Path, wanted: Path, *options: str) -> None:
    """Fetches the jars of a pom into a folder, unless it exists. ``options`` are Maven's. Raises ServiceMissing."""
    fetch_once(wanted, lambda into: _copy(pom, options, into))


def fetch_once(wanted: Path, fetch_into: Callable[[Path], None]) -> None:
    """Fetches a folder, unless it exists.

    Several processes may do so at once: each one fetches into its own folder, and the first one's stays.
    """
    if not wanted.is_dir():
        wanted.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix="fetched-", dir=wanted.parent) as scratch:
            fetch_into(Path(scratch) / "files")
            with contextlib.suppress(OSError):
                (Path(scratch) / "files").rename(wanted)


def _copy(pom: Path, options: Sequence[str], into: Path) -> None:
    maven = shutil.which("mvn")
    if maven is None:
        raise ServiceMissing("mvn, which fetches jars for tests, is not installed: sudo apt-get install maven")
    command = [maven, "-q", "-B", "-f", str(pom), FETCH, "-DincludeScope=runtime", f"-DoutputDirectory={into}"]
    maven_run = subprocess.run([*command, *options], stdin=subprocess.DEVNULL, capture_output=True, text=True)
    if maven_run.returncode != 0:
        output = (maven_run.stdout + maven_run.stderr)[-2000:]
        raise ServiceMissing(f"mvn could not fetch the jars that {pom} lists:\n{output}")


def there() -> bool:
    """Whether the folder holds the broker."""
    return any(folder().glob("kafka_2.13-*.jar"))


if __name__ == "__main__":
    if "--there" in sys.argv:
        sys.exit(0 if there() else 1)
    try:
        print(jars())
    except ServiceMissing as error:
        sys.exit(f"error: {error}")
