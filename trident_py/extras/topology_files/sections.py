"""Reads a topology file and those that it includes: their sections, one mapping each, and the place of each value."""

from __future__ import annotations

from collections.abc import Collection
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from ...documents import Document, Where, close, describe_errors, format_path, read
from ...errors import DefinitionError
from .calls import IncludedKeys, TopologyKeys

_OBJECT = {"className", "ref"}
ModelT = TypeVar("ModelT", bound=BaseModel)


class Told(Exception):
    """A value cannot be used, and its problem is in the document already."""


@dataclass(frozen=True)
class Located:
    """A value of a document, which may be missing."""

    document: Document
    where: Where
    value: Any

    def at(self, *parts: str | int) -> Located:
        """Return the place inside this one. Its value is None if there is none."""
        value = self.value
        for part in parts:
            inside = isinstance(value, dict) and part in value
            inside = inside or (isinstance(value, list) and isinstance(part, int) and part < len(value))
            value = value[part] if inside else None
        return Located(self.document, (*self.where, *parts), value)

    def under(self, part: str) -> Located:
        """Return this place as a mapping whose one key ``part`` has the value that stands here."""
        size = len(self.where)
        both: list[dict[Where, Any]] = [self.document.lines, self.document.written]
        for known in both:
            inside = [where for where in known if where[:size] == self.where]
            for where in inside:
                known[(*self.where, part, *where[size:])] = known[where]
        return Located(self.document, self.where, {part: self.value})

    def items(self) -> list[Located]:
        """Return the places inside a list or a mapping."""
        parts = self.value if isinstance(self.value, dict) else range(len(self.value))
        return [self.at(part) for part in parts]

    @property
    def is_object(self) -> bool:
        """Whether an object stands here: its import path, or a mapping with ``className`` or ``ref``."""
        return isinstance(self.value, str) or (isinstance(self.value, dict) and bool(_OBJECT & set(self.value)))

    @property
    def found(self) -> str:
        """The value as the file has it, without secrets."""
        return self.document.quote(self.where)

    @property
    def named(self) -> str:
        """The file, the line and the place, for messages about another place."""
        return f"{format_path(self.where)} in {self.document.file}:{self.document.line(self.where)}"

    def tell(self, text: str) -> None:
        """Add a problem, unless this value has one."""
        if not self.document.wrong(self.where):
            self.document.add(self.where, text)

    def refuse(self, text: str) -> Told:
        """Add a problem; raise the result."""
        self.tell(text)
        return Told(text)

    def read(self, model: type[ModelT], name: str, value: Any = None) -> ModelT:
        """Return the mapping as a model; ``name`` in messages. Raises Told."""
        given = self.value if value is None else value
        settings, error = _validate(model, given)
        if error is not None:
            describe_errors(self.document, self.where, model, name, error)
        if settings is None:
            raise Told(name)
        return settings


def _validate(model: type[ModelT], value: Any) -> tuple[ModelT | None, ValidationError | None]:
    """Return the error instead of raising it: an exception that is raised while it is handled would keep the values of
    the file."""
    try:
        return model.model_validate(value), None
    except ValidationError as error:
        return None, error


NAMES = ("trident.yml", "trident.yaml")
_FREE = 2
"""Leading parts of a place that users choose: ``streams.NAME``."""
_SECTIONS = ("configuration", "components", "states", "streams")


@dataclass
class Sections:
    """The content of a topology file. ``documents``: its own first, then those that it includes."""

    file: Path
    top: Located
    documents: list[Document]
    keys: TopologyKeys | None = None
    configuration: dict[str, Located] = field(default_factory=dict)
    components: dict[str, Located] = field(default_factory=dict)
    states: dict[str, Located] = field(default_factory=dict)
    streams: dict[str, Located] = field(default_factory=dict)

    def hide(self, text: str) -> str:
        """Return the text without the secrets of all files."""
        for document in self.documents:
            text = document.hide(text)
        return text


def find_file(folder: Path) -> Path | None:
    """Return the topology file of this folder, or of the nearest one above it. Raises DefinitionError if a folder has
    two."""
    for place in (folder, *folder.parents):
        found = [place / name for name in NAMES if (place / name).is_file()]
        if len(found) > 1:
            raise DefinitionError(f"{place} has both {' and '.join(NAMES)}; delete or rename one of them")
        if found:
            return found[0]
    return None


def is_topology(file: str | Path) -> bool:
    """Return whether the file is a topology file and not a states file: whether it has the key name, streams or
    topologySource. Raises DefinitionError if it cannot be read."""
    data = read(file, "that defines a topology or states", "name: or states:", _FREE).data
    return isinstance(data, dict) and bool({"name", "streams", "topologySource"} & set(data))


def read_sections(file: str | Path) -> Sections:
    """Read the files. Problems are in the documents. Raises DefinitionError if the file itself cannot be read."""
    document = read(file, "that defines a topology", "name:", _FREE)
    top = Located(document, (), document.data)
    found = Sections(Path(file).absolute(), top, [document])
    if not isinstance(top.value, dict):
        top.tell("expected a mapping that begins with name:")
        return found
    with suppress(Told):  # the sections that are right are read all the same
        found.keys = top.read(TopologyKeys, "a topology file", _without_own(top))
    _gather(found, top)
    for include in _list(top, "includes"):
        _include(found, include)
    states = top.at("states")
    if isinstance(states.value, str):
        _include(found, states)
    return found


def _list(top: Located, key: str) -> list[Located]:
    return top.at(key).items() if isinstance(top.at(key).value, list) else []


def _without_own(place: Located) -> dict[str, object]:
    """Return the mapping without the keys that users keep for themselves."""
    return {key: value for key, value in place.value.items() if not key.startswith("x-")}


def _include(found: Sections, place: Located) -> None:
    if not isinstance(place.value, str) or not place.value:
        return place.tell(f"found {place.found}; expected the path of a file")
    text = _read(found, place, found.file.parent / place.value)
    return place.tell(text) if text else None


def _read(found: Sections, place: Located, path: Path) -> str:
    try:
        document = read(path, f"that {place.document.file} includes", "states:, streams: or another section", _FREE)
    except DefinitionError as error:
        return str(error)
    if path.resolve() in {Path(known.file).resolve() for known in found.documents}:
        return "this file is included already"
    found.documents.append(document)
    top = Located(document, (), document.data)
    if not isinstance(top.value, dict):
        top.tell("expected a mapping with states:, streams: or another section")
        return ""
    with suppress(Told):
        top.read(IncludedKeys, "an included file", _without_own(top))
    _gather(found, top)
    return ""


def _gather(found: Sections, top: Located) -> None:
    for section in _SECTIONS:
        places: dict[str, Located] = vars(found)[section]
        mapping = top.at(section)
        if section == "states" and not isinstance(mapping.value, dict | str) and section in top.value:
            mapping.tell(f"found {mapping.found}; expected a mapping, or the path of a states file")
        for place in mapping.items() if isinstance(mapping.value, dict) else ():
            name = str(place.where[-1])
            if name not in places:
                places[name] = place
            elif section != "configuration":  # there the including file precedes what it includes
                place.tell(f"this name is taken: {places[name].named}")


def unknown(place: Located, names: Collection[str], what: str) -> Told:
    """Add the problem of a name that leads to nothing; raise the result."""
    near = close(place.value, names) if isinstance(place.value, str) else ""
    return place.refuse(f"no {what} {place.found}; there are: {', '.join(names) or 'none'}{near}")
