"""The checks of both clusters on a submission, before anything starts."""

from __future__ import annotations

from typing import Any

from .. import config
from ..errors import DefinitionError
from ..guarantees import announce
from ..names import check_folder_name
from ..plan import SpoutNode
from .topology import Topology, TridentTopology


def check_submission(name: Any, conf: Any, topology: Any) -> None:
    """Checks the arguments of submitTopology and logs the topology's guarantees.

    Raises DefinitionError for arguments in the wrong order, a topology that is not built, names that cannot name a
    folder, an invalid configuration, or states below ``conf["topology.guarantee"]``.
    """
    if isinstance(topology, TridentTopology):
        raise DefinitionError("submitTopology takes a built topology: submitTopology(name, conf, topology.build())")
    if not isinstance(topology, Topology) or not isinstance(name, str) or not name:
        got = ", ".join(type(argument).__name__ for argument in (name, conf, topology))
        raise DefinitionError(f"submitTopology takes a name, a configuration and a built topology; got {got}")
    check_folder_name("the topology", name)
    for node in topology.plan.nodes:
        if isinstance(node, SpoutNode):
            check_folder_name("a stream of the topology", node.spout_id)
    config.check(conf)
    announce(name, conf, topology.plan)
