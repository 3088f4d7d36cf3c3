"""Each row of the table of `trident_py.engine.recovery` as it comes about: with real backups, copies and deletions.

A story ends in that row for the states that it returns ("" for the spout), shows that every way on which the error
offers is one, and that what is lost by it is what the error says.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from trident_py import TopologyError
from trident_py.engine.store_position import ABANDON, ACCEPT, BASE, StorePosition

from .stores import TABLES, Source
from .weak import RAISED, Quiet, raises
from .worlds import TOPOLOGY, World

REPLACE = "topology.owner.replace"
States = Sequence[str]


class Other(Source):
    """The same spout under another name."""


def unasked(world: World) -> States:
    """A participant that does not tell, beside others that do."""
    quiet = {"opaque": lambda call: None}
    for last in (1, 2):
        world.start(last, weak=quiet, kind=Quiet)
    world.holds(1, 2)
    return ("opaque",)


def new(world: World) -> States:
    """The first start; and states that are added to a topology later."""
    half = world.states[: len(world.states) // 2]
    added = world.states[len(half) :]
    world.start(2, only=half)
    world.start(4)
    world.holds(1, 2, 3, 4, only=half)
    world.holds(3, 4, only=added)
    return world.states


def same(world: World) -> States:
    world.start(2)
    world.start(3)
    world.holds(1, 2, 3)
    return world.states


def between(world: World) -> States:
    """The end of a batch fails in the state that is told last: the checkpoint does not have it."""
    world.start(1)
    _stops(world, 2, "publish", world.states[-1])
    world.start(3)
    world.holds(1, 2, 3)
    return world.states


def joined(world: World) -> States:
    """The start that was told how to go on came to nothing: the next one needs no setting."""
    world.start(2)
    world.lose()
    _stops(world, 4, "prepare", world.states[0], {BASE: 2})
    world.start(4)
    world.holds(1, 2, 3, 4)
    return world.states


def continued(world: World) -> States:
    world.start(2)
    world.lose()
    world.start(4, {BASE: 2})
    world.start(5, {BASE: 2})
    world.holds(1, 2, 3, 4, 5)
    away = world.lose()
    world.refused("remembers batch 5", 6, {BASE: 2})  # the setting that stayed accepts no second loss
    world.put_back(away)
    return world.states


def abandoned(world: World) -> States:
    """Where no value carries a txid; what the source sends again is applied again."""
    world.start(2)
    world.lose()
    assert ABANDON not in world.refused("remembers batch 2", 3)  # it would not help all of them
    told = world.refused("remembers batch 2", 3, only=world.others)
    (lineage,) = re.findall(rf"{ABANDON}\"\] = '(\w+)'", told)
    world.refused(f"{ABANDON} cannot help: the table's values carry txids up to 2", 3, {ABANDON: lineage}, world.maps)
    world.start(2, {ABANDON: lineage}, world.others)
    world.start(3, only=world.others)
    world.holds(1, 2, 1, 2, 3, only=world.others)
    world.holds(1, 2, only=world.maps)
    return world.others


def accepted(world: World) -> States:
    """A backup of batch 2 under a checkpoint of batch 5: what is lost are the batches between, and no other."""
    world.start(2)
    backup = world.dump()
    world.start(5)
    world.restore(backup)
    told = world.refused("has the batches up to 2, the checkpoint .* has committed batch 5", 7)
    setting = [f"{TABLES[state]}@2:5" for state in world.states]
    assert f'{ACCEPT}"] = {setting!r}' in told  # all of them in one setting
    world.refused("has the batches up to 2", 7, {ACCEPT: setting[:-1]})
    world.refused("has the batches up to 2", 7, {ACCEPT: [f"{TABLES[state]}@1:5" for state in world.states]})
    world.start(7, {ACCEPT: setting})
    newest = world.dump()
    world.restore(backup)
    world.refused("has the batches up to 2, the checkpoint .* has committed batch 7", 8, {ACCEPT: setting})  # once more
    world.restore(newest)
    world.start(8)
    world.holds(1, 2, 6, 7, 8)
    return world.states


def lost(world: World) -> States:
    world.start(2)
    away = world.lose()
    for conf in ({}, {BASE: 1}):
        world.refused("remembers batch 2", 3, conf)
    world.put_back(away)
    world.start(3)
    world.holds(1, 2, 3)
    return world.states


def unowned(world: World) -> States:
    """Another topology takes the tables over, whose values carry txids."""
    world.start(2)
    replace = {REPLACE: [f"{TOPOLOGY}/{TABLES[state]}" for state in world.maps]}
    told = world.refused("its ledger knows nothing of this topology", 3, replace, world.maps, name="u")
    assert "txids up to 2" in told
    world.start(3, only=world.states)  # the name is given back
    world.start(5, replace | {BASE: 3}, world.maps, name="u")
    world.holds(1, 2, 3, 4, 5, only=world.maps)
    return world.maps


def behind(world: World) -> States:
    """The ways on besides `accepted`: put back the store, or a checkpoint as old."""
    world.start(2)
    old_store, old_checkpoint = world.dump(), world.copy("old")
    world.start(4)
    new_store, new_checkpoint = world.dump(), world.copy("new")
    world.restore(old_store)
    world.refused("has the batches up to 2, the checkpoint .* has committed batch 4", 5)
    world.put_back(old_checkpoint)
    world.start(3)
    world.holds(1, 2, 3)
    world.put_back(new_checkpoint)
    world.restore(new_store)
    world.start(5)
    world.holds(1, 2, 3, 4, 5)
    return world.states


def gone(world: World) -> States:
    empty = world.dump()
    world.start(2)
    full = world.dump()
    world.restore(empty)
    world.refused("knows nothing of this state, and the checkpoint .* has committed batch 2", 3)
    world.restore(full)
    world.start(3)
    world.holds(1, 2, 3)
    world.restore(empty)
    world.start(5, {ACCEPT: [f"{TABLES[state]}@0:3" for state in world.states]})
    world.holds(4, 5)
    return world.states


def renamed(world: World) -> States:
    """The checkpoint goes with the topology's new name, the store knows the old one."""
    world.start(2)
    (world.checkpoints / TOPOLOGY).rename(world.checkpoints / "u")
    replace = {REPLACE: [f"{TOPOLOGY}/{TABLES[state]}" for state in world.states]}
    told = world.refused("The checkpoint was written by topology 't'", 3, replace, name="u")
    assert "give the topology its name back, 't'" in told
    world.start(4, replace | {ACCEPT: [f"{TABLES[state]}@0:2" for state in world.states]}, name="u")
    world.start(5, replace, name="u")
    world.holds(1, 2, 3, 4, 5)
    return world.states


