"""The Java topologies, how each is run, and what real Storm gave."""

from __future__ import annotations

import json
import re
import sqlite3
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
JAVA = HERE / "java"
EXPECTED = HERE / "expected"
RECORDER = JAVA / "Recorder.java"
NAMES = sorted(path.stem for path in JAVA.glob("*.java") if path != RECORDER)
DEBUG_TIME = re.compile(r"^<?\w{3} \w{3} [^>]*>? (?=DEBUG[:(])")
"""The time that Debug prints. Storm puts it in brackets."""


@dataclass(frozen=True)
class Case:
    """A topology, as the comments at the head of its file describe it."""

    name: str
    batches: int
    conf: dict[str, Any]
    asks: list[list[str]]
    unordered: list[str]
    files: list[str]
    left: int
    sql: list[str]

    @property
    def source(self) -> Path:
        return JAVA / f"{self.name}.java"

    def prepare(self, folder: Path) -> Case:
        """Makes the folder of its run, with the database. Returns the case with settings that name the folder."""
        own = folder / self.name
        own.mkdir()
        if self.sql:
            with closing(sqlite3.connect(own / "stored.sqlite")) as database, database:
                for statement in self.sql:
                    database.execute(statement)
        return replace(self, conf=json.loads(json.dumps(self.conf).replace("$FOLDER", str(own))))

    def lines_of_files(self, folder: Path) -> dict[str, list[str]]:
        """What is in the files of its run: their lines, in any order, since each side has its own files."""
        found = {pattern: sorted((folder / self.name).glob(pattern)) for pattern in self.files}
        return {
            pattern: sorted(line for path in paths for line in path.read_text().splitlines(keepends=True))
            for pattern, paths in found.items()
        }

    def canonical(self, result: dict[str, Any]) -> dict[str, Any]:
        """A result as it is compared: as in JSON, and without the order that Storm does not give."""
        plain = json.loads(json.dumps(result))
        plain["printed"] = [DEBUG_TIME.sub("", line) for line in plain["printed"]]
        if "rows" in self.unordered:
            for batches in plain["rows"].values():
                for rows in batches.values():
                    rows.sort(key=text)
        if "printed" in self.unordered:
            plain["printed"].sort()
        return {part: plain[part] for part in ("rows", "printed", "answers", "files") if part in plain}


def case(name: str) -> Case:
    said = re.findall(r"^// (\w+): (.+)$", (JAVA / f"{name}.java").read_text(), re.M)
    one = dict(said)
    asks = [line.split(" ", 1) for key, line in said if key == "asks"]
    return Case(
        name,
        int(one["batches"]),
        json.loads(one.get("conf", "{}")),
        [[function, json.loads(args)] for function, args in asks],
        one.get("unordered", "").split(),
        json.loads(one.get("files", "[]")),
        int(one.get("left", 0)),
        [line for key, line in said if key == "sql"],
    )


def expected(name: str) -> dict[str, Any]:
    kept: dict[str, Any] = json.loads((EXPECTED / f"{name}.json").read_text())
    return kept


def text(value: Any) -> str:
    """The JSON of a value: 1, 1.0, true and "1" are four."""
    return json.dumps(value, sort_keys=True, ensure_ascii=False)
