"""The contract of `state.py` for FileState: not as classes that inherit it, but as cases of one test each.

Classes that inherit the contract share their cases in `make test` (tests/tiers.py), by the databases they are on; a
folder is none of these.
"""

from __future__ import annotations

import itertools
import pickle
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest import mock

import pytest

from states.files import FileState
from trident_py.errors import DefinitionError
from trident_py.extras.files.folder import StateFolder
from trident_py.extras.files.ledger import STAGING
from trident_py.extras.files.participant import FileParticipant

from .state import PlainContract

COLUMNS = ["word string", "n bigint"]
FORKED = (
    "test_a_driver_killed_at_any_point_goes_on_where_it_was", "test_several_workers_write_their_partitions_at_once",
)  # fmt: skip
"""Those with processes of their own."""


class FileContract(PlainContract):
    """The contract on a folder."""

    inside = (FileParticipant, "_place")

    def place(self, factory: FileState) -> str:
        return factory.uri

    taken_words = ("batch 2: the hidden file", "is gone; its task wrote", "Nothing of the batch is visible")

    @contextmanager
    def taking_less(self, factory: FileState) -> Iterator[None]:
        """The folder keeps all hidden files but one."""
        placed = FileParticipant._place

        def less(participant: FileParticipant, *given: Any) -> Any:
            store = factory.folder()
            store.delete(f"{STAGING}/{min(entry.name for entry in store.list_folder(STAGING))}")
            return placed(participant, *given)

        with mock.patch.object(FileParticipant, "_place", less):
            yield

    def erase(self, factory: FileState) -> None:
        if "://" not in factory.uri:
            shutil.rmtree(factory.uri)
            return
        _delete_all(factory.folder())

    def backup(self, factory: FileState) -> Callable[[], None]:
        store = factory.folder()
        kept = {name: store.read(name) for name, is_folder in _names(store) if not is_folder}

        def restore() -> None:
            self.erase(factory)
            for name, data in kept.items():
                store.create(name, data or b"")

        return restore

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


def promises() -> list[Any]:
    """All tests of the contract with their arguments, for ``parametrize(("promise", "values"), ...)``."""
    return [
        pytest.param(name, values, id="-".join([name.removeprefix("test_"), *map(str, values.values())]))
        for name in sorted(dir(FileContract))
        if name.startswith("test_")
        for values in _values_of(vars_of(name))
    ]


def keep(promise: str, values: dict[str, Any], factory: FileState, folder: Path) -> None:
    """Runs one test of the contract."""
    test = vars_of(promise)
    folders = {"tmp_path": folder} if "tmp_path" in test.__code__.co_varnames[: test.__code__.co_argcount] else {}
    test(FileContract(), factory, **folders, **values)


def vars_of(name: str) -> Any:
    return next(vars(each)[name] for each in FileContract.__mro__ if name in vars(each))


def _values_of(test: Any) -> Iterator[dict[str, Any]]:
    """The arguments that the test's own ``parametrize`` marks give it."""
    marks = [mark for mark in vars(test).get("pytestmark", []) if mark.name == "parametrize"]
    for chosen in itertools.product(*(mark.args[1] for mark in marks)):
        values: dict[str, Any] = {}
        for mark, value in zip(marks, chosen, strict=True):
            names = [mark.args[0]] if isinstance(mark.args[0], str) else list(mark.args[0])
            values |= dict(zip(names, [value] if isinstance(mark.args[0], str) else value, strict=True))
        yield values


def _names(store: StateFolder, folder: str = "") -> Iterator[tuple[str, bool]]:
    """Everything in a folder, what is in a folder before the folder itself; and whether it is one."""
    for entry in store.list_folder(folder):
        name = f"{folder}/{entry.name}" if folder else entry.name
        is_folder = "." not in entry.name and entry.name != "conditional"
        if is_folder:
            yield from _names(store, name)
        yield name, is_folder


def _delete_all(store: StateFolder) -> None:
    for name, _ in _names(store):
        store.delete(name)
