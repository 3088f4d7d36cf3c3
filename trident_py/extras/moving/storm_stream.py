"""What Storm remembers of a stream: the last committed txid, the batches under way, and the metadata of each.

    <root>/<stream>/coordinator/currtx           the txid after the last committed one; 1 if it is missing
    <root>/<stream>/coordinator/currattempts     the attempts of the txids that have begun
    <root>/<stream>/coordinator/meta/<txid>      what the coordinator says of a batch
    <root>/<stream>/user/<partition>/<txid>      what the emitter says of it, for each partition

The highest node need not be committed: an opaque spout writes it when the batch commits, a transactional one when it
emits; ``currtx`` decides. But Storm says that a batch has succeeded before it writes ``currtx``, and its spouts then
drop what they know of the batch before. So a node that is gone proves that the batch of ``currtx`` is committed too.
Source in Storm: MasterBatchCoordinator.ack, RotatingTransactionalState.cleanupBefore.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, NoReturn

from ...errors import DefinitionError
from ...filesystems.base import is_number
from ...model.json_text import parse_json
from .zookeeper import Nodes

ByTxid = dict[int, Any]


@dataclass(frozen=True)
class StormStream:
    """One stream. ``current``: the txid after the last committed one; ``metadata``: the coordinator's by txid;
    ``partitions``: the emitters' by partition and txid."""

    name: str
    current: int
    attempts: frozenset[int] = frozenset()
    metadata: ByTxid = field(default_factory=dict)
    partitions: Mapping[str, ByTxid] = field(default_factory=dict)

    def has_begun(self, txid: int) -> bool:
        """Return whether a batch has begun: an attempt of it, or metadata, is recorded."""
        return txid in self.attempts or txid in self.metadata or any(txid in of for of in self.partitions.values())

    @property
    def committed(self) -> int:
        """The last txid that is committed for sure."""
        current, before = self.current, self.current - 1
        if before == 0 or current not in self.metadata:
            return before
        begins = [partition for partition, of in self.partitions.items() if min(of) == current]
        cleaned = min(self.metadata) == current or any(map(self._was_read, begins))
        return current if cleaned else before

    def check(self) -> None:
        """Raise DefinitionError if nodes are missing, or of several moments: the coordinator keeps the metadata of the
        last committed batch until the next one has succeeded."""
        known = self.metadata or {txid for of in self.partitions.values() for txid in of}
        if not known and self.current > 1:
            self._refuse("there are none of any batch")
        if min(known, default=1) > self.current or (self.current > 1 and not self.metadata):
            self._refuse(f"those of the batches begin with {min(known)}")

    def list_places(self, txid: int) -> list[tuple[str, int]]:
        """Return the topics and partitions that the coordinator of a Kafka spout has noted of a batch."""
        noted = self.metadata.get(txid)
        every = [each for each in (noted if isinstance(noted, list) else ()) if isinstance(each, dict)]
        return [(each["topic"], each["partition"]) for each in every if each.keys() >= {"topic", "partition"}]

    def _refuse(self, why: str) -> NoReturn:
        raise DefinitionError(
            f"stream {self.name}: its nodes in ZooKeeper do not belong together: by coordinator/currtx batch "
            f"{self.current - 1} is the last committed one, and {why}. A dump must have all nodes of the stream, made "
            "after the topology was killed. Nothing was changed"
        )

    def _was_read(self, partition: str) -> bool:
        """Return whether a partition that the batch of ``current`` has was in the batch before too. Each batch has
        metadata of each of its partitions."""
        before, now = self.metadata.get(self.current - 1), self.metadata[self.current]
        if before == now:
            return True
        topic, _, number = partition.rpartition("@")
        return is_number(number) and {"topic": topic, "partition": int(number)} in (
            before if isinstance(before, list) else []
        )


def streams_of(nodes: Nodes, root: str) -> dict[str, StormStream]:
    """Return the streams of all topologies below the root, by their ids. Raises DefinitionError for a node that is not
    as Storm writes it."""
    names = {path.removeprefix(f"{root}/").split("/")[0] for path in nodes if path.startswith(f"{root}/")}
    return {name: _read_stream(nodes, f"{root}/{name}", name) for name in sorted(names)}


def _read_stream(nodes: Nodes, place: str, name: str) -> StormStream:
    coordinator = f"{place}/coordinator"
    current = _number(nodes, f"{coordinator}/currtx", 1)
    attempts = _json(nodes, f"{coordinator}/currattempts") or {}
    if not isinstance(attempts, dict) or not all(map(is_number, attempts)):
        raise DefinitionError(f"node {coordinator}/currattempts holds {str(attempts)[:80]}, and no attempts by txid")
    metadata: ByTxid = {}
    partitions: dict[str, ByTxid] = defaultdict(dict)
    for path in nodes:
        folder, _, last = path.rpartition("/")
        if not is_number(last):
            continue
        if folder == f"{coordinator}/meta":
            metadata[int(last)] = _json(nodes, path)
        elif folder.startswith(f"{place}/user/"):
            partitions[folder.removeprefix(f"{place}/user/")][int(last)] = _json(nodes, path)
    return StormStream(name, current, frozenset(map(int, attempts)), metadata, dict(partitions))


def _json(nodes: Nodes, path: str) -> Any:
    """Return the value of a node; None for one that is missing or null."""
    text = nodes.get(path, "null")
    try:
        return parse_json(text)
    except ValueError as error:
        raise DefinitionError(f"node {path} holds {text[:80]!r}, which is no JSON: Storm did not write it") from error


def _number(nodes: Nodes, path: str, otherwise: int) -> int:
    value = _json(nodes, path)
    if value is not None and (type(value) is not int or value < 1):
        raise DefinitionError(f"node {path} holds {value!r}, and not a txid: no spout of Storm wrote it")
    return otherwise if value is None else value


def find_committed(streams: Iterable[StormStream]) -> int:
    """Return the last committed txid of the streams of one component. They share their txids: Storm writes the next
    one to each in turn, so after a kill it is the highest. Raises DefinitionError if they never had the same."""
    txids = {stream.committed for stream in streams}
    if txids and max(txids) - min(txids) > 1:
        names = ", ".join(f"{stream.name} {stream.committed}" for stream in streams)
        raise DefinitionError(
            f"the streams have committed other txids in Storm ({names}): there they were no one component. Import each "
            "as a topology of its own, or check which stream is which with --stream OURS=STORMS"
        )
    return max(txids, default=0)
