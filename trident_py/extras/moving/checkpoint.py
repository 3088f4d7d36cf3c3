"""A new checkpoint that begins behind the last committed batch of Storm, made in one step."""

from __future__ import annotations

import json
import os
import socket
import tempfile
import uuid
from collections.abc import Mapping
from contextlib import closing
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from ...checkpoints.append_log import JOURNAL, write_journal
from ...checkpoints.batch_log import Logged
from ...checkpoints.hash_seed import own_order
from ...checkpoints.location import inside, local_folder
from ...checkpoints.metadata_store import IMPORTED, LOG, MemoryMetadataStore, make_folder
from ...checkpoints.uri_folder import open_folder
from ...engine.startup import AGREEMENT
from ...engine.store_position import FORMAT, Joined
from ...errors import LineageError
from ..txid.components import Component
from .imported_states import DONE, MAPS, maps_of

Entries = dict[str, dict[int, Any]]


@dataclass(frozen=True)
class Moved:
    """What an imported checkpoint keeps of Storm. ``committed``: its last committed txid; ``base``: ours, from which
    the checkpoint counts on; ``under_way``: whether Storm had begun the batch after it; ``repeats``: whether the
    checkpoint has begun that batch too, with the same content."""

    committed: int
    base: int
    under_way: bool = False
    repeats: bool = False


@dataclass(frozen=True)
class ImportedPosition:
    """What goes into the checkpoint of a component: the metadata of each spout after the last committed batch, that of
    the batch under way if it is repeated, and the spouts' own entries."""

    moved: Moved
    over: Mapping[str, Any]
    begun: Mapping[str, Any] | None
    entries: Entries


def entries_of(component: Component, position: ImportedPosition) -> Entries:
    """Return the content of the checkpoint. With a batch that is repeated, each state may hold a part of it that no
    ledger has: so they count as found at a start."""
    assert component.program is not None
    moved, program = position.moved, component.program
    driver = {"host": socket.gethostname(), "pid": os.getpid(), "id": uuid.uuid4().hex}
    begun = position.begun and Logged(moved.base + 1, dict(position.begun), None, own_order())._asdict()
    states = list(program.states()) if moved.repeats else []
    record = {
        "lineage": uuid.uuid4().hex, "base": moved.base, "topology": component.topology,
        "spouts": {info.id: type(info.spout).__qualname__ for info in program.spouts},
        "states": {name: list(Joined("", 0, moved.base, False, "", 0)) for name in states}, "run": "", "format": FORMAT,
    }  # fmt: skip
    log = {"driver": driver, "over": Logged(moved.base, dict(position.over))._asdict(), "begun": begun}
    maps = {name: list(each) for name, each in maps_of(program.lowered.plan).items()}
    own = {IMPORTED: {0: asdict(moved)}, MAPS: {0: maps}, LOG: {0: log}, AGREEMENT: {0: record}}
    return {**position.entries, **own}


def entries_in(store: MemoryMetadataStore) -> Entries:
    """Return all that a checkpoint holds."""
    return {path: {txid: store.get(path, txid) for txid in store.txids(path)} for path in store.paths("")}


def find_moved(component: Component) -> Moved | None:
    """Return what an imported checkpoint keeps of Storm; None for any other one."""
    found = component.read().store.get(IMPORTED, 0)
    return None if found is None else Moved(**found)


def check_unused(component: Component) -> None:
    """Raise LineageError if a topology has started on the checkpoint: its states may be newer than Storm's."""
    log = component.read()
    if log.store.get(AGREEMENT, 0)["run"]:
        raise LineageError(
            f"a topology has started on the checkpoint {log.where} since it was imported: its states may hold newer "
            "values, which Storm's would replace. To begin anew, remove the checkpoint and the state, and import the "
            "offsets again; to compare what they hold now, leave out --checkpoint. Nothing was changed"
        )


def check_kept(component: Component, moved: Moved) -> None:
    """Raise LineageError if the checkpoint was removed or imported anew since it was read, or a topology has started on
    it."""
    if find_moved(component) != moved:
        raise LineageError(
            f"the checkpoint {component.read().where} was removed or imported anew meanwhile: the rest of these values "
            "would be of another batch. Import the state again, for the checkpoint that is there now"
        )
    check_unused(component)


def make_checkpoint(component: Component, position: ImportedPosition) -> bool:
    """Make the checkpoint; return False if the same import has made it before, and nothing has run on it. Raises
    LineageError if there is another one."""
    entries = entries_of(component, position)
    log = component.read()
    there = entries_in(log.store)
    if AGREEMENT in there or LOG in there:
        if _without_names(there) == _without_names(entries):
            _renew_maps(component, there, entries)
            return False
        raise LineageError(
            f"the checkpoint {log.where} is there already, and not from this import: its topology may have run. Move "
            "it away, or name another folder with --checkpoint. Nothing was changed"
        )
    place = f"{component.root.rstrip('/')}/{inside(component.topology, component.name)}"
    if (local := local_folder(place)) is not None:
        make_folder(Path(local).absolute())
        write_journal(Path(local).absolute(), entries)
        return True
    with tempfile.TemporaryDirectory() as scratch:
        write_journal(Path(scratch), entries)
        if not open_folder(place, {}).create(JOURNAL, (Path(scratch) / JOURNAL).read_bytes()):
            raise LineageError(f"the checkpoint {log.where} has appeared meanwhile. Nothing was changed")
    return True


def _renew_maps(component: Component, there: Entries, entries: Entries) -> None:
    """Take over where the maps of the topology are now. What became of each is kept, by its place."""
    if there.get(MAPS) != entries[MAPS]:
        with closing(component.open()) as log:
            log.store.put(MAPS, 0, entries[MAPS][0])


def _without_names(entries: Mapping[str, Mapping[int, Any]]) -> Any:
    """Return what a checkpoint holds, without who made it, in which order of sets, and what is said of its maps."""
    plain = {path: json.loads(json.dumps(of)) for path, of in entries.items() if path not in (MAPS, DONE)}
    if record := plain.get(AGREEMENT, {}).get("0"):
        record.pop("lineage", None)
    if log := plain.get(LOG, {}).get("0"):
        log.pop("driver", None)
        for batch in filter(None, (log.get("over"), log.get("begun"))):
            batch.pop("order", None)
    return plain
