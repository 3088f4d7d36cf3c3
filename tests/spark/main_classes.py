"""An application for `test_main_classes.py`: the class of its values is defined here, in the main program.

``python main_classes.py CHECKPOINTS``. Prints one JSON line: what was collected, what a state in the driver has, what
a query of it found, and whether they are of the class of this program.
"""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass
from enum import Enum
from typing import Any

from trident_py import FailedException, Fields, SparkCluster, TridentTopology
from trident_py.operations import BaseFunction, CombinerAggregator
from trident_py.operations.builtin import MapGet
from trident_py.testing import FixedBatchSpout, MemoryMapState, collect, stored


class Colour(Enum):
    RED = 1
    BLUE = 2


@dataclass(frozen=True)
class Car:
    name: str
    speed: int
    colour: Colour = Colour.RED

    def faster(self, other: Car) -> Car:
        return max(self, other, key=lambda car: car.speed)


class NotReady(FailedException):
    pass


class Made(BaseFunction):
    """Makes a car in the task. The first attempt of txid 2 fails with an exception of this program."""

    def prepare(self, conf: dict, context: Any) -> None:
        self.context = context

    def execute(self, tuple: Any, collector: Any) -> None:
        if self.context.transaction == (2, 0):
            raise NotReady("not yet")
        collector.emit([Car(tuple[0].name + "!", tuple[0].speed + 1, Colour.BLUE)])


class Fastest(CombinerAggregator):
    def init(self, tuple: Any) -> Any:
        return tuple[0]

    def combine(self, val1: Any, val2: Any) -> Any:
        return val2 if val1 is None else val1 if val2 is None else val1.faster(val2)

    def zero(self) -> Any:
        return None


def build(state: Any) -> TridentTopology:
    cars = [(n % 2, Car(f"car-{n}", n)) for n in range(8)]
    topology = TridentTopology()
    stream = topology.newStream("cars", FixedBatchSpout(Fields("lane", "car"), 4, *cars)).parallelismHint(2)
    made = stream.shuffle().each("car", Made(), "made").parallelismHint(2)
    fastest = made.groupBy("lane").persistentAggregate(state, "made", Fastest(), "fastest")
    asked = made.partitionBy("lane").stateQuery(fastest, "lane", MapGet(), "known")
    collect(asked.each("known", lambda car: [car is None or type(car).__qualname__], "kind"), "asked")
    collect(fastest.newValuesStream(), "fastest")
    return topology


def main() -> None:
    state = MemoryMapState.Factory()
    with SparkCluster(checkpoints=sys.argv[1]) as cluster:
        running = cluster.submitTopology("cars", {}, build(state).build())
        assert running.awaitTermination(120)
    rows = running.collected("fastest")
    kept = {key[0]: value.curr for key, value in stored(state).items()}
    asked = [row for rows in running.collected("asked").values() for row in rows]
    print(json.dumps({
        "attempts": running.attempts,
        "fastest": {txid: sorted((lane, car.name, car.colour.name) for lane, car in rows[txid]) for txid in rows},
        "stored": {lane: car.name for lane, car in kept.items()},
        "asked": sorted({str(row[-1]) for row in asked}),
        "ours": all(type(car) is Car and type(car.colour) is Colour
                    for car in [*kept.values(), *(row[1] for row in asked), *(row[2] for row in asked)]),
    }), flush=True)  # fmt: skip


if __name__ == "__main__":
    main()
