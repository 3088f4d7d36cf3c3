"""Topologies over spouts of their own, whose metadata an import takes over as it is, and what is left of them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from trident_py import TridentTopology
from trident_py.spouts import IOpaquePartitionedTridentSpout


class Spout(IOpaquePartitionedTridentSpout):
    def getOutputFields(self) -> str:
        return "value"

    def getCoordinator(self, *arguments: Any) -> Any:
        raise NotImplementedError

    getEmitter = getCoordinator


def build() -> TridentTopology:
    """Make one component of the streams a and b."""
    topology = TridentTopology()
    streams = [topology.newStream(name, Spout()) for name in "ab"]
    topology.merge(*streams).each("value", lambda value: [value], "v")
    return topology


def apart() -> TridentTopology:
    """Make two components."""
    topology = TridentTopology()
    for name in "ab":
        topology.newStream(name, Spout()).each("value", lambda value: [value], "v")
    return topology


def dump_nodes(folder: Path, streams: Mapping[str, int], more: Mapping[str, Any] | None = None) -> None:
    """Write what Storm keeps of streams whose spouts are opaque: the current txid of each."""
    nodes: dict[str, Any] = {}
    for name, current in streams.items():
        nodes |= {f"{name}/coordinator/currtx": current, f"{name}/coordinator/meta/{current - 1}": "m",
                  f"{name}/user/p/{current - 1}": {"pos": f"{name}{current}"}}  # fmt: skip
    nodes |= more or {}
    rows = [{"path": f"/transactional/{path}", "data": json.dumps(data)} for path, data in nodes.items()]
    (folder / "nodes.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))


def fill(folder: Path) -> None:
    """Make a state of ours, s.yaml:counts, and a dump of Storm's values."""
    state = {"type": "sql-map", "kind": "opaque", "url": f"sqlite:///{folder}/c.db", "table": "counts",
             "key": "word string", "value": "count bigint"}  # fmt: skip
    (folder / "s.yaml").write_text(json.dumps({"states": {"counts": state}}))
    (folder / "values.jsonl").write_text('{"key": "a", "value": [3, 2, 1]}\n')
