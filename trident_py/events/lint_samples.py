"""The linter's sample: a CSV file with a heading, or JSON lines, read one event at a time."""

from __future__ import annotations

import csv
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any

from .errors import EventError
from .reading import value_of


def read(path: Path, nulls: Collection[str] = ("",)) -> Iterator[dict[str, Any]]:
    """The events of a file: CSV if it ends in .csv, else one JSON object per line.

    In a CSV file every value is text, and a text in ``nulls`` is null. EventError names file, line and problem.
    """
    try:
        yield from _csv(path, frozenset(nulls)) if path.suffix.lower() == ".csv" else _json_lines(path)
    except OSError as error:
        raise EventError(f"cannot read {path}: {error.strerror}") from None
    except UnicodeDecodeError as error:
        raise EventError(f"{path} is not UTF-8 ({error.reason}): convert it first") from None


def _csv(path: Path, nulls: frozenset[str]) -> Iterator[dict[str, Any]]:
    with path.open(newline="", encoding="utf-8-sig") as file:
        rows = csv.reader(file)
        heading = next(rows, [])
        twice = sorted({name for name in heading if heading.count(name) > 1})
        if twice:
            raise EventError(f"{path}: the heading names a column twice: {', '.join(twice)}")
        for row in rows:
            if len(row) != len(heading):
                if not row:
                    continue
                raise EventError(f"{path} line {rows.line_num}: {len(row)} values under {len(heading)} columns")
            yield {name: None if value in nulls else value for name, value in zip(heading, row, strict=True)}


def _json_lines(path: Path) -> Iterator[dict[str, Any]]:
    with path.open(encoding="utf-8-sig") as file:
        for number, line in enumerate(file, 1):
            if not line.strip():
                continue
            try:
                event = value_of(line)
            except ValueError as error:
                raise EventError(f"{path} line {number}: no JSON ({error}); one object per line is needed") from None
            if not isinstance(event, dict):
                raise EventError(f"{path} line {number}: {type(event).__name__}, not an object; one object per line")
            yield event
