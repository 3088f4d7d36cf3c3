"""Topologies of Storm's core, which a `main` submits beside its own: they stay on Storm."""

from __future__ import annotations

from tree_sitter import Node

from .expressions import class_named
from .layout import break_lines
from .scope import Scope
from .source import Untranslatable, child, children, optional, text

_REASON = "{}() makes a topology of Storm's core, which stays on Storm: this run does not start it"


def leave_to_storm(node: Node, scope: Scope) -> list[str]:
    """Return the lines for a call that submits such a topology, which is reported; no lines for any other call."""
    arguments = children(optional(node, "arguments"))
    if text(child(node, "name")) != "submitTopology" or len(arguments) < 3 or not _is_core(arguments[2], scope):
        return []
    line, name = node.start_point[0] + 1, text(child(arguments[2], "name"))
    reason = _REASON.format(name)
    scope.report.refuse(line, Untranslatable(node, reason, "porting.md#what-old-code-imports"))
    java = [f"# {part.strip()}" for part in text(node).splitlines()]
    return [*java, *break_lines(f'logging.getLogger("trident_py").warning("{scope.source.name}:{line}: {reason}")')]


def _is_core(made: Node, scope: Scope) -> bool:
    """Tell whether a method of the given files returns the topology, and makes none of Trident."""
    owner = optional(made, "object")
    if made.type != "method_invocation":
        return False
    named = class_named(owner, scope) if owner is not None else None
    cls = scope.find_class(named) if named is not None else scope.cls
    methods = scope.world.methods(cls, text(child(made, "name"))) if cls is not None else []
    bodies = [text(one.body) for one in methods if one.body is not None]
    return bool(bodies) and all("new TopologyBuilder(" in one and "TridentTopology" not in one for one in bodies)
