"""When `topology.poison` is refused: where an excluded tuple could not be recognised, or would be lost."""

from __future__ import annotations

from ...config import Config
from ...engine.lowering import lower
from ...engine.processors import DeadLetters
from ...errors import DefinitionError
from ...model.plan import DRPCNode, Plan, ProcessorNode, SpoutNode
from ...report.guarantees.replays import replay_of
from ...spouts.interfaces import NON_TRANSACTIONAL
from ...spouts.sparkspout import SparkSpout

SETTING = f'{Config.TOPOLOGY_POISON} is "bisect"'


def check_poison(plan: Plan) -> None:
    """Called when a topology is submitted. Raises DefinitionError where ``topology.poison`` cannot keep its promise."""
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
    processors = (child for child, _ in component.children(node) if isinstance(child, ProcessorNode))
    letters = {child.id for child in processors if isinstance(child.spec, DeadLetters)}
    sources = ({other.id for other in component.before(update)} for update, _ in component.updates())
    if not any(letters & found for found in sources):
        raise DefinitionError(
            f"{SETTING}, but the dead letters of spout {node.spout_id!r} reach no state, so an excluded tuple would be "
            "lost. Persist them: stream.deadLetters().partitionPersist(...) on the stream that newStream returned"
        )
