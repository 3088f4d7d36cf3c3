"""TridentMinMaxOfVehiclesTopology of storm-starter: min, max, minBy and maxBy with comparators, on objects.

    python -m examples.trident_min_max_of_vehicles --local      in this process, no JVM
    python -m examples.trident_min_max_of_vehicles              on Spark

Source: TridentMinMaxOfVehiclesTopology.java in examples/storm-starter (Apache Storm).
"""

from __future__ import annotations

import random
import sys
from dataclasses import dataclass

from trident_py import Fields, LocalCluster, SparkCluster, TridentTopology, Values
from trident_py.operations.builtin import Debug
from trident_py.testing import FixedBatchSpout, collect


@dataclass(frozen=True)
class Driver:
    name: str
    id: int


@dataclass(frozen=True)
class Vehicle:
    name: str
    maxSpeed: int
    efficiency: float


class SpeedComparator:
    def compare(self, tuple1, tuple2):
        vehicle1 = tuple1.getValueByField("vehicle")
        vehicle2 = tuple2.getValueByField("vehicle")
        return vehicle1.maxSpeed - vehicle2.maxSpeed


class EfficiencyComparator:
    def compare(self, vehicle1, vehicle2):
        return (vehicle1.efficiency > vehicle2.efficiency) - (vehicle1.efficiency < vehicle2.efficiency)


def generateVehicles(count):
    return [
        Values(
            Vehicle(f"Vehicle-{id}", random.randrange(100), random.uniform(1, 5)),
            Driver(f"Driver-{id}", id),
        )
        for id in range(count)
    ]


def build(cycle: bool = False) -> TridentTopology:
    """The topology; ``cycle=True`` is Storm's example, which never ends."""
    driverField = Fields("driver")
    vehicleField = Fields("vehicle")
    allFields = Fields("vehicle", "driver")

    spout = FixedBatchSpout(allFields, 10, *generateVehicles(20))
    spout.setCycle(cycle)

    topology = TridentTopology()
    vehiclesStream = topology.newStream("spout1", spout).each(allFields, Debug("##### vehicles"))
    collect(vehiclesStream, "vehicles")

    slowVehiclesStream = vehiclesStream.min(SpeedComparator()).each(vehicleField, Debug("#### slowest vehicle"))
    slowDriversStream = slowVehiclesStream.project(driverField).each(driverField, Debug("##### slowest driver"))
    collect(slowDriversStream, "slowest driver")

    fastDriversStream = (
        vehiclesStream.max(SpeedComparator())
        .each(vehicleField, Debug("#### fastest vehicle"))
        .project(driverField)
        .each(driverField, Debug("##### fastest driver"))
    )
    collect(fastDriversStream, "fastest driver")

    wasteful = vehiclesStream.minBy("vehicle", EfficiencyComparator())
    collect(wasteful.each(vehicleField, Debug("#### least efficient vehicle")), "least efficient")

    thrifty = vehiclesStream.maxBy("vehicle", EfficiencyComparator())
    collect(thrifty.each(vehicleField, Debug("#### most efficient vehicle")), "most efficient")
    return topology


def main() -> None:
    with LocalCluster() if "--local" in sys.argv else SparkCluster() as cluster:
        running = cluster.submitTopology("vehicles-topology", {}, build().build())
        running.awaitTermination()
        for name in ("slowest driver", "fastest driver", "least efficient", "most efficient"):
            print(f"{name}:", running.collected(name))


if __name__ == "__main__":
    main()
