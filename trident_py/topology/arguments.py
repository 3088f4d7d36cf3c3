"""Storm's overloads told apart by type: fields come first or are left out."""

from __future__ import annotations

import difflib
from typing import Any

from ..errors import DefinitionError
from ..operations.base import Aggregator, CombinerAggregator, ReducerAggregator
from ..tuples import Fields


def is_fields(value: Any) -> bool:
    """True for what may stand for fields: None, a name, a list or tuple of names, Fields."""
    return value is None or isinstance(value, str | list | tuple | Fields)


def overload(call: str, args: tuple, names: tuple[str, ...], given: dict[str, Any]) -> list[Any]:
    """The arguments in the order of ``names``, the first of which is the input fields and may be left out.

    ``given`` are the keyword arguments. Raises DefinitionError for too many, missing or unknown ones.
    """
    values = list(args)
    if values and not is_fields(values[0]):
        values.insert(0, None)
    if len(values) > len(names):
        raise DefinitionError(f"{call} takes at most {len(names)} arguments ({', '.join(names)})")
    unknown = set(given) - set(names)
    if unknown:
        raise DefinitionError(f"{call} has no argument {sorted(unknown)[0]!r}; it has {', '.join(names)}")
    bound = dict(zip(names, values, strict=False))
    for name, value in given.items():
        if bound.get(name) is not None:
            raise DefinitionError(f"{call} got {name!r} twice")
        bound[name] = value
    return [bound.get(name) for name in names]


def check_object(call: str, thing: Any, *roles: type) -> Any:
    """Raises DefinitionError for a class where an object is meant, and for an object of one of these ``roles`` whose
    methods are not all there."""
    kind = thing if isinstance(thing, type) else type(thing)
    if isinstance(thing, type) and issubclass(thing, roles):
        raise DefinitionError(f"{call} got the class {kind.__name__}; give an object of it: {kind.__name__}(...)")
    own_roles = [role for role in roles if isinstance(thing, role)]
    missing = [name for role in own_roles for name in dir(role) if _is_abstract(getattr(thing, name))]
    if not missing:
        return thing
    own = [name for name in vars(kind) if not name.startswith("_") and not _is_abstract(getattr(kind, name))]
    close = difflib.get_close_matches(missing[0], own, 1, 0.5)
    hint = f"; did you mean {missing[0]} by {close[0]}?" if close else f"; it defines: {', '.join(own) or 'nothing'}"
    raise DefinitionError(f"{call}: {kind.__name__} does not define {missing[0]}{hint}")


def _is_abstract(method: Any) -> bool:
    return getattr(method, "__isabstractmethod__", False) is True


def check_fields(names: Fields, stream: Fields) -> Fields:
    """The fields with the types they have in the stream. Raises DefinitionError for one it does not have."""
    for name in names:
        if name not in stream:
            raise DefinitionError(
                f"Trying to select non-existent field: {name!r} from stream containing fields: {stream}; "
                f"no field {name!r} in this stream"
            )
    return stream.only(names)


def check_aggregator(call: str, aggregator: Any) -> Any:
    """Raises DefinitionError unless it is one of the three kinds of aggregators, and whole."""
    check_object(call, aggregator, Aggregator, CombinerAggregator, ReducerAggregator)
    if not isinstance(aggregator, Aggregator | CombinerAggregator | ReducerAggregator):
        raise DefinitionError(
            f"{call} takes an Aggregator, a CombinerAggregator or a ReducerAggregator, got {aggregator!r}"
        )
    return aggregator


def not_there_yet(call: str, instead: str) -> DefinitionError:
    return DefinitionError(f"{call} is not there yet in this version (docs/differences.md); until then: {instead}")


def no_general_aggregator(aggregator: Aggregator) -> DefinitionError:
    return DefinitionError(
        f"persistentAggregate takes a CombinerAggregator or a ReducerAggregator, got {aggregator!r}; "
        "an Aggregator has no value that a state could keep"
    )
