"""A topology under construction: what is there so far, and the small draws that all operations need."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from hypothesis import strategies as st

from .steps import REPARTITIONS, Case, Field, Step

TEXTS = ["a", "b", "1", ""]
KEYS: dict[str, list[Any]] = {
    "": [1, 1.0, True, "1", None, "a", "b", 2, -1, 0.5, ["x", 1]],
    "string": [*TEXTS, None],
    "bigint": [1, 2, -1, 2**40, None],
}
NUMBERS = list(range(-3, 6))
POINTS = ["beginCommit", "update", "put", "commit", "afterCommit"]


class Draft:
    """One topology under construction. ``known``: which streams have partitions that the semantics page fixes;
    ``behind``: which run in the commit phase; ``beside``: of a state that is asked, whether from the batch phase."""

    def __init__(self, draw: Callable[[Any], Any]) -> None:
        self.draw = draw
        self.steps: list[Step] = []
        self.known: list[bool] = []
        self.behind: list[bool] = []
        self.beside: dict[int, bool] = {}
        self.names = 0
        self.batches = draw(st.integers(1, 4))
        self.failures = draw(st.booleans())

    def done(self) -> Case:
        used = {parent for step in self.steps for parent in step.inputs}
        steps = [
            step._replace(collected=step.op not in REPARTITIONS and (step.id not in used or self.chance(4)))
            for step in self.steps
        ]
        return Case(tuple(steps), self.batches)

    # -- small draws ----------------------------------------------------------------------------------------------

    def one(self, values: Any) -> Any:
        return self.draw(st.sampled_from(values))

    def chance(self, of: int) -> bool:
        return self.draw(st.integers(1, of)) == 1

    def attempts(self) -> set[tuple[int, int]]:
        """When something fails; mostly never."""
        if not self.failures or not self.chance(3):
            return set()
        txid = self.one(range(1, self.batches + 1))
        return {(txid, attempt) for attempt in range(self.one([1, 1, 1, 2]))}

    def field(self, num: bool, ddl: str = "") -> Field:
        self.names += 1
        return Field(f"f{self.names}", num, ddl)

    def pick(self, suits: Callable[[Step], bool] = lambda step: True) -> Step | None:
        """An earlier step that suits, rather a late one."""
        fitting = [step for step in self.steps if suits(step)]
        return self.one(fitting[::-1]) if fitting else None

    def any(self, suits: Callable[[Step], bool] = lambda step: True) -> Step:
        """As pick, where the first source always suits."""
        found = self.pick(suits)
        return self.steps[0] if found is None else found

    def some(self, step: Step, least: int = 0, most: int = 2) -> list[str]:
        most = min(most, len(step.fields))
        return self.draw(st.lists(st.sampled_from(step.names), min_size=least, max_size=most, unique=True))

    def add(self, op: str, inputs: list[Step], fields: Any, known: bool | None = None, /, **args: Any) -> Step:
        hint = self.one([None, None, 1, 2, 3]) if op not in REPARTITIONS else None
        step = Step(len(self.steps), op, tuple(i.id for i in inputs), tuple(fields), args, hint)
        self.steps.append(step)
        self.known.append(all(self.known[i.id] for i in inputs) if known is None else known)
        self.behind.append(op in ("persist", "put", "ask") or any(self.behind[i.id] for i in inputs))
        return step


def connected(steps: list[Step], one: Step, other: Step) -> bool:
    """Whether two steps are in one component: a state may only be read in step with its updates there."""
    group = list(range(len(steps)))
    for step in steps:
        for parent in step.inputs:
            old, new = group[parent], group[step.id]
            group = [new if g == old else g for g in group]
    return group[one.id] == group[other.id]
