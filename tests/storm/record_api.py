"""Records the public API of Storm's trident packages by ``javap`` (a JDK) into ``tests/data/storm/api.json``.

Run it once for each version of Storm, with the jars of storm-client, storm-server and their dependencies:

    python -m tests.storm.record_api 2.8.3 FOLDER_OF_JARS

A class has its supers, its constants, and for each method (``<init>``: the constructors) the numbers of parameters.
``keys`` are the configuration keys that the classes of trident read, with the classes.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent.parent / "data" / "storm" / "api.json"
STORM = "org.apache.storm."
BESIDE = (
    "Config",
    "ILocalCluster",
    "LocalDRPC",
    "StormSubmitter",
    "grouping.CustomStreamGrouping",
    "spout.ISpout",
    "spout.SpoutOutputCollector",
    "task.IMetricsContext",
    "topology.FailedException",
    "topology.IComponent",
    "topology.IRichSpout",
    "topology.ReportedFailedException",
    "topology.ResourceDeclarer",
    "tuple.Fields",
    "tuple.ITuple",
    "tuple.Values",
)
"""The classes outside the trident packages that a topology names."""
# Methods that every object of Java has, or that have no meaning outside a JVM.
_OF_OBJECT = {"equals", "hashCode", "toString", "wait", "notify", "values", "valueOf", "main"}


def record(version: str, folder: Path) -> dict[str, Any]:
    jars = ":".join(map(str, sorted(folder.glob("*.jar"))))
    with zipfile.ZipFile(folder / f"storm-client-{version}.jar") as jar:
        files = [name for name in jar.namelist() if name.startswith("org/apache/storm/trident/")]
    inner = re.compile(r"\$\d")
    names = [file[:-6].replace("/", ".") for file in files if file.endswith(".class")]
    public = sorted(name for name in names if not inner.search(name)) + [STORM + name for name in BESIDE]
    return {
        "storm": version,
        "classes": dict(classes(javap(jars, "-public", *public))),
        "keys": keys(jars, names),
    }


def javap(jars: str, *arguments: str) -> str:
    return subprocess.run(["javap", "-cp", jars, *arguments], check=True, capture_output=True, text=True).stdout


def classes(text: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """The public classes of javap's output, by name without the common prefix."""
    for block in re.split(r"^Compiled from .*\n", text, flags=re.MULTILINE)[1:]:
        header, *members = without_types(block.replace(STORM, "")).splitlines()
        if header.startswith("public "):
            name, *supers = re.findall(r"[\w.$]+", re.sub(r".*?(?:class|interface) ", "", header))
            ours = [item for item in supers if item not in ("extends", "implements") and not item.startswith("java.")]
            yield name, {"supers": ours, **of_members(name, members)}


def of_members(name: str, members: list[str]) -> dict[str, Any]:
    methods: dict[str, set[int]] = {}
    constants = []
    for member in members:
        call = re.search(r"([\w.$]+)\((.*)\)", member)
        if call is None:
            constants += re.findall(r"static final .* (\w+);", member) if name != "Config" else []
            continue
        method = "<init>" if call[1] == name else call[1]
        if method not in _OF_OBJECT:
            methods.setdefault(method, set()).add(len(call[2].split(",")) if call[2] else 0)
    return {"constants": constants, "methods": {key: sorted(value) for key, value in sorted(methods.items())}}


def without_types(text: str) -> str:
    """The text without type arguments, which may hold commas."""
    while "<" in text:
        text = re.sub(r"<[^<>]*>", "", text)
    return text


def keys(jars: str, names: list[str]) -> dict[str, list[str]]:
    """The keys of Config and DaemonConfig among the strings of the trident classes (the compiler copies constants)."""
    declared = javap(jars, "-constants", "-public", f"{STORM}Config", f"{STORM}DaemonConfig")
    known = set(re.findall(r'static final java.lang.String \w+ = "([^"]+)"', declared))
    read: dict[str, set[str]] = {}
    for block in re.split(r"^Compiled from .*\n", javap(jars, "-c", "-p", *names), flags=re.MULTILINE)[1:]:
        owner = re.search(r"(?:class|interface) ([\w.$]+)", block)
        assert owner is not None
        for key in known.intersection(re.findall(r"// String (\S+)$", block, flags=re.MULTILINE)):
            read.setdefault(key, set()).add(owner[1].removeprefix(f"{STORM}trident."))
    return {key: sorted(owners) for key, owners in sorted(read.items())}


def write(recorded: dict[str, Any]) -> None:
    """One line for each class and key, so that a diff shows what a new version changed."""
    parts = [
        f"{json.dumps(part)}: {{\n" + ",\n".join(f"{json.dumps(k)}: {json.dumps(v)}" for k, v in values.items()) + "\n}"
        for part, values in recorded.items()
        if isinstance(values, dict)
    ]
    HERE.write_text("{\n" + ",\n".join([f'"storm": "{recorded["storm"]}"', *parts]) + "\n}\n")


if __name__ == "__main__":
    write(record(sys.argv[1], Path(sys.argv[2])))
