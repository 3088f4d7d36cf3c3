"""Random cases that draw all that Storm's API offers and the oracle knows, but what `LEFT_OUT` names.

As in `shapes`, results that Storm leaves to chance are kept out: what depends on an order is only asked of streams
that have one, and what a failure leaves behind only where one task decides it.
"""

from __future__ import annotations

import itertools
from typing import Any

from .defined import DRAWN, GROUPING, Defined
from .shapes import Flow, Shape

LEFT_OUT = {
    "tumblingWindow": "`everything` draws it",
    "slidingWindow": "`everything` draws it",
    "window": "tumblingWindow and slidingWindow call it",
    "lateTuples": "Storm's Trident has no event time",
    "newDRPCStream": "`everything` draws it",
    "minBy": "S14: an empty partition ends Storm's worker; `generate` draws it with full batches",
    "maxBy": "as minBy",
    "min": "as minBy",
    "max": "as minBy",
    "agg Min": "as minBy",
    "agg Max": "as minBy",
    "agg none": "in a chain it ends Storm's worker (S13), alone it gives nothing: the systematic cases",
    "agg init_emits": "ends Storm's worker but in an aggregate of the whole batch: the cases made by hand",
    "agg first_n": "firstN draws it",
    "agg first_n_sorted": "firstN draws it",
    "agg echo": "of any order of the tuples: the systematic cases",
    "agg echo_then_count": "as echo",
    "fn throw": "ends the run: the cases made by hand",
    "filter equals_fields": "two nulls end Storm's worker: the systematic cases",
    "map first": "gives other types of fields: the systematic cases",
    "map tuple_size": "as first",
    "flatMap explode": "as first; `generate` draws it",
    "flatMap split": "as first",
    "fail spout": "Storm loses the batch (section 25)",
    "fail put in several tasks": "which task fails first is chance, and the others go on",
    "fail of a function on the replay too": "a late tuple of the first attempt may set it off",
    "fail beginCommit in several tasks": "as put",
    "fail update in several tasks": "as put",
    "fail in the commit phase in several tasks": "which states have committed then is chance",
    "fail behind a repartition in the commit phase": "the bolt before it commits all the same (docs/differences.md)",
    "fail of a state before others": "those commit all the same (docs/differences.md)",
    "query of another spout's state": "two coordinators: which batch comes first is chance, and Storm's bolt may die",
    "what a partition makes of tuples that shuffle has sent there": "chance",
    "put in several tasks": "which of two values of a key comes last is chance",
    "nontransactional in several tasks": "a replay counts what chance has let commit",
    "lru smaller than its keys": "what it drops goes by the order of groups, a HashMap's",
    "join of the commit phase, or beside an update, with the batch phase": "Storm hangs",
    "query of the state that the stream comes from": "Storm hangs",
    "pending with failures or queries": "how many batches are under way is chance",
    "setCPULoad": "resources: no effect here",
    "setMemoryLoad": "resources: no effect here",
    "addSharedMemory": "resources: no effect here",
    "partition": "a grouping of one's own: the oracle has none",
    "partitionAggregate of a combiner on a group": "the same as in chainedAgg",
}
DOMAINS: tuple[tuple[Any, ...], ...] = (
    ("a", "b", "c"), ("a", "b", "c"), (1, 1.0, "1", True), ("a", None, False), ("ä", "日本", "😀", ""),
    (-1, 2**31, -(2**40), 2**62), (0.5, -0.0, 0.0, 1e300), ("a b", "B", "b"),
)  # fmt: skip
MOVING = (
    *GROUPING,
    *DRAWN,
    "groupBy",
    "aggregate",
    "chainedAgg",
    "firstN",
    "persistentAggregate",
    "multiReduce",
    "join",
)
ANY_ORDER = ("count", "sum", "rcount", "rsum", "complete_count")
IN_ORDER = ("trace", "concat", "rconcat", "collect")


