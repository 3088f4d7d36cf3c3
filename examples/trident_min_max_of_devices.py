"""TridentMinMaxOfDevicesTopology of storm-starter: the tuple with the smallest or largest field of each batch.

    python -m examples.trident_min_max_of_devices --local      in this process, no JVM
    python -m examples.trident_min_max_of_devices              on Spark

Source: TridentMinMaxOfDevicesTopology.java and RandomNumberGeneratorSpout.java in examples/storm-starter (Apache
Storm). The vehicles of the same class are in trident_min_max_of_vehicles.py.
"""

from __future__ import annotations

import random
import sys

from trident_py import Config, Fields, LocalCluster, SparkCluster, TridentTopology
from trident_py.operations.builtin import Debug
from trident_py.spouts import IBatchSpout
from trident_py.testing import collect


class RandomNumberGeneratorSpout(IBatchSpout):
    """Batches of random numbers from 0 to maxNumber, each kept until its ack. Ends after ``batches``; None: never."""

    kind = "transactional"

    def __init__(self, fields, batchSize, maxNumber, batches=None):
        self.fields = fields
        self.batchSize = batchSize
        self.maxNumber = maxNumber
        self.limit = batches
        self.batches = {}

    def emitBatch(self, batchId, collector):
        if batchId not in self.batches:
            self.batches[batchId] = [
                [random.randint(0, self.maxNumber) for _ in self.fields] for _ in range(self.batchSize)
            ]
        for values in self.batches[batchId]:
            collector.emit(values)

    def ack(self, batchId):
        self.batches.pop(batchId, None)

    def isExhaustedAt(self, txid):
        return self.limit is not None and txid > self.limit

    def getComponentConfiguration(self):
        conf = Config()
        conf.setMaxTaskParallelism(1)
        return conf

    def getOutputFields(self):
        return self.fields


def build(batches: int | None = 2) -> TridentTopology:
    """The topology; ``batches=None`` is Storm's example, which never ends."""
    deviceId = "device-id"
    count = "count"
    allFields = Fields(deviceId, count)

    spout = RandomNumberGeneratorSpout(allFields, 10, 1000, batches)

    topology = TridentTopology()
    devicesStream = topology.newStream("devicegen-spout", spout).each(allFields, Debug("##### devices"))
    collect(devicesStream, "devices")

    minimum = devicesStream.minBy(deviceId).each(allFields, Debug("#### device with min id"))
    collect(minimum, "min id")

    maximum = devicesStream.maxBy(count).each(allFields, Debug("#### device with max count"))
    collect(maximum, "max count")
    return topology


def main() -> None:
    with LocalCluster() if "--local" in sys.argv else SparkCluster() as cluster:
        running = cluster.submitTopology("devices-topology", {}, build().build())
        running.awaitTermination()
        for name in ("min id", "max count"):
            print(f"{name}:", running.collected(name))


if __name__ == "__main__":
    main()
