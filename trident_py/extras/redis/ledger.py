"""The ledger of a state in Redis: a hash beside the data, one of marks, and the owner (docs/protocol.md)."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import astuple
from typing import Any, ClassVar

from states.diagnostics import Finding
from states.ledger.fence import FIELDS, Fence, LedgerRow
from states.ledger.format import NAME, check_format
from states.ledger.owner import Owner
from states.ledger.protocol import Ledger
from states.ledger.store import LedgerStore, Trace, Transition, utc_now

from ...errors import StateError
from ...model.context import RunContext
from ...model.json_text import parse_json
from ...state import Location, Needs, Reading, Remembered
from . import durability
from .location import RedisPlace
from .url import read_redis_url

# Each script is one step of Redis: 1 if it was done, 0 if the row or a mark is not as the caller has read it. It checks
# everything before its first write, since Redis undoes nothing, and may run twice: without an answer it is repeated.
_ROW_FIELDS = ", ".join(map(repr, FIELDS))

# KEYS: ledger, marks. ARGV: the row as it was read, the new row, time, what is deleted ("", "marks", or "all" with the
# txid of the data), the mark that partitions must have, and these partitions.
CHANGE = f"""
local names = {{{_ROW_FIELDS}}}
for i, field in ipairs(redis.call('HMGET', KEYS[1], unpack(names))) do
  if (field or '') ~= ARGV[i] then return 0 end
end
for i = 16, #ARGV do
  if redis.call('HGET', KEYS[2], ARGV[i]) ~= ARGV[15] then return 0 end
end
for i, name in ipairs(names) do redis.call('HSET', KEYS[1], name, ARGV[6 + i]) end
redis.call('HSET', KEYS[1], 'time', ARGV[13])
if ARGV[14] ~= '' then redis.call('DEL', KEYS[2]) end
if ARGV[14] == 'all' then redis.call('HSET', KEYS[1], 'written', ARGV[9]) end
return 1
"""

# KEYS: owner, the old owner's ledger. ARGV: the note as it was read ("" for none), the new note, whether the old owner
# is shut out.
CLAIM = """
local is = redis.call('GET', KEYS[1]) or ''
if is == ARGV[2] then return 1 end
if is ~= ARGV[1] then return 0 end
if ARGV[3] == '1' and redis.call('EXISTS', KEYS[2]) == 1 then redis.call('HINCRBY', KEYS[2], 'generation', 1) end
redis.call('SET', KEYS[1], ARGV[2])
return 1
"""

KEPT = "kept"
"""The field of the ledger that names a key which the state has written to stay: the hash, or one of the strings."""
MISSING = -1

# KEYS: ledger, marks, then the hash, or one key for each value. ARGV: the row that has admitted the task ("" without a
# driver), txid ("" for none), the partition, its mark, milliseconds until the values expire ("" for never), "hash" or
# "strings", then the values; in a hash each behind its name. Returns MISSING if the key that was to stay is not there.
# A hash may have an expiry of an earlier run; it stays where the user may not PERSIST.
COMMIT = f"""
local txid, expire, first, kept = tonumber(ARGV[7]), ARGV[10], 11, false
if ARGV[1] ~= '' then
  for i, field in ipairs(redis.call('HMGET', KEYS[1], {_ROW_FIELDS})) do
    if (field or '') ~= ARGV[i] then return 0 end
  end
  kept = redis.call('HGET', KEYS[1], '{KEPT}')
  if kept and redis.call('EXISTS', kept) == 0 then return {MISSING} end
end
if ARGV[first] == 'strings' then
  for i = 3, #KEYS do redis.call('STRLEN', KEYS[i]) end
  for i = 3, #KEYS do
    if expire == '' then redis.call('SET', KEYS[i], ARGV[first - 2 + i])
    else redis.call('SET', KEYS[i], ARGV[first - 2 + i], 'PX', expire) end
  end