def ahead(world: World) -> States:
    world.start(2)
    older = world.copy("older")
    world.start(3)
    newest = world.copy("newest")
    world.put_back(older)
    world.refused("has batch 3; the checkpoint .* has committed batch 2", 4)
    world.put_back(newest)
    world.start(4)
    world.put_back(older)
    world.refused("has batch 4; the checkpoint .* has committed batch 2", 5)
    world.lose()
    world.start(6, {BASE: 4})
    world.holds(1, 2, 3, 4, 5, 6)
    return world.states


def crossed(world: World) -> States:
    """Checkpoint and store are copied at batch 2, both copies run on, and the checkpoints are exchanged."""
    world.start(2)
    old, backup = world.copy("old"), world.dump()
    world.start(4)
    newest = world.copy("newest")
    world.put_back(old)
    world.restore(backup)
    world.start(4)
    own = world.copy("own")
    world.put_back(newest)
    told = world.refused("last written by the run .*, which this checkpoint does not know", 5)
    setting = [f"{TABLES[state]}@4:4" for state in world.states]
    assert f'{ACCEPT}"] = {setting!r}' in told
    world.put_back(own)
    world.start(5)
    world.holds(1, 2, 3, 4, 5)
    return world.states


def foreign(world: World) -> States:
    """Two deployments under one name, each with a store of its own; one is started on the store of the other."""
    empty = world.dump()
    world.start(2)
    store, first = world.dump(), world.lose()
    world.restore(empty)
    world.start(3)
    world.restore(store)
    world.refused("was written under another checkpoint .* up to batch 2", 4)
    world.put_back(first)
    world.start(4)
    world.holds(1, 2, 3, 4)
    return world.states


def other_spout(world: World) -> States:
    world.start(2)
    world.refused("as a spout of class Source left it; the topology has a Other", 3, spout=Other)
    world.start(3)
    world.start(4, {ACCEPT: "readings@3=Other"}, spout=Other)
    world.start(5, spout=Other)
    world.holds(1, 2, 3, 4, 5)
    return ("",)


def by_seed(id: str) -> bool:
    """Keeps every row; to a reader it follows the hash seed."""
    return hash(id) is not None


def reordered(world: World) -> States:
    """The process that began the batch in between had another hash seed, and an operation calls hash()."""
    world.start(1, keep=by_seed)
    _stops(world, 2, "publish", world.states[-1], keep=by_seed)
    world.begun_under("")
    words = "has part of batch 2, which a process with another hash seed began .* by_seed calls hash"
    assert "start once" not in world.refused(words, 3, keep=by_seed)
    world.begun_under("7")
    assert "start once with PYTHONHASHSEED=7" in world.refused(words, 3, keep=by_seed)
    states = tuple(state for state in world.states if state not in ("batch", "keyed"))  # decided, and not replayed
    world.start(3, {ACCEPT: [f"{TABLES[state]}@2:1" for state in states]}, keep=by_seed)
    world.holds(1, 2, 3)
    return states


def _stops(world: World, last: int, call: str, state: str, conf: dict | None = None, keep: Any = None) -> None:
    with pytest.raises(TopologyError, match=RAISED):
        world.start(last, conf, weak={state: raises(call)}, keep=keep)


STORIES: dict[StorePosition, Callable[[World], States]] = {
    StorePosition.UNASKED: unasked, StorePosition.NEW: new, StorePosition.SAME: same, StorePosition.BETWEEN: between,
    StorePosition.JOINED: joined, StorePosition.CONTINUED: continued, StorePosition.ABANDONED: abandoned,
    StorePosition.ACCEPTED: accepted, StorePosition.LOST: lost, StorePosition.UNOWNED: unowned,
    StorePosition.BEHIND: behind, StorePosition.GONE: gone, StorePosition.RENAMED: renamed,
    StorePosition.AHEAD: ahead, StorePosition.FOREIGN: foreign, StorePosition.OTHER_SPOUT: other_spout,
    StorePosition.REORDERED: reordered, StorePosition.CROSSED: crossed,
}  # fmt: skip
