"""Requests without end while batches run: what their answers may hold."""

from __future__ import annotations

import threading
from typing import Any

from trident_py import LocalDRPC, TridentTopology
from trident_py.operations.builtin import Count, MapGet
from trident_py.testing import FeederBatchSpout

CLIENTS = 16


def answers_beside_batches(cluster: Any, factory: Any, batches: int) -> tuple[list[Any], list[int]]:
    """Counts a word once in each batch, in two partitions, while clients ask for its count. Returns the answers that
    lack a batch that was complete when they were asked, or have one that had not begun when they came, and how many
    requests each client has made."""
    drpc, topology, feeder = LocalDRPC(), TridentTopology(), FeederBatchSpout("word")
    counts = topology.newStream("s", feeder).groupBy("word").persistentAggregate(factory, Count(), "n")
    asked_of = topology.newDRPCStream("count", drpc).groupBy("args")
    asked_of.stateQuery(counts.parallelismHint(2), "args", MapGet(), "n").project("n")
    running = cluster.submitTopology("t", {}, topology.build())
    over, wrong, asked = threading.Event(), [], [0] * CLIENTS  # type: ignore[var-annotated]
    begun = [0]

    def ask(client: int) -> None:
        while not over.wait(0.005):  # sixteen without a pause leave the batches no core
            least = running.txid or 0
            found, most = drpc.execute("count", "b", 60)[0][0] or 0, begun[0]
            asked[client] += 1
            if not least <= found <= most:
                wrong.append((least, found, most))

    threads = [threading.Thread(target=ask, args=(client,)) for client in range(CLIENTS)]
    for thread in threads:
        thread.start()
    try:
        for number in range(batches):
            begun[0] = number + 1
            feeder.feed([("b",), ("a",), ("c",)], timeout=120)
    finally:
        over.set()
        for thread in threads:
            thread.join(60)
    wrong += [] if (last := drpc.execute("count", "b")) == [[batches]] else [last]
    return wrong, asked
