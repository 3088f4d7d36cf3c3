"""FileSpout on Spark: tasks read what a URI names, each by itself."""

from __future__ import annotations

import json
import subprocess
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from file_places import HdfsPlace, S3Place, table

from testbed.s3 import command
from testbed.spark_hosts import SparkHosts
from trident_py import TridentTopology
from trident_py.spouts import FileSpout
from trident_py.testing import collect, failing

from .clusters import started

ROOT = Path(__file__).parents[2]
APP = Path(__file__).with_name("files_app.py")
S3_PORT = 5000


@pytest.mark.spark
@pytest.mark.parametrize("store", ["s3", "hdfs"])
def test_spark_reads_what_a_uri_names_and_again_after_a_failure(
    request: pytest.FixtureRequest, spark_cluster: Callable[..., Any], store: str
) -> None:
    server = request.getfixturevalue(store)
    place = (S3Place if store == "s3" else HdfsPlace)(server, uuid.uuid4().hex)
    place.put("/a.parquet", table("parquet", range(12)))
    place.put("/sub/b.parquet", table("parquet", range(12, 20)))
    topology = TridentTopology()
    spout = FileSpout(place.root, ["n bigint"], batchSize=8, storage=place.storage)
    stream = topology.newStream("s", spout).parallelismHint(2)
    collect(stream.each("n", failing(lambda n: True, {(1, 0), (2, 0), (2, 1)})), "rows")
    running = spark_cluster().submitTopology("files", {}, topology.build())
    assert running.awaitTermination(120)
    found = {txid: sorted(row[0] for row in rows) for txid, rows in running.collected("rows").items()}
    assert found == {1: [*range(8)], 2: [*range(8, 16)], 3: [*range(16, 20)]}
    assert running.attempts == {1: 1, 2: 2, 3: 0}


@pytest.fixture
def hosts() -> Iterator[SparkHosts]:
    """Two workers, and an S3 on a host of its own."""
    with started() as hosts:
        host = hosts.network.host("s3")
        host.run(command(host.address, S3_PORT), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        yield hosts


@pytest.mark.spark
@pytest.mark.whole("test_spark_reads_what_a_uri_names_and_again_after_a_failure")
def test_workers_read_s3_without_a_folder_that_they_share(hosts: SparkHosts) -> None:
    address = f"http://{hosts.network.hosts['s3'].address}:{S3_PORT}"
    running = hosts.submit(
        str(APP), address, environment={"PYTHONPATH": str(ROOT)}, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    output, errors = running.communicate(timeout=300)
    assert running.returncode == 0, errors.decode()[-4000:]
    [(rows, attempts, told)] = [json.loads(line) for line in output.decode().splitlines() if line.startswith("[")]
    assert rows == {"1": [[n] for n in range(8)], "2": [[n] for n in range(8, 16)], "3": [[n] for n in range(16, 20)]}
    assert attempts == {"1": 1, "2": 2, "3": 0}
    assert "/tmp/files" in told and "worker" in told
