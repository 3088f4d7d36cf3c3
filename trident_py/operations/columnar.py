"""Operations on whole columns: the interface that processors call, and `vectorized`, which makes one of a callable."""

from __future__ import annotations

import copy
from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import pyarrow as pa

from ..entry_points import load
from ..errors import DefinitionError, TridentError
from ..tuples import Fields
from .base import Operation, TridentOperationContext, name_of
from .roles import CleansUp, Prepares


class Columnar(Operation):
    """An operation that gets the input fields of many tuples as Arrow arrays and gives one row for each of them.

    It stands in `each`, `map` and `filter`. Calls that see one tuple at a time, or may change their number, refuse it.
    """

    name: str
    names_fields: ClassVar[bool] = False  # whether it says itself which fields it reads

    @abstractmethod
    def columns(self, fields: Fields, arrays: list[pa.Array], length: int) -> list[Any]:
        """Return the output columns, arrays of this ``length``. Called where the tuples are, for each chunk."""
        raise NotImplementedError

    def reads(self, fields: Fields) -> Fields:
        """Return the fields that it reads when it is offered these. Raises DefinitionError if it cannot use them."""
        return fields

    def outputs(self, fields: Fields, wanted: Fields) -> Fields:
        """Return the function fields of `each`, or the output fields of `map`, with their types as far as they are
        known."""
        if not len(wanted):
            raise DefinitionError(f"{self.name} gives one value per tuple: name its function fields, or use filter")
        return wanted

    def map_fields(self, fields: Fields, wanted: Fields | None) -> Fields:
        """Return the output fields of `map`. ``wanted``: those of the call, if it has any; without, the field names
        stay."""
        return self.outputs(fields, Fields.of_names(fields) if wanted is None else wanted)

    def check_filter(self, fields: Fields) -> None:
        """Raise DefinitionError if it is known that the result is not boolean."""


@dataclass(frozen=True)
class Vectorised(Columnar):
    """A callable of Arrow arrays; `vectorized` makes it. Calling it calls the callable, as a unit test does."""

    function: Any

    def __post_init__(self) -> None:
        object.__setattr__(self, "__qualname__", name_of(self.function))  # its name in plans and errors
        object.__setattr__(self, "__doc__", self.function.__doc__)

    @property
    def name(self) -> str:  # type: ignore[override]
        return f"{name_of(self.function)} (vectorised)"

    def __call__(self, *arrays: Any) -> Any:
        return self.function(*arrays)

    def prepare(self, conf: dict, context: TridentOperationContext) -> None:
        if isinstance(self.function, Prepares):
            object.__setattr__(self, "function", copy.copy(self.function))  # a copy for this partition
            self.function.prepare(conf, context)

    def cleanup(self) -> None:
        if isinstance(self.function, CleansUp):
            self.function.cleanup()

    def reads(self, fields: Fields) -> Fields:
        if not len(fields):
            raise DefinitionError(
                f"{self.name} gets no columns, so it cannot know how many tuples there are; name its input fields"
            )
        return fields

    def columns(self, fields: Fields, arrays: list[pa.Array], length: int) -> list[Any]:
        try:
            result = self.function(*arrays)
        except pa.ArrowNotImplementedError as error:
            for name, array in zip(fields, arrays, strict=True):
                if pa.types.is_null(array.type) and name not in fields.types:
                    error.add_note(f"field {name!r} is untyped and holds only nulls here; declare its type")
            raise
        return list(result) if isinstance(result, tuple | list) else [result]


def vectorized(function: Callable[..., Any]) -> Vectorised:
    """Declare that a callable works on whole columns, for `each`, `map` and `filter`: ``@vectorized def f(words)``.

    It is called where the tuples are, with the input fields of a chunk of tuples as pyarrow arrays, in their order. It
    returns an array with one value per tuple: a tuple of arrays for several output fields, a boolean array for a filter
    (null does not pass, as in SQL). How many tuples a chunk has is not defined: a value must not depend on the other
    rows. On replay it runs again. Raises DefinitionError for a class and for what is not a callable.
    """
    if isinstance(function, type):
        raise DefinitionError(f"vectorized got the class {function.__name__}; pass an object of it, or a function")
    if isinstance(function, Columnar):
        raise DefinitionError(f"{function.name} works on columns already")
    if not callable(function):
        raise DefinitionError(f"vectorized takes a callable of pyarrow arrays, got {function!r}")
    return Vectorised(function)


def expr(*expressions: str) -> Columnar:
    """Compile SQL expressions over the input fields, for `each`, `map` and `filter`: ``expr("upper(word) AS w, n + 1 AS
    m")``.

    The meaning is Spark's, in ANSI mode: null gives null; an overflow, a division by zero or a CAST that fails ends the
    run with the row's values. Names of fields are written exactly. It reads the fields that it names, so `each` needs
    no input fields. Where all of these have types, the results have too. docs/expressions.md lists what there is.
    Raises DefinitionError for anything else, without the extra ``expressions``, and without the package sqlglot (pip's
    extra ``sql``).
    """
    return load("expr", "expressions").expr(*expressions)


def check_columns(operation: str, columns: Sequence[Any], count: int, length: int) -> list[pa.Array]:
    """Return the result of an operation on columns. Raises TridentError unless it is ``count`` arrays of this
    ``length``."""
    if len(columns) != count:
        raise TridentError(
            f"{operation} returned {len(columns)} columns for {count} output fields; return one array for each"
        )
    arrays = [_array(operation, column) for column in columns]
    for array in arrays:
        if len(array) != length:
            raise TridentError(f"{operation} returned {len(array)} values for {length} tuples; return one per tuple")
    return arrays


def _array(operation: str, column: Any) -> pa.Array:
    if isinstance(column, pa.ChunkedArray):
        column = column.combine_chunks()
    if isinstance(column, pa.Array):
        return column.dictionary_decode() if pa.types.is_dictionary(column.type) else column
    kind = f"{type(column).__module__.partition('.')[0]}.{type(column).__name__}"
    if isinstance(column, pa.Scalar):
        raise TridentError(f"{operation} returned a scalar, {kind}; return an array with one value per tuple")
    raise TridentError(f"{operation} returned a {kind}; return pyarrow arrays, as pa.array(...) makes them")
