"""The ledger: who may write a state, and how far it is.

One row of ``trident_fence`` for each (topology, state), in every file of the store. A new driver raises the
generation; every partition checks generation and lineage inside the transaction that writes its data, so an
older driver or an older batch cannot write. ``txid`` is the last batch that all partitions have committed
(moved by the driver), ``started`` and ``attempt`` the last one that any partition has committed (moved with the
data): a task of an attempt that was given up may still run, and must not write over the one that replaced it.
"""

from __future__ import annotations

import datetime
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import sqlalchemy as sa

from trident_py.errors import LineageError, StateError, ZombieError

from .store import Store

TABLE = sa.Table(
    "trident_fence",
    sa.MetaData(),
    sa.Column("topology", sa.String(190), primary_key=True),
    sa.Column("state", sa.String(190), primary_key=True),
    sa.Column("generation", sa.BigInteger, nullable=False),
    sa.Column("lineage", sa.String(190), nullable=False),
    sa.Column("txid", sa.BigInteger, nullable=False),
    sa.Column("started", sa.BigInteger, nullable=False),
    sa.Column("attempt", sa.BigInteger, nullable=False),
    sa.Column("time", sa.String(40), nullable=False),
)
BASE = "topology.txid.base"
_OWN = "WHERE topology = ? AND state = ?"


class FenceRow(NamedTuple):
    generation: int
    lineage: str
    txid: int
    started: int
    attempt: int

    @property
    def last(self) -> int:
        return max(self.txid, self.started)


def read(connection: Any, topology: str, state: str) -> FenceRow | None:
    found = connection.execute(
        f"SELECT generation, lineage, txid, started, attempt FROM trident_fence {_OWN}", (topology, state)
    ).fetchone()
    return None if found is None else FenceRow(*found)


@dataclass(frozen=True)
class Fence:
    """What a partition must find in the ledger before it writes."""

    topology: str
    state: str
    generation: int
    lineage: str
    context: Any = field(default=None, compare=False, repr=False)

    @classmethod
    def of(cls, conf: dict) -> Fence | None:
        """The fence of a run; None where no cluster runs the state (a unit test's makeState)."""
        generation = conf.get("trident.generation")
        if generation is None:
            return None
        name = conf.get("trident.state.name", "")
        lineage, context = conf.get("trident.lineage") or "", conf.get("trident.context")
        return cls(conf.get("topology.name", ""), name, generation, lineage, context)

    @property
    def attempt(self) -> int:
        """The attempt that this task runs for."""
        transaction = getattr(self.context, "transaction", None)
        return 0 if transaction is None else int(transaction.attemptId)

    def check(self, connection: Any, txid: int | None) -> None:
        """Called first in the transaction that writes. Raises ZombieError, nothing is written then."""
        row = read(connection, self.topology, self.state)
        who = f"state {self.state!r} of topology {self.topology!r}"
        if row is None or row.generation < self.generation:
            raise StateError(
                f"{who}: its row in trident_fence is gone or older than this driver; the store was replaced "
                "while the topology ran. Start the topology again"
            )
        if row.generation > self.generation or row.lineage != self.lineage:
            raise ZombieError(
                f"{who}: this driver has generation {self.generation}, but a newer one with generation "
                f"{row.generation} has taken over; nothing of batch {txid} is written. Stop this driver"
            )
        if txid is not None and txid < row.last:
            raise ZombieError(
                f"{who}: batch {txid} is behind batch {row.last} of the store; nothing of it is written. "
                "An older driver or task is still running, or the checkpoint is older than the store"
            )
        if txid is not None and txid == row.started and self.attempt < row.attempt:
            raise ZombieError(
                f"{who}: attempt {self.attempt} of batch {txid} was given up, attempt {row.attempt} has taken over; "
                "nothing of the older one is written"
            )

    def started(self, connection: Any, txid: int | None) -> None:
        """Called last in the transaction: this batch has left its first traces."""
        if txid is not None:
            connection.execute(
                f"UPDATE trident_fence SET started = ?, attempt = ? {_OWN} AND started <= ?",
                (txid, self.attempt, self.topology, self.state, txid),
            )


