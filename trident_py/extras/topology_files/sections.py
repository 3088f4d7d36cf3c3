"""Reads a topology file with the files that it includes: their sections, one mapping each, of names to places."""

from __future__ import annotations

from collections.abc import Collection
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from ...documents import Document, close, read
from ...errors import DefinitionError
from .locations import Located, Told
from .models import IncludedKeys, TopologyKeys

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
        _include(found, include, IncludedKeys)
    states = top.at("states")
    if isinstance(states.value, str):
        _include(found, states, _StatesKeys)
    return found


class _StatesKeys(IncludedKeys):
    """A states file."""


def _list(top: Located, key: str) -> list[Located]:
    return top.at(key).items() if isinstance(top.at(key).value, list) else []


def _without_own(place: Located) -> dict[str, object]:
    """Return the mapping without the keys that users keep for themselves."""
    return {key: value for key, value in place.value.items() if not key.startswith("x-")}


def _include(found: Sections, place: Located, model: type[IncludedKeys]) -> None:
    if not isinstance(place.value, str) or not place.value:
        return place.tell(f"found {place.found}; expected the path of a file")
    path = found.file.parent / place.value
    text = _read(found, place, path, model)
    return place.tell(text) if text else None


def _read(found: Sections, place: Located, path: Path, model: type[IncludedKeys]) -> str:
    if path.resolve() in {Path(document.file).resolve() for document in found.documents}:
        return "this file is included already"
    try:
        document = read(path, f"that {place.document.file} includes", "states:, streams: or another section", _FREE)
    except DefinitionError as error:
        return str(error)
    found.documents.append(document)
    top = Located(document, (), document.data)
    if not isinstance(top.value, dict):
        top.tell("expected a mapping with states:, streams: or another section")
        return ""
    with suppress(Told):
        top.read(model, "an included file", _without_own(top))
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