class Wider(Shape):
    """One case under construction, with every operation."""

    def __init__(self, seed: str, number: int) -> None:
        super().__init__(seed, number)
        self.keys = self.random.choice(DOMAINS)
        self.spouts: dict[str, dict] = {}
        self.late: dict[str, set[str]] = {}
        self.moved: set[str] = set()
        self.roots: dict[str, frozenset[str]] = {}
        self.asked = False

    @property
    def stays(self) -> bool:
        """Does a state commit in the bolt that makes its tuples? Then all it sends is of the commit phase."""
        moved = {step["id"] for step in self.steps if step["op"] in GROUPING}
        return any(step["op"] == "partitionPersist" and step["in"] not in moved for step in self.steps)

    @property
    def hangs(self) -> bool:
        """Does Storm wait for ever: for tuples of a bolt that a state lets commit first?"""
        return self.stays and any(step["op"] in ("join", "multiReduce") for step in self.steps)

    def case(self) -> dict[str, Any]:
        made = super().case()
        made["spouts"] |= self.spouts
        late_fail = self.spouts or any(self._chance(fail) for fail in made.get("fail", ()))
        if late_fail:
            made.pop("fail", None)
        elif made.get("fail"):
            self._again(made)
        if not made.get("fail") and not self.asked and self.random.random() < 0.3:
            made["pending"] = self.random.choice((2, 3))
        return made

    def _moves(self) -> list[Any]:
        return [
            *super()._moves(), self._function, self._filter, self._map, self._flat_map, self._peek, self._name,
            self._hint, self._spread_out, self._whole, self._chained, self._join, self._join, self._reduce,
            self._first, self._static, self._second, self._size, self._log_of, self._grouped_each, self._extreme,
        ]  # fmt: skip

    # ------------------------------------------------------------------ helpers
    def _step(self, op: str, source: Any, /, **keys: Any) -> str:
        made = super()._step(op, source, **keys)
        sources = [source] if isinstance(source, str) else source or []
        asks = op == "stateQuery" and keys["state"] in {state for state, _, _ in self.states}
        self.roots[made] = frozenset({keys.get("spout", "")} - {""}).union(*(self.roots[each] for each in sources))
        self.asked |= asks
        behind = set().union(*(self.late.get(each, ()) for each in sources))
        behind |= {source} if op == "newValuesStream" else {keys["state"]} if asks else set()
        if behind:
            self.late[made] = behind
            if op in MOVING or self.moved.intersection(sources):
                self.moved.add(made)
        return made

    def _ask(self, flow: Flow) -> None:
        """Not of the state that the stream comes from: Storm hangs, if there is a repartition between. Nor of that of
        another spout, whose batches have a coordinator of their own."""
        states, behind, roots = self.states, self.late.get(flow.id, ()), self.roots[flow.id]
        self.states = [each for each in states if each[0] not in behind and self.roots[each[0]] & roots]
        if self.states:
            super()._ask(flow)
        self.states = states

    def _defined(self, flow: Flow) -> Defined:
        return Defined({"spouts": {"sp": {"partitions": self.spread}}, "steps": self.steps})

    def _ordered(self, flow: Flow) -> bool:
        return self.spread == 1 and self._defined(flow).steps[flow.id].ordered

    def _placed(self, *flows: Flow) -> bool:
        return all(self._defined(flow).steps[flow.id].placed for flow in flows)

    def _state(self) -> dict[str, Any]:
        made: dict[str, Any] = super()._state()
        if self.random.random() < 0.1:
            made |= {"kind": "lru", "size": 50}
        if self.spread > 1 and self.random.random() < 0.15:
            made["partitions"] = 2
        return made

    def _keyed(self, step: str, value: str, fields: tuple[str, ...]) -> None:
        """A stream without a key gets one."""
        key = self._fresh("f")
        fn = {"name": "append_constant", "value": self.random.choice(self.keys)}
        self._add("each", step, (*fields, key), key, value, fields=[value], fn=fn, out=[key])

    def _sunk(self, step: str) -> None:
        self._sink(Flow(step, (), "", ""))

    def _with(self, flow: Flow, op: str, key: str = "", value: str = "", /, **keys: Any) -> Flow:
        return self._add(op, flow.id, flow.fields, key or flow.key, value or flow.value, **keys)

    # ------------------------------------------------------------------ tuple by tuple
    def _function(self, flow: Flow) -> None:
        out, (name, fields) = self._fresh("f"), self.random.choice(
            (("split", [flow.key]), ("upper", [flow.key]), ("identity", [flow.key]), ("length", [flow.key]),
             ("tuple_size", [flow.key, flow.value]), ("add", [flow.value]), ("append_constant", [flow.value]),
             ("duplicate", [flow.value]), ("duplicate none", [flow.key]))
        )  # fmt: skip
        fn: dict[str, Any] = {"name": name.split(" ")[0]}
        fn |= {"value": self.random.randint(-3, 3)} if name == "append_constant" else {}
        fn |= {"n": self.random.randint(0, 2)} if fn["name"] == "duplicate" else {}
        if name == "duplicate none":
            made = self._with(flow, "each", fields=fields, fn=fn, out=[])
        else:
            key = out if name in ("split", "upper", "identity") else flow.key
            value = out if name in ("add", "append_constant", "duplicate", "tuple_size") else flow.value
            made = self._add("each", flow.id, (*flow.fields, out), key, value, fields=fields, fn=fn, out=[out])
        self.functions.append(made.id)

    def _filter(self, flow: Flow) -> None:
        key = self.random.choice(self.keys)
        fn: dict[str, Any] = self.random.choice(
            ({"name": "equals", "value": key}, {"name": "not_null"}, {"name": "in_set", "values": list(self.keys[:2])},
             {"name": "greater_than", "value": 1}, {"name": "negate", "filter": {"name": "equals", "value": key}},
             {"name": "false"})
        )  # fmt: skip
        at = [flow.value] if fn["name"] == "greater_than" else [flow.key]
        made = self._with(flow, "filter", fields=at, fn=fn)
        if fn["name"] not in ("not_null", "negate"):
            self.functions.append(made.id)

    def _map(self, flow: Flow) -> None:
        name = self.random.choice(("identity", "upper", "reverse", "constant"))
        if name in ("identity", "upper"):
            made = self._with(flow, "map", fn={"name": name})
        elif name == "reverse":
            new = {field: self._fresh("f") for field in reversed(flow.fields)}
            out = tuple(new.values())
            made = self._add(
                "map", flow.id, out, new[flow.key], new[flow.value], fn={"name": "reverse"}, out=list(out)
            )  # fmt: skip
        else:
            out = (self._fresh("f"), self._fresh("f"))
            fn = {"name": "constant", "values": [self.random.choice(self.keys), 2]}
            made = self._add("map", flow.id, out, *out, fn=fn, out=list(out))
        self.functions.append(made.id)

    def _flat_map(self, flow: Flow) -> None:
        fn = self.random.choice(({"name": "repeat", "n": 2}, {"name": "repeat", "n": 1}, {"name": "empty"}))
        self.functions.append(self._with(flow, "flatMap", fn=fn).id)

    def _peek(self, flow: Flow) -> None:
        self.functions.append(self._with(flow, "peek").id)

    def _name(self, flow: Flow) -> None:
        self._with(flow, "name", name=self._fresh("n"))

    # ------------------------------------------------------------------ partitions and sources
    def _hint(self, flow: Flow) -> None:
        self._with(flow, "parallelismHint", n=self.spread)

    def _spread_out(self, flow: Flow) -> None:
        op = self.random.choice(("localOrShuffle", "broadcast", "identityPartition"))
        moved, wide = self._step(op, flow.id), {} if op == "identityPartition" else self._wide()
        self._add("project", moved, flow.fields, flow.key, flow.value, fields=list(flow.fields), **wide)

    def _second(self, flow: Flow) -> None:
        if not self.spouts:
            self.spouts["sp2"] = self._spout()
            self._add("newStream", None, ("k", "v"), "k", "v", spout="sp2")

    # ------------------------------------------------------------------ aggregates
    def _whole(self, flow: Flow) -> None:
        """Of the whole batch, or of each partition."""
        ops = ("aggregate", "partitionAggregate") if self._placed(flow) else ("aggregate",)
        out, op = self._fresh("f"), self.random.choice(ops)
        if self._ordered(flow) and self.random.random() < 0.5:
            agg = {"name": self.random.choice(IN_ORDER)}
            fields = [flow.value] if agg["name"] in ("trace", "concat") else [flow.key, flow.value]
            return self._sunk(self._step(op, flow.id, agg=agg, fields=fields, out=[out]))
        agg = {"name": self.random.choice((*ANY_ORDER, "complete_if_any"))}
        self._keyed(self._step(op, flow.id, agg=agg, fields=[flow.value], out=[out]), out, (out,))
        return None

    def _extreme(self, flow: Flow) -> None:
        grouped = self._step("groupBy", flow.id, fields=[flow.key])
        out, agg = self._fresh("f"), {"name": self.random.choice(("min", "max", "complete_if_any"))}
        if agg["name"] != "complete_if_any" and self.random.random() < 0.5:
            made = self._step(
                "persistentAggregate", grouped, state=self._state(), agg=agg, fields=[flow.value], out=[out]
            )
            return self._new_values(made, (flow.key, out), False)
        fields = (flow.key, out)
        self._add("aggregate", grouped, fields, flow.key, out, agg=agg, fields=[flow.value], out=[out])
        return None

    def _chained(self, flow: Flow) -> None:
        kinds = ("aggregate", "aggregate", "partitionAggregate") if self._placed(flow) else ("aggregate",)
        kind, by_key = self.random.choice(kinds), self.random.random() < 0.6
        source = self._step("groupBy", flow.id, fields=[flow.key]) if by_key else flow.id
        names = [self.random.choice((*ANY_ORDER, "multi")) for _ in range(self.random.randint(1, 3))]
        aggs, outs = [], []
        for name in names:
            out = [self._fresh("f") for _ in range(2 if name == "multi" else 1)]
            aggs.append({"kind": kind, "agg": {"name": name}, "fields": [flow.value], "out": out})
            outs += out
        made = self._step("chainedAgg", source, aggs=aggs)
        if "multi" in names:
            return self._sunk(made)
        if by_key:
            self.flows.append(Flow(made, (flow.key, *outs), flow.key, outs[0]))
            return None
        return self._keyed(made, outs[0], tuple(outs))

    def _grouped_each(self, flow: Flow) -> None:
        """Functions between groupBy and aggregate."""
        grouped, more = self._step("groupBy", flow.id, fields=[flow.key]), self._fresh("f")
        each = self._step("each", grouped, fields=[flow.value], fn={"name": "add"}, out=[more])
        out, agg = self._fresh("f"), {"name": self.random.choice(ANY_ORDER)}
        made = self._step("aggregate", each, agg=agg, fields=[more], out=[out])
        self.flows.append(Flow(made, (flow.key, out), flow.key, out))

    def _first(self, flow: Flow) -> None:
        if self._ordered(flow):
            sort = {"sort": flow.value, "reverse": self.random.random() < 0.5} if self.random.random() < 0.6 else {}
            self._with(flow, "firstN", n=self.random.randint(1, 3), **sort)

    # ------------------------------------------------------------------ several streams
    def _pair(self, flow: Flow) -> list[Flow] | None:
        """Two streams of one phase, each of its key and value."""
        others = [f for f in self.flows if f.id != flow.id and (f.id in self.late) == (flow.id in self.late)]
        if flow.id in self.late or not others:
            return None
        return [
            Flow(self._step("project", f.id, fields=[f.key, f.value]), (f.key, f.value), f.key, f.value)
            for f in (flow, self.random.choice(others))
        ]

    def _join(self, flow: Flow) -> None:
        pair = self._pair(flow)
        if pair is None:
            return
        mode = self.random.choice(("COMPACT", "PRESERVE"))
        types = self.random.choice(("INNER", "INNER", "OUTER", ["INNER", "OUTER"], ["OUTER", "INNER"]))
        out = tuple(self._fresh("f") for _ in range(3 if mode == "COMPACT" else 4))
        made = self._step(
            "join", [f.id for f in pair], joinFields=[[f.key] for f in pair], out=list(out), types=types, mode=mode,
            **self._wide(),
        )  # fmt: skip
        if types == "INNER":
            self.flows.append(Flow(made, out, out[0], out[1]))
        else:
            self._sunk(made)

    def _reduce(self, flow: Flow) -> None:
        pair, by_key = self._pair(flow), self.random.random() < 0.6
        if pair is None:
            return
        by_key = by_key or not self._placed(*pair)
        ids = [self._step("groupBy", f.id, fields=[f.key]) if by_key else f.id for f in pair]
        keys = {"inFields": [[f.value] for f in pair]} if by_key or self.random.random() < 0.5 else {}
        out = [self._fresh("f") for _ in range(3 if by_key else 2)]
        reducer = {"name": self.random.choice(("tag", "count"))}
        self.functions.append(self._step("multiReduce", ids, reducer=reducer, out=out, **keys))
        self._sunk(self.functions[-1])

    # ------------------------------------------------------------------ states
    def _static(self, flow: Flow) -> None:
        entries = [[[key], n] for n, key in enumerate(self.keys) if self.random.random() < 0.7]
        state = self._step("newStaticState", None, entries=entries, snapshot=self.random.choice((None, 7)))
        name = self.random.choice(("MapGet", "SnapshotGet", "TupleCollectionGet"))
        out = [self._fresh("f") for _ in range(2 if name == "TupleCollectionGet" else 1)]
        keys = {"fields": [flow.key]} if name == "MapGet" else {}
        fields = (*flow.fields, *out)
        query = {"query": {"name": name}, "out": out, **keys}
        self._add("stateQuery", flow.id, fields, flow.key, flow.value, state=state, **query)

    def _size(self, flow: Flow) -> None:
        """Updated by the tuples of each partition, wherever Storm defines which these are."""
        moved = self._step("partitionBy", flow.id, fields=[flow.key]) if self.spread > 1 else flow.id
        out, state = self._fresh("f"), {"name": self._fresh("st"), "kind": "log"}
        made = self._step(
            "partitionPersist", moved, state=state, fields=[flow.value], updater={"name": "size"}, out=[out],
            **self._wide(),
        )  # fmt: skip
        self._keyed(self._step("newValuesStream", made), out, (out,))

    def _log_of(self, flow: Flow) -> None:
        """What order the tuples come in, by a state's text."""
        if not self._ordered(flow):
            return
        by_key, out = self.random.random() < 0.5, self._fresh("f")
        source = self._step("groupBy", flow.id, fields=[flow.key]) if by_key else flow.id
        agg = {"name": self.random.choice(IN_ORDER[:3])}
        made = self._step("persistentAggregate", source, state=self._state(), agg=agg, fields=[flow.value], out=[out])
        self._sunk(self._step("newValuesStream", made))

    # ------------------------------------------------------------------ failures
    def _fails(self, batches: int) -> list[dict[str, Any]]:
        spread, self.spread = self.spread, 1  # in several tasks too; `_chance` says which are none
        try:
            return super()._fails(batches)
        finally:
            self.spread = spread

    def _chance(self, fail: dict[str, Any]) -> bool:
        """Would Storm leave to chance what this failure leaves behind, or commit all the same?"""
        at = {step["name"]: step["in"] for step in self.steps if step["op"] == "sink"}.get(fail.get("sink"))
        place = fail.get("step", at)
        states = [s for s in self.steps if isinstance(s.get("state"), dict)]
        others = [s for s in states if s["state"]["name"] != fail.get("state")]
        if "state" in fail and any(self.spread > 1 or step["id"] in self.moved for step in others):
            return True
        if self.spread == 1:
            return place in self.moved or (place is not None and self.stays)
        return fail["where"] in ("put", "beginCommit", "update") or place in self.late

    def _again(self, case: dict[str, Any]) -> None:
        """Perhaps the replay fails too, and is another batch."""
        fail = case["fail"][0]
        if self.random.random() < 0.3 and fail["where"] != "function":
            case["fail"].append({**fail, "attempt": 1})
        kinds = {step["state"]["kind"] for step in self.steps if isinstance(step.get("state"), dict)}
        if self.random.random() < 0.4 and (self.spread == 1 or kinds <= {"opaque", "log"}):
            other = [
                [self.random.choice(self.keys), self.random.randint(1, 5)] for _ in range(self.random.randint(0, 3))
            ]
            case["spouts"]["sp"] |= {"kind": "opaque", "replayBatches": {str(fail["txid"]): other}}


def make(seed: str, number: int) -> dict[str, Any]:
    """The same case for the same seed and number."""
    for again in itertools.count():
        shape = Wider(seed if not again else f"{seed}+{again}", number)
        case = shape.case()
        if not shape.hangs:
            return case
    raise AssertionError("endless")
