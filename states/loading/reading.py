"""Reads a file and creates its state factories: ``states.load``."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from trident_py.documents import Document, Where, close, describe_errors, read
from trident_py.errors import TridentError
from trident_py.state import StateFactory

from .installed import Installed, installed
from .settings import StateSettings


@dataclass(frozen=True)
class Definition:
    """One state of a file."""

    name: str
    type: str
    settings: StateSettings
    factory: StateFactory
    document: Document = field(repr=False, compare=False)


def load(path: str | Path) -> dict[str, StateFactory]:
    """Returns the factories of the states that a YAML file defines, by name. Called on the driver; opens nothing.

    Raises DefinitionError that lists every problem in the file: file, line, key, the value found and the valid ones.
    No error and no repr contains a value of the environment or a password.
    """
    return {each.name: each.factory for each in definitions(path)}


def definitions(path: str | Path) -> list[Definition]:
    """The states of a file with their settings, in file order. Raises DefinitionError as `load` does."""
    document = read(path, "that names the states", "states:", free=2)
    types = installed()
    made = [_definition(document, name, given, types) for name, given in _states(document).items()]
    document.stop()
    return [each for each in made if each is not None]


def _states(document: Document) -> dict[str, Any]:
    data = document.data
    if not isinstance(data, dict):
        document.add((), "the file is a mapping that begins with states:")
        return {}
    for name in [name for name in data if name != "states" and not name.startswith("x-")]:
        document.add((name,), f"no such key; there are: states, and x-... for what is yours{close(name, ['states'])}")
    states = data.get("states")
    if not isinstance(states, dict):
        what = "is missing" if "states" not in data else f"found {document.quote(('states',))}"
        document.add(("states",), f"{what}; it is a mapping from a state's name to its settings")
        return {}
    return states


def _definition(document: Document, name: str, given: Any, types: dict[str, Installed]) -> Definition | None:
    where: Where = ("states", name)
    if not isinstance(given, dict):
        if not any(each.where == where for each in document.problems):
            document.add(where, f"found {document.quote(where)}; a state is a mapping with type: and its settings")
        return None
    found = _type(document, where, given, types)
    if found is None or found.settings is None:
        return None
    settings = _settings(document, where, found.name, found.settings, given)
    factory = None if settings is None else _made(document, where, settings)
    return None if settings is None or factory is None else Definition(name, found.name, settings, factory, document)


def _type(document: Document, where: Where, given: dict[str, Any], types: dict[str, Installed]) -> Installed | None:
    at = (*where, "type")
    name = given.get("type")
    known = f"installed are: {', '.join(types) or 'none; is the package installed with its entry points?'}"
    if "type" not in given:
        document.add(where, f"type is missing; {known}")
    elif name is None and any(each.where == at for each in document.problems):
        pass  # already reported: its variable is not set
    elif not isinstance(name, str) or name not in types:
        meant = close(name, types) if isinstance(name, str) and "${" not in document.written[at] else ""
        document.add(at, f"no type {document.quote(at)}; {known}{meant}")
    elif types[name].settings is None:
        document.add(at, f"type {name}: {types[name].problem}")
    else:
        return types[name]
    return None


def _settings(
    document: Document, where: Where, type_name: str, model: type[StateSettings], given: dict[str, Any]
) -> StateSettings | None:
    values = {key: value for key, value in given.items() if key != "type"}
    older = values.get("options")
    if isinstance(older, dict) and "options" not in model.model_fields and not older.keys() & values.keys():
        values = {key: value for key, value in values.items() if key != "options"} | older  # their older place
    try:
        settings = model.model_validate(values)
    except ValidationError as error:
        describe_errors(document, where, model, type_name, error)
        return None
    return None if any(each.where[:2] == where for each in document.problems) else settings


def _made(document: Document, where: Where, settings: StateSettings) -> StateFactory | None:
    try:
        return settings.make()
    except Exception as error:  # a third-party type may raise anything, with secrets in the text
        kind = "" if isinstance(error, TridentError) else f"{type(error).__name__}: "
        document.add(where, f"cannot be made: {kind}{document.hide(str(error), words=True)}")
    return None
