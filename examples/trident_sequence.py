"""TridentSequenceTopology of storm-hdfs-examples: sentences under their key, as Hadoop's sequence files.

    python -m examples.trident_sequence /tmp/trident --local      in this process, no JVM; into an empty folder
    python -m examples.trident_sequence /tmp/trident              on Spark

Spark reads them by ``SparkContext.sequenceFile``. Storm's state knows the format; here it is a format of one's own.
Storm moves a full file to another folder (MoveFileAction); here a file is final when it is visible.

Source: TridentSequenceTopology.java in examples/storm-hdfs-examples (Apache Storm).
"""

from __future__ import annotations

import sys
import zlib
from dataclasses import dataclass

from states.files import FileState, RecordFormat
from trident_py import Fields, LocalCluster, SparkCluster, TridentTopology, Values
from trident_py.testing import FixedBatchSpout

SYNC = bytes(range(16))


def text(value: str) -> bytes:
    """A text as org.apache.hadoop.io.Text writes it: its length as Hadoop's VInt, then UTF-8."""
    encoded = value.encode()
    length = len(encoded).to_bytes((len(encoded).bit_length() + 7) // 8)
    return (bytes([len(encoded)]) if len(encoded) < 128 else bytes([256 - 112 - len(length)]) + length) + encoded


@dataclass(frozen=True)
class SequenceFormat(RecordFormat):
    """Storm's DefaultSequenceFormat: LongWritable and Text, each value compressed by Hadoop's DefaultCodec."""

    keyField: str
    valueField: str
    suffix = ".seq"
    header = (
        b"SEQ\x06"
        + text("org.apache.hadoop.io.LongWritable")
        + text("org.apache.hadoop.io.Text")
        + b"\x01\x00"  # values are compressed one by one, not in blocks
        + text("org.apache.hadoop.io.compress.DefaultCodec")
        + bytes(4)  # no metadata
        + SYNC
    )

    def format(self, tuple):
        key = tuple.getLongByField(self.keyField).to_bytes(8, signed=True)
        value = zlib.compress(text(tuple.getStringByField(self.valueField)))
        return (len(key) + len(value)).to_bytes(4) + len(key).to_bytes(4) + key + value


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
    state = FileState(folder, format=SequenceFormat("key", "sentence"), rotate="5MB")

    topology = TridentTopology()
    stream = topology.newStream("spout1", spout)
    stream.partitionPersist(state, Fields("sentence", "key"))
    return topology


def main() -> None:
    folder = next((argument for argument in sys.argv[1:] if not argument.startswith("-")), "/tmp/trident")
    with LocalCluster() if "--local" in sys.argv else SparkCluster() as cluster:
        cluster.submitTopology("sequences", {}, build(folder).build()).awaitTermination()
    newest = FileState(folder, format=SequenceFormat("key", "sentence")).newest()
    for file in newest.files if newest is not None else []:
        print(f"{file.name}: {file.rows} records")


if __name__ == "__main__":
    main()
