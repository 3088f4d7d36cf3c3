"""Reads a file, creates its state factories (``states.load``), checks their stores, and gives the JSON schema."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

from pydantic import ValidationError
from pydantic.json_schema import models_json_schema

from trident_py.documents import Document, Where, close, describe_errors, open_to_variables, read
from trident_py.errors import TridentError
from trident_py.model.secrets import hide
from trident_py.model.user_traceback import describe_error
from trident_py.state import StateFactory
from trident_py.state.roles import location_of

from ..diagnostics import CheckableAsQueried, Finding
from .settings import Installed, StateSettings, find_types

DRAFT = "https://json-schema.org/draft/2020-12/schema"


def schema() -> dict[str, Any]:
    """Return the JSON schema (draft 2020-12) of a file with the types installed here."""
    models = {name: entry.settings for name, entry in find_types().items() if entry.settings is not None}
    references, generated = models_json_schema(
        [(model, "validation") for model in models.values()], ref_template="#/$defs/{model}"
    )
    definitions = {name: open_to_variables(definition) for name, definition in generated.get("$defs", {}).items()}
    states = []
    for name, model in models.items():
        definition = definitions[references[model, "validation"]["$ref"].rpartition("/")[2]]
        # ``type`` comes first: its value selects the type's schema.
        states.append(definition | {
            "title": name,
            "properties": {"type": {"const": name}, **definition.get("properties", {})},
            "required": ["type", *definition.get("required", [])],
        })  # fmt: skip
    return {
        "$schema": DRAFT,
        "title": "States of trident_py",
        "type": "object",
        "required": ["states"],
        "properties": {"states": {"type": "object", "additionalProperties": {"oneOf": states}}},
        "patternProperties": {"^x-": {}},
        "additionalProperties": False,
        "$defs": definitions,
    }


@dataclass(frozen=True)
class Definition:
    """One state of a file."""

    name: str
    type: str
    settings: StateSettings
    factory: StateFactory
    document: Document = field(repr=False, compare=False)
    where: Where = ()


@dataclass(frozen=True)
class Look:
    """One state of a file, with the findings at its store."""

    name: str
    type: str
    state: str
    findings: tuple[Finding, ...]

    @property
    def stops(self) -> bool:
        """Whether a finding would stop the start."""
        return any(finding.level == "error" for finding in self.findings)


def load(path: str | Path) -> dict[str, StateFactory]:
    """Return the factories of the states that a YAML file defines, by name. Called on the driver; opens nothing.

    Raises DefinitionError that lists every problem in the file: file, line, key, the value found and the valid ones.
    No error and no repr contains a value of the environment or a password.
    """
    return {state.name: state.factory for state in definitions(path)}


def look(path: str | Path) -> list[Look]:
    """Check the store of each state of a file: connects, and writes nothing.

    Raises DefinitionError if the file is wrong. A store that cannot be reached is a finding.
    """
    states = definitions(path)
    return [_look(state, states) for state in states]


def _look(state: Definition, states: Sequence[Definition]) -> Look:
    hide = partial(state.document.hide, where=state.where)
    look = _make_look(state.name, state.type, state.factory, state.settings.check, hide)
    return replace(look, findings=(*look.findings, *_find_neighbours(state, states)))


def _find_neighbours(state: Definition, states: Sequence[Definition]) -> list[Finding]:
    """Warn of the states that would update the same place. Those of a file may belong to several topologies."""
    place = location_of(state.factory)
    others = [(other.name, location_of(other.factory)) for other in states if other is not state]
    names = [name for name, found in others if place and found and not found.admits(place)]
    if place is None or not names:
        return []
    text = f"{state.name} and {', '.join(names)} would update the same {place.shown}: give each a place of its own"
    return [Finding("warning", f"{text}. Only one of them can be updated, by one topology")]


def look_at(name: str, factory: Any, hide: Callable[[str], str] = hide, queried: bool = False) -> Look:
    """Check the store of any factory, as `look` does: connects, and writes nothing. ``queried``: the topology only
    queries it."""
    check = _check_queried if queried else StateSettings().check
    return _make_look(name, type(factory).__name__, factory, check, hide)


def _check_queried(factory: Any) -> Sequence[Finding]:
    return factory.check_queried() if isinstance(factory, CheckableAsQueried) else StateSettings().check(factory)


def _make_look(
    name: str, kind: str, factory: Any, check: Callable[[Any], Sequence[Finding]], hide: Callable[[str], str]
) -> Look:
    try:
        findings = [Finding(finding.level, hide(finding.text)) for finding in check(factory)]
    except Exception as error:  # an error of a database driver or of a third-party type
        text = _describe(error).partition("(Background on this error")[0]
        findings = [Finding("error", hide(" ".join(text.split())))]
    return Look(name, kind, hide(repr(factory)), tuple(findings))


def definitions(path: str | Path) -> list[Definition]:
    """Return the states of a file with their settings, in file order. Raises DefinitionError as `load` does."""
    document = read(path, "that defines the states", "states:", free=2)
    types = find_types()
    states = [define(document, ("states", name), keys, types) for name, keys in _states(document).items()]
    document.stop()
    return [state for state in states if state is not None]


def _states(document: Document) -> dict[str, Any]:
    data = document.data
    if not isinstance(data, dict):
        document.add((), "expected a mapping that begins with states:")
        return {}
    for name in [name for name in data if name != "states" and not name.startswith("x-")]:
        document.add((name,), f"no such key; there are: states, and x-... for your own use{close(name, ['states'])}")
    states = data.get("states")
    if not isinstance(states, dict):
        problem = "is missing" if "states" not in data else f"found {document.quote(('states',))}"
        document.add(("states",), f"{problem}; expected a mapping from the names of states to their settings")
        return {}
    return states


def define(document: Document, where: Where, keys: Any, types: dict[str, Installed]) -> Definition | None:
    """Return the state that the mapping ``keys`` at this place of a file defines. Adds what is wrong to the document,
    and then returns None. Opens nothing. ``types``: `find_types()`."""
    if not isinstance(keys, dict):
        if not any(problem.where == where for problem in document.problems):
            document.add(where, f"found {document.quote(where)}; expected a mapping with type: and the type's settings")
        return None
    type_ = _type(document, where, keys, types)
    if type_ is None or type_.settings is None:
        return None
    settings = _settings(document, where, type_.name, type_.settings, keys)
    factory = None if settings is None else _create(document, where, settings)
    if settings is None or factory is None:
        return None
    return Definition(str(where[-1]), type_.name, settings, factory, document, where)


def _type(document: Document, where: Where, keys: dict[str, Any], types: dict[str, Installed]) -> Installed | None:
    at = (*where, "type")
    name = keys.get("type")
    names = f"installed are: {', '.join(types) or 'none; is the package installed with its entry points?'}"
    if "type" not in keys:
        document.add(where, f"type is missing; {names}")
    elif name is None and any(problem.where == at for problem in document.problems):
        pass  # already reported: its variable is not set
    elif not isinstance(name, str) or name not in types:
        meant = close(name, types) if isinstance(name, str) and "${" not in document.written[at] else ""
        document.add(at, f"no type {document.quote(at)}; {names}{meant}")
    elif types[name].settings is None:
        document.add(at, f"type {name}: {types[name].problem}")
    else:
        return types[name]
    return None


def _settings(
    document: Document, where: Where, type_name: str, model: type[StateSettings], keys: dict[str, Any]
) -> StateSettings | None:
    values = {key: value for key, value in keys.items() if key != "type"}
    older = values.get("options")
    if isinstance(older, dict) and "options" not in model.model_fields and not older.keys() & values.keys():
        values = {key: value for key, value in values.items() if key != "options"} | older  # their older place
    try:
        settings = model.model_validate(values)
    except ValidationError as error:
        describe_errors(document, where, model, type_name, error)
        return None
    return None if document.wrong(where) else settings


def _create(document: Document, where: Where, settings: StateSettings) -> StateFactory | None:
    try:
        return settings.make()
    except Exception as error:  # a third-party type may raise anything, with secrets in the text
        document.add(where, f"cannot be created: {document.hide(_describe(error), words=True, where=where)}")
    return None


def _describe(error: Exception) -> str:
    """Return the text of an error, with its type unless it is ours."""
    return str(error) if isinstance(error, TridentError) else describe_error(error)