else
  for from = first + 1, #ARGV, 5000 do
    redis.call('HSET', KEYS[3], unpack(ARGV, from, math.min(from + 4999, #ARGV)))
  end
  if expire ~= '' and #ARGV > first then redis.call('PEXPIRE', KEYS[3], expire) end
end
if ARGV[1] ~= '' and #ARGV > first then
  if expire ~= '' then redis.call('HDEL', KEYS[1], '{KEPT}')
  elseif not kept then
    if ARGV[first] == 'hash' then redis.pcall('PERSIST', KEYS[3]) end
    redis.call('HSET', KEYS[1], '{KEPT}', KEYS[3])
  end
end
if ARGV[1] ~= '' and txid then
  redis.call('HSET', KEYS[2], ARGV[8], ARGV[9])
  if txid > tonumber(redis.call('HGET', KEYS[1], 'written') or 0) then
    redis.call('HSET', KEYS[1], 'written', ARGV[7])
  end
end
return 1
"""


_FIELDS = (*FIELDS, "written")
LOOK_SECONDS = 30


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
            raise write_loss_error(self.shown, f"the beginning of batch {txid}, attempt {self.attempt}")
        return row


def write_loss_error(shown: str, what: str) -> StateError:
    return StateError(
        f"{shown}: Redis has lost {what}, which it had acknowledged: it was restarted without appendfsync always, or "
        "a replica took over. Nothing more is written. Start the topology again: the start then lists your options"
    )


class RedisLedgerStore(LedgerStore[LedgerRow]):
    """The ledger of one state beside a hash, or beside the strings of a database."""

    def __init__(self, place: RedisPlace, topology: str, state: str) -> None:
        self._place = place
        self._of = f"state {state!r} of topology {topology!r}"
        self.keys = [place.ledger(topology, state), place.marks(topology, state)]

    def read(self) -> LedgerRow | None:
        return self._read()[0]

    def trace(self) -> Trace:
        """Return the trace. Raises StateError also if all values are gone that were to stay."""
        asked = [NAME, KEPT]
        found, kept = self._place.server.ask(lambda client: client.hmget(self.keys[0], asked), "read the ledger")
        check_format(self._place.shown, found)
        if kept is not None and not self._place.has(kept) and self._place.is_empty():
            raise self._values_loss()
        row, written = self._read()
        return Trace(row, max(written, row.txid if row else 0), max(written, row.last if row else 0))

    def miss(self) -> None:
        """Called when the key that was to stay is not there. Raises StateError unless it was one string of several:
        then the next commit names another one."""
        if self._place.hash is not None or self._place.is_empty():
            raise self._values_loss()
        self._place.server.ask(lambda client: client.hdel(self.keys[0], KEPT), "change the ledger")

    def _values_loss(self) -> StateError:
        return StateError(
            f"{self._of}: nothing is left in {self._place.shown}. The state has written batches up to "
            f"{self._read()[1]} there, and they are not sent again: somebody has deleted or renamed the values, or let "
            "them expire. Nothing more is written. Restore them; or, to begin without, delete the state's ledger, the "
            f"key {self.keys[0]!r}: the next start then lists your options"
        )

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
        return {self._place.owner: None if note is None else Owner(*parse_json(note))}

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
    stays = "Redis has no step that takes back many keys at once"

    def __init__(self, place: RedisPlace, valued: Callable[[], int]) -> None:
        super().__init__(place.location, valued)
        self._place = place
        self._checked = 0.0

    def _store_of(self, context: RunContext, ready: bool) -> RedisLedgerStore:
        return RedisLedgerStore(self._place, context.topology, context.state)

    def _fence_of(self, conf: dict) -> RedisFence | None:
        return RedisFence.of(conf)

    def check(self) -> list[Finding]:
        """Return what the server keeps, and what is wrong with the keys of the state and of its last owner."""
        findings = durability.findings(self._place.server)
        for work in (self._place.check_type, self._check_owner):
            try:
                work()
            except StateError as error:
                findings.append(Finding("error", str(error)))
        return findings

    def _check_owner(self) -> None:
        place = self._place
        owner = RedisLedgerStore(place, "", "").owners()[place.owner]
        if owner is not None:
            store = RedisLedgerStore(place, owner.topology, owner.state)
            store.trace()
            place.server.ask(lambda client: client.hlen(store.keys[1]), "read the marks")

    def remembered(self, conf: dict) -> Remembered:
        """Raise StateError also if the server cannot hold a state."""
        durability.check(self._place.server)
        return super().remembered(conf)

    def measure_size(self) -> int | None:
        """Return what the hash takes in memory. Strings are too many to ask for each."""
        if (name := self._place.hash) is None:
            return None
        size: int | None = self._place.server.ask(lambda client: client.memory_usage(name), "ask for the size")
        return size

    def open(self, conf: dict) -> int:
        """Log what a crash of Redis may lose, and take over."""
        durability.tell(self._place.server)
        self._checked = time.monotonic()
        return super().open(conf)

    def prepare(self, txid: int, attempt: int, numPartitions: int) -> None:
        """Look now and then whether the server may drop keys since the start."""
        if time.monotonic() - self._checked >= LOOK_SECONDS:
            durability.check_evictions(self._place.server)
            self._checked = time.monotonic()
        super().prepare(txid, attempt, numPartitions)


class RedisFactory:
    """Inherited before StateFactory by the factories, which are frozen dataclasses with these fields."""

    url: str
    hash: str | None
    remark = durability.REMARK
    """The condition of the guarantee, for the table."""
    reading = Reading.CURRENT

    @property
    def stateName(self) -> str:
        return "strings" if self.hash is None else self.hash

    @property
    def needs(self) -> Needs:
        return read_redis_url(self.url).needs

    @property
    def location(self) -> Location:
        return self.place.location

    @property
    def place(self) -> RedisPlace:
        return RedisPlace(self.url, self.hash)

    def participant(self) -> RedisLedger:
        return RedisLedger(self.place, self._last_txid)

    def check(self) -> Sequence[Finding]:
        return self.participant().check()

    def _last_txid(self) -> int:
        """Return the highest txid among the values, 0 if there is none."""
        return 0


def as_arguments(row: LedgerRow | None) -> list[str | int]:
    """Return the row as scripts compare it."""
    return [""] * len(FIELDS) if row is None else list(astuple(row))


def mark(txid: int | None, attempt: int) -> str:
    """Return what a partition that has committed leaves under its number."""
    return f"{txid}:{attempt}"
