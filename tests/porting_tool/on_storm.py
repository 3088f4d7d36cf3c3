"""Compiles the Java topologies and runs them on Storm's LocalCluster, in one Java process."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

from tests.storm.jars import storms_jars

from .cases import HERE, RECORDER, Case

SOURCES = HERE / "storm"


def run(cases: list[Case], folder: Path) -> dict[str, dict[str, Any]]:
    """What Storm gives for each. ``folder`` takes the classes. Raises ServiceMissing."""
    jars, classes = storms_jars(SOURCES / "pom.xml", "storm-connectors"), folder / "classes"
    cases = [case.prepare(folder) for case in cases]
    sources = map(str, [SOURCES / "Harness.java", RECORDER, *(case.source for case in cases)])
    _call("javac", "-nowarn", "-Xlint:none", "-proc:none", "-cp", f"{jars}/*", "-d", str(classes), *sources)
    asked = folder / "cases.json"
    asked.write_text(json.dumps([vars(case) for case in cases]))
    options = [
        "-Xmx1g",
        "-XX:TieredStopAtLevel=1",
        f"-Djava.io.tmpdir={folder}",
        "-Dzookeeper.forceSync=no",
        f"-Dlog4j2.configurationFile={SOURCES / 'log4j2.xml'}",
    ]
    lines = _call("java", *options, "-cp", f"{classes}:{jars}/*", "harness.Harness", str(asked))
    results = [json.loads(line) for line in lines.splitlines()]
    for case, result in zip(cases, results, strict=True):
        result |= {"files": case.lines_of_files(folder)} if case.files else {}
    return {case.name: case.canonical(result) for case, result in zip(cases, results, strict=True)}


def _call(*command: str) -> str:
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-6000:]
    return done.stdout
