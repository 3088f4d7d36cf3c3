"""Checks and properties of any spout, for the planner and the coordination."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from ..errors import DefinitionError
from ..tuples import Fields
from .interfaces import (
    KINDS,
    IBatchSpout,
    ICommitterTridentSpout,
    IRichSpout,
    ITridentDataSource,
    ITridentSpout,
)
from .partitioned import IOpaquePartitionedTridentSpout, IPartitionedTridentSpout
from .sparkspout import SparkSpout

SPOUTS = (
    IBatchSpout,
    ITridentSpout,
    IPartitionedTridentSpout,
    IOpaquePartitionedTridentSpout,
    IRichSpout,
    SparkSpout,
)
MAX_PARALLELISM = "topology.max.task.parallelism"


class SpoutNodeInfo(NamedTuple):
    """A spout in a program: its id in the topology, its declaration and its number of partitions."""

    id: str
    spout: Any
    partitions: int
    fields: Fields


def check_spout(spout: Any) -> None:
    """Raise DefinitionError unless it is a spout of a known kind."""
    if isinstance(spout, type):
        raise DefinitionError(f"{spout.__name__} is a class; give an instance: {spout.__name__}(...)")
    if not isinstance(spout, SPOUTS):
        names = ", ".join(interface.__name__ for interface in SPOUTS)
        raise DefinitionError(f"{spout!r} is not a spout; a spout is one of: {names}")
    if spout.kind not in KINDS:
        raise DefinitionError(f"{spout!r}: no kind {spout.kind!r}; the kinds are: {', '.join(KINDS)}")


def output_fields(spout: Any) -> Fields:
    """Return the fields that a spout declares. Raises DefinitionError if it says nothing of them."""
    check_spout(spout)
    try:
        declared = spout.getOutputFields()
    except NotImplementedError as error:
        raise DefinitionError(str(error)) from error
    if declared is None:
        raise DefinitionError(f"{spout!r} declares no fields; getOutputFields returns them, and Fields() means none")
    return Fields.of(declared)


def snapshot(spout: Any) -> Any:
    """Return the spout's own snapshot. Raises DefinitionError if it is not a spout, or cannot be copied."""
    check_spout(spout)
    return spout.snapshot()


def is_home(spout: ITridentDataSource) -> bool:
    """Return whether the spout emits in the driver process; its tuples then travel in the descriptors."""
    return isinstance(spout, IBatchSpout | IRichSpout | ICommitterTridentSpout) or bool(spout.home)


def is_finite(spout: Any) -> bool:
    """Return whether the spout itself can end. (A coordinator may define isExhausted too.)"""
    return method_of(spout, "isExhausted") is not None


def configuration(spout: Any) -> dict[str, Any]:
    """Return the spout's own settings."""
    return dict(spout.getComponentConfiguration() or {})


def partitions_of(spout: Any, wanted: int) -> int:
    """Return ``wanted``, limited by the spout's own ``topology.max.task.parallelism``."""
    limit = configuration(spout).get(MAX_PARALLELISM)
    return wanted if limit is None else max(1, min(wanted, int(limit)))


def has_ended(source: Any, txid: int) -> bool:
    """Return whether txid and all later ones are empty, by ``isExhaustedAt(txid)`` or else by ``isExhausted()``."""
    at = method_of(source, "isExhaustedAt")
    return bool(at(txid) if at is not None else optional(source, "isExhausted")())


def optional(target: Any, name: str) -> Callable[..., Any]:
    """Return the method of that name, or one that does nothing."""
    method = method_of(target, name)
    return method if method is not None else lambda *arguments: None


def method_of(target: Any, name: str) -> Callable[..., Any] | None:
    """Return an optional method of a user's spout, coordinator, emitter or partition, or None. As in Storm, users need
    not inherit from our inner classes. Some methods replace others, so their absence has a meaning."""
    method = getattr(target, name, None)
    return method if callable(method) else None
