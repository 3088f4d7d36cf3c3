"""The DRPC requests of a case: each is asked when its txid is committed and before the next one starts."""

from __future__ import annotations

import threading
from collections.abc import Iterable
from typing import Any

from trident_py import DRPCExecutionException, LocalDRPC


class Requests:
    """Lives in the driver process; a copy of the spout that holds it is the same."""

    def __init__(self, requests: list[dict[str, Any]], batches: int = 0, spouts: Iterable[str] = ()) -> None:
        self.drpc = LocalDRPC()
        self.waiting = sorted(requests, key=lambda request: request.get("afterTxid", batches))
        self.asked: list[tuple[dict[str, Any], Any]] = []
        self.batches = batches
        self.any = bool(requests)
        self.done = dict.fromkeys(spouts, 0)
        self.lock = threading.Lock()

    def __deepcopy__(self, memo: Any) -> Requests:
        return self

    def __reduce__(self) -> Any:
        return Requests, ([],)  # in a worker nobody asks

    def may_start(self, txid: int) -> bool:
        """Asks what is due before this txid, when each spout has its last one behind it; till then it does not start.

        Streams that never meet have coordinators of their own, in threads of their own.
        """
        with self.lock:
            if not self.any or min(self.done.values()) < txid - 1:
                return not self.any
            self.ask(txid - 1)
        return True

    def succeeded(self, spout: str, txid: int) -> None:
        self.done[spout] = max(txid, self.done[spout])

    def ask(self, txid: int | None) -> None:
        """Asks what is due when this txid is committed; None: all."""
        due = [r for r in self.waiting if txid is None or r.get("afterTxid", self.batches) <= txid]
        self.waiting = [request for request in self.waiting if request not in due]
        for request in due:
            self.asked.append((request, self._answer(request)))

    def _answer(self, request: dict[str, Any]) -> Any:
        try:
            return self.drpc.execute(request["function"], request["args"], 30)
        except DRPCExecutionException as error:
            return str(error)

    def answers(self) -> list[list[Any]]:
        """``[function, args, rows]`` of each request, in Storm's order: of their txids."""
        return [[request["function"], request["args"], answer] for request, answer in self.asked]
