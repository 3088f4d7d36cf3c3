"""The Java topologies, how each is run, and what real Storm gave."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
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

    @property
    def source(self) -> Path:
        return JAVA / f"{self.name}.java"

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
        return {part: plain[part] for part in ("rows", "printed", "answers")}


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
    )


def expected(name: str) -> dict[str, Any]:
    kept: dict[str, Any] = json.loads((EXPECTED / f"{name}.json").read_text())
    return kept


def text(value: Any) -> str:
    """The JSON of a value: 1, 1.0, true and "1" are four."""
    return json.dumps(value, sort_keys=True, ensure_ascii=False)
