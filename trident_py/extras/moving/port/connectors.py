"""Kafka, Redis and JDBC: their builders become calls of `trident_py.extras.moving.java.connectors`."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tree_sitter import Node

from .code import Code
from .scope import Scope


def connector(
    kind: str,
    name: str,
    node: Node,
    scope: Scope,
    translate_arguments: Callable[[Sequence[Node]], list[Code]],
    this: Code | None = None,
) -> Code | None:
    """Translate a call of a connector's class, or return None if it is none."""
    return None
