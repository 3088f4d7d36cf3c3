"""The reference: plain Python over lists, written from the semantics page. It knows nothing of the engine.

A stream in one batch is a list of partitions, each a list of rows. Failures and replays do not appear here at
all: exactly once means that they change nothing.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

from .rules import (
    Parts,
    Row,
    Rule,
    by_hash,
    chain,
    combined,
    fold,
    java_hash,
    over,
    pick,
    placed,
    reduced,
    spread,
    tally,
    value_of,
)
from .steps import REPARTITIONS, Case, Counts, Step, combines
from .usercode import COMBINERS, FILTERS, FUNCTIONS, REDUCERS, Table, exploded, place, turned, weight


class Naive:
    """Runs a case, batch by batch. ``outputs``: step id -> txid -> rows. ``states``: step id -> key -> record."""

    def __init__(self, case: Case) -> None:
        self.case = case
        self.steps = case.steps
        self.counts = Counts(case.steps)
        self.states: dict[int, dict[str, Any]] = {}
        self.outputs: dict[int, dict[int, list[Row]]] = {step.id: {} for step in case.steps if step.collected}
        for self.txid in range(1, case.batches + 1):
            self._batch()

    def _batch(self) -> None:
        self.before = {state: dict(rows) for state, rows in self.states.items()}
        self.parts: dict[int, Parts] = {}
        for step in self.steps:
            if step.op not in REPARTITIONS:
                self.parts[step.id] = getattr(self, f"_{step.op}")(step)
                if step.collected:
                    self.outputs[step.id][self.txid] = [row for part in self.parts[step.id] for row in part]

    # -- how tuples move ------------------------------------------------------------------------------------------

    def _arriving(self, step_id: int, count: int) -> Parts:
        """The tuples of an input as they come to a step of so many partitions."""
        step = self.steps[step_id]
        if step.op not in REPARTITIONS:
            return self.parts[step_id]
        return spread(self._leaving(step.inputs[0]), self._rule(step, count), count)

    def _leaving(self, step_id: int) -> Parts:
        """The tuples of a step before they are repartitioned: between two repartitions there is one partition."""
        return self._arriving(step_id, 1)

    def _rule(self, step: Step, count: int) -> Rule:
        if step.op == "partitionBy":
            return by_hash(step.at(step.args["fields"]), count)
        if step.op == "custom":
            return lambda row: [place(row) % count]
        numbers = itertools.count()
        rules: dict[str, Rule] = {
            "global_": lambda row: [0],
            "batchGlobal": lambda row: [self.txid % count],
            "broadcast": lambda row: range(count),
        }
        return rules.get(step.op, lambda row: [next(numbers) % count])

    def _local(self, step: Step, change: Callable[[list[Row]], list[Row]]) -> Parts:
        return [change(part) for part in self._arriving(step.inputs[0], self.counts.of(step))]

    # -- one tuple after the other --------------------------------------------------------------------------------

    def _source(self, step: Step) -> Parts:
        batch, count = step.args["batches"][self.txid - 1], self.counts.of(step)
        if self.txid in step.args["fail"]:
            batch = step.args["replays"].get(self.txid, batch)
        return [[tuple(row) for row in batch[i::count]] for i in range(count)]

    def _each(self, step: Step) -> Parts:
        at, function = self.steps[step.inputs[0]].at(step.args["fields"]), FUNCTIONS[step.args["fn"]][1]
        return self._local(step, lambda part: [row + made for row in part for made in function(*pick(row, at))])

    def _keep(self, step: Step) -> Parts:
        names = step.names if step.args["fields"] is None else step.args["fields"]
        at, keeps = step.at(names), FILTERS[step.args["fn"]]
        return self._local(step, lambda part: [row for row in part if keeps(*pick(row, at))])

    def _map(self, step: Step) -> Parts:
        return self._local(step, lambda part: [turned(row)[: len(step.fields)] for row in part])

    def _flatMap(self, step: Step) -> Parts:
        return self._local(step, lambda part: [made for row in part for made in exploded(row)])

    def _peek(self, step: Step) -> Parts:
        return self._local(step, list)

    _identity = _peek

    def _project(self, step: Step) -> Parts:
        at = self.steps[step.inputs[0]].at(step.names)
        return self._local(step, lambda part: [pick(row, at) for row in part])

    # -- aggregations ---------------------------------------------------------------------------------------------

    def _best(self, step: Step) -> Parts:
        best = min if step.args["smallest"] else max
        if step.args["field"] is None:
            return self._local(step, lambda part: [best(part, key=repr)] if part else [])
        (at,) = self.steps[step.inputs[0]].at([step.args["field"]])
        return self._local(step, lambda part: [(best(row[at] for row in part),)] if part else [])

    def _firstN(self, step: Step) -> Parts:
        (at,) = self.steps[step.inputs[0]].at([step.args["field"]])
        rows = [row[at] for part in self._arriving(step.inputs[0], self.counts.of(step, "partial")) for row in part]
        first = sorted(rows, reverse=step.args["reverse"])[: step.args["n"]]
        return placed([(0, (value,)) for value in first], self.counts.of(step))

    def _aggregate(self, step: Step) -> Parts:
        source, count = self.steps[step.inputs[0]], self.counts.of(step)
        parts = [(source.at(fields), name) for fields, name, _ in step.args["parts"]]
        group = None if step.args["group"] is None else source.at(step.args["group"])
        if step.args["mode"] == "partition":
            return self._local(step, lambda part: over(part, group, lambda rows: chain(parts, rows)))
        if combines(step):
            merged = self._combined(source.id, parts, group, self.counts.of(step, "partial"))
        else:
            rows = [row for part in self._leaving(source.id) for row in part]
            merged = over(rows, group, lambda rows: chain(parts, rows))
        if group is None:
            return placed([(self.txid % count, row) for row in merged], count)
        width = len(group)
        return spread([merged], by_hash(list(range(width)), count), count)

    def _combined(self, source: int, parts: list, group: list[int] | None, count: int) -> list[Row]:
        """Partial values of each partition (and group), then folded once more, from zero on."""
        arriving = self._arriving(source, count)
        partials = [row for part in arriving for row in over(part, group, lambda rows: chain(parts, rows))]
        width = len(group or ())
        combiners = [COMBINERS[name] for _, name in parts]

        def merge(rows: list[Row]) -> list[Row]:
            return [tuple(fold(c, [row[width + i] for row in rows]) for i, c in enumerate(combiners))]

        return over(partials, None if group is None else list(range(width)), merge)

    # -- states ---------------------------------------------------------------------------------------------------

    def _persist(self, step: Step) -> Parts:
        source, name, count = self.steps[step.inputs[0]], step.args["agg"], self.counts.of(step)
        group = None if step.args["group"] is None else source.at(step.args["group"])
        parts = [(source.at(step.args["fields"]), name)]
        made = []
        if name in COMBINERS:
            for row in self._combined(source.id, parts, group, self.counts.of(step, "partial")):
                made.append(self._update(step, row[:-1], lambda old, v=row[-1]: combined(COMBINERS[name], old, v)))
        else:
            rows = [row for part in self._leaving(source.id) for row in part]
            keyed = {repr(pick(row, group or [])): pick(row, group or []) for row in rows}
            for text, key in keyed.items():
                own = [pick(row, parts[0][0]) for row in rows if repr(pick(row, group or [])) == text]
                made.append(self._update(step, key, lambda old, own=own: reduced(REDUCERS[name], own, old)))
        rule = (lambda row: [0]) if group is None else by_hash(list(range(len(group))), count)
        return spread([made], rule, count)

    def _put(self, step: Step) -> Parts:
        at = self.steps[step.inputs[0]].at(step.args["fields"])
        rows = [pick(row, at) for part in self._leaving(step.inputs[0]) for row in part]
        made = []
        for text, key in {repr(row[0]): row[0] for row in rows}.items():
            amount = sum(row[1] for row in rows if repr(row[0]) == text)
            made.append(self._update(step, (key,), lambda old, n=amount: n if old is None else old + n))
        return spread([made], by_hash([0], self.counts.of(step)), self.counts.of(step))

    def _update(self, step: Step, key: Row, change: Callable[[Any], Any]) -> Row:
        """One key of a state; returns the row of the new-values stream."""
        rows, kind = self.states.setdefault(step.id, {}), step.args["kind"]
        text = repr(key or ("$GLOBAL$",))
        old = value_of(rows.get(text))
        new = change(old)
        records = {"nontransactional": (new,), "transactional": (self.txid, new)}
        rows[text] = records.get(kind, (self.txid, new, old))
        return (*key, new)

    def _query(self, step: Step) -> Parts:
        source, count = self.steps[step.inputs[0]], self.counts.of(step)
        at = source.at(step.args["fields"])
        if step.args["grouped"]:
            parts = spread(self._leaving(source.id), by_hash(at, count), count)
        else:
            parts = self._arriving(source.id, count)
        rows = [(key, weight(key)) for key in Table.keys]
        if step.args["all"]:
            return [[row + known for row in part for known in rows] for part in parts]
        found = {repr(key): value for key, value in rows}
        return [[(*row, found.get(repr(row[at[0]]))) for row in part] for part in parts]

    def _ask(self, step: Step) -> Parts:
        source, count = self.steps[step.inputs[0]], self.counts.of(step)
        at, state = source.at(step.args["fields"]), step.args["state"]
        known = (self.before if self._comes_first(step) else self.states).get(state, {})
        rule = by_hash(at, count) if at else lambda row: [0]
        answer = lambda row: value_of(known.get(repr(pick(row, at) or ("$GLOBAL$",))))  # noqa: E731
        return [[(*row, answer(row)) for row in part] for part in spread(self._leaving(source.id), rule, count)]

    def _comes_first(self, step: Step) -> bool:
        """Asked at the input of the state's bolt: before the update of a combiner, which stands behind the merge of
        its partial values, but behind that of a reducer, which stands at the input too and was defined first."""
        return step.args["beside"] and self.steps[step.args["state"]].args["agg"] in COMBINERS

    # -- several streams ------------------------------------------------------------------------------------------

    def _merge(self, step: Step) -> Parts:
        sides = [self._arriving(source, self.counts.of(step)) for source in step.inputs]
        return [[row for part in parts for row in part] for parts in zip(*sides, strict=True)]

    def _multi(self, step: Step) -> Parts:
        sides = [self._arriving(source, self.counts.of(step)) for source in step.inputs]
        at = [self.steps[s].at(f) for s, f in zip(step.inputs, step.args["fields"], strict=True)]
        return [[(tally(list(parts), at),)] for parts in zip(*sides, strict=True)]

    def _grouped(self, step: Step) -> list[tuple[Row, list[list[Row]]]]:
        """The groups of all inputs: key values, and the rows of each input."""
        groups: dict[str, tuple[Row, list[list[Row]]]] = {}
        for i, (source, fields) in enumerate(zip(step.inputs, step.args["groups"], strict=True)):
            at = self.steps[source].at(fields)
            for row in (row for part in self._leaving(source) for row in part):
                key = pick(row, at)
                entry = groups.setdefault(repr(key), (key, [[] for _ in step.inputs]))
                entry[1][i].append(row)
        return list(groups.values())

    def _groupedMulti(self, step: Step) -> Parts:
        rows = []
        for key, sides in self._grouped(step):
            rows.append((*key, tally(sides, step.args["fields"])))
        return self._by_key(step, [(row[:-1], row) for row in rows])

    def _join(self, step: Step) -> Parts:
        rows = []
        for key, sides in self._grouped(step):
            options = []
            for source, fields, side, outer in zip(
                step.inputs, step.args["groups"], sides, step.args["outer"], strict=True
            ):
                width, at = len(self.steps[source].fields), self.steps[source].at(fields)
                kept = [i for i in range(width) if step.args["preserve"] or i not in at]
                options.append([pick(row, kept) for row in side] or ([(None,) * len(kept)] if outer else []))
            start = () if step.args["preserve"] else key
            rows += [(key, start + sum(chosen, ())) for chosen in itertools.product(*options)]
        return self._by_key(step, rows)

    def _by_key(self, step: Step, rows: list[tuple[Row, Row]]) -> Parts:
        count = self.counts.of(step)
        return placed([(java_hash(key) % count, row) for key, row in rows], count)
