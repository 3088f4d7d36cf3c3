"""TridentFileTopology of storm-hdfs-examples: sentences with a key, as delimited records in files.

    python -m examples.trident_file /tmp/trident --local      in this process, no JVM; into an empty folder
    python -m examples.trident_file /tmp/trident              on Spark

Storm appends to one file per partition and rotates it at 5 MB. Here each batch and partition has a file of its own.

Source: TridentFileTopology.java in examples/storm-hdfs-examples (Apache Storm).
"""

from __future__ import annotations

import sys

from states.files import DelimitedRecordFormat, FileState
from trident_py import Fields, LocalCluster, SparkCluster, TridentTopology, Values
from trident_py.testing import FixedBatchSpout


def build(folder: str, batch: int = 1000) -> TridentTopology:
    spout = FixedBatchSpout(
        Fields("sentence string", "key bigint"),
        batch,
        Values("the cow jumped over the moon", 1),
        Values("the man went to the store and bought some candy", 2),
        Values("four score and seven years ago", 3),
        Values("how many apples can you eat", 4),
        Values("to be or not to be the person", 5),
    )
    recordFormat = DelimitedRecordFormat(fields=Fields("sentence", "key"))
    state = FileState(folder, format=recordFormat, rotate="5MB")

    topology = TridentTopology()
    stream = topology.newStream("spout1", spout)
    stream.partitionPersist(state, Fields("sentence", "key"))
    return topology


def main() -> None:
    folder = next((argument for argument in sys.argv[1:] if not argument.startswith("-")), "/tmp/trident")
    with LocalCluster() if "--local" in sys.argv else SparkCluster() as cluster:
        cluster.submitTopology("files", {}, build(folder).build()).awaitTermination()
    for (line,) in sorted(FileState(folder, format=DelimitedRecordFormat()).stored()):
        print(line.decode())


if __name__ == "__main__":
    main()
