"""Builds the topology that the streams of a file say: checks them, then makes the builder's calls in order."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from operator import methodcaller
from typing import Any

from ...documents import close
from ...errors import DefinitionError
from ...topology import (
    ChainedAggregatorDeclarer,
    GroupedStream,
    JoinOutFieldsMode,
    JoinType,
    Stream,
    TridentState,
    TridentTopology,
)
from .calls import OPERATIONS, SOURCES, Call, KeepCall, Kind, NewStreamCall, PersistCall, QueryCall
from .objects import States, because, is_name, length, window
from .sections import Located, Told, unknown


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

    def list_given(self) -> Iterator[tuple[str, Kind | None, Located]]:
        """Return the arguments that the file gives: name, kind, place."""
        for name, info in type(self.call).model_fields.items():
            if name in self.call.model_fields_set and vars(self.call)[name] is not None:
                kinds = [part for part in info.metadata if isinstance(part, Kind)]
                yield name, kinds[0] if kinds else None, self.argument(name)

    def of(self, *kinds: Kind) -> list[Located]:
        """Return the places of the arguments of these kinds; of a list, those of its items."""
        places = [place for _, kind, place in self.list_given() if kind in kinds]
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
    value: Any = {} if place.value is None else place.value
    mapping = isinstance(value, dict) and not (model.alone and place.is_object)
    try:
        if mapping:  # in which null is as good as nothing
            given = {key: each for key, each in value.items() if each is not None or key not in model.model_fields}
            return Said(name, place, place.read(model, name, given))
        return Said(name, place, _alone(place, name, model), alone=True)
    except Told:
        return None


def _alone(place: Located, name: str, model: type[Call]) -> Call:
    if place.document.wrong(place.where):
        raise Told(place.named)  # a variable that is not set
    if model.alone is not None:
        return place.under(model.alone).read(model, name)
    keys = ", ".join(model.model_fields)
    raise place.refuse(f"found {place.found}; expected {f'a mapping with: {keys}' if keys else 'no arguments'}")


PARAMETERS = {
    "persistentAggregate": {"state": "factory"},
    "partitionPersist": {"state": "factory"},
    **{name: {"state": "windowStoreFactory"} for name in ("window", "tumblingWindow", "slidingWindow")},
}
"""Where a key of the file is not called as the builder's parameter."""
REQUIRED = ("inputFields",)
"""Parameters that the builder's windows require, and that mean no fields if the file leaves them out."""


def method_of(operation: str) -> str:
    """Return the builder's method."""
    return "global_" if operation == "global" else operation


KINDS = {Stream: "a stream", GroupedStream: "a grouped stream", TridentState: "a state",
         ChainedAggregatorDeclarer: "a chain of aggregators (end it with chainEnd)"}  # fmt: skip
TAKES = {kind: [name for name in OPERATIONS if method_of(name) in dir(kind)] for kind in KINDS}
"""The operations that each of the builder's handles has."""


