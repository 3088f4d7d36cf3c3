"""What may be there before the first start of a schedule: stores and logs that do not belong together.

Each is made of runs in which nothing failed, and of what the user has set since.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, NamedTuple

from trident_py.checkpoints.metadata_store import LOG
from trident_py.engine.startup import AGREEMENT
from trident_py.engine.store_position import ABANDON, BASE
from trident_py.engine.two_phase import DECIDED

from .stores import ROW
from .world import Beginning, World


class Past(NamedTuple):
    """A run: its name, the position at which it ends, the positions of its batches, whether its checkpoint is another
    one, and the run before it (one or none) whose stores it has, and whose log if it ``continues``."""

    name: str
    until: int
    size: int = 2
    foreign: bool = False
    after: tuple[Past, ...] = ()
    continues: bool = True
    base: int | None = None

    @property
    def settings(self) -> dict[str, Any]:
        return {} if self.base is None else {BASE: self.base}


Run = Callable[[Past], World]
OURS = Past("ours", 4)  # batches 1 and 2
FIRST = Past("first", 2)
ONE = Past("one", 4, after=(FIRST,))
OTHER = Past("other", 3, 1, after=(FIRST,))  # its batch 2 is shorter
LONGER = Past("one", 6, after=(FIRST,))
THIRD = Past("third", 6, after=(OTHER,))
FOREIGN = Past("foreign", 4, foreign=True)
LATER = Past("later", 6, foreign=True, after=(FOREIGN,))
JOINING = Past("ours", 6, after=(FOREIGN,), continues=False, base=2)


def _begin(stores: World, log: World | Mapping[Any, Any], conf: Any = None, refused: bool = True) -> Beginning:
    content = log.log.content if isinstance(log, World) else log
    return Beginning(tuple(store.content for store in stores.stores), content, conf or {}, refused)


def _log_when(world: World, is_then: Callable[[Mapping[Any, Any], dict], bool]) -> Mapping[Any, Any]:
    """Return the last content of the log of which this is true."""
    for content in [world.log.content, *reversed(world.log.history)]:
        if is_then(content, json.loads(content.get((LOG, 0), "{}"))):
            return content
    raise AssertionError("the log was never so")


def _over(world: World, txid: int) -> Mapping[Any, Any]:
    def is_then(_: Any, log: dict) -> bool:
        return not log.get("begun") and (log.get("over") or {}).get("txid") == txid

    return _log_when(world, is_then)


def _undecided(world: World, txid: int) -> Mapping[Any, Any]:
    def is_then(content: Mapping[Any, Any], log: dict) -> bool:
        return (log.get("begun") or {}).get("txid") == txid and (DECIDED, txid) not in content

    return _log_when(world, is_then)


def _agreed(world: World) -> Mapping[Any, Any]:
    """Return the log when the first start has agreed, and no batch has begun."""

    def is_then(content: Mapping[Any, Any], log: dict) -> bool:
        return (AGREEMENT, 0) in content and not log.get("begun") and not log.get("over")

    return _log_when(world, is_then)


def _before_agreeing(world: World) -> Mapping[Any, Any]:
    """Return the log as the last start would leave it if it had died before the end."""
    at = AGREEMENT, 0
    return _log_when(world, lambda content, _: content.get(at) != world.log.content[at])


def _without_run(beginning: Beginning) -> Beginning:
    """Return the same, with a store of a version of this library that noted no run."""
    return beginning._replace(stores=tuple(
        content and {**content, ROW: replace(content[ROW], run="")} for content in beginning.stores
    ))  # fmt: skip


BACK_TO_STORE = "a store before its last batch, and a log taken back"
FORK = "a store that ran on apart, and a log to be taken back"
BEGINNINGS: dict[str, Callable[[Run], Beginning]] = {
    # the store of another checkpoint
    "a new checkpoint, a store of another one": lambda run: _begin(run(FOREIGN), {}),
    "the same, continued": lambda run: _begin(run(FOREIGN), {}, {BASE: 2}, refused=False),
    "the same, continued later": lambda run: _begin(run(FOREIGN), {}, {BASE: 3}, refused=False),
    "the same, continued too early": lambda run: _begin(run(FOREIGN), {}, {BASE: 1}),
    "the same, given up": lambda run: _begin(run(FOREIGN), {}, {ABANDON: "foreign-2"}, refused=False),
    "a store of another checkpoint": lambda run: _begin(run(FOREIGN), run(OURS)),
    "the same, of an older version": lambda run: _without_run(_begin(run(FOREIGN), run(OURS))),
    "a store that another checkpoint has continued": lambda run: _begin(run(LATER), _agreed(run(JOINING))),
    "a store that was to be continued": lambda run: _begin(run(FOREIGN), _agreed(run(JOINING)), refused=False),
    # copies of store and log that ran on apart
    "crossed copies": lambda run: _begin(run(ONE), run(OTHER)),
    "the same, after a start that has died": lambda run: _begin(run(ONE), _before_agreeing(run(THIRD))),
    # the log has gone back, or the store
    "a log before its last batch": lambda run: _begin(run(OURS), _over(run(OURS), 1)),
    "a log before its last two batches": lambda run: _begin(run(Past("ours", 6)), _over(run(Past("ours", 6)), 1)),
    "a log before a decision": lambda run: _begin(run(OURS), _undecided(run(OURS), 2)),
    "a log before its first batch": lambda run: _begin(run(OURS), _agreed(run(OURS))),
    "a store before its last batch": lambda run: _begin(run(FIRST), run(ONE)),
    BACK_TO_STORE: lambda run: _begin(run(FIRST), run(ONE), refused=False)._replace(back=1),
    FORK: lambda run: _begin(run(OTHER), run(LONGER))._replace(back=2),
    "an empty store": lambda run: Beginning(log=run(OURS).log.content, refused=True),
}
REFUSED = [
    name for name in BEGINNINGS
    if name not in (BACK_TO_STORE, FORK)
    and (not name.endswith(("continued", "later", "given up", "decision")) or name.startswith("a store that another"))
]  # fmt: skip
