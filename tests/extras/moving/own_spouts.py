"""Topologies over spouts of their own, whose metadata an import takes over as it is, and what is left of them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from states.sql import SqlMapState
from trident_py import TridentTopology
from trident_py.operations.builtin import Count
from trident_py.spouts import IOpaquePartitionedTridentSpout


class Spout(IOpaquePartitionedTridentSpout):
    def getOutputFields(self) -> str:
        return "value"

    def getCoordinator(self, *arguments: Any) -> Any:
        raise NotImplementedError

    getEmitter = getCoordinator


def count(stream: Any, table: str) -> None:
    """Count into a map beside the topology."""
    state = SqlMapState.opaque(f"sqlite:///{Path.cwd()}/c.db", table, "word string")
    stream.each("value", lambda value: [value], "word").groupBy("word").persistentAggregate(state, Count(), "count")


def build() -> TridentTopology:
    """Make one component of the streams a and b, which counts into `counts`."""
    topology = TridentTopology()
    count(topology.merge(*[topology.newStream(name, Spout()) for name in "ab"]), "counts")
    return topology


def apart() -> TridentTopology:
    """Make two components: a counts into `counts`, b into `others`."""
    topology = TridentTopology()
    for name, table in {"a": "counts", "b": "others"}.items():
        count(topology.newStream(name, Spout()), table)
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
    """Make the states counts and others of s.yaml, and a dump of Storm's values."""
    state = {"type": "sql-map", "kind": "opaque", "url": f"sqlite:///{folder}/c.db", "key": "word string",
             "value": "count bigint"}  # fmt: skip
    named = {name: {**state, "table": name} for name in ("counts", "others")}
    (folder / "s.yaml").write_text(json.dumps({"states": named}))
    (folder / "values.jsonl").write_text('{"key": "a", "value": [3, 2, 1]}\n')
