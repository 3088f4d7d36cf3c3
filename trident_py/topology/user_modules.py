"""Imports what a user names, as `MODULE:name`, and says what exists if there is no such thing."""

from __future__ import annotations

import difflib
import importlib
import inspect
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from ..errors import TridentError


class NotFound(Exception):
    """A name leads nowhere. The message says what exists instead."""


class ModuleFailed(Exception):
    """The user's own code failed while it was imported or built. Its exception is the ``__cause__``."""


@contextmanager
def naming_the_module() -> Iterator[None]:
    """Inside, what the user's own code raises becomes ModuleFailed; errors that say what is wrong pass through."""
    try:
        yield
    except (NotFound, TridentError):
        raise
    except Exception as error:
        raise ModuleFailed from error


def find_module(name: str) -> Any:
    """Import a module. Raises NotFound if it is missing, but not if a module that it imports is missing."""
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name is None or not (name == error.name or name.startswith(f"{error.name}.")):
            raise
        raise NotFound(f"no module {name!r} ({error}); {_neighbours(name)}") from None
    except (ValueError, TypeError) as error:
        raise NotFound(f"{name!r} is not a module name: {error}") from None


def find(path: str) -> Any:
    """Return what `MODULE:name` or `MODULE:Class.name` leads to. Raises NotFound; the module's own exceptions pass
    through."""
    module_name, _, names = path.partition(":")
    found = find_module(module_name)
    where = f"module {module_name}"
    for name in names.split("."):
        # the user's module, or a class of it, by the user's name
        if not name or not hasattr(found, name):
            names = ", ".join(_public(found)) or "nothing"
            raise NotFound(f"{where} has no {name!r}; it has: {names}{_near(name, found)}")
        found = getattr(found, name)
        where = f"{where.removeprefix('module ')}:{name}" if ":" not in where else f"{where}.{name}"
    return found


def functions_of(module_name: str) -> str:
    """Return a suggestion: the functions that a module itself defines."""
    module = sys.modules[module_name]
    functions = inspect.getmembers_static(module, inspect.isfunction)
    names = [name for name, value in functions if value.__module__ == module_name and not name.startswith("_")]
    return f"it has: {', '.join(names)}" if names else "it has no functions"


def _neighbours(name: str) -> str:
    """Suggest the modules next to the missing one."""
    folder = Path.cwd().joinpath(*name.split(".")[:-1])
    if not folder.is_dir():
        return f"looked in {Path.cwd()} and in the installed packages"
    modules = sorted(path.stem for path in folder.glob("*.py") if not path.stem.startswith("_"))
    where = folder.relative_to(Path.cwd()).as_posix()
    return f"in {'this folder' if where == '.' else where} there are: {', '.join(modules) or 'no modules'}"


def _public(found: Any) -> list[str]:
    """Return the names that a module lists or defines itself, or that a class has."""
    members = vars(found)
    listed = members.get("__all__")
    if listed is not None:
        return sorted(listed)
    home = members.get("__name__") if inspect.ismodule(found) else None
    names = [name for name in members if not name.startswith("_")]
    own = [name for name in names if home is None or getattr(members[name], "__module__", home) == home]
    return sorted(name for name in own if not inspect.ismodule(members[name]))


def _near(name: str, found: Any) -> str:
    near = difflib.get_close_matches(name, _public(found), 1)
    return f". Did you mean {near[0]}?" if near else ""


def states_loading() -> Any:
    """Return the package that loads the types of states. Imported by name, because `trident_py` works without
    `states`."""
    return importlib.import_module("states.loading")
