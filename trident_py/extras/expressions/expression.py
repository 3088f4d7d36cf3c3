"""`expr`: SQL expressions as an operation on columns."""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass, field
from typing import Any, ClassVar

import pyarrow as pa

from ...errors import DefinitionError
from ...model.chunks import arrow_type
from ...model.user_traceback import format_values
from ...operations.columnar import Columnar
from ...tuples import Fields
from .compiled import Compiled, SqlRows, SqlValueError, full
from .functions import Types, compile_tree
from .parser import Named, parse
from .types import BOOLEAN, STRING, VOID, columns_of, sql_name

_LONGEST = 100


@dataclass(frozen=True)
class SqlExpression(Columnar):
    """One expression, or several for several output fields; `expr` makes it."""

    text: str
    parts: tuple[Named, ...] = field(repr=False)
    names_fields: ClassVar[bool] = True

    def __post_init__(self) -> None:
        object.__setattr__(self, "__qualname__", self.name)

    @property
    def name(self) -> str:  # type: ignore[override]
        return f'expr("{self.text if len(self.text) <= _LONGEST else self.text[:_LONGEST] + "..."}")'

    def __call__(self, *arrays: Any) -> Any:
        """Return the result for arrays of the fields that it names, in the order of their first mention; for unit
        tests."""
        found = self.columns(Fields.of_names(self._fields()), list(arrays), len(arrays[0]) if arrays else 1)
        return found[0] if len(found) == 1 else tuple(found)

    def _fields(self) -> list[str]:
        """Return the fields that it names, in the order of their first mention."""
        return list(dict.fromkeys(name for part in self.parts for name in columns_of(part.tree)))

    # -- when the topology is defined ---------------------------------------------------------------------------------

    def reads(self, fields: Fields) -> Fields:
        wanted = self._fields()
        for name in wanted:
            if name not in fields:
                raise DefinitionError(f"{self.name}: no field {name!r} here; there are: {', '.join(fields)}")
        return fields.only(wanted)

    def outputs(self, fields: Fields, wanted: Fields) -> Fields:
        if len(wanted) != len(self.parts):
            raise DefinitionError(f"{self.name} gives {len(self.parts)} values for the {len(wanted)} fields {wanted}")
        for part, name in zip(self.parts, wanted, strict=True):
            if part.renamed and part.name != name:
                raise DefinitionError(f"{self.name}: {part.name!r} behind AS would be the field {name!r}; use one name")
        kinds = [part.kind if part is not None else None for part in self._compile_typed(fields)]
        pairs = zip(wanted, kinds, strict=True)
        return Fields.of_names(wanted, {name: self._type(name, wanted.types.get(name), kind) for name, kind in pairs})

    def map_fields(self, fields: Fields, wanted: Fields | None) -> Fields:
        """Map to output fields; without any, the names behind AS count, or those of bare fields."""
        if wanted is None:
            unnamed = next((part for part in self.parts if not part.name), None)
            if unnamed is not None:
                raise DefinitionError(f"{self.name}: {unnamed.tree} has no name; write AS, or give outputFields")
            wanted = Fields.of_names([part.name for part in self.parts])
        return self.outputs(fields, wanted)

    def check_filter(self, fields: Fields) -> None:
        (kind,) = [part.kind if part is not None else BOOLEAN for part in self._compile_typed(fields)][:1]
        if len(self.parts) > 1 or kind not in (BOOLEAN, VOID):
            what = f"{len(self.parts)} values" if len(self.parts) > 1 else sql_name(kind)
            raise DefinitionError(f"{self.name} gives {what}, but a filter is one condition; or name function fields")

    def _compile_typed(self, fields: Fields) -> list[Compiled | None]:
        """Return the expressions whose fields all have types; None for the others, which are compiled when values
        come."""
        found: list[Compiled | None] = []
        for part in self.parts:
            names = sorted(set(columns_of(part.tree)))
            typed = all(name in fields.types for name in names)
            types = tuple((name, arrow_type(fields.types[name])) for name in names) if typed else ()
            found.append(compile_tree(part.tree, types) if typed else None)
        return found

    def _type(self, name: str, ddl: str | None, kind: pa.DataType | None) -> str | None:
        if ddl is None:
            return None if kind is None or kind == VOID else sql_name(kind)
        if kind is not None and kind != VOID and (kind == STRING) != (ddl == "string"):
            raise DefinitionError(f"{self.name}: field {name!r} is declared {ddl}, but gets {sql_name(kind)}; use CAST")
        return ddl

    # -- where the tuples are -----------------------------------------------------------------------------------------

    def columns(self, fields: Fields, arrays: list[pa.Array], length: int) -> list[Any]:
        rows = SqlRows(dict(zip(fields, arrays, strict=True)), length)
        try:
            return [full(part.run(rows), length) for part in self._for(fields, arrays)]
        except SqlValueError as error:
            row = self._find_failing(fields, arrays, length)
            if len(fields):
                error.add_note(f"with {format_values(fields, [array[row].as_py() for array in arrays])}")
            raise

    def _for(self, fields: Fields, arrays: list[pa.Array]) -> list[Compiled]:
        types: Types = tuple((name, array.type) for name, array in zip(fields, arrays, strict=True))
        return [compile_tree(part.tree, types) for part in self.parts]

    def _find_failing(self, fields: Fields, arrays: list[pa.Array], length: int) -> int:
        """Return the first row that fails."""

        def fails(row: int) -> bool:
            cut = [array.slice(0, row + 1) for array in arrays]
            rows = SqlRows(dict(zip(fields, cut, strict=True)), row + 1)
            try:
                for part in self._for(fields, cut):
                    part.run(rows)
            except SqlValueError:
                return True
            return False

        return bisect_left(range(length), True, key=fails)


def expr(*expressions: str) -> SqlExpression:
    """Compile; see `trident_py.operations.expr`, which calls it."""
    for expression in expressions:
        if not isinstance(expression, str):
            raise DefinitionError(f"expr takes SQL expressions as texts, got {expression!r}")
    text = ", ".join(expressions)
    return SqlExpression(text, tuple(parse(text)))
