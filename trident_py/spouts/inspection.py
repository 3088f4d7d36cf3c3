"""Questions that the plan and the coordination ask of any spout."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..errors import DefinitionError
from ..tuples import Fields
from .interfaces import (
    KINDS,
    IBatchSpout,
    ICommitterTridentSpout,
    IRichSpout,
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


def check_spout(spout: Any) -> None:
    """Raises DefinitionError for what is not a spout, or a spout whose kind is none."""
    if isinstance(spout, type):
        raise DefinitionError(f"{spout.__name__} is a class; give an instance: {spout.__name__}(...)")
    if not isinstance(spout, SPOUTS):
        known = ", ".join(interface.__name__ for interface in SPOUTS)
        raise DefinitionError(f"{spout!r} is not a spout; a spout is one of: {known}")
    if spout.kind not in KINDS:
        raise DefinitionError(f"{spout!r}: no kind {spout.kind!r}; the kinds are: {', '.join(KINDS)}")


def output_fields(spout: Any) -> Fields:
    """The fields a spout declares. Raises DefinitionError when it declares none."""
    check_spout(spout)
    try:
        declared = spout.getOutputFields()
    except NotImplementedError as error:
        raise DefinitionError(str(error)) from error
    if declared is None or len(Fields.of(declared)) == 0:
        raise DefinitionError(f"{spout!r} declares no fields; getOutputFields must name at least one")
    return Fields.of(declared)


def snapshot(spout: Any) -> Any:
    """The spout's own snapshot. Raises DefinitionError for what is no spout, or cannot be copied."""
    check_spout(spout)
    return spout.snapshot()


def is_home(spout: Any) -> bool:
    """Whether it emits in the driver process; its tuples then travel in the descriptors."""
    if isinstance(spout, IBatchSpout | IRichSpout | ICommitterTridentSpout):
        return True
    return bool(getattr(spout, "home", False))


def is_finite(spout: Any) -> bool:
    """Whether the spout itself can end. (A coordinator may have isExhausted too.)"""
    return callable(getattr(spout, "isExhausted", None))


def configuration(spout: Any) -> dict[str, Any]:
    """The spout's own settings."""
    return dict(spout.getComponentConfiguration() or {})


def partitions_of(spout: Any, wanted: int) -> int:
    """How many partitions the spout gets when so many are wanted."""
    limit = configuration(spout).get(MAX_PARALLELISM)
    return wanted if limit is None else max(1, min(wanted, int(limit)))


def ended(spout: Any, txid: int) -> bool:
    """Whether txid and all later ones are empty. ``isExhaustedAt(txid)``, where there is one, knows best."""
    at = getattr(spout, "isExhaustedAt", None)
    if callable(at):
        return bool(at(txid))
    exhausted = getattr(spout, "isExhausted", None)
    return bool(exhausted()) if callable(exhausted) else False


def optional(target: Any, name: str) -> Callable[..., Any]:
    """The method of that name, or one that does nothing: users need not inherit from our inner classes."""
    method = getattr(target, name, None)
    return method if callable(method) else lambda *arguments: None
