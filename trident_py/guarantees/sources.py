"""The spout kind that really holds. For a source of Spark the source decides, not the declared kind."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from ..spouts.interfaces import KINDS, NON_TRANSACTIONAL, OPAQUE, TRANSACTIONAL
from ..spouts.sparkspout import SparkSpout

_FILES = ("avro", "binaryfile", "csv", "json", "orc", "parquet", "text", "xml")
# rate keeps the time of its first start in the checkpoint and computes every row from that time and the offset
_COMPUTED = ("rate", "rate-micro-batch", "rate-v2")
_TAKEN = "taken from your promise; check that "


class Replay(NamedTuple):
    """The kind that holds, and its condition."""

    kind: str
    remark: str = ""


def replay_of(spout: Any) -> Replay:
    """The kind of a spout, never better than the declared one."""
    if not isinstance(spout, SparkSpout):
        return Replay(spout.kind)
    able = _spark(spout.format.lower(), {key.lower(): str(value).lower() for key, value in spout.options.items()})
    if spout.kind == TRANSACTIONAL or KINDS.index(able.kind) > KINDS.index(spout.kind):
        return able
    return Replay(spout.kind)


def _spark(name: str, options: Mapping[str, str]) -> Replay:
    if name == "socket":
        return Replay(NON_TRANSACTIONAL, "what came over a socket cannot be read again")
    if name in _COMPUTED:
        return Replay(TRANSACTIONAL)
    if name == "kafka":
        if options.get("failondataloss") == "false":
            return Replay(OPAQUE, "failOnDataLoss=false lets a replay miss what Kafka has deleted")
        return Replay(TRANSACTIONAL, "if the topic is not compacted")
    if name in _FILES:
        loose = [key for key in ("ignoremissingfiles", "ignorecorruptfiles") if options.get(key) == "true"]
        if loose:
            return Replay(OPAQUE, f"{loose[0]}=true lets a replay miss files")
        return Replay(TRANSACTIONAL, "as long as its files are neither changed nor deleted")
    return Replay(TRANSACTIONAL, f"{_TAKEN}the source {name!r} gives the same rows for the same offsets")
