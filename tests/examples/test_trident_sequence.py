"""The port of TridentSequenceTopology: sequence files, as Hadoop reads them."""

from __future__ import annotations

import zlib
from pathlib import Path
from typing import Any

import pytest
from ported import finished, printed

from examples import trident_sequence
from examples.trident_sequence import SequenceFormat, text
from trident_py import LocalCluster

RECORDS = [
    (1, "the cow jumped over the moon"), (2, "the man went to the store and bought some candy"),
    (3, "four score and seven years ago"), (4, "how many apples can you eat"), (5, "to be or not to be the person"),
]  # fmt: skip


def records(file: Path) -> list[tuple[int, str]]:
    """The records of a file, read by the layout of Hadoop's SequenceFile."""
    block, found = file.read_bytes(), []
    assert block.startswith(SequenceFormat.header)
    block = block[len(SequenceFormat.header) :]
    while block:
        length, key = int.from_bytes(block[:4]), int.from_bytes(block[8:16])
        assert int.from_bytes(block[4:8]) == 8
        value = zlib.decompress(block[16 : 8 + length])
        assert value[0] == len(value) - 1
        found.append((key, value[1:].decode()))
        block = block[8 + length :]
    return found


def test_the_files_have_storms_records(tmp_path: Path) -> None:
    with LocalCluster() as cluster:
        finished(cluster, trident_sequence.build(str(tmp_path / "out"), batch=2))
    files = sorted((tmp_path / "out").glob("part-*.seq"))
    assert [records(file) for file in files] == [RECORDS[:2], RECORDS[2:4], RECORDS[4:]]


def test_long_texts_have_hadoops_length() -> None:
    """VInt: up to 127 in one byte, then the number of bytes and the bytes."""
    assert [text("x" * n)[:3] for n in (1, 127, 128, 300)] == [b"\x01x", b"\x7fxx", b"\x8f\x80x", b"\x8e\x01\x2c"]


def test_the_module_prints_its_files(tmp_path: Path) -> None:
    assert printed("trident_sequence", str(tmp_path / "out"), "--local") == ["part-0000000001-00000.seq: 5 records"]


@pytest.mark.spark
@pytest.mark.whole("test_the_files_have_storms_records")
def test_hadoop_reads_what_spark_has_written(spark_cluster: Any, tmp_path: Path) -> None:
    cluster = spark_cluster()
    finished(cluster, trident_sequence.build(str(tmp_path / "out"), batch=2))
    found = cluster.spark.sparkContext.sequenceFile(f"{tmp_path}/out/part-*.seq").collect()
    assert sorted(found) == RECORDS
