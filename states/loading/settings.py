"""The base class for authors of state types (a pydantic model each), and those installed here."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import EntryPoint
from pkgutil import resolve_name
from typing import Annotated, Any, ClassVar, Literal

from pydantic import AfterValidator, BeforeValidator, Field, WithJsonSchema

from trident_py.documents.models import Keys, to_list
from trident_py.entry_points import find_points, is_absent
from trident_py.errors import DefinitionError, explain_missing_extra
from trident_py.state import StateFactory
from trident_py.tuples import Fields

from ..diagnostics import Checkable, Finding

GROUP = "trident_py.states"


@dataclass(frozen=True)
class Installed:
    """One type: its name, its package, and its settings or the reason why it cannot be used."""

    name: str
    package: str
    settings: type[StateSettings] | None
    problem: str | None = None

    @property
    def summary(self) -> str:
        """The first line of the settings' docstring."""
        text = (self.settings.__doc__ or "").strip() if self.settings is not None else ""
        return text.splitlines()[0] if text else ""


def find_types() -> dict[str, Installed]:
    """Return all types by name. ``problem`` tells why a type cannot be loaded, or that two have the same name."""
    points: dict[str, list[EntryPoint]] = {}
    for point in find_points(GROUP):
        points.setdefault(point.name, []).append(point)
    return {name: _type_of(name, points[name]) for name in sorted(points)}


def _type_of(name: str, points: list[EntryPoint]) -> Installed:
    packages = " and ".join(sorted({_package(point) for point in points}))
    if len({point.value for point in points}) > 1:
        return Installed(name, packages, None, f"the packages {packages} both define a type of this name")
    try:
        target: Any = points[0].load()
    except Exception as error:  # a third-party package may raise anything when imported
        missing = f"{error.name}" if isinstance(error, ModuleNotFoundError) else ""
        if missing.startswith(("states.", "trident_py.")) and is_absent(points[0], missing):
            return Installed(name, packages, None, explain_missing_extra("it", points[0].module))
        return Installed(name, packages, None, f"{points[0].value} cannot be loaded: {type(error).__name__}: {error}")
    if not (isinstance(target, type) and issubclass(target, StateSettings)):
        return Installed(name, packages, None, f"{points[0].value} is not a subclass of states.loading.StateSettings")
    return Installed(name, packages, target)


def _package(point: EntryPoint) -> str:
    return f"{point.dist.name} {point.dist.version}" if point.dist is not None else "?"


class StateSettings(Keys):
    """The settings of one type of state: the keys of its mapping in the file, without ``type``.

    An entry point of the group ``trident_py.states`` refers to a subclass; its name is the type. `trident states` and
    the JSON schema show the docstring and the fields' descriptions. An unknown key is refused. The model is created on
    the driver, after variables of the environment are filled in.
    """

    kinds: ClassVar[tuple[str, ...]] = ()
    """The kinds of the factories that `make` returns, as named in the table of guarantees."""

    @classmethod
    def guarantees(cls) -> Mapping[str, tuple[str, ...]]:
        """Return the guarantees that the factories declare themselves, by spout kind: for `trident states`."""
        return {}

    def make(self) -> StateFactory:
        """Return the factory. Opens nothing. Raises DefinitionError for settings that contradict each other."""
        raise NotImplementedError(f"{type(self).__name__} must define make()")

    def check(self, factory: StateFactory) -> Sequence[Finding]:
        """Check the store with the factory's own ``check()``, if it has one. Writes nothing."""
        if isinstance(factory, Checkable):
            return factory.check()
        return [Finding("ok", f"not checked: {type(factory).__name__} has no check()")]


class FactorySettings(StateSettings):
    """Settings whose keys are the arguments of a factory, whose module is imported only when the state is created."""

    factory: ClassVar[str]
    """The factory's module and name, as in ``states.sql:AppendState``."""

    @classmethod
    def guarantees(cls) -> Mapping[str, tuple[str, ...]]:
        """Return those of the factory's class; none if they depend on the settings, or if a library is missing."""
        try:
            declared = vars(resolve_name(cls.factory)).get("guarantees")
        except DefinitionError:
            return {}
        return declared if isinstance(declared, Mapping) else {}

    def arguments(self) -> dict[str, Any]:
        """Return the factory's arguments: the settings by name, without unset ones."""
        return {name: value for name, value in self if value is not None}

    def make(self) -> StateFactory:
        factory: StateFactory = resolve_name(self.factory)(**self.arguments())
        return factory


class MapSettings(FactorySettings):
    """Settings of a map state, whose kind names the constructor of its factory."""

    kinds: ClassVar[tuple[str, ...]] = ("opaque", "transactional", "non-transactional")

    def make(self) -> StateFactory:
        arguments = self.arguments()
        constructor = arguments.pop("kind").replace("non-transactional", "nonTransactional")
        factory: StateFactory = resolve_name(f"{self.factory}.{constructor}")(**arguments)
        return factory


MapKind = Annotated[
    Literal["non-transactional", "transactional", "opaque"],
    Field(description="Kind of map: opaque stores the txid and the previous value with each value, transactional "
                      "stores the txid, non-transactional stores neither"),
]  # fmt: skip


def _distinct(value: list[str]) -> list[str]:
    if not value:
        raise DefinitionError("expected at least one field")
    Fields.of_columns(value)
    return value


class NamesFields:
    """Marks a setting that names fields of the tuples, or of a row. A stream that lacks one is refused."""


FieldName = Annotated[str, Field(min_length=1), NamesFields()]
_FIELD = {"type": "string", "pattern": r"^\s*\S+(\s+\S.*)?$", "examples": ["word string", "count bigint"]}
FieldList = Annotated[
    list[str],
    BeforeValidator(to_list),
    AfterValidator(_distinct),
    NamesFields(),
    WithJsonSchema({"anyOf": [_FIELD, {"type": "array", "items": _FIELD, "minItems": 1}]}),
]
"""``word string``, or a list of such texts: names with an optional type in DDL form."""
