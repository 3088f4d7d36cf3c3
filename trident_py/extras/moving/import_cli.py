"""The commands `trident import offsets`, `trident import state` and `trident import skip`.

Exit codes: 0 done, or done before; 1 a store does not agree or does not answer; 2 the command is wrong, or something
must be decided first.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import click

from ...cli.failures import guard
from ...cli.targets import add_options, name_option, settings_option, target_argument, traceback_option
from ...errors import StateError
from ...filesystems.base import is_number
from ...state import StateType
from ..txid.components import Component, components_of
from .checkpoint import ImportedPosition, Moved, check_kept, make_checkpoint
from .imported_states import ImportedStates, MapPlace, filling, leave_out, map_at, map_of
from .kafka_offsets import Place
from .offsets import Found, ImportAnswers, check_group, check_starts, find_group, find_positions, spouts_of
from .source_options import KINDS, choose_component, source_of, source_options, target_of
from .sources import RedisSource, ValueSource
from .state_import import Result, import_values, rebase_in_place
from .storm_stream import streams_of
from .zookeeper import ROOT, Nodes, read_dump, read_live

_add_names = add_options(
    target_argument,
    click.option("--checkpoint", metavar="DIR", help="Folder or URI of the new checkpoint; default: checkpoints."),
    name_option,
    settings_option,
    traceback_option,
)


@click.group("import")
def import_group() -> None:
    """Take over what a topology in Storm has left: the positions of its spouts, the values of its states."""


@import_group.command()
@_add_names
@click.option("--zookeeper", metavar="HOST:PORT,...", help="A live ZooKeeper; its topology must be dead.")
@click.option("--dump", type=click.Path(path_type=Path, exists=True), help="A dump: JSON lines of path and data.")
@click.option("--group", help="A consumer group in Kafka: that of KafkaSpout of core Storm.")
@click.option("--root", default=ROOT, show_default=True, help="Storm's transactional.zookeeper.root.")
@click.option("--stream", "streams", metavar="OURS=STORMS", multiple=True, help="A stream that had another id.")
@click.option("--start", "starts", metavar="TOPIC@N=OFFSET", multiple=True, help="The next offset of a partition.")
@click.option("--txid", type=click.IntRange(min=0), help="Our last txid; default: Storm's.")
@click.option("--dry-run", is_flag=True, help="Say where each stream begins; make nothing.")
@guard
def offsets(
    zookeeper: str | None, dump: Path | None, group: str | None, root: str, streams: Sequence[str],
    starts: Sequence[str], txid: int | None, dry_run: bool, **named: Any,
) -> int:  # fmt: skip
    """Make a checkpoint that begins behind the last batch that Storm has committed."""
    nodes_file = dump and dump.absolute()  # a topology file is loaded in its own folder
    if sum(map(bool, (zookeeper, dump, group))) != 1:
        raise click.UsageError("name one of --zookeeper, --dump and --group")
    if group and streams:
        raise click.UsageError("--stream names a stream of Storm's transactional spouts; --group has none")
    answers = ImportAnswers(_pairs("--stream", streams), _parse_starts(starts), txid)
    components = components_of(**named, new=True)
    if any(component.program is None for component in components):
        raise click.UsageError("a checkpoint alone does not say what its streams read: name the topology")
    if group:
        found: list[Found] = [(component, *find_group(component, group, answers)) for component in components]
        check_group(found, group)
    else:
        nodes = _read_nodes(zookeeper, nodes_file, root, components, answers)
        found = find_positions(components, streams_of(nodes, root), answers)
    check_starts(found, answers)
    for component, position, lines in found:
        print("\n".join(lines))
        if position is not None:
            _make(component, position, dry_run)
    return 0


def _read_nodes(
    zookeeper: str | None, dump: Path | None, root: str, components: Sequence[Component], answers: ImportAnswers
) -> Nodes:
    if dump is not None:
        return read_dump(dump, root)
    ours = [info.id for component in components for info in spouts_of(component)]
    return read_live(zookeeper or "", root, [answers.streams.get(name, name) for name in ours])


def _make(component: Component, position: ImportedPosition, dry_run: bool) -> None:
    print("\n".join(_warn(position.moved)))
    if not dry_run:
        made = make_checkpoint(component, position)
        print(f"{'made' if made else 'there already:'} the checkpoint {component.read().where}")
        _name_missing(component)


def _name_missing(component: Component) -> None:
    if missing := ImportedStates.of(component.read()).list_missing():
        print(f"  the first start is refused until `trident import state` fills, or `skip` names: {', '.join(missing)}")


def _warn(moved: Moved) -> list[str]:
    """Return the lines about the batch under way: what becomes of it, by the kind of state."""
    if not moved.under_way:
        return ["  no batch was under way"]
    batch = f"  batch {moved.committed + 1} was under way: "
    if moved.repeats:
        return [batch + "it is repeated with the same content, under the same txid", *_OTHER_STATES]
    return [batch + "it is not committed, and what it read comes again", *_OTHER_STATES]


_OTHER_STATES = (
    "    opaque states: exact, they take the value before it",
    "    transactional states: exact if it is repeated with the same content, else refused by `trident import state`",
    "    non-transactional states: not to be decided; let Storm finish the batch, or accept that it may count twice",
)


def _pairs(option: str, given: Sequence[str]) -> dict[str, str]:
    pairs = [text.partition("=") for text in given]
    for name, sign, value in pairs:
        if not (name and sign and value):
            raise click.UsageError(f"{option} {name}{sign}{value}: expected NAME=VALUE")
        if [each for each, _, _ in pairs].count(name) > 1:
            raise click.UsageError(f"{option} {name} is given twice")
    return {name: value for name, _, value in pairs}


def _parse_starts(given: Sequence[str]) -> Mapping[Place, int]:
    starts = {}
    for name, offset in _pairs("--start", given).items():
        topic, _, partition = name.rpartition("@")
        if not (topic and is_number(partition) and is_number(offset)):
            raise click.UsageError(f"--start {name}={offset}: expected TOPIC@PARTITION=OFFSET")
        starts[topic, int(partition)] = int(offset)
    return starts


@import_group.command()
@click.option("--from", "source", required=True, metavar="URL|FILE", help="redis://..., a SQLAlchemy URL, or a dump.")
@click.option("--kind", type=click.Choice(KINDS), required=True, help="The kind of Storm's state.")
@click.option("--into", metavar="FILE:STATE", help="The state: its name in a states.yaml.")
@click.option("--in-place", is_flag=True, help="Redis: change the values of the batch under way where they are.")
@source_options
@click.option("--checkpoint", required=True, metavar="DIR", help="The checkpoint that `import offsets` has made.")
@traceback_option
@guard
def state(
    source: str, kind: str, into: str | None, in_place: bool, split: str | None, checkpoint: str,
    accept_under_way: bool, **lay: Any,
) -> int:  # fmt: skip
    """Take the values of one of Storm's states over, behind the same batch as the offsets. May be repeated."""
    if in_place == (into is not None):
        both = "and not both" if in_place else "which says where the values go"
        raise click.UsageError(f"name the state with --into FILE:STATE, or say --in-place, {both}")
    storms = source_of(source, StateType(kind), lay)
    factory = None if into is None else target_of(into)
    target = _map_in_redis(storms) if factory is None else map_of(factory)
    component, moved = choose_component(checkpoint, lambda found: found.has_map_at(target.place), target.shown)
    check = partial(check_kept, component, moved)
    with filling(component.open(), target.place):
        if factory is None:
            assert isinstance(storms, RedisSource)
            result = rebase_in_place(storms, moved, accept_under_way, _tell, check)
        else:
            values = factory.open_values()
            result = import_values(storms, values, moved, split, accept_under_way, _tell, check)
        _show(storms.shown, storms.shown if factory is None else repr(factory), result)
    _name_missing(component)
    return 0


