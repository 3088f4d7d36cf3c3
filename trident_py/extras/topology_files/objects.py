"""Makes the objects that a file names: imports and calls them; its states; lengths and windows."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from operator import methodcaller
from typing import Any

from ... import spouts
from ...documents import close
from ...model.user_traceback import blame, describe_error
from ...operations import builtin
from ...topology.user_modules import NotFound, find, states_loading
from ...windowing import (
    Duration,
    SlidingCountWindow,
    SlidingDurationWindow,
    TumblingCountWindow,
    TumblingDurationWindow,
    WindowConfig,
)
from .calls import MethodKeys, ObjectKeys, WindowKeys
from .sections import Located, Told, unknown


class States:
    """The factories by name. All are made when the object is: every problem is in the documents then."""

    def __init__(self, places: dict[str, Located], components: dict[str, Located]) -> None:
        self._places = places
        self._types = states_loading().find_types()
        self._under_way: list[str] = []
        self.objects = Objects(components, self.factory)
        self.factories: dict[str, Any] = {}
        for name, place in places.items():
            try:
                self._find(name, place)
            except Told:
                continue

    def factory(self, place: Located) -> Any:
        """Return the factory of a name, of settings as in a states file, or of an object. Raises Told."""
        if not is_name(place.value):
            return self._make(place)
        name = place.value
        if name not in self._places:
            raise unknown(place, self._places, "state")
        if name in self._under_way:
            raise place.refuse(f"the states refer to each other in a circle: {' -> '.join([*self._under_way, name])}")
        return self._find(name, self._places[name])

    def _find(self, name: str, place: Located) -> Any:
        if name not in self.factories:
            if place.document.wrong(place.where):
                raise Told(name)
            self._under_way.append(name)
            try:
                self.factories[name] = self._make(place)
            finally:
                self._under_way.pop()
        return self.factories[name]

    def _make(self, place: Located) -> Any:
        if place.is_object:
            return self.objects.make(place)
        state = states_loading().define(place.document, place.where, place.value, self._types)
        if state is None:
            raise Told(place.named)
        return state.factory


def is_name(value: Any) -> bool:
    """Return whether it is written as the name of a state; else it is an import path, or says what the state is."""
    return isinstance(value, str) and ":" not in value


UNITS = {
    "milliseconds": Duration.of,
    "seconds": Duration.seconds,
    "minutes": Duration.minutes,
    "hours": Duration.hours,
    "days": Duration.days,
}


def length(place: Located) -> int | Duration:
    """Return a number of tuples, or a Duration. Raises Told."""
    number = _number(place.value)
    return duration(place) if number is None else number


def duration(place: Located) -> Duration:
    """Parse ``{seconds: 10}``. Raises Told, or DefinitionError for a time that is too long."""
    value = place.value
    if not isinstance(value, dict) or len(value) != 1 or next(iter(value)) not in UNITS:
        times = f"a time in {', '.join(UNITS)}, such as {{seconds: 10}}"
        raise place.refuse(f"found {_show(place)}; expected a number of tuples, or {times}")
    unit = next(iter(value))
    number = _number(value[unit])
    if number is None:
        raise place.at(unit).refuse(f"found {place.at(unit).found}; expected an integer")
    return UNITS[unit](number)


def window(place: Located) -> WindowConfig:
    """Return the window of ``{windowLength: 100, slideLength: 10}``. Raises Told, or DefinitionError."""
    keys = place.read(WindowKeys, "a window")
    size = length(place.at("windowLength"))
    slide = None if keys.slideLength is None else length(place.at("slideLength"))
    if isinstance(size, int):
        if keys.timestampField is not None or keys.lag is not None:
            raise place.refuse("timestampField and lag need a window of a time, such as windowLength: {seconds: 10}")
        if slide is None:
            return TumblingCountWindow.of(size)
        return SlidingCountWindow.of(size, _alike(place, size, slide))
    config: TumblingDurationWindow | SlidingDurationWindow
    if slide is None:
        config = TumblingDurationWindow.of(size)
    else:
        config = SlidingDurationWindow.of(size, _alike(place, size, slide))
    if keys.timestampField is not None:
        config = config.withTimestampField(keys.timestampField)
    return config if keys.lag is None else config.withLag(duration(place.at("lag")))


def _alike(place: Located, size: Any, slide: Any) -> Any:
    if type(size) is not type(slide):
        raise place.at("slideLength").refuse("windowLength and slideLength are two numbers of tuples, or two times")
    return slide


def _number(value: Any) -> int | None:
    """Return the integer, which a variable of the environment gives as a text."""
    if isinstance(value, str) and value.isdecimal():
        return int(value)
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _show(place: Located) -> str:
    return ", ".join(place.value) if isinstance(place.value, dict) else place.found


_SPOUTS = ("FileSpout", "FixedBatchSpout", "SparkSpout")
BUILT_IN = {
    **{name: f"{builtin.__name__}:{name}" for name in builtin.__all__},
    **{name: f"{spouts.__name__}:{name}" for name in _SPOUTS},
}
"""What a file may name without its module."""
FORMS = "expected module:name, the name of a built-in, or a mapping with className: or ref:"


class Objects:
    """The objects of one topology. Each of ``components`` is made once, when it is first named.

    ``state_of`` makes the factory of a ``{state: name}`` in the arguments.
    """

    def __init__(self, components: dict[str, Located], state_of: Callable[[Located], Any]) -> None:
        self._components = components
        self._state_of = state_of
        self._made: dict[str, Any] = {}
        self._under_way: list[str] = []

    def make(self, place: Located) -> Any:
        """Return the object of ``module:name``, or of a mapping with ``className`` or ``ref``. A class is called
        without arguments. Raises Told."""
        if isinstance(place.value, str):
            found = import_object(place, place.value)
            return self._call(place, found, []) if isinstance(found, type) else found
        if isinstance(place.value, dict) and "ref" in place.value:
            return self._component(place)
        if isinstance(place.value, dict) and "className" in place.value:
            return self._construct(place)
        raise place.refuse(f"found {place.found}; {FORMS}")

    def arguments(self, place: Located) -> Any:
        """Return a list or mapping of arguments, with the objects in it made. Raises Told, after all of them were
        tried."""
        made, wrong = [], None
        for item in place.items():
            try:
                made.append(self._argument(item))
            except Told as told:
                wrong = told
        if wrong is not None:
            raise Told(str(wrong))
        return dict(zip(place.value, made, strict=True)) if isinstance(place.value, dict) else made

    def _argument(self, place: Located) -> Any:
        if not isinstance(place.value, dict | list):
            if place.document.wrong(place.where):
                raise Told(place.named)  # a variable that is not set
            return place.value
        if isinstance(place.value, dict) and ("className" in place.value or set(place.value) == {"ref"}):
            return self.make(place)
        if isinstance(place.value, dict) and set(place.value) == {"state"}:
            return self._state_of(place.at("state"))
        return self.arguments(place)

    def _component(self, place: Located) -> Any:
        name, at = place.value["ref"], place.at("ref")
        if set(place.value) != {"ref"}:
            others = ", ".join(key for key in place.value if key != "ref")
            raise place.refuse(f"found {others} beside ref:; a ref: stands alone")
        if not isinstance(name, str) or name not in self._components:
            near = close(name, self._components) if isinstance(name, str) else ""
            names = ", ".join(self._components) or "none"
            raise at.refuse(f"no component {at.found}; components: has: {names}{near}")
        if name in self._under_way:
            raise at.refuse(f"the components refer to each other in a circle: {' -> '.join([*self._under_way, name])}")
        if name not in self._made:
            self._under_way.append(name)
            try:
                self._made[name] = self.make(self._components[name])
            finally:
                self._under_way.pop()
        return self._made[name]

    def check_components(self) -> None:
        """Make also the components that nothing names, so that all problems are known."""
        for name, place in self._components.items():
            if name not in self._made and not place.document.wrong(place.where):
                try:
                    self._made[name] = self.make(place)
                except Told:
                    continue

    def _construct(self, place: Located) -> Any:
        keys = place.read(ObjectKeys, "an object")
        target = import_object(place.at("className"), keys.className)
        made = self._call(place, target, self.arguments(place.at("constructorArgs")) if keys.constructorArgs else [])
        for method in place.at("configMethods").items() if keys.configMethods else ():
            made = self._configure(method, made)
        return made

    def _configure(self, place: Located, made: Any) -> Any:
        keys = place.read(MethodKeys, "a method")
        if not callable(getattr(made, keys.name, None)):  # any object of the user, by the user's name
            names = [name for name in dir(made) if not name.startswith("_") and callable(getattr(made, name, None))]
            known = f"it has: {', '.join(names)}{close(keys.name, names)}"
            raise place.at("name").refuse(f"{type(made).__name__} has no method {keys.name!r}; {known}")
        given = self.arguments(place.at("args")) if keys.args else []
        returned = self._call(place, lambda *args, **named: methodcaller(keys.name, *args, **named)(made), given)
        return returned if isinstance(returned, type(made)) else made  # as withLag, which returns another one

    def _call(self, place: Located, target: Any, given: Any) -> Any:
        if not callable(target):
            advice = "name it alone, without className:"
            raise place.refuse(f"it is of the type {type(target).__name__} and cannot be called; {advice}")
        text = ""
        try:
            return target(**given) if isinstance(given, dict) else target(*given)
        except Exception as error:  # the user's own code
            text = because(place, error) + (_check_taken(target) if isinstance(error, TypeError) else "")
        raise place.refuse(f"cannot be made: {text}")


def import_object(place: Located, path: str) -> Any:
    """Return what ``module:name`` leads to, or the name of a built-in. Raises Told."""
    if ":" not in path:
        if path not in BUILT_IN:
            near = close(path, BUILT_IN)
            raise place.refuse(f"found {place.found}; write module:name, or the name of a built-in{near}")
        path = BUILT_IN[path]
    text = ""
    try:
        return find(path)
    except NotFound as error:
        text = place.document.hide(str(error), words=True)
    except Exception as error:  # the user's own module
        text = f"cannot be imported: {because(place, error)}"
    raise place.refuse(text)


def _check_taken(target: Callable[..., Any]) -> str:
    """Return what a function or class takes, for a call that does not fit it."""
    try:
        signature = inspect.signature(target)
    except (TypeError, ValueError):  # some built-in ones have none
        return ""
    parameters = [parameter.replace(annotation=parameter.empty) for parameter in signature.parameters.values()]
    return f"; it takes {signature.replace(parameters=parameters, return_annotation=signature.empty)}"


def because(place: Located, error: Exception) -> str:
    """Return the error in one line, with the user's own line, and without secrets."""
    origin = blame(error, values=False).origin
    text = place.document.hide(" ".join(describe_error(error).split()), words=True)
    return f"{text} (at {origin})" if origin else text