class Building:
    """One topology under construction. ``handles``: what the streams of the file became, by name."""

    def __init__(self, lines: dict[str, Line], states: States) -> None:
        self.topology = TridentTopology()
        self.handles: dict[str, Any] = {}
        self._lines = lines
        self._states = states
        self._values: dict[int, dict[str, Any]] = {}
        self._updated: dict[str, TridentState] = {}
        self._static: dict[str, TridentState] = {}
        self._under_way: list[str] = []
        self._done: set[str] = set()
        self._defined: list[tuple[int, Located]] = []

    def build(self) -> None:
        """Make all objects, then the streams, each after those that it needs. Problems are in the documents."""
        for line in self._lines.values():
            for said in line.calls:
                self._prepare(line, said)
        asked = {place.value for line in self._lines.values() for place in _ask(line)}
        for name, factory in self._states.factories.items():
            if name in asked and not self._updaters(name):
                self._static[name] = self.topology.newStaticState(factory)
        for name in self._lines:
            self._stream(name)

    # -- the arguments

    def _prepare(self, line: Line, said: Said) -> None:
        """Make the arguments of a call. One whose arguments are wrong makes its stream incomplete."""
        values: dict[str, Any] = {}
        for name, kind, place in said.list_given():
            try:
                values[name] = self._value(said, kind, place, vars(said.call)[name])
            except Told:
                line.whole = False
        self._values[id(said)] = values

    def _value(self, said: Said, kind: Kind | None, place: Located, value: Any) -> Any:
        if kind is None:
            return value
        makers: dict[Kind, Callable[[], Any]] = {
            Kind.OBJECT: lambda: self._states.objects.make(place),
            Kind.STATE: lambda: self._states.factory(place),
            Kind.STREAM: lambda: self._reference(place),
            Kind.STREAMS: lambda: self._references(place),
            Kind.LENGTH: lambda: length(place),
            Kind.WINDOW: lambda: self._window(place),
            Kind.JOIN_TYPE: lambda: _join_type(place, value),
            Kind.JOIN_MODE: lambda: JoinOutFieldsMode[value],
        }
        text = ""
        try:
            return makers[kind]()
        except DefinitionError as error:
            text = place.document.hide(str(error))
        raise place.refuse(text)

    def _window(self, place: Located) -> Any:
        return self._states.objects.make(place) if place.is_object else window(place)

    def _reference(self, place: Located) -> str:
        if not isinstance(place.value, str) or place.value not in self._lines:
            raise unknown(place, self._lines, "stream")
        return place.value

    def _references(self, place: Located) -> list[str]:
        if not isinstance(place.value, list):
            raise place.refuse(f"found {place.found}; expected a list of streams")
        found = []
        for item in place.items():
            try:
                found.append(self._reference(item))
            except Told:
                continue
        if len(found) < len(place.value):
            raise Told(place.named)
        return found

    # -- the streams

    def _stream(self, name: str) -> Any:
        """Return the handle of a stream, which is made with all that it needs. Raises nothing; None if it cannot be
        made."""
        line = self._lines[name]
        if name not in self._done:
            self._done.add(name)
            self._under_way.append(name)
            try:
                for place, other in self._needs(line):
                    self._need(line, place, other)
                if line.whole:
                    self.handles[name] = self._make(line)
            except Told:
                line.whole = False
            finally:
                self._under_way.pop()
        return self.handles.get(name)

    def _need(self, line: Line, place: Located, other: str) -> None:
        if other in self._under_way:
            circle = " -> ".join([*self._under_way[self._under_way.index(other) :], other])
            raise place.refuse(f"the streams need each other in a circle: {circle}. A state is asked after its update")
        if self._stream(other) is None:
            line.whole = False  # told there

    def _needs(self, line: Line) -> list[tuple[Located, str]]:
        """Return the streams that this one needs, each with the place that says so."""
        found = [(place, place.value) for said in line.calls for place in said.of(Kind.STREAM, Kind.STREAMS)]
        for place in _ask(line):
            updaters = self._updaters(place.value)
            if len(updaters) > 1:
                places = " and ".join(said.place.named for _, said in updaters)
                place.tell(f"the state {place.value!r} is updated twice, by {places}: give each a state of its own")
                line.whole = False
            found += [(place, updated.name) for updated, _ in updaters[:1]]
        return [(place, name) for place, name in found if isinstance(name, str) and name in self._lines]

    def _updaters(self, name: Any) -> list[tuple[Line, Said]]:
        """Return the calls of the file that update the state of this name."""
        return [(line, said) for line in self._lines.values() for said in line.operations if _update(said) == name]

    def _make(self, line: Line) -> Any:
        assert line.source is not None
        handle = self._begin(line, line.source)
        for said in line.operations:
            handle = self._follow(handle, said)
        return handle

    def _begin(self, line: Line, said: Said) -> Any:
        values = self._values[id(said)]
        if isinstance(said.call, NewStreamCall):
            values = {"txId": line.name, **values}
        if "stream" in values:
            return self._branch(said.argument("stream"), values["stream"])
        if "streams" in values:
            places = said.argument("streams").items()
            names = values["streams"]
            values = {**values, "streams": [self._branch(*pair) for pair in zip(places, names, strict=True)]}
        return self._call(self.topology, said, values)

    def _branch(self, place: Located, name: str) -> Any:
        handle = self.handles[name]
        if not isinstance(handle, Stream | GroupedStream):
            raise place.refuse(
                f"the stream {name!r} ends with {KINDS[type(handle)]}, which cannot be branched. Add newValuesStream "
                "to it for the new values, or branch the stream before the state: give it a name of its own"
            )
        return handle

    def _follow(self, handle: Any, said: Said) -> Any:
        if said.name not in TAKES[type(handle)]:
            names = TAKES[type(handle)]
            raise said.place.refuse(
                f"{KINDS[type(handle)]} has no {said.name}; it has: {', '.join(names)}{close(said.name, names)}"
            )
        values = self._values[id(said)]
        if isinstance(said.call, QueryCall):
            values = {**values, "state": self._ask_state(said.argument("state"), values["state"])}
        result = self._call(handle, said, values)
        name = _update(said)
        if name is not None:
            self._updated[name] = result
        return result

    def _ask_state(self, place: Located, factory: Any) -> TridentState:
        if not is_name(place.value):
            return self.topology.newStaticState(factory)
        return self._updated.get(place.value) or self._static[place.value]

    def place_of(self, node: int | None) -> Located | None:
        """Return the call that has defined the node."""
        return next((place for nodes, place in self._defined if node is not None and node < nodes), None)

    def _call(self, handle: Any, said: Said, values: dict[str, Any]) -> Any:
        """Return what the builder's method returns. Raises Told with what it refuses."""
        renamed = PARAMETERS.get(said.name, {})
        named = {renamed.get(name, name): value for name, value in values.items()}
        if said.name.lower().endswith("window"):
            named = dict.fromkeys(REQUIRED) | named
        text = ""
        try:
            result = methodcaller(method_of(said.name), **named)(handle)
            self._defined.append((len(self.topology.plan().nodes), said.place))
            return result
        except DefinitionError as error:
            text = said.place.document.hide(str(error))
        except Exception as error:  # an assembly of the user
            text = because(said.place, error)
        raise said.place.refuse(text)


def _ask(line: Line) -> list[Located]:
    """Return the places of the names of the states that a stream asks."""
    places = [place for said in line.operations if isinstance(said.call, QueryCall) for place in said.of(Kind.STATE)]
    return [place for place in places if is_name(place.value)]


def _update(said: Said) -> str | None:
    """Return the name of the state that the call updates; None if it has no name."""
    value = said.call.state if isinstance(said.call, KeepCall | PersistCall) else None
    return value if is_name(value) else None


def _join_type(place: Located, value: list[str]) -> Any:
    sides = [JoinType[side] for side in value]
    return sides[0] if isinstance(place.value, str) else sides
