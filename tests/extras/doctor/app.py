"""The application of the probe's tests: stays on its session and checks the topologies that it is asked for."""

from __future__ import annotations

import json
import logging
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from states.sql import AppendState
from trident_py import SparkCluster, TridentTopology
from trident_py.errors import DefinitionError
from trident_py.extras.doctor.probe import check_cluster
from trident_py.kafka import KafkaSpout
from trident_py.spark.session import OwnSession
from trident_py.spouts import FileSpout, FixedBatchSpout
from trident_py.topology import Topology

ASK, ANSWER = "/tmp/ask.json", "/tmp/answer.json"


def topology_of(asked: dict[str, Any]) -> Topology:
    """One stream of texts into a table."""
    spouts = {
        "files": lambda path: FileSpout(path, "text string", format="lines"),
        "kafka": lambda bootstrap: KafkaSpout(bootstrap, "texts", value="string", fields=["value"]),
        "fixed": lambda rows: FixedBatchSpout("text string", 3, rows),
    }
    topology = TridentTopology()
    ((kind, argument),) = asked["spout"].items()
    stream = topology.newStream("texts", spouts[kind](argument))
    fields = stream.getOutputFields()
    stream.partitionPersist(AppendState(asked["url"], "texts", [f"{fields[0]} string"]), list(fields))
    return topology.build()


class Warnings(logging.Handler):
    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.texts: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.texts.append(record.getMessage())


def answer_to(cluster: SparkCluster, asked: dict[str, Any], warnings: Warnings, named: str | None) -> dict[str, Any]:
    """What the check says and how long it takes; "" if all is well. What it refuses is also submitted, and refused."""
    warnings.texts.clear()
    topology, conf = topology_of(asked), asked.get("conf", {})
    begun = time.monotonic()
    refused = error_of(lambda: check_cluster(cluster.spark, topology.plan, conf, named))
    answer = {"error": refused, "seconds": time.monotonic() - begun, "warnings": list(warnings.texts)}
    if refused:
        answer["submitted"] = error_of(lambda: cluster.submitTopology("probed", conf, topology))
    return answer


def error_of(checked: Callable[[], Any]) -> str:
    try:
        checked()
    except DefinitionError as error:
        return str(error)
    return ""


def main(checkpoints: str | None) -> None:
    warnings = Warnings()
    logging.getLogger("trident_py").addHandler(warnings)
    spark = SparkSession.builder.getOrCreate()
    assert OwnSession.current is None
    with SparkCluster(spark, checkpoints) as cluster:
        while True:
            while not Path(ASK).exists():
                time.sleep(0.02)
            asked = json.loads(Path(ASK).read_text())
            Path(ASK).unlink()
            if not asked:
                return
            written = Path(f"{ANSWER}.new")
            written.write_text(json.dumps(answer_to(cluster, asked, warnings, checkpoints)))
            written.rename(ANSWER)


if __name__ == "__main__":
    main(*sys.argv[1:] or [None])
