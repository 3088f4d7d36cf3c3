"""Readers of a FileState's folder that know nothing of ours: pandas, Arrow, json. Rows are counted."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pandas as pd


def manifest(folder: Path) -> dict[str, Any]:
    """The newest version of the ledger, as a reader without our package finds it."""
    while True:
        newest = max((folder / "_trident" / "ledger").glob("[0-9]*.json"))
        try:
            return json.loads(newest.read_text())
        except FileNotFoundError:
            continue  # deleted since: there are newer ones


def by_manifest(folder: Path) -> pd.DataFrame:
    names = [file["name"] for file in manifest(folder)["files"]]
    return pd.read_parquet([str(folder / name) for name in names]) if names else pd.DataFrame({"word": [], "n": []})


def listed(folder: Path) -> pd.DataFrame:
    return pd.read_parquet(folder)


def counted(frame: pd.DataFrame) -> Counter[tuple]:
    return Counter(frame[["word", "n"]].itertuples(index=False, name=None))


def visible(folder: Path) -> list[str]:
    """The names that a reader who lists the folder takes for data."""
    names = (path.relative_to(folder) for path in folder.rglob("*") if path.is_file())
    return sorted(name.as_posix() for name in names if not any(part[0] in "._" for part in name.parts))


def by_spark_list(folder: Path) -> set[str]:
    """The names in the newest list for Spark; the numbers of the lists must have no gap."""
    lists = folder / "_spark_metadata"
    numbers = sorted(int(path.name.removesuffix(".compact")) for path in lists.iterdir())
    assert numbers == list(range(numbers[0], numbers[-1] + 1))
    version, *lines = (lists / f"{numbers[-1]}.compact").read_text().splitlines()
    assert version == "v1"
    return {json.loads(line)["path"].removeprefix(folder.as_uri() + "/") for line in lines}
