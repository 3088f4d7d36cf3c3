"""The ledger of a state in Redis: which driver may write, and the last batch that it completed.

A hash beside the data has the fields of `states.fences.FenceRow`, ``written`` (the highest txid of which a partition
has left data) and ``time``. A second hash has a mark for each partition that has committed in the current attempt. The
owner of the place is noted under a key of its own. Every change is one script (`states.redis.scripts`).

Redis may lose its last writes in a crash or a fail-over. Its log is cut there, so ledger and data go back together. The
driver notices it: a partition's mark is gone (the batch is replayed), or the last complete batch is (the run ends).
"""

from __future__ import annotations

import datetime
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from trident_py.errors import StateError
from trident_py.model.context import RunContext
from trident_py.state import BatchParticipant, Remembered

from ..fences import Fence, FenceRow, gone_back, lost_commits
from ..owners import Owner, Tenure
from . import durability
from .location import RedisPlace
from .scripts import BEGIN, CLAIM, DONE, JOIN, LOST, OPEN, PUBLISH

_FIELDS = ("generation", "lineage", "txid", "started", "attempt", "run", "written")


@dataclass(frozen=True)
class RedisFence(Fence):
    """What a partition must find in the ledger before it writes."""

    noted: ClassVar[str] = "ledger in Redis"

    def row(self, place: RedisPlace) -> FenceRow | None:
        return read(place, *self.own)[0]

    def keys(self, place: RedisPlace) -> list[str]:
        """Return the keys of the ledger and of the marks."""
        return [place.ledger(*self.own), place.marks(*self.own)]

    def begins(self, place: RedisPlace, txid: int | None) -> None:
        """Called before any code of the user runs. Raises what `admits` raises, and StateError if the ledger has lost
        the beginning of the batch."""
        self._whole(self.admits(self.row(place), txid), txid)

    def refuse(self, answer: Sequence[Any], txid: int | None) -> None:
        """Raise the error for a script's refusal."""
        row = _row(answer[1:])
        self._whole(self.admits(row, txid), txid)
        raise StateError(f"{self.shown}: Redis has refused batch {txid}: its ledger is {row}")

    def _whole(self, row: FenceRow, txid: int | None) -> None:
        if txid is not None and (row.last, row.attempt) < (txid, self.attempt):
            raise lost_writes_error(self.shown, f"the beginning of batch {txid}, attempt {self.attempt}")


def lost_writes_error(shown: str, what: str) -> StateError:
    return StateError(
        f"{shown}: Redis has lost {what}, which it had acknowledged: it was restarted without appendfsync always, or "
        "a replica took over. Nothing more is written. Start the topology again: the start then lists your options"
    )


def read(place: RedisPlace, topology: str, state: str) -> tuple[FenceRow | None, int]:
    """Return the row of the ledger, and the highest txid of which there is data."""
    key = place.ledger(topology, state)
    values = place.server.ask(lambda client: client.hmget(key, _FIELDS), "read the ledger")
    return _row(values[:6]), int(values[6] or 0)


def _row(values: Sequence[bytes | None]) -> FenceRow | None:
    if not values or values[0] is None:
        return None
    generation, lineage, *numbers, run = (value or b"" for value in values)
    txid, started, attempt = (int(number or 0) for number in numbers)
    return FenceRow(int(generation), lineage.decode(), txid, started, attempt, run.decode())


