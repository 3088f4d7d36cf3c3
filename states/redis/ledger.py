"""The ledger of a state in Redis: which driver may write, and the last batch that it completed.

A hash beside the data has the fields of `states.ledger.fence.LedgerRow`, ``written`` (the highest txid of which a
partition has left data) and ``time``. A second hash has a mark for each partition that has committed in the current
attempt. The owner of the place is noted under a key of its own. Every change is one script (`states.redis.scripts`).

Redis may lose its last writes in a crash or a fail-over. Its log is cut there, so ledger and data go back together. The
driver notices it: a partition's mark is gone (the batch is replayed), or the last complete batch is (the run ends).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import astuple
from typing import Any, ClassVar

from trident_py.errors import StateError
from trident_py.model.context import RunContext
from trident_py.state import Remembered

from ..ledger.fence import FIELDS, Fence, LedgerRow
from ..ledger.owner import Owner
from ..ledger.protocol import Ledger
from ..ledger.store import LedgerStore, Trace, Transition, utc_now
from . import durability
from .location import RedisPlace
from .scripts import CHANGE, CLAIM

_FIELDS = (*FIELDS, "written")


class RedisFence(Fence):
    """What a partition must find in the ledger before it writes."""

    gone: ClassVar[str] = "its ledger in Redis is gone or older than this driver; the store was replaced"

    def store(self, place: RedisPlace) -> RedisLedgerStore:
        return RedisLedgerStore(place, *self.own)

    def begins(self, place: RedisPlace, txid: int | None) -> LedgerRow:
        """Return the row that admits the task. Raises what `admits` raises, and StateError if the ledger has lost the
        beginning of the batch."""
        row = self.admits(self.store(place).read(), txid)
        if txid is not None and (row.last, row.attempt) < (txid, self.attempt):
            raise lost_writes_error(self.shown, f"the beginning of batch {txid}, attempt {self.attempt}")
        return row


def lost_writes_error(shown: str, what: str) -> StateError:
    return StateError(
        f"{shown}: Redis has lost {what}, which it had acknowledged: it was restarted without appendfsync always, or "
        "a replica took over. Nothing more is written. Start the topology again: the start then lists your options"
    )


class RedisLedgerStore(LedgerStore[LedgerRow]):
    """The ledger of one state beside a hash, or beside the strings of a database."""

    def __init__(self, place: RedisPlace, topology: str, state: str) -> None:
        self._place = place
        self.keys = [place.ledger(topology, state), place.marks(topology, state)]

    def read(self, settled: bool = False) -> LedgerRow | None:
        return self._read()[0]

    def trace(self) -> Trace:
        row, written = self._read()
        return Trace(row, max(written, row.txid if row else 0), max(written, row.last if row else 0))

    def _read(self) -> tuple[LedgerRow | None, int]:
        """Return the row, and the highest txid of which there is data."""
        values = self._place.server.ask(lambda client: client.hmget(self.keys[0], _FIELDS), "read the ledger")
        if values[0] is None:
            return None, int(values[6] or 0)
        generation, lineage, *numbers, run, written = (value or b"" for value in values)
        txid, started, attempt = (int(number or 0) for number in numbers)
        return LedgerRow(int(generation), lineage.decode(), txid, started, attempt, run.decode()), int(written or 0)

    def change(self, old: LedgerRow | None, new: LedgerRow, transition: Transition) -> bool:
        deleted = "all" if transition.forgets else "marks" if transition.begins else ""
        parts = [receipt["partition"] for receipt in transition.receipts or ()]
        asked = [*as_arguments(old), *as_arguments(new), utc_now(), deleted, mark(new.txid, transition.attempt), *parts]
        return self._run(CHANGE, self.keys, asked, transition.doing)

    def owners(self) -> Mapping[str, Owner | None]:
        note = self._place.server.ask(lambda client: client.get(self._place.owner), "look up the owner")
        return {self._place.owner: None if note is None else Owner(*json.loads(note))}

    def claim(self, name: str, old: Owner | None, new: Owner) -> bool:
        replaced = new if old is None else old
        notes = ["" if old is None else json.dumps(old), json.dumps(new), int(replaced[:2] != new[:2])]
        return self._run(CLAIM, [name, self._place.ledger(*replaced[:2])], notes, "note the owner")

    def _run(self, script: str, keys: Sequence[str], arguments: Sequence[Any], doing: str) -> bool:
        return bool(self._place.server.run_until_answered(script, keys, arguments, doing))


class RedisLedger(Ledger[LedgerRow]):
    """The driver's side of a state. Each attempt is recorded: a partition that does not find its own knows that Redis
    has lost it."""

    records_each_attempt = True
    row_type = LedgerRow

    def __init__(self, place: RedisPlace, valued: Callable[[], int]) -> None:
        super().__init__(place.location, valued)
        self._place = place

    def _stores_of(self, context: RunContext, ready: bool) -> Sequence[RedisLedgerStore]:
        return [RedisLedgerStore(self._place, context.topology, context.state)]

    def _fence_of(self, conf: dict) -> RedisFence | None:
        return RedisFence.of(conf)

    def remembered(self, conf: dict) -> Remembered:
        """Raise StateError also if the server cannot hold a state."""
        durability.check(self._place.server)
        return super().remembered(conf)

    def open(self, conf: dict) -> int:
        """Log what a crash of Redis may lose, and take over."""
        durability.tell(self._place.server)
        return super().open(conf)


def as_arguments(row: LedgerRow | None) -> list[str | int]:
    """Return the row as scripts compare it."""
    return [""] * len(FIELDS) if row is None else list(astuple(row))


def mark(txid: int | None, attempt: int) -> str:
    """Return what a partition that has committed leaves under its number."""
    return f"{txid}:{attempt}"
