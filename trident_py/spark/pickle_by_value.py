"""Pickles the user's own modules by value, because executors on other machines cannot import them."""

from __future__ import annotations

import sys
import sysconfig
import zipfile
from collections.abc import Iterator, Set
from contextlib import contextmanager, suppress
from pathlib import Path
from types import ModuleType

from pyspark import SparkFiles
from pyspark.sql import SparkSession

from ..model import pickling
from .internals import SPARKS_PACKAGES
from .launcher import is_one_machine, master_of

_OURS = {"trident_py", "states"}
_INSTALLED = {"site-packages", "dist-packages"}
_PACKED = {".zip", ".egg", ".whl", ".jar"}


@contextmanager
def by_value(spark: SparkSession) -> Iterator[None]:
    """Inside, cloudpickle takes the user's own modules by value, as it takes the main program. On one machine none do:
    there the workers import what the driver imports."""
    modules = (
        []
        if is_one_machine(master_of(spark))
        else own_modules(names_of_sent_files(Path(SparkFiles.getRootDirectory())))
    )
    pickling.remember(modules)
    with pickling.by_value(modules):
        yield


def driver_paths() -> tuple[str, ...]:
    """Return the driver's import path, for Spark's processes beside it."""
    return tuple(path or str(Path.cwd()) for path in sys.path)


def import_paths(spark: SparkSession) -> tuple[str, ...]:
    """Return what the executors add behind their own import path: that of a driver on the same machine, else nothing.
    On another machine the same folder may hold anything, for example another version of the user's code."""
    return driver_paths() if is_one_machine(master_of(spark)) else ()


def own_modules(known: Set[str]) -> list[ModuleType]:
    """Return the imported modules that are the user's own: sources that no package manager installed, and whose
    top-level name the executors do not know."""
    known = known | _OURS | SPARKS_PACKAGES | {"__main__", "__mp_main__"} | sys.stdlib_module_names
    modules = [module for name, module in list(sys.modules.items()) if name.partition(".")[0] not in known]
    return [module for module in modules if isinstance(module, ModuleType) and _is_own_source(module)]


def names_of_sent_files(folder: Path) -> set[str]:
    """Return the top-level names in files that were sent to the executors: ``--py-files``,
    ``SparkContext.addPyFile``."""
    names = set()
    for file in folder.iterdir() if folder.is_dir() else ():
        if file.suffix == ".py":
            names.add(file.stem)
        elif file.suffix in _PACKED and file.is_file():
            with suppress(zipfile.BadZipFile), zipfile.ZipFile(file) as content:
                names |= {name.partition("/")[0].removesuffix(".py") for name in content.namelist()}
    return names


def _is_own_source(module: ModuleType) -> bool:
    file = vars(module).get("__file__")
    if not isinstance(file, str) or not file.endswith(".py") or module.__name__ not in sys.modules:
        return False
    standard = (sysconfig.get_path("stdlib"), sysconfig.get_path("platstdlib"))
    return _INSTALLED.isdisjoint(Path(file).parts) and not file.startswith(standard)