class RedisLedger(BatchParticipant):
    """The driver's side of a state; one object for each run. ``valued`` returns the highest txid among the values."""

    keeps_receipts = True

    def __init__(self, place: RedisPlace, valued: Callable[[], int]) -> None:
        self._place = place
        self._valued = valued
        self._fence: RedisFence | None = None
        self._joins: tuple[int, bool] | None = None
        self._tenure: Tenure | None = None
        self._over = 0

    def remembered(self, conf: dict) -> Remembered:
        """Read the ledger, and the txids of the values unless the ledger is this checkpoint's. Raises StateError if
        another state owns the place, or if the server cannot hold a state."""
        durability.check(self._place.server)
        Tenure.of(self._place.location, conf).stays(self._owner()[0])
        context = RunContext.of(conf)
        row, written = read(self._place, context.topology, context.state)
        lineage, whole = ("", 0) if row is None else (row.lineage, row.txid)
        return Remembered(
            self._place.shown, lineage, written=max(whole, written), whole=whole,
            last=written if row is None else max(row.last, written),
            valued=0 if lineage and lineage == context.lineage else self._valued(),
            run="" if row is None else row.run,
        )  # fmt: skip

    def open(self, conf: dict) -> int:
        """Take over: raises the generation, and returns it. Logs what a crash of Redis may lose."""
        durability.tell(self._place.server)
        context = RunContext.of(conf)
        key = self._place.ledger(context.topology, context.state)
        generation = self._place.server.run_until_answered(OPEN, [key], [_now()], "open the ledger")
        self._fence = RedisFence(context.topology, context.state, int(generation), context.lineage, run=context.run)
        self._joins = context.txid, context.forget
        self._tenure = Tenure.of(self._place.location, conf)
        return self._fence.generation

    def prepare(self, txid: int, attempt: int, numPartitions: int) -> None:
        """Called on the driver before each attempt; shuts out earlier ones. Raises StateError if the ledger has lost a
        batch that was complete."""
        if self._fence is None:
            return
        self._join()
        answer = self._run(BEGIN, [txid, attempt, self._over], "begin the batch in the ledger")
        if answer[0] == LOST:
            raise gone_back(self._fence.shown, int(answer[1]), self._over)
        self._check(answer, txid)

    def publish(self, txid: int, attempt: int, receipts: Sequence[Any]) -> None:
        """Move the last complete txid. Raises ZombieError if a newer driver has taken over, FailedException if the
        commit of a partition is lost; the batch is then replayed."""
        if self._fence is None:
            return
        self._join()
        parts = [receipt["partition"] for receipt in receipts]
        answer = self._run(PUBLISH, [txid, attempt, _now(), *parts], "end the batch in the ledger")
        if answer[0] == LOST:
            raise lost_commits(self._fence.shown, txid, len(parts))
        if answer[0] != DONE:
            self._fence.follows(_row(answer[1:]), txid)
        self._check(answer, None)
        self._over = max(self._over, txid)

    def abort(self, txid: int, attempt: int) -> None:
        """Do nothing: the replay repairs what a failed attempt has committed."""

    def _run(self, script: str, arguments: Sequence[Any], doing: str) -> list[Any]:
        assert self._fence is not None
        own = [self._fence.generation, self._fence.lineage]
        keys = self._fence.keys(self._place)
        answer: list[Any] = self._place.server.run_until_answered(script, keys, [*own, *arguments], doing)
        return answer

    def _check(self, answer: Sequence[Any], txid: int | None) -> None:
        if answer[0] != DONE:
            assert self._fence is not None
            self._fence.refuse(answer, txid)

    def _join(self) -> None:
        """Run once, before the first batch or the end of one that was decided: the place and its ledger now belong to
        this checkpoint."""
        if self._joins is None:
            return
        assert self._fence is not None and self._tenure is not None
        txid, forget = self._joins
        self._fence.newest(self._fence.row(self._place))
        self._claim(self._tenure)
        arguments = [txid, int(forget), _now(), self._fence.token]
        answer = self._run(JOIN, arguments, "join the checkpoint in the ledger")
        if answer[0] != DONE:
            self._fence.newest(_row(answer[1:]))
        self._over, self._joins = txid, None

    def _claim(self, tenure: Tenure) -> None:
        """Take over from a replaced owner, which can no longer write.

        Raises StateError if another state owns the place.
        """
        while True:
            owner, text = self._owner()
            if tenure.stays(owner):
                return
            old = tenure.own if owner is None else owner
            keys = [self._place.owner, self._place.ledger(*old[:2])]
            shuts_out = int(old[:2] != tenure.own[:2])
            arguments = [text, json.dumps(tenure.own), shuts_out]
            if self._place.server.run_until_answered(CLAIM, keys, arguments, "note the owner")[0] == DONE:
                return

    def _owner(self) -> tuple[Owner | None, str]:
        """Return the owner, and its note as it stands."""
        note = self._place.server.ask(lambda client: client.get(self._place.owner), "look up the owner")
        text = "" if note is None else note.decode()
        return (Owner(*json.loads(text)) if text else None), text


def _now() -> str:
    return datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