@import_group.command("skip")
@click.argument("state")
@click.option("--checkpoint", required=True, metavar="DIR", help="The checkpoint that `import offsets` has made.")
@traceback_option
@guard
def skip_state(state: str, checkpoint: str) -> int:
    """Let STATE of the topology begin as it is: it is new, or was filled by other means."""
    component, _ = choose_component(checkpoint, lambda found: state in found.maps, f"state {state!r}")
    place, shown = ImportedStates.of(component.read()).maps[state]
    leave_out(component.open(), place)
    print(f"state {state!r} of {component.shown} begins as it is: {shown}")
    _name_missing(component)
    return 0


def _map_in_redis(source: ValueSource) -> MapPlace:
    if not isinstance(source, RedisSource):
        raise click.UsageError("--in-place is for Redis, whose values our states read as they are")
    return map_at(source.location)


def _show(source: str, target: str, result: Result) -> None:
    """Print what an import did. Raises StateError unless it is whole."""
    print("\n".join(_describe(source, target, result)))
    if not result.keys:
        raise StateError(
            f"{source}: no values are there. Check its name; a state that was empty in Storm is named by "
            "`trident import skip`"
        )
    result.check(target)


def _tell(keys: int) -> None:
    if sys.stderr.isatty():
        print(f"\r{keys:,} keys", end="", file=sys.stderr, flush=True)


def _describe(source: str, target: str, result: Result) -> list[str]:
    tally = result.tally
    lines = [f"{source} -> {target}", f"  {result.keys:,} keys read, {result.count:,} there"]
    if tally.previous or tally.absent:
        lines.append(f"  batch under way: {tally.previous:,} keys take the value before it, {tally.absent:,} were new")
    if tally.kept:
        lines.append(f"  batch under way: {tally.kept:,} keys have it already, and skip it when it is repeated")
    return [*lines, f"  digest {result.source[:16]} read, {result.target[:16]} there"]
