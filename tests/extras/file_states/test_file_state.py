"""FileState in a local folder: the contract of all exactly-once states."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from contracts.files import COLUMNS, keep, promises

from states.files import FileState


@pytest.mark.parametrize("format", ["parquet", "csv", "json"])
@pytest.mark.parametrize(("promise", "values"), promises())
def test_a_promise_of_the_contract_holds(tmp_path: Path, promise: str, values: dict[str, Any], format: str) -> None:
    keep(promise, values, FileState(tmp_path / "rows", format, COLUMNS), tmp_path)
