"""Random cases of every operation, with windows in them and DRPC requests at them.

Windows stand wherever a stream has an order that Storm defines, in any number of partitions, between functions and
before states; their store is drawn too. Requests read the states that the streams update, while failures and replays
go on. What is left to chance is kept out as in `wider`; `LEFT_OUT` there names what even this does not draw.
"""

from __future__ import annotations

import itertools
from typing import Any

from .shapes import Flow
from .wider import MOVING, Wider

ONE_FIELD = ("collect", "complete_count", "complete_if_any", "echo", "echo_then_count")
WHOLE_TUPLES = ("first_n", "first_n_sorted", "Min", "Max")
WINDOW_AGGREGATORS = (*ONE_FIELD, *WHOLE_TUPLES, "complete_count", "collect", "multi", "none")
SOURCES = ("newStream", "newDRPCStream")
SAME_NODE = ("name", "parallelismHint")
DURABLE = 0.15
TRIES = 5
WORDS = ("a", "b", "c", "zz")


class Everything(Wider):
    """One case under construction, with windows and requests."""

    def __init__(self, seed: str, number: int) -> None:
        super().__init__(seed, number)
        self.name = f"every_{seed}_{number}"
        self.drpc: list[dict[str, Any]] = []
        self.answered: list[str] = []

    @property
    def hangs(self) -> bool:
        """Does Storm wait for ever: where tuples of a bolt that commits meet others, which come in the batch phase?"""
        where = bolts(self.steps)
        late = {where[step["id"]] for step in self.steps if commits(step)}
        behind: dict[str, set[int]] = {}
        for step in self.steps:
            sources = sources_of(step)
            behind[step.get("id", "")] = set().union(
                *(behind[source] | ({where[source]} & late) for source in sources)
            )
            after = [behind[source] | ({where[source]} & late) for source in sources]
            if len({where[source] for source in sources}) > 1 and any(each != after[0] for each in after):
                return True
        return False

    def case(self) -> dict[str, Any]:
        made = super().case()
        if self.random.random() < 0.5:
            for _ in range(self.random.choice((1, 1, 2))):
                self._requests(len(made["spouts"]["sp"]["batches"]))
            made.pop("pending", None)
            made["drpc"] = self.drpc
        return made

    def _moves(self) -> list[Any]:
        return [*super()._moves(), *[self._window] * 4]

    def _fails(self, batches: int) -> list[dict[str, Any]]:
        """More often than in `wider`: these cases are about replays of windows too."""
        for _ in range(TRIES):
            fails = super()._fails(batches)
            if fails and not any(map(self._chance, fails)):
                return fails
        return []

    # ------------------------------------------------------------------ windows
    def _window(self, flow: Flow) -> None:
        """Each partition has windows of its own: of a stream whose tuples come there in a fixed order."""
        now = self._defined(flow).steps[flow.id]
        if not (now.ordered and now.placed):
            return
        name, count = self.random.choice(WINDOW_AGGREGATORS), self.random.randint(1, 5)
        out = [self._fresh("f") for _ in range(2 if name in (*WHOLE_TUPLES, "multi") else 1)]
        fields = [flow.key, flow.value]
        keys: dict[str, Any] = {"count": count, "fields": fields, "agg": self._windowed(name, flow), "out": out}
        if self.random.random() < 0.5:
            op, keys["slide"] = "slidingWindow", self.random.randint(1, count)
        else:
            op = "tumblingWindow"
        made = self._step(op, flow.id, **keys, **self._store())
        if len(out) == 2:
            self.flows.append(Flow(made, tuple(out), out[0], out[1]))
        elif name.startswith("complete"):
            self._keyed(made, out[0], tuple(out))
        else:
            self._sunk(made)

    def _windowed(self, name: str, flow: Flow) -> dict[str, Any]:
        if name.startswith("first_n"):
            sort = {"sort": flow.value, "reverse": self.random.random() < 0.5} if name == "first_n_sorted" else {}
            return {"name": name, "n": self.random.randint(1, 3), **sort}
        return {"name": name, "field": flow.value} if name in ("Min", "Max") else {"name": name}

    def _store(self) -> dict[str, bool]:
        """``durable`` is for the interpreter alone: Storm has no such store to compare with, and the same meaning."""
        if self.random.random() < DURABLE:
            return {"store": True, "durable": True}
        return {"store": self.random.random() < 0.5}

    # ------------------------------------------------------------------ requests
    def _requests(self, batches: int) -> None:
        function, self.answered = self._fresh("fn"), []
        flow = self._asked_for(Flow(self._step("newDRPCStream", None, function=function), ("args",), "args", "args"))
        for _ in range(self.random.choice((1, 1, 2))):
            flow = self._answer(flow)
        self._last(flow)
        for _ in range(self.random.randint(1, 3)):
            args = " ".join(self.random.choice(WORDS) for _ in range(self.random.randint(0, 4)))
            after = {"afterTxid": self.random.randint(0, batches)} if self.random.random() < 0.8 else {}
            self.drpc.append({"function": function, "args": args, **after})

    def _next(self, flow: Flow, op: str, source: Any, /, *out: str, **keys: Any) -> Flow:
        """As `_add`, but no other step may build on it: a request has one line of statements."""
        step = self._step(op, source, **keys)
        return Flow(step, (*flow.fields, *out), flow.key, flow.value)

    def _asked_for(self, flow: Flow) -> Flow:
        """The keys that the request is about."""
        word = self._fresh("f")
        if self.random.random() < 0.7:
            fn: dict[str, Any] = {"name": "split"}
        else:
            fn = {"name": "append_constant", "value": self.random.choice(self.keys)}
        made = self._next(flow, "each", flow.id, word, fields=["args"], fn=fn, out=[word])
        return made._replace(key=word, value=word)

    def _answer(self, flow: Flow) -> Flow:
        """One more value in each row: of a state that a stream updates, of a static one, or of a function."""
        out = self._fresh("f")
        where = bolts(self.steps)
        first = self.answered[:1]
        free = [
            each for each in self.states
            if all(where[each[0]] != where[other] and self.roots[each[0]] == self.roots[other] for other in first)
        ]  # fmt: skip
        state, _, whole = self.random.choice(free) if free else ("", "", False)
        if state and self.random.random() < 0.8:
            self.answered.append(state)
            moved = self._step("global", flow.id) if whole else self._step("groupBy", flow.id, fields=[flow.key])
            source = moved if self.spread > 1 or self.random.random() < 0.5 else flow.id
            keys: dict[str, Any] = {"query": {"name": "SnapshotGet" if whole else "MapGet"}}
            keys |= {} if whole else {"fields": [flow.key]}
            return self._next(flow, "stateQuery", source, out, state=state, **keys, out=[out])._replace(value=out)
        if self.random.random() < 0.5:
            entries = [[[key], n] for n, key in enumerate(self.keys)]
            static = self._step("newStaticState", None, entries=entries, snapshot=7)
            keys = {"query": {"name": "MapGet"}, "fields": [flow.key]}
            return self._next(flow, "stateQuery", flow.id, out, state=static, **keys, out=[out])._replace(value=out)
        fn = {"name": self.random.choice(("length", "upper", "tuple_size"))}
        return self._next(flow, "each", flow.id, out, fields=[flow.key], fn=fn, out=[out])

    def _last(self, flow: Flow) -> None:
        """What is made of the rows; the statement written last answers (S21)."""
        ends = (
            self._as_it_is, self._not_null, self._counted, self._counted_by_key, self._chain, self._spread_rows,
            self._joined, self._merged, self._projected, self._first_rows,
        )  # fmt: skip
        self.random.choice(ends)(flow)

    def _as_it_is(self, flow: Flow) -> None:
        pass

    def _not_null(self, flow: Flow) -> Flow:
        return self._next(flow, "filter", flow.id, fields=[flow.value], fn={"name": "not_null"})

    def _counted(self, flow: Flow) -> None:
        name = self.random.choice(("count", "rcount", "complete_count", "complete_if_any"))
        op = self.random.choice(("aggregate", "partitionAggregate") if self.spread == 1 else ("aggregate",))
        self._step(op, flow.id, fields=[flow.value], agg={"name": name}, out=[self._fresh("f")])

    def _counted_by_key(self, flow: Flow) -> None:
        source = self._not_null(flow)
        grouped = self._step("groupBy", source.id, fields=[flow.key])
        name = self.random.choice(("count", "rcount", "complete_count", "rsum"))
        self._step("aggregate", grouped, fields=[flow.value], agg={"name": name}, out=[self._fresh("f")])

    def _chain(self, flow: Flow) -> None:
        source = flow.id if self.random.random() < 0.5 else self._step("groupBy", flow.id, fields=[flow.key])
        aggs = [
            {"kind": "aggregate", "agg": {"name": name}, "fields": [flow.value], "out": [self._fresh("f")]}
            for name in self.random.sample(("count", "rcount", "complete_count"), 2)
        ]
        self._step("chainedAgg", source, aggs=aggs)

    def _spread_rows(self, flow: Flow) -> None:
        op = self.random.choice(("shuffle", "batchGlobal", "global", "partitionBy", "broadcast", "localOrShuffle"))
        keys = {"fields": [flow.key]} if op == "partitionBy" else {}
        moved = self._step(op, flow.id, **keys)
        self._step("project", moved, fields=list(flow.fields), **self._wide())

    def _joined(self, flow: Flow) -> None:
        """The rows with themselves, by their key."""
        sides = [self._step("project", flow.id, fields=[flow.key, flow.value][: 1 + (flow.value != flow.key)])
                 for _ in range(2)]  # fmt: skip
        width = 3 if flow.value != flow.key else 1
        types = self.random.choice(("INNER", "OUTER", ["INNER", "OUTER"]))
        out = [self._fresh("f") for _ in range(width)]
        self._step("join", sides, joinFields=[[flow.key]] * 2, out=out, types=types, mode="COMPACT", **self._wide())

    def _merged(self, flow: Flow) -> None:
        sides = [self._step("project", flow.id, fields=[field]) for field in (flow.key, flow.value)]
        self._step("merge", sides, out=[self._fresh("f")])

    def _projected(self, flow: Flow) -> None:
        self._step("project", flow.id, fields=self.random.sample(flow.fields, self.random.randint(1, 2)))

    def _first_rows(self, flow: Flow) -> None:
        """As many as there can be: which ones a smaller number keeps is chance."""
        self._step("firstN", flow.id, n=1_000)


