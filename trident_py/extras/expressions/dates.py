"""Parts of a date, or of a time without a zone; one with a zone would need the session's."""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa
import pyarrow.compute as pc

from ...errors import DefinitionError
from .compiled import Compiled, Datum, strict
from .types import DATE, TIMESTAMP_NTZ, SqlCall, sql_name

CLOCK = ("hour", "minute", "second")
_KERNELS: dict[str, Callable[[Datum], Datum]] = {
    "year": pc.year, "quarter": pc.quarter, "month": pc.month, "day": pc.day, "dayofyear": pc.day_of_year,
    "dayofweek": lambda x: pc.day_of_week(x, count_from_zero=False, week_start=7),
    "hour": pc.hour, "minute": pc.minute, "second": pc.second,
}  # fmt: skip
PARTS = tuple(_KERNELS)


def date_part(name: str) -> Callable[[SqlCall, list[Compiled]], Compiled]:
    kinds = (TIMESTAMP_NTZ,) if name in CLOCK else (DATE, TIMESTAMP_NTZ)

    def compile_call(call: SqlCall, args: list[Compiled]) -> Compiled:
        if args[0].kind not in kinds:
            needed = " or ".join(map(sql_name, kinds))
            raise DefinitionError(f"expr: {call} needs {needed}, but has {sql_name(args[0].kind)}")
        return strict(pa.int32(), lambda x: pc.cast(_KERNELS[name](x), pa.int32()), args)

    return compile_call
