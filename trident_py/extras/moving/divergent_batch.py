"""The tuples of the batch in which two sides diverged: those that touch the divergent key, where that can be told."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

from ...engine.hooks import Difference, TaskWatch
from ...engine.processors.base import NodeContext, Processor
from ...engine.program import BatchInfo, Program
from ...engine.task import LevelTask, run_attempt
from ...errors import DefinitionError
from ...model.canonical import canonical
from ...model.chunks import Chunk
from ...model.plan import Node, ProcessorNode, SpoutNode
from ...model.requirements import role
from ...model.resources import close_all
from ...model.user_traceback import describe_error
from ...state.roles import location_of, opens_values
from ...tuples import TransactionAttempt
from ..txid.components import Component, components_of
from .batch_again import Emitted, Unknown, emit_again
from .comparison import GLOBAL_KEYS, Side
from .divergence import Divergence, shorten
from .outputs import read_key_map
from .sides import OURS, ComparisonOptions
from .source_options import state_of
from .storm_values import Key

Matches = Callable[[Chunk], bool]


@dataclass(frozen=True)
class ShownTuples:
    """What is known of a batch's tuples. ``count``: of the batch; ``shown``: some of them, as text; ``more``: whether
    there are others like them; ``told``: what their sources have told; ``unknown``: why these may not
    touch the key, or, without a count, why nothing is known."""

    unknown: str = ""
    component: str = ""
    count: int | None = None
    shown: tuple[str, ...] = ()
    more: bool = False
    told: tuple[str, ...] = ()


@dataclass(frozen=True)
class BatchOptions:
    """What names the run whose batch is shown. ``most``: so many tuples of it."""

    topology: str | None
    checkpoint: str | None
    name: str | None
    settings: tuple[str, ...]
    most: int

    def show(self, options: ComparisonOptions, sides: Sequence[Side], first: Divergence) -> ShownTuples:
        """Return the tuples of the batch in which a key diverged. Raises DefinitionError if the topology writes neither
        side."""
        if self.topology is None:
            return ShownTuples("name the topology of its run (--topology), and its --checkpoint")
        written = _Written.of(options, sides, self)
        if first.txid is None:
            return ShownTuples("no side says in which batch")
        try:
            again = emit_again(written.component, first.txid)
        except Exception as error:
            return ShownTuples(str(error) if isinstance(error, Unknown) else describe_error(error))
        try:
            found = list(islice(written.search(first, again.tuples), self.most + 1))
            unknown = "" if found else "none of them alone touches the key"
        except Unknown as error:
            found, unknown = [], f"which of them touch the key is not known: {error}"
        found = found if not unknown else again.tuples[: self.most + 1]
        shown = tuple(written.describe(each) for each in found[: self.most])
        return ShownTuples(
            unknown, written.component.shown, len(again.tuples), shown, len(found) > self.most, tuple(again.told)
        )


@role
@runtime_checkable
class NamesKeys(Protocol):
    """A map that keeps each key under a name that it makes of it."""

    @property
    def keyFactory(self) -> Any: ...


@dataclass(frozen=True)
class _Written:
    """The state of a side, where the topology updates it. ``key``: the columns of its rows' keys; None for a map;
    ``shown_key``: returns a key as the comparison shows it."""

    component: Component
    node: ProcessorNode
    key: tuple[str, ...] | None
    shown_key: Callable[[Key], Key]

    @classmethod
    def of(cls, options: ComparisonOptions, sides: Sequence[Side], named: BatchOptions) -> _Written:
        typed = ((options.right, sides[1]), (options.left, sides[0]))
        own = [(state_of(text, ""), side) for text, side in typed if options.form_of(text) == OURS]
        file = options.key_map and Path(options.key_map).absolute()  # a topology file is loaded in its own folder
        components = components_of(named.topology, named.checkpoint, named.name, named.settings)
        updates = [(each, *use) for each in components if each.program for use in each.program.lowered.plan.updates()]
        for state, side in own:
            for component, node, use in updates:
                if location_of(state) is not None and location_of(use.factory) == location_of(state):
                    left = side is sides[0]
                    names = {right: name for name, right in options.columns().items()} if left else {}
                    key = None if opens_values(state) else tuple(names.get(n, n) for n in side.key or ())
                    mapped = read_key_map(file, side.key or sides[1].key) if left and file else {}
                    return cls(component, node, key, partial(_name_key, state, mapped))
        raise DefinitionError(f"--topology {named.topology}: it writes neither {options.left} nor {options.right}")

    def search(self, first: Divergence, tuples: list[Emitted]) -> Iterator[Emitted]:
        """Yield the tuples that reach the state under the key. Raises Unknown if that cannot be told."""
        program = self.component.program
        assert program is not None and first.txid is not None
        before = [node for node in program.lowered.plan.before(self.node) if node is not self.node]
        if state := next((node.state for node in before if isinstance(node, ProcessorNode) and node.state), None):
            raise Unknown(f"they pass state {state.name!r}, which is not asked again")
        with closing(KeySearch(program, self.node, self._make_matches(first.key), first.txid)) as search:
            yield from search.find(tuples)

    def _make_matches(self, key: Key) -> Matches:
        """Return what tells whether tuples that reach the state have the key."""
        if self.key is None and key[0] in GLOBAL_KEYS:
            return lambda chunk: True
        names: Sequence[str] = self.node.spec.groups_by if self.key is None else self.key
        if self.key == () and isinstance(key[0], dict):  # a row without a key
            names, key = tuple(key[0]), tuple(key[0].values())
        if len(names) != len(key) or not set(names) <= set(self.node.spec.inputs):
            raise Unknown(f"its state gets {', '.join(self.node.spec.inputs)}, and makes the key of it")
        wanted = canonical(key)
        return lambda chunk: any(canonical(self.shown_key(row)) == wanted for row in chunk.rows(names))

    def describe(self, emitted: Emitted) -> str:
        assert self.component.program is not None
        info = self.component.program.spouts[emitted.spout]
        values = ", ".join(f"{name}={value!r}" for name, value in zip(info.fields, emitted.values, strict=False))
        return shorten(f"{info.id}, partition {emitted.partition}: {values}")


def _name_key(state: Any, mapped: Mapping[bytes, Key], key: Key) -> Key:
    named = (state.keyFactory.build(list(key)),) if isinstance(state, NamesKeys) else key
    return mapped.get(canonical(named), named)


class KeySearch(TaskWatch):
    """Runs tuples through the functions before a state, and looks whether a key arrives there. No state is made."""

    def __init__(self, program: Program, node: Node, matches: Matches, txid: int) -> None:
        self.program = replace(program, watches=(lambda conf, kept: self,))
        self.node, self.matches, self.txid = node, matches, txid
        self.arrived = False
        self._tasks: dict[tuple[int, int], LevelTask] = {}

    def find(self, tuples: list[Emitted]) -> Iterator[Emitted]:
        """Yield the tuples with which the key arrives, by halves."""
        if not tuples or not self._arrives(tuples):
            return
        if len(tuples) == 1:
            yield tuples[0]
            return
        half = len(tuples) // 2
        yield from self.find(tuples[:half])
        yield from self.find(tuples[half:])

    def _arrives(self, tuples: list[Emitted]) -> bool:
        self.arrived = False
        nodes = [node for node in self.program.lowered.plan.nodes if isinstance(node, SpoutNode)]
        rows = []
        for spout, partition in dict.fromkeys(each[:2] for each in tuples):
            values = [each.values for each in tuples if each[:2] == (spout, partition)]
            node = nodes[spout]
            wanted = [name for name in node.fields if name in self.program.lowered.wanted[node.id]]
            rows.append((partition, spout, Chunk.of_rows(node.fields, values, wanted)))
        failures = run_attempt(self.program, self._task, BatchInfo(self.txid, 1, dry=True), rows).failures
        if failures:
            raise Unknown(f"{failures[0].operation} fails: {describe_error(failures[0].error)}")
        return self.arrived

    def _task(self, level: int, partition: int) -> LevelTask:
        if (level, partition) not in self._tasks:
            self._tasks[level, partition] = LevelTask(_NoStates(), self.program, level, partition, encodes=False)
        return self._tasks[level, partition]

    def close(self) -> None:
        close_all(task.close for task in self._tasks.values())

    def begin(self, attempt: TransactionAttempt) -> None: ...

    def make(self, node: ProcessorNode, context: NodeContext) -> Processor:
        return node.spec.make(context) if node.state is None else _Arrivals(self, node, context)

    def end(self) -> Iterator[Difference]:
        return iter(())


class _Arrivals(Processor[Any]):
    """Stands where a state is updated or asked: looks at what arrives, and passes nothing on."""

    def __init__(self, search: KeySearch, node: ProcessorNode, context: NodeContext) -> None:
        super().__init__(node.spec, context)
        self._search, self._node = search, node

    def execute(self, port: int, chunk: Chunk) -> None:
        if self._node.id == self._search.node.id:
            self._search.arrived = self._search.arrived or self._search.matches(chunk)


class _NoStates:
    """What a task without states gets of them."""

    def state(self, *place: Any) -> Any:
        raise Unknown("a state is asked")

    def metrics_of(self, *place: Any) -> None:
        return None

    def keep(self, kind: Callable[[], Any]) -> Any:
        return kind()
