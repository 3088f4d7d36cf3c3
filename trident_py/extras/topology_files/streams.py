"""Reads the streams of a file: what each says, checked against the models. Makes nothing."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from ...documents import close
from .calls import OPERATIONS, SOURCES, Call, Kind
from .locations import Located, Told


@dataclass(frozen=True)
class Said:
    """One call: its name, its place, its checked arguments. ``alone``: one argument stands there without its name."""

    name: str
    place: Located
    call: Call
    alone: bool = False

    def argument(self, name: str) -> Located:
        """Return the place of an argument."""
        return self.place if self.alone else self.place.at(name)

    def given(self) -> Iterator[tuple[str, Kind | None, Located]]:
        """Return the arguments that the file gives: name, kind, place."""
        for name, info in type(self.call).model_fields.items():
            if name in self.call.model_fields_set and vars(self.call)[name] is not None:
                kinds = [part for part in info.metadata if isinstance(part, Kind)]
                yield name, kinds[0] if kinds else None, self.argument(name)

    def of(self, *kinds: Kind) -> list[Located]:
        """Return the places of the arguments of these kinds; of a list, those of its items."""
        places = [place for _, kind, place in self.given() if kind in kinds]
        return [item for place in places for item in (place.items() if isinstance(place.value, list) else [place])]


@dataclass
class Line:
    """A stream: the calls that were read. ``whole``: whether all could be."""

    name: str
    place: Located
    source: Said | None = None
    operations: list[Said] = field(default_factory=list)
    whole: bool = True

    @property
    def calls(self) -> list[Said]:
        return ([] if self.source is None else [self.source]) + self.operations


def read_line(name: str, place: Located) -> Line:
    """Return a stream of the file. Problems are in the document."""
    line = Line(name, place)
    if not isinstance(place.value, dict):
        place.tell(f"found {place.found}; expected a mapping with {', '.join(SOURCES)} and operations:")
    else:
        line.source = _source(place)
        _operations(line, place.at("operations"))
    line.whole = line.whole and line.source is not None and not place.document.wrong(place.where)
    return line


def _source(place: Located) -> Said | None:
    for key in place.value:
        if key not in SOURCES and key != "operations":
            keys = [*SOURCES, "operations"]
            place.at(key).tell(f"a stream has no such key; it has: {', '.join(keys)}{close(key, keys)}")
    found = [key for key in place.value if key in SOURCES]
    if len(found) != 1:
        if found or not place.document.wrong(place.where):
            begins = f"found {' and '.join(found)}" if found else "found none of them"
            place.document.add(place.where, f"a stream begins with one of {', '.join(SOURCES)}; {begins}")
        return None
    return _read_call(place.at(found[0]), found[0], SOURCES[found[0]])


def _operations(line: Line, place: Located) -> None:
    if place.value is None:
        return
    if not isinstance(place.value, list):
        place.tell(f"found {place.found}; expected a list of operations")
        return
    for item in place.items():
        said = _operation(item)
        line.whole = line.whole and said is not None
        line.operations += [] if said is None else [said]


def _operation(place: Located) -> Said | None:
    value = place.value
    if isinstance(value, str):
        return _check_known(place, value, Located(place.document, place.where, None))
    if isinstance(value, dict) and len(value) == 1:
        name = next(iter(value))
        return _check_known(place.at(name), name, place.at(name))
    found = f"found {', '.join(value)}" if isinstance(value, dict) and value else f"found {place.found}"
    place.tell(f"{found}; expected one operation, such as groupBy: word; each operation is an item of the list")
    return None


def _check_known(place: Located, name: str, arguments: Located) -> Said | None:
    if name in OPERATIONS:
        return _read_call(arguments, name, OPERATIONS[name])
    place.tell(f"no operation {name!r}; there are: {', '.join(OPERATIONS)}{close(name, OPERATIONS)}")
    return None


def _read_call(place: Located, name: str, model: type[Call]) -> Said | None:
    value: Any = place.value
    mapping = value is None or (isinstance(value, dict) and not (model.alone and place.is_object))
    try:
        if mapping:
            return Said(name, place, place.read(model, name, {} if value is None else value))
        return Said(name, place, _alone(place, name, model), alone=True)
    except Told:
        return None


def _alone(place: Located, name: str, model: type[Call]) -> Call:
    if model.alone is not None:
        return place.under(model.alone).read(model, name)
    keys = ", ".join(model.model_fields)
    raise place.refuse(f"found {place.found}; expected {f'a mapping with: {keys}' if keys else 'no arguments'}")
