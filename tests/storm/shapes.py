"""Random cases about states: updates and queries of one state in a batch, beside aggregates, behind each other.

Results that depend on the order between tasks are kept out: with several partitions every state is asked and
updated by its key, and what is added up does not care for an order.
"""

from __future__ import annotations

import random
from typing import Any, NamedTuple

KEYS = ("a", "b", "c")
KINDS = ("nontransactional", "transactional", "opaque", "memory", "opaque", "transactional")
PLACES = ("commit", "beginCommit", "put", "update", "function", "batch")


class Flow(NamedTuple):
    """A stream: its step, its fields, of these the key's and the value's, and whether it stands at a spout."""

    id: str
    fields: tuple[str, ...]
    key: str
    value: str


class Shape:
    """One case under construction."""

    def __init__(self, seed: str, number: int) -> None:
        self.random = random.Random(f"shape-{seed}-{number}")
        self.name = f"shape_{seed}_{number}"
        self.spread = self.random.choice((1, 1, 1, 2, 3))
        self.keys = KEYS
        self.steps: list[dict] = []
        self.flows: list[Flow] = []
        self.states: list[tuple[str, str, bool]] = []
        self.functions: list[str] = []
        self.sinks: list[str] = []
        self.count = 0

    def case(self) -> dict[str, Any]:
        choose = self.random
        spouts = {"sp": self._spout()}
        self._add("newStream", None, ("k", "v"), "k", "v", spout="sp")
        for _ in range(choose.randint(3, 9)):
            choose.choice(self._moves())(choose.choice(self.flows))
        for flow in choose.sample(self.flows, min(len(self.flows), 3)):
            self._sink(flow)
        case = {"name": self.name, "spouts": spouts, "steps": self.steps}
        fails = self._fails(len(spouts["sp"]["batches"]))
        return {**case, "fail": fails} if fails else case

    def _moves(self) -> list[Any]:
        asks = [self._ask] * 4 if self.states else []
        return [self._put, self._sum, self._sum_all, self._each, self._repartition, self._aggregate, self._partly,
                self._follow, self._merge, *asks]  # fmt: skip

    # ------------------------------------------------------------------ what cases are made of
    def _spout(self) -> dict[str, Any]:
        choose = self.random
        batches = [
            [[choose.choice(self.keys), choose.randint(1, 5)] for _ in range(choose.choice((0, 1, 2, 2, 3, 4)))]
            for _ in range(choose.randint(2, 3))
        ]
        spout = {"fields": ["k", "v"], "kind": "transactional", "batches": batches}
        return {**spout, "partitions": self.spread} if self.spread > 1 else spout

    def _fresh(self, letter: str) -> str:
        self.count += 1
        return f"{letter}{self.count}"

    def _step(self, op: str, source: Any, /, **keys: Any) -> str:
        step = {"id": self._fresh("x"), "op": op, **({} if source is None else {"in": source}), **keys}
        self.steps.append(step)
        return str(step["id"])

    def _add(self, op: str, source: Any, fields: tuple[str, ...], key: str, value: str, /, **keys: Any) -> Flow:
        flow = Flow(self._step(op, source, **keys), fields, key, value)
        self.flows.append(flow)
        return flow

    def _state(self) -> dict[str, str]:
        kinds = KINDS[1:] if self.spread > 1 else KINDS
        return {"name": self._fresh("st"), "kind": self.random.choice(kinds)}

    def _new_values(self, state: str, fields: tuple[str, ...], whole: bool) -> None:
        self.states.append((state, self.steps[-1]["state"]["name"], whole))
        if len(fields) == 2 and self.random.random() < 0.6:
            self._add("newValuesStream", state, fields, *fields)

    def _wide(self) -> dict[str, int]:
        return {"parallelism": self.spread} if self.spread > 1 and self.random.random() < 0.7 else {}

    # ------------------------------------------------------------------ moves
    def _put(self, flow: Flow) -> None:
        if self.spread > 1:  # which of two values of a key comes last is a matter of the tasks
            return self._sum(flow)
        out = [self._fresh("f"), self._fresh("f")] if self.random.random() < 0.6 else []
        updater, state = {"name": "log" if self.random.random() < 0.2 else "put"}, self._state()
        if updater["name"] == "log":
            state["kind"] = "log"
        made = self._step(
            "partitionPersist", flow.id, state=state, fields=[flow.key, flow.value], updater=updater,
            **({"out": out} if updater["name"] == "log" and out else {}),
        )  # fmt: skip
        if updater["name"] == "put":
            self._new_values(made, (), False)
        elif out:
            self._add("newValuesStream", made, tuple(out), *out)
        return None

    def _sum(self, flow: Flow) -> None:
        grouped = self._step("groupBy", flow.id, fields=[flow.key])
        out, agg = self._fresh("f"), {"name": self.random.choice(("sum", "count", "rcount", "rsum"))}
        made = self._step(
            "persistentAggregate", grouped, state=self._state(), agg=agg, fields=[flow.value], out=[out], **self._wide()
        )
        self._new_values(made, (flow.key, out), False)

    def _sum_all(self, flow: Flow) -> None:
        out, agg = self._fresh("f"), {"name": self.random.choice(("sum", "count", "rcount"))}
        made = self._step("persistentAggregate", flow.id, state=self._state(), agg=agg, fields=[flow.value], out=[out])
        self._new_values(made, (out,), True)

    def _ask(self, flow: Flow) -> None:
        state, _, whole = self.random.choice(self.states)
        out = self._fresh("f")
        fields = (*flow.fields, out)
        if whole:
            source = self._step("global", flow.id) if self.spread > 1 or self.random.random() < 0.5 else flow.id
            query: dict[str, Any] = {"query": {"name": "SnapshotGet"}}
        else:
            moved = self.spread > 1 or self.random.random() < 0.5
            source = self._step("groupBy", flow.id, fields=[flow.key]) if moved else flow.id
            query = {"fields": [flow.key], "query": {"name": "MapGet"}}
        self._add("stateQuery", source, fields, flow.key, flow.value, state=state, **query, out=[out])

    def _each(self, flow: Flow) -> None:
        self.functions.append(self._add("filter", flow.id, flow.fields, flow.key, flow.value, fn={"name": "true"}).id)

    def _repartition(self, flow: Flow) -> None:
        op = self.random.choice(("shuffle", "partitionBy", "global", "batchGlobal"))
        keys = {"fields": [flow.key]} if op == "partitionBy" else {}
        moved = self._step(op, flow.id, **keys)
        self._add("project", moved, flow.fields, flow.key, flow.value, fields=list(flow.fields), **self._wide())

    def _aggregate(self, flow: Flow) -> None:
        grouped = self._step("groupBy", flow.id, fields=[flow.key])
        out, agg = self._fresh("f"), {"name": self.random.choice(("sum", "count", "rcount", "complete_count"))}
        keys = {"agg": agg, "fields": [flow.value], "out": [out], **self._wide()}
        self._add("aggregate", grouped, (flow.key, out), flow.key, out, **keys)

    def _partly(self, flow: Flow) -> None:
        """Of a group's part in each partition; mostly grouped still behind it."""
        whole = self._step("partitionBy", flow.id, fields=[flow.key]) if self.spread > 1 else flow.id
        grouped = self._step("groupBy", whole, fields=[flow.key])
        out, agg = self._fresh("f"), {"name": self.random.choice(("complete_count", "rsum", "sum"))}
        made = self._step("partitionAggregate", grouped, agg=agg, fields=[flow.value], out=[out])
        if agg["name"] == "complete_count" and self.random.random() < 0.6:
            total = self._fresh("f")
            state = self._step(
                "persistentAggregate", made, state=self._state(), agg={"name": "sum"}, fields=[out], out=[total]
            )
            return self._new_values(state, (flow.key, total), False)
        made = self._step("toStream", made) if agg["name"] == "complete_count" else made
        self._add("project", made, (flow.key, out), flow.key, out, fields=[flow.key, out])
        return None

    def _follow(self, flow: Flow) -> None:
        self._each(flow if self.random.random() < 0.5 else self.flows[-1])

    def _merge(self, flow: Flow) -> None:
        other = self.random.choice(self.flows)
        if other.id == flow.id:
            return
        made = [
            self._step("project", each.id, fields=[each.key, each.value]) for each in (flow, other)
        ]  # fmt: skip
        out = (self._fresh("f"), self._fresh("f"))
        self._add("merge", made, out, *out, out=list(out))

    def _sink(self, flow: Flow) -> None:
        self.sinks.append(f"o{len(self.sinks)}")
        self.steps.append({"op": "sink", "in": flow.id, "name": self.sinks[-1]})

    def _fails(self, batches: int) -> list[dict[str, Any]]:
        if self.spread > 1 or self.random.random() < 0.5:
            return []
        where = self.random.choice(PLACES)
        fail = {"txid": self.random.randint(1, batches), "attempt": 0, "where": where}
        if where == "function":
            return [{**fail, "step": self.random.choice(self.functions)}] if self.functions else []
        if where == "batch":
            return [{**fail, "sink": self.random.choice(self.sinks)}]
        states = [step["state"] for step in self.steps if isinstance(step.get("state"), dict)]
        names = [each["name"] for each in states if where != "put" or each["kind"] not in ("memory", "log")]
        return [{**fail, "state": self.random.choice(names)}] if names else []
