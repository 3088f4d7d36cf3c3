"""Storm's jars, which compile and run Java. Maven fetches them once."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

from testbed.kafka_jars import cached, fetch
from testbed.service import ServiceMissing

POM = Path(__file__).parent / "guide" / "pom.xml"


def storms_jars(pom: Path = POM, name: str = "storm") -> Path:
    """The folder of a pom's jars. Raises ServiceMissing."""
    if shutil.which("javac") is None:
        raise ServiceMissing("javac is not installed: sudo apt-get install openjdk-17-jdk-headless")
    version = re.search("<storm.version>(.+)</", pom.read_text())
    assert version is not None
    folder = cached(f"{name}-{version[1]}")
    fetch(pom, folder)
    return folder
