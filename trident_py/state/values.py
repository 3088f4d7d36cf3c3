"""The values that transactional and opaque maps store. Source in Storm: TransactionalValue, OpaqueValue."""

from __future__ import annotations

from typing import Any, NamedTuple

from ..errors import StateError, ZombieError


def is_behind(txid: int, stored: int, of: str = "this value") -> ZombieError:
    """Return the error for a txid that is older than the stored one."""
    return ZombieError(
        f"batch {txid} is behind: {of} was last written by batch {stored}; nothing of it is written. "
        "An older driver is still running on this store, or the checkpoint is older than the store: "
        "stop the older driver, or restore the checkpoint that belongs to the store"
    )


class TransactionalValue(NamedTuple):
    """A value and the txid that wrote it."""

    txid: int | None
    value: Any

    def getTxid(self) -> int | None:
        return self.txid

    def getVal(self) -> Any:
        return self.value


class OpaqueValue(NamedTuple):
    """A value, the txid that wrote it, and the value before that txid.

    Raises ZombieError for a txid older than the stored one, StateError for a real txid over a value that was
    written without one (Storm: NullPointerException).
    """

    currTxid: int | None
    curr: Any
    prev: Any = None

    def get(self, txid: int | None) -> Any:
        """Return the value as it was before batch ``txid``."""
        return self.prev if self._replays(txid) else self.curr

    def update(self, txid: int | None, value: Any) -> OpaqueValue:
        """Return this value overwritten by batch ``txid``; on replay it keeps the value before the batch."""
        return OpaqueValue(txid, value, self.prev if self._replays(txid) else self.curr)

    def _replays(self, txid: int | None) -> bool:
        if txid is None:
            return False
        if self.currTxid is None:
            raise StateError(
                f"batch {txid} cannot update an opaque value that was written without a txid: the batch that wrote it "
                "is unknown. Write the key again without a txid, or remove it"
            )
        if txid < self.currTxid:
            raise is_behind(txid, self.currTxid)
        return txid == self.currTxid

    def getCurrTxid(self) -> int | None:
        return self.currTxid

    def getCurr(self) -> Any:
        return self.curr

    def getPrev(self) -> Any:
        return self.prev
