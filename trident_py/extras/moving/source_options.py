"""What names a state of Storm or of ours on the command line: where its values are, and of which checkpoint."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import click

from ...checkpoints.hash_seed import own_order
from ...checkpoints.location import local_folder, open_log, read_log
from ...checkpoints.uri_folder import find_folder, open_folder
from ...cli.targets import add_options
from ...errors import DefinitionError
from ...model.secrets import redact_url
from ...state import StateType
from ...state.roles import OpensValues, opens_values
from ...topology.user_modules import states_loading
from ..txid.components import Component, components_in
from .checkpoint import Moved, check_unused, find_moved
from .imported_states import ImportedStates
from .sources import REDIS, DumpSource, RedisSource, ValueSource

KINDS = [kind.value for kind in StateType]
OF_REDIS = ("hash_", "match")
OF_SQL = ("table", "key", "value", "txid", "previous")
source_options = add_options(
    click.option("--hash", "hash_", help="Redis: the hash that holds the values; without it, the strings."),
    click.option("--match", help="Redis: a pattern of the names."),
    click.option("--table", help="SQL: the table."),
    click.option("--key", "key", multiple=True, help="SQL: a column of the key; several in their order."),
    click.option("--value", multiple=True, help="SQL: a column of the value; alone, it may hold Storm's JSON."),
    click.option("--txid", "txid", help="SQL: the column of the txid."),
    click.option("--previous", multiple=True, help="SQL: a column of the previous value."),
    click.option("--split", metavar="TEXT", help="What stands between the fields of a key in its name."),
    click.option("--accept-under-way", is_flag=True, help="Non-transactional: the batch under way may count twice."),
)
"""They say how Storm's values lie."""


def options_of(source: str) -> tuple[str, ...]:
    """Return the names of the options that go with a source."""
    return OF_REDIS if source.startswith(REDIS) else OF_SQL if "://" in source else ()


def source_of(source: str, kind: StateType, lay: Mapping[str, Any], option: str = "--from ") -> ValueSource:
    """Return the source that the options name. Raises UsageError for options that do not fit it."""
    redis, sql = source.startswith(REDIS), "://" in source
    wrong = [name for name in (*OF_REDIS, *OF_SQL) if lay[name] and name not in options_of(source)]
    if wrong:
        raise click.UsageError(f"--{wrong[0].rstrip('_')} does not go with {option}{'redis' if redis else 'FILE'}")
    if redis:
        return RedisSource(source, lay["hash_"], kind, lay["match"])
    if not sql:
        if not Path(source).is_file():
            raise click.UsageError(f"{option}{redact_url(source)}: no such file, and no URL")
        return DumpSource(Path(source), kind)
    _check_columns(kind, lay)
    return table_of(source, kind, lay)


def table_of(source: str, kind: StateType, lay: Mapping[str, Any]) -> Any:
    """Return the table that the options name."""
    from .table_source import TableSource

    return TableSource(source, lay["table"], kind, lay["key"], lay["value"], lay["txid"], lay["previous"])


def _check_columns(kind: StateType, lay: Mapping[str, Any]) -> None:
    """Raise UsageError for columns that do not say all that the kind keeps of a value, or more."""
    if not (lay["table"] and lay["key"] and lay["value"]):
        raise click.UsageError("a SQL table needs --table, --key and --value")
    txid, values, previous = lay["txid"], len(lay["value"]), len(lay["previous"] or ())
    if txid and kind is StateType.NON_TRANSACTIONAL:
        raise click.UsageError(f"--txid {txid}: a non-transactional state has no txids; name the kind of the state")
    if previous != (values if txid and kind is StateType.OPAQUE else 0):
        raise click.UsageError(
            "--previous is for an opaque state with --txid, which has one for each --value; there are "
            f"{values} --value and {previous} --previous, the kind is {kind.value}, {'with' if txid else 'without'} "
            "--txid"
        )
    if values > 1 and not txid and kind is not StateType.NON_TRANSACTIONAL:
        raise click.UsageError("without --txid one --value holds the JSON of Storm's state: name one, or --txid")


def state_of(named: str, option: str) -> Any:
    """Return the factory of a state of ours. Raises DefinitionError for one that is not in the file."""
    if "://" in named:
        raise DefinitionError(f"{option.strip() or 'a state'} names a state of ours as FILE:STATE, and not a URL")
    file, _, name = named.rpartition(":")
    states = states_loading().load(file or named)
    if name not in states:
        raise DefinitionError(f"{option}{named}: {file or named} has no state {name!r}; there are {', '.join(states)}")
    return states[name]


def target_of(named: str) -> OpensValues:
    """Return the factory of our state. Raises DefinitionError for one that is not in the file, or is no map."""
    state = state_of(named, "--into ")
    if not opens_values(state):
        raise DefinitionError(f"--into {named}: a {type(state).__name__} is no map with values by key")
    return state


def find_checkpoint(checkpoint: str) -> Moved:
    """Return what the one imported checkpoint there keeps of Storm. Raises as `choose_component` does."""
    return choose_component(checkpoint)[1]


def choose_component(
    checkpoint: str, has: Callable[[ImportedStates], bool] | None = None, shown: str = ""
) -> tuple[Component, Moved]:
    """Return the component with an imported checkpoint there, and what that keeps of Storm. ``has``: tells the one that
    has the map ``shown``. Raises an error unless there is just one, and for one on which a topology has run."""
    imported = [(each, moved) for each in _components_at(checkpoint) if (moved := find_moved(each)) is not None]
    found = [(each, moved) for each, moved in imported if has is None or has(ImportedStates.of(each.read()))]
    if imported and not found:
        raise DefinitionError(_explain_foreign(shown, [each for each, _ in imported]))
    if len(found) != 1:
        there = ", ".join(each.read().where for each, _ in found)
        example = f": {there}" if found else ", such as checkpoints/words/sentences"
        raise DefinitionError(
            f"{checkpoint} has {len(found)} checkpoints that `trident import offsets` has made; name the folder of "
            f"one{example}"
        )
    check_unused(found[0][0])
    return found[0]


def _explain_foreign(shown: str, imported: Sequence[Component]) -> str:
    logs = [each.read() for each in imported]
    has = "; ".join(f"{log.where} has {ImportedStates.of(log).describe()}" for log in logs)
    return (
        f"{shown} is no map of the component whose checkpoint this is: {has}. Name the checkpoint of its own "
        "component. If topology or state were changed since `trident import offsets`, repeat that as it was. Nothing "
        "was changed"
    )


def _components_at(place: str) -> list[Component]:
    """Return the components whose checkpoints are in a local folder, or the one whose checkpoint a URI names."""
    if (local := local_folder(place)) is not None:
        return components_in(Path(local))
    root, *names = place.rstrip("/").rsplit("/", 2)
    if len(names) < 2 or root.endswith(("/", ":")):
        return []
    topology, name = map(unquote, names)
    log = root, topology, name, own_order
    find, used = partial(find_folder, storage={}), partial(open_folder, storage={})
    return [Component(topology, name, partial(read_log, *log, find), partial(open_log, *log, used))]
