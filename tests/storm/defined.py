"""What Storm leaves undefined in a case: read off its steps, so that the comparison asks for all the rest.

Undefined are the partition that a tuple gets by `shuffle` and `localOrShuffle` (Storm draws it), the order of
tuples that come together from several partitions or streams, and that of groups (a HashMap's in Storm). Everything
else is defined: the partition of a key by its hash in particular, and the order within one partition.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

from .ops import AGGREGATORS

GROUPING = ("partitionBy", "broadcast", "global", "batchGlobal")
DRAWN = ("shuffle", "localOrShuffle")


class Flow(NamedTuple):
    """Of a stream, or what a state is updated with: is each tuple's partition defined, and their order in it?"""

    placed: bool = True
    ordered: bool = True
    grouped: bool = False

    def gathered(self, wide: bool) -> Flow:
        """Sent to partitions that the tuples themselves decide."""
        return Flow(True, self.ordered and not wide)

    def drawn(self, wide: bool) -> Flow:
        return Flow(not wide, self.ordered and not wide)

    def mixed(self) -> Flow:
        return self._replace(ordered=False)


class Defined:
    """The flows of a case, by step and by state."""

    def __init__(self, case: dict[str, Any]) -> None:
        self.wide = wide(case)
        self.steps: dict[str, Flow] = {}
        self.sinks: dict[str, Flow] = {}
        self.states: dict[str, Flow] = {}
        for step in case["steps"]:
            flow = self._flow(step)
            if step["op"] == "sink":
                self.sinks[step["name"]] = flow
            if isinstance(step.get("state"), dict):
                self.states[step["state"]["name"]] = flow
            if "id" in step:
                self.steps[step["id"]] = flow

    def _flow(self, step: dict) -> Flow:
        op, sources = step["op"], self._sources(step)
        source = sources[0] if sources else Flow()
        if op in GROUPING or (op == "stateQuery" and source.grouped):
            return source.gathered(self.wide)
        if op in DRAWN:
            return source.drawn(self.wide)
        if op == "groupBy":
            return source._replace(grouped=True)
        if op == "firstN":
            return source.gathered(self.wide)
        if op in ("aggregate", "partitionAggregate", "chainedAgg", "persistentAggregate"):
            return self._aggregated(step, source)
        if op in ("merge", "join", "multiReduce"):
            return self._together(op, sources)
        return source._replace(grouped=False) if op in ("toStream", "sink") else source

    def _sources(self, step: dict) -> list[Flow]:
        names = step.get("in", [])
        return [self.steps.get(name, Flow()) for name in ([names] if isinstance(names, str) else names)]

    def _aggregated(self, step: dict, source: Flow) -> Flow:
        parts = [part["kind"] for part in step.get("aggs", [])] or [step["op"]]
        partly = all(kind == "partitionAggregate" for kind in parts)
        flow = source if partly else source.gathered(self.wide)
        still = partly and "aggs" not in step and source.grouped and step["agg"]["name"] in AGGREGATORS
        return Flow(flow.placed, flow.ordered and not source.grouped, still)

    def _together(self, op: str, sources: Iterable[Flow]) -> Flow:
        """A join and a reducer of groups bring the tuples to their keys; others leave them where they are."""
        by_key = op == "join" or any(flow.grouped for flow in sources)
        return Flow(by_key or all(flow.placed for flow in sources), False)


def wide(case: dict[str, Any]) -> bool:
    """Does any part of the case run in several tasks?"""
    states = [step["state"] for step in case["steps"] if isinstance(step.get("state"), dict)]
    hints = [step.get("parallelism", 1) for step in case["steps"]] + [step.get("n", 1) for step in case["steps"]]
    spouts = [spout.get("partitions", 1) for spout in case["spouts"].values()]
    return max([1, *hints, *spouts, *(state.get("partitions") or 1 for state in states)]) > 1
