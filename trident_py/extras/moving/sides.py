"""The two sides of a comparison, as the command line names them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import click

from ...cli.targets import add_options
from ...errors import DefinitionError, TridentError
from ...model.secrets import redact_url
from ...state import StateType
from ...state.roles import OpensRows, Shows, opens_values
from ...tuples import Fields
from . import comparison
from .comparison import Comparison, NotComparable, Side, SideNames
from .declared_types import exact_numbers
from .divergence import Divergence, Rules
from .outputs import LINES, SUFFIXES, Output, RowChoice, read_key_map
from .source_options import (
    KINDS,
    OF_REDIS,
    OF_SQL,
    find_checkpoint,
    options_of,
    source_of,
    source_options,
    state_of,
    table_of,
)
from .sources import REDIS, ValueSource
from .storm_values import Rebase

OURS, STORMS, ROWS = "ours", "Storm's", "rows"
OF_ROWS = ("key", "value", "batch")
side_options = add_options(
    click.option("--kind", type=click.Choice(KINDS), help="The kind of Storm's state."),
    source_options,
    click.option("--batch", metavar="COLUMN", help="Rows: the column of the txid, which is not compared."),
    click.option("--type", "types", metavar="DDL", multiple=True, help='The type of a text in a file: "count bigint".'),
    click.option("--rename", "renamed", metavar="LEFT=RIGHT", multiple=True, help="A column that has two names."),
    click.option("--map", "key_map", metavar="FILE", help="CSV: keys of the left side, and the right one's."),
    click.option("--tolerance", type=click.FloatRange(min=0), default=0.0, help="By how much numbers may differ."),
    click.option("--ignore", "ignored", metavar="COLUMN", multiple=True, help="A column that does not count."),
    click.option("--txids", is_flag=True, help="Compare the txids too, and the values before them."),
)
"""They say what is compared, and how; they become a `ComparisonOptions`."""


@dataclass(frozen=True)
class ComparisonOptions:
    """What is compared, as it was typed. ``lay``: how the values or rows of a side lie."""

    left: str
    right: str
    kind: str | None
    split: str | None
    accept_under_way: bool
    types: Sequence[str]
    renamed: Sequence[str]
    key_map: str | None
    tolerance: float
    ignored: Sequence[str]
    txids: bool
    lay: Mapping[str, Any]
    checkpoint: str | None = None

    @classmethod
    def of(cls, options: dict[str, Any]) -> ComparisonOptions:
        """Make it of what was typed; takes its part of the options."""
        own = {each.name: options.pop(each.name) for each in fields(cls) if each.name in options}
        lay = {name: options.pop(name) for name in (*OF_REDIS, *OF_SQL, "batch")}
        return cls(**own, lay=lay)

    def compare(self, note: Callable[[Divergence], Any] = lambda found: None) -> tuple[tuple[Side, Side], Comparison]:
        """Return both sides, and how they differ; ``note`` gets each key that differs. Raises NotComparable."""
        with _not_comparable():
            columns = self.columns()
            sides = self._sides(columns)
            file = self.key_map
            read_keys = (lambda declared: read_key_map(Path(file), declared)) if file else (lambda declared: {})
            names = SideNames(self.split, columns, read_keys, self.lay["batch"])
            rules = Rules(self.tolerance, self.txids, any(map(self._has_no_zones, (self.left, self.right))))
            return sides, comparison.compare(*sides, rules, self.ignored, names, note)

    def form_of(self, side: str) -> str:
        """Return what a side is. Without --kind, a table and a file of JSON lines hold rows."""
        if not side.startswith(REDIS) and side.lower().endswith(SUFFIXES):
            return ROWS
        if "://" not in side and side.rpartition(":")[0].endswith((".yaml", ".yml")):
            return OURS
        plain = not side.startswith(REDIS) and ("://" in side or side.lower().endswith(LINES))
        return ROWS if plain and self.kind is None else STORMS

    def _has_no_zones(self, side: str) -> bool:
        """Return whether it is a table of a server, which no state of ours has noted as one of times with a zone."""
        plain = not side.startswith((*REDIS, "sqlite")) and not side.lower().endswith(SUFFIXES)
        return plain and "://" in side and self.form_of(side) != OURS

    def columns(self) -> dict[str, str]:
        """Return the names of the left side that have another one on the right."""
        pairs = [text.partition("=") for text in self.renamed]
        if wrong := [text for text, (left, _, right) in zip(self.renamed, pairs, strict=True) if not left or not right]:
            raise click.UsageError(f"--rename {wrong[0]}: expected LEFT=RIGHT")
        return {left: right for left, _, right in pairs}

    def _sides(self, columns: Mapping[str, str]) -> tuple[Side, Side]:
        self._check()
        types = Fields.of_columns(self.types)
        choice = RowChoice(self.lay["key"], self.lay["value"], self.lay["batch"], types, columns)
        left, right = self._open(self.left, choice, columns), self._open(self.right, choice, {})
        return left.side("left", right), right.side("right", left)

    def _check(self) -> None:
        """Raise UsageError for options that go with neither side."""
        named = (self.left, self.right)
        forms = list(map(self.form_of, named))
        fits = {name for side, form in zip(named, forms, strict=True) for name in self._options_of(side, form)}
        if wrong := [name for name, given in self.lay.items() if given and name not in fits]:
            raise click.UsageError(f"--{wrong[0].rstrip('_')} goes with neither side")
        if (STORMS in forms) != (self.kind is not None):
            raise click.UsageError("--kind says how Storm writes the values: name it just if a side is Storm's")
        if self.checkpoint and sorted(forms) != sorted([OURS, STORMS]):
            raise click.UsageError("--checkpoint is for one side of Storm's and one of ours")

    def _options_of(self, side: str, form: str) -> tuple[str, ...]:
        if form == STORMS:
            return options_of(side)
        return (*OF_ROWS, "table") if form == ROWS and "://" in side else OF_ROWS

    def _open(self, side: str, choice: RowChoice, renamed: Mapping[str, str]) -> Opened:
        """Open a side. ``renamed``: its columns that have another name on the other side."""
        form = self.form_of(side)
        if form == OURS:
            opened = _open_ours(side)
            if isinstance(opened, Opened):
                return opened
        elif form == STORMS:
            named = {right: left for left, right in renamed.items()}
            own = {name: _under(named, given) if name in options_of(side) else None for name, given in self.lay.items()}
            return self._open_storms(source_of(side, StateType(self.kind), own, ""), own)
        elif "://" not in side or side.lower().endswith(SUFFIXES):
            opened = Output.of_files(side)
        else:
            opened = _open_table(side, self.lay)
        declared = {renamed.get(name, name): ddl for name, ddl in opened.columns.types.items()}
        key = tuple(renamed.get(name, name) for name in opened.key)
        return Opened(key, Fields.of_names(declared, declared), None, partial(choice.side_of, opened))

    def _open_storms(self, source: ValueSource, lay: Mapping[str, Any]) -> Opened:
        moved = find_checkpoint(self.checkpoint) if self.checkpoint else None
        names = [*lay["key"], *lay["value"], lay["txid"], *lay["previous"]] if lay["table"] else []

        def side(name: str, other: Opened) -> Side:
            rebase = moved and other.kind and Rebase(source.kind, other.kind, moved, self.accept_under_way)
            number = exact_numbers(other.declared)
            return Side.of_source(name, source, self.lay["value"], filter(None, names), rebase or None, number)

        return Opened((), Fields(), None, side)


class Opened(NamedTuple):
    """A side before the other one is known. ``key``, ``declared``: what it declares of its key, and of the types of its
    columns; ``kind``: of a map of ours; ``side``: makes it, of its name and of the other side."""

    key: tuple[str, ...]
    declared: Fields
    kind: StateType | None
    side: Callable[[str, Opened], Side]


@contextmanager
def _not_comparable() -> Iterator[None]:
    """Inside, no error has the exit code of a difference."""
    try:
        yield
    except DefinitionError:
        raise
    except TridentError as error:
        raise NotComparable(str(error)) from error


def _open_ours(named: str) -> Opened | Output:
    state = state_of(named, "")
    shown = repr(state)
    try:
        if opens_values(state):
            stored = state.open_values()
            key, value = stored.key or Fields(), stored.value or Fields()
            return Opened(key.names, key.concat(value), stored.kind, lambda name, _: Side.of_state(name, shown, stored))
        if isinstance(state, OpensRows):
            return Output.of_state(shown, state.open_rows())
        if isinstance(state, Shows):
            values = state.stored()
            return Opened((), Fields(), None, lambda name, _: Side.of_values(name, shown, values))
    except DefinitionError:
        raise
    except TridentError as error:
        raise NotComparable(f"{named} cannot be read: {error}") from error
    raise DefinitionError(f"{named}: what a {type(state).__name__} has written cannot be read back")


def _open_table(url: str, lay: Mapping[str, Any]) -> Output:
    if not lay["table"]:
        raise click.UsageError(f"{redact_url(url)}: rows of which --table? With --kind it holds values of a state")
    source = table_of(url, StateType.NON_TRANSACTIONAL, lay)
    return Output(source.shown, lambda types: ((None, row) for row in source.rows()))


def _under(names: Mapping[str, str], given: Any) -> Any:
    """Return what an option of columns says, under the names of the left side."""
    return tuple(names.get(name, name) for name in given) if isinstance(given, tuple) else names.get(given, given)