class Ledger:
    """The driver's side of a state in one run (a BatchParticipant). One object for each run."""

    def __init__(self, stores: Callable[[], Sequence[Store]], remembered: Callable[[], int]) -> None:
        self._stores = stores
        self._remembered = remembered
        self._fence: Fence | None = None

    def open(self, conf: dict) -> int:
        """Raises the generation in every file while the first file is locked; returns it.

        Raises LineageError if another checkpoint wrote the store.
        """
        topology, state = conf.get("topology.name", ""), conf.get("trident.state.name", "")
        lineage = conf.get("trident.lineage") or ""
        stores = list(self._stores())
        with stores[0].writing() as first:
            rows = [read(first, topology, state), *(self._peek(s, topology, state) for s in stores[1:])]
            found = [row for row in rows if row is not None]
            last = max((row.last for row in found), default=0) if found else self._remembered()
            if last > 0 and (rows[0] is None or rows[0].lineage != lineage):
                _choose(conf.get(BASE), last, topology, state, stores[0].shown)
            generation = max((row.generation for row in found), default=0) + 1
            for store in stores[1:]:
                with store.writing() as other:
                    _raise(other, Fence(topology, state, generation, lineage), last)
            _raise(first, Fence(topology, state, generation, lineage), last)
        self._fence = Fence(topology, state, generation, lineage)
        return generation

    def last_txid(self, conf: dict) -> int:
        """The highest txid that the store knows of this state, 0 if none: the base to go on from."""
        topology, state = conf.get("topology.name", ""), conf.get("trident.state.name", "")
        rows = [self._peek(store, topology, state) for store in self._stores()]
        return max((row.last for row in rows if row is not None), default=self._remembered())

    def prepare(self, txid: int, attempt: int, numPartitions: int) -> None:
        """Shuts out the attempts before this one. (Partitions own nothing: a key's owner is the key itself.)"""
        fence = self._fence
        if attempt == 0 or fence is None:
            return
        for store in self._stores():
            with store.writing(relaxed=True) as connection:
                connection.execute(
                    f"UPDATE trident_fence SET started = ?, attempt = ? {_OWN} AND generation = ? AND started <= ?",
                    (txid, attempt, fence.topology, fence.state, fence.generation, txid),
                )

    def publish(self, txid: int, attempt: int, receipts: Sequence[Any]) -> None:
        """Moves the last complete txid. Raises ZombieError if a newer driver has taken over."""
        fence = self._fence
        if fence is None:
            raise StateError("publish before open: the ledger does not know its run")
        for store in self._stores():
            with store.writing(relaxed=True) as connection:
                moved = connection.execute(
                    f"UPDATE trident_fence SET txid = ?, time = ? {_OWN} AND generation = ? AND txid <= ?",
                    (txid, _now(), fence.topology, fence.state, fence.generation, txid),
                )
                if moved.rowcount == 0:
                    fence.check(connection, txid)

    def abort(self, txid: int, attempt: int) -> None:
        """Nothing: what a failed attempt has committed is repaired by the replay."""

    def _peek(self, store: Store, topology: str, state: str) -> FenceRow | None:
        with store.reading() as connection:
            return read(connection, topology, state)


def _raise(connection: Any, fence: Fence, last: int) -> None:
    changed = connection.execute(
        f"UPDATE trident_fence SET generation = ?, lineage = ?, attempt = 0, time = ? {_OWN}",
        (fence.generation, fence.lineage, _now(), fence.topology, fence.state),
    )
    if changed.rowcount == 0:
        connection.execute(
            "INSERT INTO trident_fence (topology, state, generation, lineage, txid, started, attempt, time)"
            " VALUES (?, ?, ?, ?, ?, ?, 0, ?)",
            (fence.topology, fence.state, fence.generation, fence.lineage, last, last, _now()),
        )


def _choose(base: Any, last: int, topology: str, state: str, where: str) -> None:
    """A lost checkpoint: going on is the user's choice. Raises LineageError with all of them."""
    if base == "continue" or (isinstance(base, int) and not isinstance(base, bool) and base >= last):
        return
    behind = "" if base is None else f"{BASE} is {base!r}, which is behind it. "
    raise LineageError(
        f"state {state!r} of topology {topology!r} in {where} remembers batch {last}, written under another "
        f"checkpoint; this one starts anew, and its batches would be skipped or counted twice. {behind}"
        "Choose: (1) restore the checkpoint that wrote the store; (2) continue the txid sequence behind it, "
        f'conf["{BASE}"] = "continue" or a number of at least {last} (what the source sends again is '
        "then applied again); (3) start over in a new table, or remove this one and its trident_fence row"
    )


def _now() -> str:
    return datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