def sources_of(step: dict[str, Any]) -> list[str]:
    sources = step.get("in") or []
    return [sources] if isinstance(sources, str) else sources


def commits(step: dict[str, Any]) -> bool:
    """Does the step make its bolt one that commits, with all that the bolt sends? A window has a state too."""
    return step["op"] in ("partitionPersist", "tumblingWindow", "slidingWindow")


def bolts(steps: list[dict[str, Any]]) -> dict[str, int]:
    """Which steps have no repartition between them, about: Storm puts these into one bolt, but a spout stands alone."""
    found: dict[str, int] = {}
    spouts: set[str] = set()
    for number, step in enumerate(steps):
        if step["op"] in SOURCES or (step["op"] in SAME_NODE and step["in"] in spouts):
            spouts.add(step["id"])
        stays = step["op"] not in MOVING and step.get("id") not in spouts
        near = {found[source] for source in sources_of(step) if source not in spouts} if stays else set()
        found |= {each: number for each, bolt in found.items() if bolt in near}
        if "id" in step:
            found[step["id"]] = number
    return found


def make(seed: str, number: int) -> dict[str, Any]:
    """The same case for the same seed and number."""
    for again in itertools.count():
        shape = Everything(seed if not again else f"{seed}+{again}", number)
        case = shape.case()
        if not shape.hangs:
            return case
    raise AssertionError("endless")
