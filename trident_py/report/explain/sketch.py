"""A topology as it will run: stages, what passes between them, states and their guarantees. Every picture is drawn from
this."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from ...engine.execution_mode import needs_driver, needs_executors
from ...engine.lowering import Lowered, Lowering
from ...engine.stages import inputs_of
from ...entry_points import load
from ...errors import DefinitionError
from ...model.names import join_names
from ...model.plan import Node, PartitionNode, Plan, ProcessorNode, SpoutNode, describe
from ...model.plan import explain as lines_of
from ...tuples import Fields
from ..guarantees import guarantees

FORMS = ("text", "mermaid", "dot", "svg")


def render(plan: Plan, form: str = "text") -> str:
    """Return the topology in one of `FORMS`. Raises DefinitionError for another form, and for a picture of a topology
    that cannot be built; TridentError if "svg" finds no graphviz."""
    if form not in FORMS:
        raise DefinitionError(f"explain has no form {form!r}; there are: {', '.join(FORMS)}")
    return _text(plan) if form == "text" else load(f"explain as {form}", "diagrams").draw(plan, form)


def _text(plan: Plan) -> str:
    nodes = lines_of(plan)
    if not plan.nodes:
        return nodes
    try:
        drawn = sketch(plan)
    except DefinitionError as error:
        return f"{nodes}\n\nit cannot be built: {error}"
    return "\n".join([nodes, "", *_stage_lines(drawn), *_state_lines(drawn), *drawn.places])


def _stage_lines(drawn: Sketch) -> Iterator[str]:
    at = {step.id: stage.number for stage in drawn.stages for step in stage.steps}
    for stage in drawn.stages:
        steps = ", ".join(f"#{step.id}" for step in stage.steps)
        yield f"{stage.title}: {steps}"
        own = [arrow for arrow in drawn.arrows if at[arrow.source] == stage.number and arrow.sends is not None]
        for arrow in own:
            how = f" by {arrow.by}" if arrow.by else ""
            yield f"  #{arrow.source} sends [{', '.join(arrow.sends or ())}] to stage {at[arrow.target]}{how}"


def _state_lines(drawn: Sketch) -> Iterator[str]:
    for state in drawn.states:
        users = [("updated", state.updated_by), ("queried", state.queried_by)]
        by = "; ".join(f"{word} by {', '.join(f'#{node}' for node in nodes)}" for word, nodes in users if nodes)
        held = f", {state.guarantee}" if state.guarantee else ""
        yield f"state {state.name} ({state.kind}{held}): {by}"


@dataclass(frozen=True)
class Step:
    """A node. ``shown``: what it does, with its label if it has one. Fields without a type are untyped."""

    id: int
    shown: str
    fields: Fields

    @property
    def columns(self) -> str:
        return ", ".join(f"{name} {self.fields.types.get(name, '?')}" for name in self.fields)


@dataclass(frozen=True)
class StageSketch:
    """Steps that run in one task. ``level``: an exchange leads to a later one. ``hint``: the largest of its steps, 0
    without one. ``commits``: in the commit phase."""

    number: int
    level: int
    component: str
    partitions: int
    hint: int
    commits: bool
    steps: tuple[Step, ...]

    @property
    def title(self) -> str:
        count = f"{self.partitions} partition{'s' if self.partitions > 1 else ''}"
        limited = f" (hint {self.hint}, limited by a spout or a state)" if self.hint > self.partitions else ""
        return f"stage {self.number}: level {self.level}, {count}{limited}{', commits' if self.commits else ''}"


@dataclass(frozen=True)
class Arrow:
    """Tuples from one step to another.

    ``by``: the repartition between them, or "". ``sends``: the fields that an exchange carries; None if the tuples stay
    in their task.
    """

    source: int
    target: int
    by: str
    sends: tuple[str, ...] | None


@dataclass(frozen=True)
class StateSketch:
    """A state, the steps that update it and those that query it. ``guarantee``: "" if nothing here updates it."""

    name: str
    kind: str
    guarantee: str
    updated_by: tuple[int, ...]
    queried_by: tuple[int, ...]


@dataclass(frozen=True)
class Sketch:
    """``places``: where every batch of a component runs on Spark, and why, if it does not go by their size."""

    stages: tuple[StageSketch, ...]
    arrows: tuple[Arrow, ...]
    states: tuple[StateSketch, ...]
    places: tuple[str, ...]


def sketch(plan: Plan) -> Sketch:
    """Raise DefinitionError if the topology cannot be built."""
    stages: list[StageSketch] = []
    arrows: list[Arrow] = []
    places: list[str] = []
    lowering = Lowering(plan)
    for component in plan.components():
        lowered = lowering.lower(component)
        stages += _stages(lowered, len(stages))
        arrows += _arrows(lowered)
        every = f"on Spark, every batch of {_name(component)}"
        places += [f"{every} is a job: {why}" for why in [needs_executors(component)] if why]
        places += [f"{every} runs in the driver process: {why}" for why in [needs_driver(component)] if why]
    return Sketch(tuple(stages), tuple(arrows), tuple(_states(plan)), tuple(places))


def _name(component: Plan) -> str:
    return join_names("+", sorted(node.spout_id for node in component.nodes if isinstance(node, SpoutNode)))


def _stages(lowered: Lowered, before: int) -> Iterator[StageSketch]:
    name = _name(lowered.plan)
    every = [(at, stage) for at, level in enumerate(lowered.levels) for stage in level]
    for number, (level, stage) in enumerate(every, before + 1):
        nodes = [lowered.plan.by_id[node_id] for node_id in stage.nodes]
        hint = max(node.hint or 0 for node in nodes)
        steps = tuple(map(_step, nodes))
        yield StageSketch(number, level, name, stage.partitions, hint, stage.commits, steps)


def _step(node: Node) -> Step:
    label = f" ({node.name})" if node.name else ""
    return Step(node.id, f"{describe(node)}{label}", node.fields)


def _arrows(lowered: Lowered) -> Iterator[Arrow]:
    exchanges = {(e.source, receiver): e for e in lowered.exchanges for receiver in e.receivers}
    for node in lowered.plan.nodes:
        for port, source, through in () if isinstance(node, PartitionNode) else inputs_of(lowered.plan, node):
            exchange = exchanges.get((source.id, (node.id, port)))
            by = through.partitioner.shown if through is not None else ""
            yield Arrow(source.id, node.id, by, None if exchange is None else exchange.fields)


def _states(plan: Plan) -> Iterator[StateSketch]:
    users = [(node, node.state) for node in plan.nodes if isinstance(node, ProcessorNode) and node.state is not None]
    held = {guarantee.state: guarantee.guarantee for guarantee in guarantees(plan)}
    for state in {used.id: used for _, used in users}.values():  # a user's factory need not be hashable
        updated = tuple(node.id for node, used in users if used.id == state.id and node.committer)
        queried = tuple(node.id for node, used in users if used.id == state.id and not node.committer)
        yield StateSketch(state.name, state.kind, held.get(state.name, "") if updated else "", updated, queried)
