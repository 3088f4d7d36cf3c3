"""Renders a sketch as text. A picture of it is the extra `diagrams`'s."""

from __future__ import annotations

from collections.abc import Iterator

from ...entry_points import load
from ...errors import DefinitionError
from ...model.plan import Plan
from ...model.plan import explain as lines_of
from .sketch import Sketch, sketch

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
