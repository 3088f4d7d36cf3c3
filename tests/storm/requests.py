"""The DRPC requests of a case: each is asked when its txid is committed and before the next one starts."""

from __future__ import annotations

from typing import Any

from trident_py import DRPCExecutionException, LocalDRPC


class Requests:
    """Lives in the driver process; a copy of the spout that holds it is the same."""

    def __init__(self, requests: list[dict[str, Any]]) -> None:
        self.drpc = LocalDRPC()
        self.waiting = list(requests)
        self.asked: list[tuple[dict[str, Any], Any]] = []
        self.requests = requests

    def __deepcopy__(self, memo: Any) -> Requests:
        return self

    def __reduce__(self) -> Any:
        return Requests, ([],)  # in a worker nobody asks

    def ask(self, txid: int | None) -> None:
        """Asks what is due when this txid is committed; None: all."""
        due = [r for r in self.waiting if txid is None or r.get("afterTxid", txid + 1) <= txid]
        self.waiting = [request for request in self.waiting if request not in due]
        for request in sorted(due, key=lambda request: request.get("afterTxid", 2**62)):
            self.asked.append((request, self._answer(request)))

    def _answer(self, request: dict[str, Any]) -> Any:
        try:
            return self.drpc.execute(request["function"], request["args"], 30)
        except DRPCExecutionException as error:
            return str(error)

    def answers(self) -> list[list[Any]]:
        """``[function, args, rows]`` of each request, in Storm's order: of their txids."""
        return [[request["function"], request["args"], answer] for request, answer in self.asked]
