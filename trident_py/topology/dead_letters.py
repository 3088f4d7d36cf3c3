"""Dead letters: the stream of the tuples that `topology.poison` excludes, and when that setting is refused."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self

from ..config import Config
from ..engine.lowering import lower
from ..engine.poison import is_on
from ..engine.processors import LETTER, DeadLetters
from ..errors import DefinitionError
from ..model.plan import DRPCNode, Node, Plan, ProcessorNode, SpoutNode
from ..report.guarantees.replays import replay_of
from ..spouts.interfaces import NON_TRANSACTIONAL
from ..spouts.sparkspout import SparkSpout
from .graph import NodeHandle

SETTING = f'{Config.TOPOLOGY_POISON} is "bisect"'


class Lettered(NodeHandle):
    """The part of a stream's handle that adds dead letters."""

    def deadLetters(self) -> Self:
        """Return the tuples of this spout that ``topology.poison`` excludes from their batches; call it on the stream
        that newStream returned.

        Fields: ``txid``, ``spout``, ``partition`` (of the spout), ``index`` (in the order of emission, from 0),
        ``tuple`` (its values as a JSON list), ``operation``, ``operationPartition``, and ``error`` (type and text). The
        first four identify a letter. Persist it into any state: it is written in the batch that excludes the tuple. On
        replay: the same letters. Raises DefinitionError for any other stream.
        """
        node = self.graph.node(self.node_id)
        if not isinstance(node, SpoutNode) or isinstance(node, DRPCNode):
            raise DefinitionError(
                "deadLetters() belongs to the stream of a spout, as newStream returns it: the tuples that are excluded "
                "are the spout's. Call it before the first operation"
            )
        return self._process(DeadLetters(node.spout_id), LETTER)


def check_poison(plan: Plan, conf: Mapping[str, Any] | None) -> None:
    """Called when a topology is submitted. Raises DefinitionError where ``topology.poison`` cannot keep its promise."""
    if not is_on(conf or {}):
        return
    for component in plan.components():
        for node in component.nodes:
            if isinstance(node, SpoutNode) and not isinstance(node, DRPCNode):
                _check_spout(node)
                _check_order(component, plan, node)
                _check_letters(component, node)


def _check_spout(node: SpoutNode) -> None:
    if replay_of(node.spout).kind == NON_TRANSACTIONAL:
        raise DefinitionError(
            f"{SETTING}, but spout {node.spout_id!r} does not promise to emit a failed batch again, so the tuples that "
            "make it fail cannot be found, and excluding them would lose others. Use a transactional or opaque spout, "
            "or leave the setting out"
        )


def _check_order(component: Plan, plan: Plan, node: SpoutNode) -> None:
    """Raise if a tuple of a source of Spark has no fixed number."""
    if not isinstance(node.spout, SparkSpout):
        return
    lowered = lower(component, plan)
    if max(stage.partitions for stage in lowered.levels[0]) > 1:
        raise DefinitionError(
            f"{SETTING}, but Spark brings the rows of spout {node.spout_id!r} to several partitions in no fixed order, "
            "so a tuple could not be recognised in a replay. Give the steps before the first repartition one "
            "partition, or read the source with a spout of trident_py, or leave the setting out"
        )


def _check_letters(component: Plan, node: SpoutNode) -> None:
    letters = {child.id for child, _ in component.children(node) if _is_letters(child)}
    sources = ({other.id for other in component.before(update)} for update, _ in component.updates())
    if not any(letters & found for found in sources):
        raise DefinitionError(
            f"{SETTING}, but the dead letters of spout {node.spout_id!r} reach no state, so an excluded tuple would be "
            "lost. Persist them: stream.deadLetters().partitionPersist(...) on the stream that newStream returned"
        )


def _is_letters(node: Node) -> bool:
    return isinstance(node, ProcessorNode) and isinstance(node.spec, DeadLetters)
