"""The strategy: draws sources, operations on what is there so far, failures and hints."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from hypothesis import strategies as st

from .draft import KEYS, NUMBERS, POINTS, Draft, connected
from .steps import REPARTITIONS, Case, Field, Step
from .usercode import FUNCTIONS


class Topologies(Draft):
    """Draws one operation after the other."""

    def step(self) -> None:
        """One operation more, if the drawn one has an input that suits."""
        self.one([self.source, self.each, self.each, self.keep, self.replace, self.project, self.repartition,
                  self.repartition, self.aggregate, self.aggregate, self.best, self.persist, self.persist, self.put,
                  self.query, self.ask, self.merge, self.join, self.multi])()  # fmt: skip

    # -- operations -----------------------------------------------------------------------------------------------

    def source(self) -> None:
        ddl = self.one(["", "", "string", "bigint"])
        fields = [self.field(False, ddl), self.field(True, "bigint" if ddl and self.chance(2) else "")]
        row = st.tuples(st.sampled_from(KEYS[ddl]), st.sampled_from(NUMBERS))
        batches = self.draw(st.lists(st.lists(row, max_size=6), min_size=self.batches, max_size=self.batches))
        fail = {txid for txid, _ in self.attempts()}
        replays = {txid: self.draw(st.lists(row, max_size=6)) for txid in fail if self.chance(2)}
        self.add("source", [], fields, True, batches=batches, fail=fail, replays=replays)

    def each(self) -> None:
        source = self.any()
        name = self.one(list(FUNCTIONS))
        fields = None if self.chance(4) else self.some(source, 1)
        typed = self.one(["", "bigint"])
        made = [self.field(True, typed) for _ in range(FUNCTIONS[name][0])]
        form = self.one(["Function", "callable"])
        self.add("each", [source], [*source.fields, *made], fields=fields, fn=name, form=form, fail=self.attempts())

    def keep(self) -> None:
        source = self.any()
        fields = None if self.chance(3) else self.some(source)
        name, form = self.one(["light", "light", "all", "none"]), self.one(["Filter", "callable"])
        call = self.one(["filter", "each"])
        self.add("keep", [source], source.fields, fields=fields, fn=name, form=form, call=call, fail=self.attempts())

    def replace(self) -> None:
        source = self.any(lambda step: len(step.fields) > 0)
        op, form = self.one(["map", "flatMap", "peek"]), self.one(["Function", "callable"])
        if op == "flatMap":
            fields = [self.field(False), self.field(True, self.one(["", "bigint"]))]
            self.add(op, [source], fields, form=form, fail=self.attempts())
        elif op == "peek":
            self.add(op, [source], source.fields, fail=self.attempts())
        else:
            renamed = self.chance(2)
            nums = [field.num for field in source.fields][::-1]
            fields = [
                self.field(num) if renamed else field._replace(num=num, ddl="")
                for field, num in zip(source.fields, nums, strict=True)
            ]
            self.add(op, [source], fields, renamed=renamed, form=form, fail=self.attempts())

    def project(self) -> None:
        source = self.any()
        names = self.some(source, 1 if source.fields else 0, 3)
        self.add("project", [source], [source.fields[i] for i in source.at(names)])

    def repartition(self) -> None:
        source = self.pick(lambda step: step.op not in REPARTITIONS or self.chance(3))
        op = self.one([*REPARTITIONS, "identity"])
        if source is None or (op == "identity" and source.op in REPARTITIONS):
            return
        known = {"shuffle": False, "localOrShuffle": False, "identity": self.known[source.id]}.get(op, True)
        fields = self.some(source, 1) if op == "partitionBy" and source.fields else []
        self.add(op, [source], source.fields, known and self.known_arrival(source), fields=fields)

    def known_arrival(self, source: Step) -> bool:
        """Of a shuffled stream only what is in which partition is open; sent on by content that is settled."""
        return True if source.op not in REPARTITIONS else self.known[source.id]

    def part(self, source: Step, biased: bool, names: list[str]) -> tuple[list[str] | None, str, Field]:
        """Input fields, an aggregator and its output field."""
        name = self.one([n for n in names if biased or n != "biased"])
        numbers = [field.name for field in source.fields if field.num]
        if name == "sum" and not numbers:
            name = "count"
        fields = [self.one(numbers)] if name == "sum" else None if self.chance(3) else self.some(source)
        return fields, name, self.field(name not in ("sorted", "largest"))

    def aggregate(self) -> None:
        source = self.any()
        known = self.known[source.id]
        mode = self.one(["aggregate", "partition"] if known else ["aggregate"])
        group = self.some(source, 1) if source.fields and self.chance(2) else None
        names = self.one([["count", "sum", "biased", "largest"], ["count", "sum", "weights", "sorted", "echo"]])
        parts = [self.part(source, known or group is None, names) for _ in range(self.one([1, 1, 2, 3]))]
        if len(parts) == 1 and self.chance(2):
            parts = [(fields, name, self.field(field.num)) for fields, name, field in parts]
        keys = [source.fields[i] for i in source.at(group)]
        args = [(fields, name, field.name) for fields, name, field in parts]
        fail = self.attempts()
        made = [*keys, *(field for _, _, field in parts)]
        self.add(
            "aggregate", [source], made, group is None or known or None, mode=mode, group=group, parts=args, fail=fail
        )

    def best(self) -> None:
        source = self.any(lambda step: len(step.fields) > 0)
        numbers = [field for field in source.fields if field.num]
        if numbers and self.chance(3):
            field = self.one(numbers)
            n, reverse = self.one([1, 2, 5]), self.one([True, False])
            self.add("firstN", [source], [field], True, n=n, field=field.name, reverse=reverse)
        elif self.known[source.id]:
            field = self.one(numbers) if numbers and self.chance(2) else None
            fields = source.fields if field is None else [field]
            self.add("best", [source], fields, smallest=self.chance(2), field=field and field.name)

    def kind(self) -> str:
        return self.one(["transactional", "opaque", "memory", *([] if self.failures else ["nontransactional"])])

    def crash(self) -> tuple[str, set] | None:
        when = self.attempts()
        return (self.one(POINTS), when) if when else None

    def persist(self) -> None:
        source = self.any()
        group = self.some(source, 1) if source.fields and not self.chance(3) else None
        fields, name, field = self.part(
            source, self.known[source.id] or group is None, ["count", "sum", "biased", "largest", "weights"]
        )
        keys = [source.fields[i] for i in source.at(group)]
        made = [*keys, field._replace(num=name != "largest")]
        self.add(
            "persist", [source], made, True, group=group, fields=fields, agg=name, kind=self.kind(), crash=self.crash()
        )

    def put(self) -> None:
        source = self.pick(lambda step: any(field.num for field in step.fields) and len(step.fields) > 1)
        if source is None:
            return
        amount = self.one([field for field in source.fields if field.num])
        key = self.one([field for field in source.fields if field != amount])
        fields = [self.field(key.num), self.field(True)]
        self.add("put", [source], fields, True, fields=[key.name, amount.name], kind=self.kind(), crash=self.crash())

    def query(self) -> None:
        source = self.any(lambda step: len(step.fields) > 0)
        everything = self.chance(3)
        made = [self.field(False), self.field(True)] if everything else [self.field(False)]
        grouped = self.chance(2)
        known = True if grouped else None
        self.add(
            "query",
            [source],
            [*source.fields, *made],
            known,
            fields=[self.one(source.names)],
            grouped=grouped,
            all=everything,
        )

    def ask(self) -> None:
        """A state of this topology: behind its new values, or beside its update where nothing fails.

        Not both: what goes from a state's new values back to it is a circle, in which Storm has no order.
        """
        state = self.pick(lambda step: step.op == "persist")
        if state is None:
            return
        width = 0 if state.args["group"] is None else len(state.args["group"])
        beside = self.beside.setdefault(state.id, not self.failures and self.chance(2))
        source: Step | None = state
        if beside:
            source = self.pick(lambda step: self.in_step_with(step, state) and len(step.fields) >= width)
        if source is None:
            return
        fields = self.some(source, width, width) if beside else source.names[:width]
        made = [*source.fields, self.field(False)]
        self.add("ask", [source], made, True, state=state.id, beside=beside, fields=fields)

    def in_step_with(self, step: Step, state: Step) -> bool:
        """Whether a step of the batch phase is in the state's component, so that it sees a known txid's values."""
        return not self.behind[step.id] and connected(self.steps, step, state)

    # -- several streams ------------------------------------------------------------------------------------------

    def several(self, least: int, suits: Callable[[Step], bool]) -> list[Step]:
        found = [self.pick(suits) for _ in range(self.one([least, 2, 2, 3]))]
        return [step for step in found if step is not None]

    def merge(self) -> None:
        width = self.one([1, 2, 3])
        sides = self.several(1, lambda step: len(step.fields) == width)
        if not sides:
            return
        renamed = self.chance(2)
        nums = [all(side.fields[i].num for side in sides) for i in range(width)]
        fields = [
            self.field(num) if renamed else Field(field.name, num)
            for field, num in zip(sides[0].fields, nums, strict=True)
        ]
        self.add("merge", sides, fields, renamed=renamed)

    def join(self) -> None:
        width = self.one([1, 1, 2])
        sides = self.several(2, lambda step: len(step.fields) >= width and not repeats(step))
        if len(sides) < 2 or sum(len(side.fields) for side in sides) > 12:
            return
        groups = [self.some(side, width, width) for side in sides]
        preserve, outer = self.chance(2), [self.chance(2) for _ in sides]
        others = [len(side.fields) - (0 if preserve else width) for side in sides]
        made = [self.field(False) for _ in range(sum(others) + (0 if preserve else width))]
        self.add("join", sides, made, True, groups=groups, outer=outer, preserve=preserve)

    def multi(self) -> None:
        grouped = self.chance(2)
        sides = self.several(2, lambda step: len(step.fields) > 0 and (grouped or self.known[step.id]))
        if len(sides) < 2:
            return
        fields = [self.some(side) for side in sides]
        if not grouped:
            self.add("multi", sides, [self.field(False)], fields=fields, fail=self.attempts())
            return
        groups = [self.some(side, 1, 1) for side in sides]
        self.add(
            "groupedMulti",
            sides,
            [self.field(False), self.field(False)],
            True,
            fields=fields,
            groups=groups,
            fail=self.attempts(),
        )


def repeats(step: Step) -> bool:
    """Joins of joins grow beyond use."""
    return step.op == "join"


@st.composite
def cases(draw: Any) -> Case:
    draft = Topologies(draw)
    draft.source()
    for _ in range(draw(st.integers(3, 11))):
        draft.step()
    return draft.done()
