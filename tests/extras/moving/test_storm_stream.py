"""What is read from Storm's nodes: which batch is committed, and where each partition goes on."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from trident_py.errors import DefinitionError
from trident_py.extras.moving.kafka_offsets import read_progress
from trident_py.extras.moving.storm_stream import StormStream, find_committed, streams_of
from trident_py.extras.moving.zookeeper import read_dump

LISTED = [{"topic": "lines", "partition": 0}]
MORE = [*LISTED, {"topic": "lines", "partition": 1}]


def new(first: int, last: int) -> dict[str, object]:
    return {"firstOffset": first, "lastOffset": last, "topologyId": "words-1-17"}


def stream(current: int, partitions: dict[str, dict[int, object]], metadata: dict[int, object] | None = None):
    known = {txid: LISTED for of in partitions.values() for txid in of} if metadata is None else metadata
    return StormStream("sentences", current, frozenset(), known, partitions)


def test_the_highest_node_need_not_be_committed() -> None:
    written = stream(8, {"lines@0": {7: new(10, 19), 8: new(20, 29)}})
    progress = read_progress(written, find_committed([written]), ["lines"])
    assert (progress.next, progress.after) == ({("lines", 0): 20}, {("lines", 0): 30})


def test_a_batch_whose_predecessor_was_dropped_is_committed() -> None:
    """MasterBatchCoordinator.ack: it emits success, of which the spouts clean up, and only then writes currtx."""
    assert stream(8, {"lines@0": {8: new(20, 29)}, "lines@1": {7: new(0, 9), 8: new(10, 19)}},
                  {7: MORE, 8: MORE}).committed == 8  # fmt: skip
    assert stream(8, {}, {8: LISTED}).committed == 8, "the coordinator alone has cleaned up"
    assert stream(8, {"lines@0": {7: new(0, 9)}, "lines@1": {8: new(0, 4)}}, {7: LISTED, 8: MORE}).committed == 7, (
        "partition 1 is new in batch 8"
    )
    assert stream(1, {"lines@0": {1: new(0, 4)}}).committed == 0
    assert stream(8, {"lines@0": {7: new(0, 9)}}).committed == 7


def test_streams_of_one_component_have_one_txid() -> None:
    assert find_committed([StormStream("a", 8), StormStream("b", 9)]) == 8, "killed between the writes to a and to b"
    with pytest.raises(DefinitionError, match="a 7, b 4"):
        find_committed([StormStream("a", 8), StormStream("b", 5)])


@pytest.mark.parametrize(
    ("current", "metadata", "partitions"),
    [
        (1, {}, {"lines@0": {57: new(5, 9)}}),
        (1, {56: LISTED, 57: LISTED}, {"lines@0": {57: new(5, 9)}}),
        (5, {56: LISTED}, {}),
        (58, {}, {"lines@0": {57: new(5, 9)}}),
        (58, {}, {}),
    ],
)
def test_nodes_that_do_not_belong_together_are_refused(current: int, metadata: Any, partitions: Any) -> None:
    """A dump of a part, or of several moments: its partitions would begin at their beginning."""
    with pytest.raises(DefinitionError, match="stream sentences: its nodes in ZooKeeper do not belong together"):
        stream(current, partitions, metadata).check()
    stream(58, {"lines@0": {57: new(5, 9)}}, {57: LISTED, 58: LISTED}).check()
    stream(1, {"lines@0": {1: new(5, 9)}}, {1: LISTED, 2: LISTED}).check()
    stream(1, {}, {1: LISTED}).check()


def test_two_dumps_in_one_file_are_refused(tmp_path: Path) -> None:
    nodes = [{"path": "/transactional/a/coordinator/currtx", "data": data} for data in ("5", "5", "6")]
    (tmp_path / "d").write_text("".join(json.dumps(node) + "\n" for node in nodes[:2]))
    assert read_dump(tmp_path / "d") == {nodes[0]["path"]: "5"}
    (tmp_path / "d").write_text("".join(json.dumps(node) + "\n" for node in nodes))
    with pytest.raises(DefinitionError, match="line 3: node /transactional/a/coordinator/currtx is there twice"):
        read_dump(tmp_path / "d")


def test_both_forms_of_offsets() -> None:
    old = {"offset": 3, "nextOffset": 9, "topic": "lines", "partition": 1, "broker": {"host": "h", "port": 9092}}
    other = {**old, "nextOffset": 4}
    partitions = {"lines@0": {7: new(5, 5)}, "partition_1": {7: old}, "lines/partition_2": {7: other}}
    assert read_progress(stream(8, partitions), 7, ["lines"]).next == {
        ("lines", 0): 6, ("lines", 1): 9, ("lines", 2): 4,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("meta", "start"),
    [(new(5, 9), 5), (new(-1, -1), 0), (new(0, 0), 0), (new(5, 5), None), ({"offset": 5, "nextOffset": 9}, 5)],
)
def test_a_partition_without_a_committed_batch(meta: object, start: int | None) -> None:
    """With one offset twice, it is the only record, or the one before the first: nobody can tell."""
    begun = stream(8, {"lines@0": {8: meta}}, {7: [], 8: LISTED})
    progress = read_progress(begun, 7, ["lines"])
    assert progress.next.get(("lines", 0)) == start
    assert (("lines", 0) in progress.unknown) == (start is None)
    told = read_progress(begun, 7, ["lines"], {("lines", 0): 6})
    assert (told.next, told.unknown) == ({("lines", 0): 6}, {})
    assert told.after == {("lines", 0): max(6, progress.after.get(("lines", 0), 6))}


def test_what_no_kafka_spout_wrote_is_refused() -> None:
    with pytest.raises(DefinitionError, match="partition 'p0' in ZooKeeper is not one of Kafka"):
        read_progress(stream(8, {"p0": {7: {"row": 1}}}), 7, ["a", "b"])
    with pytest.raises(DefinitionError, match="neither lastOffset nor nextOffset"):
        read_progress(stream(8, {"lines@0": {7: {"row": 1}}}), 7, ["lines"])


def test_a_dump_is_read_as_storm_wrote_it(tmp_path: Path) -> None:
    nodes = {
        "/transactional": "127.0.0.1", "/transactional/s/coordinator/currtx": "8",
        "/transactional/s/coordinator/currattempts": '{"8":0,"9":1}', "/transactional/s/coordinator/meta": "7",
        "/transactional/s/coordinator/meta/7": "null", "/transactional/s/user/lines@0": "7",
        "/transactional/s/user/lines@0/7": json.dumps(new(0, 4)), "/elsewhere": "",
    }  # fmt: skip
    file = tmp_path / "dump.jsonl"
    file.write_text("".join(json.dumps({"path": path, "data": data}) + "\n" for path, data in nodes.items()))
    read = streams_of(read_dump(file), "/transactional")["s"]
    assert read == StormStream("s", 8, frozenset({8, 9}), {7: None}, {"lines@0": {7: new(0, 4)}})
    with pytest.raises(DefinitionError, match=r"nothing below /tx: .* there is /elsewhere, /transactional"):
        read_dump(file, "/tx")
    file.write_text('{"path": "/transactional"}\n')
    with pytest.raises(DefinitionError, match=r"dump.jsonl, line 1: expected a node"):
        read_dump(file)
    with pytest.raises(DefinitionError, match="holds 'x', which is no JSON"):
        streams_of({"/transactional/s/coordinator/currtx": "x"}, "/transactional")
