"""Which modules travel by value to executors on other machines."""

from __future__ import annotations

import sys
import zipfile
from pathlib import Path
from types import SimpleNamespace

import cloudpickle
import pytest

from trident_py.spark import pickle_by_value
from trident_py.spark.pickle_by_value import by_value, import_paths, names_of_sent_files, own_modules

CLUSTER = SimpleNamespace(sparkContext=SimpleNamespace(master="spark://master:7077"))
ALONE = SimpleNamespace(sparkContext=SimpleNamespace(master="local[2]"))


@pytest.fixture
def application(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A package of the user's and a module, imported from a folder; another package that was installed."""
    monkeypatch.setattr(sys, "path", [str(tmp_path), str(tmp_path / "site-packages"), *sys.path])
    for name in ("own_app/__init__.py", "own_app/deep.py", "own_helper.py", "site-packages/installed_one.py"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("def f(n): return [n]\n")
    for name in ("own_app", "own_app.deep", "own_helper", "installed_one"):
        monkeypatch.delitem(sys.modules, name, raising=False)
        __import__(name)
    return tmp_path


def names(modules: list) -> set[str]:
    return {module.__name__ for module in modules}


def test_the_users_sources_travel_and_what_is_installed_or_ours_does_not(application: Path) -> None:
    found = names(own_modules(set()))
    assert {"own_app", "own_app.deep", "own_helper"} <= found
    tops = {name.partition(".")[0] for name in found}
    assert tops.isdisjoint({"installed_one", "trident_py", "states", "pyspark", "pyarrow", "json", "cloudpickle"})


def test_what_was_sent_to_the_executors_stays_a_name(application: Path, tmp_path: Path) -> None:
    folder = tmp_path / "files"
    folder.mkdir()
    (folder / "own_helper.py").touch()
    (folder / "notes.zip").write_text("no archive")
    with zipfile.ZipFile(folder / "more.egg", "w") as packed:
        packed.writestr("own_app/deep.py", "")
        packed.writestr("single.py", "")
    assert names_of_sent_files(folder) == {"own_helper", "own_app", "single"}
    assert names(own_modules(names_of_sent_files(folder))).isdisjoint({"own_helper", "own_app", "own_app.deep"})
    assert names_of_sent_files(folder / "missing") == set()


def test_a_function_of_a_users_module_is_pickled_whole_for_other_machines_only(
    application: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pickle_by_value.SparkFiles, "getRootDirectory", lambda: str(tmp_path / "none"))
    function = sys.modules["own_helper"].f
    before = cloudpickle.list_registry_pickle_by_value()
    with by_value(ALONE):
        named = cloudpickle.dumps(function)
    with by_value(CLUSTER):
        whole = cloudpickle.dumps(function)
    assert cloudpickle.list_registry_pickle_by_value() == before
    monkeypatch.delitem(sys.modules, "own_helper")
    monkeypatch.setattr(sys, "path", [])
    assert cloudpickle.loads(whole)(3) == [3]
    with pytest.raises(ModuleNotFoundError, match="own_helper"):
        cloudpickle.loads(named)


def test_nothing_of_the_drivers_path_goes_to_another_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "path", ["", "/somewhere"])
    assert import_paths(CLUSTER) == ()
    assert import_paths(ALONE) == (str(Path.cwd()), "/somewhere")
