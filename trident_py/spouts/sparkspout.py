"""SparkSpout: declares a streaming source of Spark. Runs on SparkCluster only."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ..errors import DefinitionError, TridentError
from ..model.chunks import arrow_type
from ..tuples import Fields, FieldsLike, declare
from .interfaces import KINDS, TRANSACTIONAL, ITridentDataSource


@dataclass(frozen=True)
class SparkSpout(ITridentDataSource):
    """A streaming source of Spark: ``SparkSpout("rate", {"rowsPerSecond": 5}, Fields("value bigint"))``.

    ``fields``: the columns that become fields; None takes all of ``schema``. ``schema``: a DDL string for the reader;
    file sources need one. ``kind``: your promise about replays, "transactional" if the source gives the same rows for
    the same offsets. `topology.guarantees()` ignores the promise for a source that cannot be read again, such as a
    socket. Runs on SparkCluster only.
    """

    format: str
    options: Mapping[str, Any] = field(default_factory=dict)
    fields: FieldsLike | None = None
    kind: str = TRANSACTIONAL
    schema: str | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.format, str) or not self.format:
            raise DefinitionError(f"SparkSpout: format must be a name such as 'kafka', got {self.format!r}")
        if self.kind not in KINDS:
            raise DefinitionError(f"SparkSpout: no kind {self.kind!r}; the kinds are: {', '.join(KINDS)}")
        fields = self.fields
        if fields is None:
            if self.schema is None:
                raise DefinitionError("SparkSpout: fields and schema are missing; give the fields, or a schema in DDL")
            fields = _columns(self.schema)
        object.__setattr__(self, "options", dict(self.options))
        object.__setattr__(self, "fields", Fields.of(fields))

    def getOutputFields(self) -> Fields:
        return Fields.of(self.fields)


def _columns(schema: str) -> list[str]:
    """Return the columns of a DDL string ("a int, b decimal(10,2)", also "a: int"), without types unknown to us."""
    columns, depth, start = [], 0, 0
    for at, letter in enumerate(schema + ","):
        depth += (letter in "(<") - (letter in ")>")
        if letter == "," and depth == 0:
            columns.append(_column(schema[start:at], schema))
            start = at + 1
    return columns


def _column(text: str, schema: str) -> str:
    column = re.fullmatch(r"\s*(`[^`]+`|\w+)\s*:?\s*(.*?)\s*(?i:not null)?\s*", text, re.DOTALL)
    if column is None:
        raise DefinitionError(f"SparkSpout: cannot read {text.strip()!r} in the schema {schema!r}")
    name, ddl = column.group(1).strip("`"), column.group(2).lower().replace(" ", "")
    try:
        arrow_type(ddl)
    except TridentError:
        return declare(name)
    return declare(name, ddl)
