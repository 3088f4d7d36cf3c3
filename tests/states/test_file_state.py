"""FileState in a local folder: the contract, in every format, and what belongs to files."""

from __future__ import annotations

import pickle
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

import pytest
from contracts.crashing import INSIDE
from contracts.state import PlainContract

from states.files import FileState
from states.files.participant import FileParticipant
from trident_py.errors import DefinitionError

INSIDE["FileState"] = (FileParticipant, "_placed")
COLUMNS = ["word string", "n bigint"]


class FileContract(PlainContract):
    format: ClassVar[Any]

    @pytest.fixture
    def factory(self, tmp_path: Path) -> FileState:
        return FileState(tmp_path / "rows", self.format, COLUMNS)

    def place(self, factory: FileState) -> str:
        return factory.uri

    def erase(self, factory: FileState) -> None:
        shutil.rmtree(factory.uri)

    def test_the_factory_is_a_picklable_value_without_secrets(self, factory: Any) -> None:  # type: ignore[override]
        copy = pickle.loads(pickle.dumps(factory))
        assert copy == factory == replace(factory)
        assert hash(copy) == hash(factory)
        assert factory.kind and factory.stateName == "rows"
        secret = repr(FileState("s3://place/rows", storage={"secret_key": "hush", "region": "x"}))
        assert "hush" not in secret and "s3://place/rows" in secret
        for wrong in ("s3://me:hush@place/x", "nosuch://me:hush@place/x"):
            with pytest.raises(DefinitionError) as told:
                FileState(wrong)
            assert "hush" not in str(told.value) and "FileState" in str(told.value)


class TestParquet(FileContract):
    format = "parquet"


@pytest.mark.whole("test_every_type_comes_back_as_it_was")
class TestCsv(FileContract):
    format = "csv"


@pytest.mark.whole("test_every_type_comes_back_as_it_was")
class TestJson(FileContract):
    format = "json"
