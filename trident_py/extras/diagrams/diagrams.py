"""Draws a sketch as Mermaid, DOT, and SVG by graphviz."""

from __future__ import annotations

import html
import shutil
import subprocess
from collections.abc import Callable

from ...errors import TridentError
from ...model.plan import Plan
from ...report.explain.sketch import Arrow, StateSketch, Step, sketch

SECONDS = 60


def draw(plan: Plan, form: str) -> str:
    """Return the topology as "mermaid", "dot" or "svg". Raises DefinitionError for a topology that cannot be built,
    TridentError if "svg" finds no graphviz."""
    return DRAWN[form](plan)


# -- Mermaid ----------------------------------------------------------------------------------------------------------


def _mermaid(plan: Plan) -> str:
    drawn = sketch(plan)
    lines = ["flowchart TB"]
    for stage in drawn.stages:
        lines.append(f'  subgraph s{stage.number}["{_safe(_add_title(stage.title, stage.component))}"]')
        lines += [f"    {_mermaid_step(step)}" for step in stage.steps]
        lines.append("  end")
    lines += [f"  {_mermaid_arrow(arrow)}" for arrow in drawn.arrows]
    for number, state in enumerate(drawn.states):
        lines.append(f'  state{number}[("{"<br>".join(map(_safe, _state_words(state)))}")]')
        lines += [f"  n{node} -- updates --> state{number}" for node in state.updated_by]
        lines += [f"  state{number} -. answers .-> n{node}" for node in state.queried_by]
    return "\n".join(lines)


def _mermaid_step(step: Step) -> str:
    words = f"{_safe(_step_label(step))}<br>{_safe(step.columns or 'no fields')}"
    return f'n{step.id}["{words}"]'


def _mermaid_arrow(arrow: Arrow) -> str:
    """Draw an exchange thick, an arrow within a task thin."""
    words = _arrow_words(arrow)
    link = "==>" if arrow.sends is not None else "-->"
    label = f'|"{"<br>".join(map(_safe, words))}"|' if words else ""
    return f"n{arrow.source} {link}{label} n{arrow.target}"


def _safe(text: str) -> str:
    """Escape for Mermaid, which takes entities in quoted text; a quote would end it."""
    return html.escape(text, quote=True).replace("&quot;", "#quot;").replace("&#x27;", "'")


# -- DOT and SVG ------------------------------------------------------------------------------------------------------


def _dot(plan: Plan) -> str:
    drawn = sketch(plan)
    lines = ["digraph topology {", '  node [shape=box, fontname="sans-serif"]; edge [fontname="sans-serif"];']
    for stage in drawn.stages:
        lines.append(f"  subgraph cluster_{stage.number} {{")
        lines.append(f'    label={_quote([_add_title(stage.title, stage.component)])}; fontname="sans-serif";')
        words = [(step.id, [_step_label(step), step.columns or "no fields"]) for step in stage.steps]
        lines += [f"    n{node} [label={_quote(text)}];" for node, text in words]
        lines.append("  }")
    for arrow in drawn.arrows:
        style = "bold" if arrow.sends is not None else "solid"
        lines.append(f"  n{arrow.source} -> n{arrow.target} [style={style}, label={_quote(_arrow_words(arrow))}];")
    for number, state in enumerate(drawn.states):
        lines.append(f"  state{number} [shape=cylinder, label={_quote(_state_words(state))}];")
        lines += [f'  n{node} -> state{number} [label="updates"];' for node in state.updated_by]
        lines += [f'  state{number} -> n{node} [style=dashed, label="answers"];' for node in state.queried_by]
    return "\n".join([*lines, "}"])


def _quote(words: list[str]) -> str:
    return '"' + "\\n".join(word.replace("\\", "\\\\").replace('"', '\\"') for word in words) + '"'


def _svg(plan: Plan, program: str = "dot") -> str:
    text = _dot(plan)
    if shutil.which(program) is None:
        raise TridentError(
            f"explain as SVG needs graphviz: its program {program} is not on the PATH. Install it (apt install "
            "graphviz), or ask for mermaid, which needs nothing"
        )
    try:
        done = subprocess.run([program, "-Tsvg"], input=text, capture_output=True, text=True, timeout=SECONDS)
    except subprocess.TimeoutExpired:
        why = f"graphviz did not draw the topology within {SECONDS} s; ask for mermaid or dot, which need nothing"
        raise TridentError(why) from None
    if done.returncode != 0:
        raise TridentError(f"graphviz could not draw the topology: {done.stderr.strip()}")
    return done.stdout


# -- words ------------------------------------------------------------------------------------------------------------


def _add_title(title: str, component: str) -> str:
    return f"{title} ({component})" if component else title


def _step_label(step: Step) -> str:
    return f"#{step.id} {step.shown}"


def _arrow_words(arrow: Arrow) -> list[str]:
    sends = [] if arrow.sends is None else [f"[{', '.join(arrow.sends)}]"]
    return [*([arrow.by] if arrow.by else []), *sends]


def _state_words(state: StateSketch) -> list[str]:
    return [f"state {state.name}", state.kind, *([state.guarantee] if state.guarantee else [])]


DRAWN: dict[str, Callable[[Plan], str]] = {"mermaid": _mermaid, "dot": _dot, "svg": _svg}
