"""Storm's jars, which compile and run Java. Maven fetches them once."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

from testbed.kafka_jars import cached, fetch
from testbed.service import ServiceMissing

POM = Path(__file__).parent / "guide" / "pom.xml"


def storms_jars() -> Path:
    """The folder of the jars. Raises ServiceMissing."""
    if shutil.which("javac") is None:
        raise ServiceMissing("javac is not installed: sudo apt-get install openjdk-17-jdk-headless")
    version = re.search("<storm.version>(.+)</", POM.read_text())
    assert version is not None
    folder = cached(f"storm-{version[1]}")
    fetch(POM, folder)
    return folder
