"""A random topology as data: steps with their fields, and the partition counts that its hints give (semantics, 17)."""

from __future__ import annotations

from typing import Any, NamedTuple

REPARTITIONS = ("shuffle", "localOrShuffle", "global_", "batchGlobal", "broadcast", "partitionBy", "custom")
KINDS = ("nontransactional", "transactional", "opaque", "memory")


class Field(NamedTuple):
    """``num``: always a whole number. ``ddl``: the declared type, or nothing."""

    name: str
    num: bool
    ddl: str = ""

    @property
    def declared(self) -> str:
        return f"{self.name} {self.ddl}" if self.ddl else self.name


class Step(NamedTuple):
    """One operation on earlier steps. ``hint``: its parallelismHint. ``collected``: the test sees its tuples."""

    id: int
    op: str
    inputs: tuple[int, ...]
    fields: tuple[Field, ...]
    args: dict[str, Any]
    hint: int | None = None
    collected: bool = False

    @property
    def names(self) -> list[str]:
        return [field.name for field in self.fields]

    def at(self, names: Any) -> list[int]:
        return [self.names.index(name) for name in names or ()]


class Case(NamedTuple):
    steps: tuple[Step, ...]
    batches: int


def combines(step: Step) -> bool:
    """Whether the step aggregates in the partitions of its input before tuples move."""
    from .usercode import COMBINERS

    if step.op == "aggregate":
        return step.args["mode"] == "aggregate" and all(part[1] in COMBINERS for part in step.args["parts"])
    return step.op == "firstN" or (step.op == "persist" and step.args["agg"] in COMBINERS)


def moves(step: Step) -> bool:
    """Whether the step repartitions its inputs first."""
    if step.op == "aggregate":
        return step.args["mode"] == "aggregate"
    if step.op == "query":
        return step.args["grouped"]
    return step.op in ("persist", "put", "ask", "join", "groupedMulti", "firstN")


class Counts:
    """The number of partitions of every step, ``(id, "main")``, and of partial aggregations, ``(id, "partial")``."""

    def __init__(self, steps: tuple[Step, ...]) -> None:
        self.parent: dict[Any, Any] = {}
        for step in steps:
            self._link(step, steps)
        self.count: dict[Any, int] = {}
        for step in steps:
            root = self._root((step.id, "main"))
            self.count[root] = max(self.count.get(root, 1), step.hint or 1)

    def of(self, step: Step, part: str = "main") -> int:
        return self.count.get(self._root((step.id, part)), 1)

    def _link(self, step: Step, steps: tuple[Step, ...]) -> None:
        local = "partial" if combines(step) else None if moves(step) else "main"
        for parent in map(steps.__getitem__, step.inputs):
            if local is not None and parent.op not in REPARTITIONS and step.op not in REPARTITIONS:
                self._join((step.id, local), (parent.id, "main"))
        if step.op == "ask":
            self._join((step.id, "main"), (step.args["state"], "main"))

    def _root(self, key: Any) -> Any:
        while self.parent.setdefault(key, key) != key:
            key = self.parent[key]
        return key

    def _join(self, one: Any, other: Any) -> None:
        self.parent[self._root(one)] = self._root(other)
