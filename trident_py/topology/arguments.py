"""Storm's overloads at run time: calls are matched against the ``@overload`` signatures that mypy and editors see."""

from __future__ import annotations

import difflib
import inspect
from collections.abc import Callable, Iterable
from enum import Enum
from functools import cache
from typing import Any, get_overloads

from ..errors import DefinitionError
from ..model.secrets import hide
from ..operations.base import Aggregator, CombinerAggregator, ReducerAggregator
from ..operations.columnar import Columnar
from ..report.guarantees import STATE_KINDS
from ..tuples import Fields


class JoinType(Enum):
    """The type of one side of a join. OUTER: this side may be missing."""

    INNER = "INNER"
    OUTER = "OUTER"

    @staticmethod
    def mixed(*types: JoinType) -> list[JoinType]:
        return list(types)


class JoinOutFieldsMode(Enum):
    """The output of a join. COMPACT: the key, then each side's other fields. PRESERVE: each side's fields in order."""

    COMPACT = "COMPACT"
    PRESERVE = "PRESERVE"


_ON_COLUMNS = ("each", "filter", "map")


def is_fields(value: Any) -> bool:
    """Return whether the value can name fields: None, a name, a list or tuple of names, Fields."""
    return value is None or isinstance(value, str | list | tuple | Fields)


# Distinguishes the forms of a call by the first word of a parameter's annotation. Any other word: all but fields.
_KINDS: dict[str, Callable[[Any], bool]] = {
    "FieldsLike": is_fields,
    "str": lambda value: isinstance(value, str),
    "Sequence": lambda value: isinstance(value, list | tuple),
    "JoinType": lambda value: isinstance(value, JoinType | list | tuple),
    "JoinOutFieldsMode": lambda value: not isinstance(value, JoinType | list | tuple),
}


def arguments(method: Callable[..., Any], args: tuple, named: dict[str, Any]) -> dict[str, Any]:
    """Return the arguments of a call by name, with defaults, as in the first ``@overload`` of the method that fits.

    An overload fits if it accepts every argument, with fields exactly where it has field parameters. The result has no
    parameters of other overloads. Raises DefinitionError, listing all forms, if none fits.
    """
    forms = _forms(method)
    for form in forms:
        bound = _bind(form, args, named)
        if bound is not None:
            return bound
    name = method.__name__
    call = ", ".join([*map(_show, args), *(f"{key}={_show(value)}" for key, value in named.items())])
    calls = " or ".join(f"{name}{_bare(form)}" for form in forms)
    raise DefinitionError(f"no form of {name} takes ({call}); call it as {calls}")


@cache
def _forms(method: Callable[..., Any]) -> list[inspect.Signature]:
    return [inspect.signature(form) for form in get_overloads(method)]


def _bind(form: inspect.Signature, args: tuple, named: dict[str, Any]) -> dict[str, Any] | None:
    try:
        bound = form.bind(None, *args, **named)
    except TypeError:
        return None
    for name, value in list(bound.arguments.items())[1:]:
        parameter = form.parameters[name]
        values = value if parameter.kind is parameter.VAR_POSITIONAL else (value,)
        if not all(_fits(parameter.annotation, value) for value in values):
            return None
    bound.apply_defaults()
    return {name: value for name, value in bound.arguments.items() if name != "self"}


def _fits(annotation: str, value: Any) -> bool:
    if value is None:
        return "None" in annotation
    kind = annotation.partition(" ")[0].partition("[")[0]
    return _KINDS[kind](value) if kind in _KINDS else not is_fields(value)


def _show(value: Any) -> str:
    return hide(repr(value)) if value is None or isinstance(value, str | Fields) else type(value).__name__


def _bare(form: inspect.Signature) -> str:
    """Return the names and defaults of a signature."""
    parameters = [p.replace(annotation=p.empty) for p in form.parameters.values() if p.name != "self"]
    return str(form.replace(parameters=parameters, return_annotation=form.empty))


def check_object(call: str, thing: Any, *roles: type) -> Any:
    """Return the object. Raises DefinitionError for a class in place of an object, and for an object of one of these
    ``roles`` that lacks an abstract method."""
    kind = thing if isinstance(thing, type) else type(thing)
    if isinstance(thing, type) and issubclass(thing, roles):
        raise DefinitionError(f"{call} got the class {kind.__name__}; pass an object of it: {kind.__name__}(...)")
    if isinstance(thing, Columnar) and call not in _ON_COLUMNS:
        why = "gives one row for each tuple" if call == "flatMap" else "works on whole columns, not on one tuple"
        raise DefinitionError(f"{call} does not take {thing.name}: it {why}; use it in each, map or filter")
    abstract = {name for name, _ in inspect.getmembers_static(thing, _is_abstract)}
    missing = [name for role in roles if isinstance(thing, role) for name in dir(role) if name in abstract]
    if not missing:
        return thing
    defined = [name for name, value in vars(kind).items() if not name.startswith("_") and not _is_abstract(value)]
    close = difflib.get_close_matches(missing[0], defined, 1, 0.5)
    names = ", ".join(defined) or "nothing"
    hint = f"; did you mean {missing[0]} instead of {close[0]}?" if close else f"; it defines: {names}"
    raise DefinitionError(f"{call}: {kind.__name__} does not define {missing[0]}{hint}")


def _is_abstract(method: Any) -> bool:
    return getattr(method, "__isabstractmethod__", False) is True  # only what is decorated as abstract has it


def check_fields(names: Fields, stream: Fields) -> Fields:
    """Return the fields with their types in the stream. Raises DefinitionError for a field that the stream lacks."""
    for name in names:
        if name not in stream:
            raise DefinitionError(
                f"Trying to select non-existent field: {name!r} from stream containing fields: {stream}; "  # noqa: S608  no SQL
                f"no field {name!r} in this stream{near(name, stream)}"
            )
    return stream.only(names)


def check_state_kind(factory: Any) -> None:
    """Raise DefinitionError for a misspelled kind of state. Another one that is not known is at least once."""
    kind = getattr(factory, "kind", None)  # a user's factory need not have it
    told = getattr(factory, "guarantees", None) is not None
    if isinstance(kind, str) and kind not in STATE_KINDS and not told and (hint := near(kind, STATE_KINDS, 0.9)):
        raise DefinitionError(
            f"{factory!r}: no kind {kind!r}; the kinds are: {', '.join(STATE_KINDS)}{hint} "
            "A kind of your own with such a name needs `guarantees` in the factory"
        )


def near(name: str, names: Iterable[str], least: float = 0.6) -> str:
    """Return `. Did you mean ...?` if one of the names, such as fields, is similar, else an empty text."""
    found = difflib.get_close_matches(name, list(names), 1, least)
    return f". Did you mean {found[0]!r}?" if found else ""


def check_aggregator(call: str, aggregator: Any) -> Any:
    """Return the aggregator. Raises DefinitionError if it is not one of the three kinds, or lacks a method."""
    check_object(call, aggregator, Aggregator, CombinerAggregator, ReducerAggregator)
    if not isinstance(aggregator, Aggregator | CombinerAggregator | ReducerAggregator):
        raise DefinitionError(
            f"{call} takes an Aggregator, a CombinerAggregator or a ReducerAggregator, got {aggregator!r}"
        )
    return aggregator


def no_general_aggregator(aggregator: Aggregator) -> DefinitionError:
    return DefinitionError(
        f"persistentAggregate takes a CombinerAggregator or a ReducerAggregator, got {aggregator!r}; "
        "an Aggregator has no value that a state could keep"
    )
