"""An application for `test_remote_files.py`: reads files in S3 from workers that share no folder with the driver.

Run by spark-submit on a host: ``files_app.py ADDRESS``, of an S3. Prints one JSON line: the rows of each txid, the
attempts, and why the same files in a folder of the driver are refused.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from pyarrow.fs import S3FileSystem
from pyspark.sql import SparkSession

from trident_py import DefinitionError, TridentTopology
from trident_py.spark import SparkCluster
from trident_py.spouts import FileSpout
from trident_py.testing import collect, failing


def read(cluster: SparkCluster, root: str, storage: dict[str, Any]) -> list[Any]:
    """Reads a folder of CSV files in two tasks, 8 rows a batch; some attempts fail."""
    topology = TridentTopology()
    stream = topology.newStream("s", FileSpout(root, ["n bigint"], batchSize=8, storage=storage)).parallelismHint(2)
    collect(stream.each("n", failing(lambda n: True, {(1, 0), (2, 0), (2, 1)})), "rows")
    running = cluster.submitTopology("files", {}, topology.build())
    assert running.awaitTermination(120)
    return [{txid: sorted(rows) for txid, rows in running.collected("rows").items()}, running.attempts]


def main(address: str) -> None:
    storage = {"endpoint_override": address, "region": "us-east-1", "access_key": "a", "secret_key": "b"}
    client = S3FileSystem(**storage, allow_bucket_creation=True)
    client.create_dir("files")
    folder = Path("/tmp/files")
    folder.mkdir()
    for name, numbers in (("a.csv", range(12)), ("b.csv", range(12, 20))):
        text = "n\n" + "".join(f"{n}\n" for n in numbers)
        (folder / name).write_text(text)
        with client.open_output_stream(f"files/in/{name}") as file:
            file.write(text.encode())
    with SparkCluster(SparkSession.builder.getOrCreate()) as cluster:
        rows, attempts = read(cluster, "s3a://files/in", storage)
        try:
            read(cluster, str(folder), {})
            told = "not refused"
        except DefinitionError as error:
            told = str(error)
    print(json.dumps([rows, attempts, told]), flush=True)


if __name__ == "__main__":
    main(sys.argv[1])
