"""Dead letters: the stream of the tuples that `topology.poison` excludes."""

from __future__ import annotations

from typing import Self

from ..engine.processors import LETTER, DeadLetters
from ..errors import DefinitionError
from ..model.plan import DRPCNode, SpoutNode
from .graph import NodeHandle


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
