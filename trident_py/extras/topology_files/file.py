"""A topology file: `load`, and what is in it."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from operator import methodcaller
from pathlib import Path
from typing import Any

from ...config import Config, check, list_keys
from ...documents import close, stop
from ...errors import DefinitionError
from ...model.json_text import parse_json
from ...model.names import check_folder_name
from ...topology import Topology, TridentTopology
from .builder import Building, read_line
from .calls import SourceKeys
from .objects import States, because, import_object
from .sections import NAMES, Located, Sections, Told, find_file, is_topology, read_sections

__all__ = ["NAMES", "Defined", "Draft", "find_file", "is_topology", "load"]

AnyTopology = TridentTopology | Topology


@dataclass(frozen=True)
class Defined:
    """What a topology file defines.

    ``storage``: where the checkpoint is, an absolute path or a URI; None if the file does not say. ``configuration``:
    the conf, with Spark's keys (``spark.*``). ``streams`` and ``states``: the builder's handles and the factories by
    name, for tests: ``collect(defined.streams["words"], "words")``. ``hide``: removes the file's secrets from a text.
    """

    file: Path
    name: str
    storage: str | None
    configuration: Config = field(repr=False)
    topology: AnyTopology = field(repr=False)
    streams: Mapping[str, Any] = field(repr=False)
    states: Mapping[str, Any] = field(repr=False)
    hide: Callable[[str], str] = field(repr=False)

    def build(self) -> Topology:
        """Return the finished topology, for submitTopology."""
        return self.topology.build() if isinstance(self.topology, TridentTopology) else self.topology


class Draft:
    """A topology file that was read and whose topology is not built."""

    def __init__(self, file: str | Path) -> None:
        self._sections = read_sections(file)
        self.file = self._sections.file

    @property
    def name(self) -> str:
        """The topology's name; the folder's if the file has none."""
        keys = self._sections.keys
        return self.file.parent.name if keys is None else keys.name

    def spark(self) -> dict[str, str]:
        """Return Spark's settings in the configuration, as texts."""
        found = {key: place.value for key, place in self._sections.configuration.items() if key.startswith("spark.")}
        return {key: str(value).lower() if isinstance(value, bool) else str(value) for key, value in found.items()}

    def build(self) -> Defined:
        """Called once. Imports modules and opens no store. Raises DefinitionError with all problems of all files."""
        with _inside(self.file.parent):
            return _define(self._sections)


def load(file: str | Path | None = None) -> Defined:
    """Read a topology file; without ``file``, the trident.yml of this folder or of the nearest one above it.

    Called on the driver. Imports the modules that the file names, with its folder first on the import path; relative
    paths in it begin there. Opens no store and writes nothing. Raises DefinitionError with all problems of the file and
    of the files that it includes: file, line, key, what was found, what exists.
    """
    if file is None:
        file = find_file(Path.cwd())
    if file is None:
        raise DefinitionError(f"no {' or '.join(NAMES)} in {Path.cwd()} or a folder above it; make one: trident init")
    return Draft(file).build()


@contextlib.contextmanager
def _inside(folder: Path) -> Iterator[None]:
    if str(folder) not in sys.path:
        sys.path.insert(0, str(folder))
    with contextlib.chdir(folder):
        yield


def _define(sections: Sections) -> Defined:
    top = sections.top
    states = States(sections.states, sections.components)
    conf = _configuration(sections)
    handles: Mapping[str, Any] = {}
    topology: AnyTopology | None = None
    _check_name(sections)
    if isinstance(top.value, dict) and "topologySource" in top.value:
        topology = _load_source(sections, states, conf)
    elif sections.streams:
        topology, handles = _build(sections, states)
    elif isinstance(top.value, dict) and not top.at("streams").value:
        top.tell("a topology has streams:, or a topologySource: in Python; this file has neither")
    states.objects.check_components()
    stop(sections.documents)
    assert sections.keys is not None and topology is not None
    storage = _storage(sections, sections.keys.storage)
    named = handles, states.factories
    return Defined(sections.file, sections.keys.name, storage, conf, topology, *named, sections.hide)


def _build(sections: Sections, states: States) -> tuple[TridentTopology, Mapping[str, Any]]:
    building = Building({name: read_line(name, place) for name, place in sections.streams.items()}, states)
    building.build()
    if not any(document.problems for document in sections.documents):
        try:
            building.topology.build()
        except DefinitionError as error:
            place = building.place_of(error.node) or sections.top.at("streams")
            place.tell(sections.hide(str(error)))
    return building.topology, building.handles


def _load_source(sections: Sections, states: States, conf: Config) -> AnyTopology | None:
    place = sections.top.at("topologySource")
    if sections.streams:
        place.tell("a topology has either streams: or a topologySource:, this file has both")
    try:
        made = _call_function(place, states, conf)
        if not isinstance(made, AnyTopology):
            raise place.refuse(f"it returned {type(made).__name__}; it must return a TridentTopology, or its build()")
    except Told:
        return None
    return made


def _call_function(place: Located, states: States, conf: Config) -> Any:
    keys = place.read(SourceKeys, "topologySource")
    found = import_object(place.at("className"), keys.className)
    given = states.objects.arguments(place.at("constructorArgs")) if keys.constructorArgs else []
    if not isinstance(found, type):
        if keys.methodName is not None:
            raise place.at("methodName").refuse(f"{keys.className} is no class: it is called itself, without a method")
        return _run(place, found, given)
    made, method = _run(place, found, given), keys.methodName or "getTopology"
    if not callable(getattr(made, method, None)):  # the user's class, by the user's name
        names = [name for name in vars(found) if not name.startswith("_")]
        raise place.refuse(f"{keys.className} has no method {method}; it has: {', '.join(names)}{close(method, names)}")
    return _run(place, methodcaller(method, conf), [made])


def _run(place: Located, function: Callable[..., Any], given: Any) -> Any:
    if not callable(function):
        raise place.refuse(f"{place.at('className').found} is no function and no class")
    text = ""
    try:
        return function(**given) if isinstance(given, dict) else function(*given)
    except Exception as error:  # the user's own code
        text = because(place, error)
    raise place.refuse(f"failed: {text}")


def _configuration(sections: Sections) -> Config:
    conf, keys = Config(), list_keys()
    for key, place in sections.configuration.items():
        if key.startswith("topology.") and key not in keys:
            place.tell(f"there is no such key; a key of your own begins otherwise{close(key, keys)}")
        elif key.startswith("spark.") and isinstance(place.value, dict | list | None):
            place.tell(f"found {place.found}; expected a text or a number")
        conf[key] = _fit(key, place.value) if key in keys else place.value
        try:
            check({key: conf[key]} if key in keys else {})
        except DefinitionError as error:
            place.tell(sections.hide(str(error)))
    return conf


def _fit(key: str, value: Any) -> Any:
    """Return what a text says, such as that of a variable, if the key takes no text but that; as ``--set`` does."""
    for found in [value, *_parse(value)]:
        with contextlib.suppress(DefinitionError):
            check({key: found})
            return found
    return value


def _parse(value: Any) -> Iterator[Any]:
    if isinstance(value, str):
        with contextlib.suppress(ValueError):
            yield parse_json(value)


def _check_name(sections: Sections) -> None:
    try:
        check_folder_name("the topology", "t" if sections.keys is None else sections.keys.name)
    except DefinitionError as error:
        sections.top.at("name").tell(str(error))


def _storage(sections: Sections, storage: str | None) -> str | None:
    if storage is None or "://" in storage or storage.startswith("file:"):
        return storage
    return str((sections.file.parent / storage).absolute())
