"""What extras may put round the start of a component and into its tasks, found by entry point."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol, TypeVar

from ..checkpoints.metadata_store import MetadataStore
from ..config import Config
from ..entry_points import load, names
from ..model.plan import Node, Plan, ProcessorNode
from ..tuples import TransactionAttempt
from .processors.base import NodeContext, Processor
from .recovery import Agreement
from .store_position import CheckpointState

STARTS = "trident_py.starts"
"""The group of entry points that refer to a `WrapStart`."""
WATCHES = "trident_py.watches"
"""The group of entry points that refer to a `MakeWatch`."""
NEEDED = {Config.TOPOLOGY_DETERMINISM_CHECK: "determinism"}
"""Settings that a watch has to carry out, by its name."""

T = TypeVar("T")


class Start(Protocol):
    """The start of a component: `Opening`, or what stands round one."""

    def open(self) -> tuple[Agreement, dict[str, int]]:
        """Open all states. Returns what they agree on, and each state's generation."""

    def examine(self) -> Agreement:
        """Raise as `open` does, and change nothing."""


@dataclass(frozen=True)
class StartInfo:
    """What a start is about. ``store`` is the checkpoint's metadata store. ``tell(txid, text)`` warns the user."""

    plan: Plan
    conf: Mapping[str, Any]
    standing: CheckpointState
    store: MetadataStore
    tell: Callable[[int, str], None]


class Difference(NamedTuple):
    """What a watch found out about an operation, as text. The run reports it as an event of kind "unsteady"."""

    node: Node
    text: str


class TaskWatch(Protocol):
    """Watches the attempts of one task."""

    @abstractmethod
    def begin(self, attempt: TransactionAttempt) -> None:
        """Called when an attempt begins, before any of its operations run."""

    @abstractmethod
    def make(self, node: ProcessorNode, context: NodeContext) -> Processor:
        """Make the processor of a node: that of its spec, or one round it."""

    @abstractmethod
    def end(self) -> Iterator[Difference]:
        """Called when an attempt is done in this task, without a failure."""


class Kept(Protocol):
    """Gives what a run keeps once in this process: made at the first call, and closed when the run ends."""

    def __call__(self, kind: Callable[[], T]) -> T: ...


WrapStart = Callable[[Start, StartInfo], Start]
"""Gives what stands in place of a start. Called in the driver."""
MakeWatch = Callable[[Mapping[str, Any], Kept], TaskWatch | None]
"""Makes the watch of a task from the run's configuration, where the task runs; None if it has none. Picklable: it
travels with the program."""


def wrap_start(start: Start, about: StartInfo) -> Start:
    """Return the start, with what extras put round it."""
    for name in names(STARTS):
        start = load("a start", name, STARTS)(start, about)
    return start


def watches_of(conf: Mapping[str, Any]) -> tuple[MakeWatch, ...]:
    """Return what makes the watches of a run. Raises DefinitionError if a setting needs one that is missing."""
    for setting, name in NEEDED.items():
        if conf.get(setting) is not None:
            load(setting, name, WATCHES)
    return tuple(load("a run", name, WATCHES) for name in names(WATCHES))
