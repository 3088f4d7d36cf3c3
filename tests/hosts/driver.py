"""The application of the host tests: spark-submit driver.py PORT

Makes its session, tells the test, takes one order after the other and tells every event of its run. It ends when the
test does.
"""

from __future__ import annotations

import faulthandler
import os
import signal
import socket
import sys
import threading
import traceback
from typing import Any

from pyspark.sql import SparkSession

from hosts.hook import connect
from hosts.orders import Order
from trident_py import SparkCluster, TopologyError


def run(spark: Any, order: Order, tell: Any) -> None:
    from faults import steps

    def told(event: Any, progress: Any) -> None:
        if event.kind == "committed":
            steps.HOOK.at("over", "", steps.DRIVER, event.txid)
        tell("event", event.kind, event.txid, event.attempt, event.reason)

    topology = order.build()
    with SparkCluster(spark, order.checkpoints) as cluster:
        running = cluster.submitTopology(order.name, {"topology.home.network": True, **order.conf}, topology)
        running.addListener(told)
        try:
            running.awaitTermination()
        except TopologyError as error:
            tell("error", type(error.__cause__).__name__, str(error))
        else:
            tell("done", running.txid)


def main(port: int) -> None:
    faulthandler.register(signal.SIGUSR1, all_threads=True)
    spark: Any = SparkSession.builder.appName("hosts").getOrCreate()
    spark.sparkContext.setLogLevel("WARN")
    one_at_a_time = threading.Lock()
    with connect(port) as test:

        def tell(*words: Any) -> None:
            with one_at_a_time:
                test.send(words)

        tell("driver", socket.gethostname(), os.getpid())
        while (order := test.recv()) is not None:
            try:
                run(spark, order, tell)
            except Exception:
                tell("broken", traceback.format_exc())
    spark.stop()


if __name__ == "__main__":
    main(int(sys.argv[1]))
