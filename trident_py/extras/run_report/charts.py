"""The charts of a run, as SVG that stands in an HTML page."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from io import StringIO
from typing import Any

import matplotlib
import numpy as np
from matplotlib.figure import Figure

from .run_events import CommittedBatch, RunEvents

BUCKETS = 240
GREY = "#808080"  # reads on white and on black
STYLE: dict[Any, Any] = {
    "svg.fonttype": "none", "svg.hashsalt": "trident_py", "font.size": 9, "text.color": GREY, "axes.edgecolor": GREY,
    "axes.labelcolor": GREY, "xtick.color": GREY, "ytick.color": GREY,
}  # fmt: skip


def draw(run: RunEvents) -> dict[str, str]:
    """Return the charts by their titles: over the seconds of the run, in at most BUCKETS steps."""
    steps = list(_steps(run))
    charts = {
        "tuples per second": [("", [(at, _rate(batches, width)) for at, width, batches in steps])],
        "milliseconds per batch": [
            ("median", [(at, _milliseconds(batches, 50)) for at, _, batches in steps if batches]),
            ("99th percentile", [(at, _milliseconds(batches, 99)) for at, _, batches in steps if batches]),
        ],
        "backlog, in records": [("", [(at, _backlog(batches)) for at, _, batches in steps if _has_backlog(batches)])],
    }
    return {title: draw_lines(lines) for title, lines in charts.items() if any(points for _, points in lines)}


def _steps(run: RunEvents) -> Iterator[tuple[float, float, list[CommittedBatch]]]:
    """Yield seconds since the start, the width, and the batches that ended then."""
    if not run.batches:
        return
    first, width = min(run.times), max(run.seconds / BUCKETS, 0.001)
    number = [min(int((batch.at - first) / width), BUCKETS - 1) for batch in run.batches]
    by_step: dict[int, list[CommittedBatch]] = {}
    for step, batch in zip(number, run.batches, strict=True):
        by_step.setdefault(step, []).append(batch)
    for step in range(max(number) + 1):
        yield step * width, width, by_step.get(step, [])


def _rate(batches: Sequence[CommittedBatch], width: float) -> float:
    return sum(sum(batch.tuples.values()) for batch in batches) / width


def _milliseconds(batches: Sequence[CommittedBatch], percentile: int) -> float:
    return float(np.percentile([batch.whole for batch in batches], percentile)) * 1000


def _has_backlog(batches: Sequence[CommittedBatch]) -> bool:
    return any(batch.backlog is not None for batch in batches)


def _backlog(batches: Sequence[CommittedBatch]) -> float:
    """Return the backlog at the end of the step, of all components."""
    last = {batch.component: batch.backlog for batch in batches if batch.backlog is not None}
    return float(sum(last.values()))


def draw_lines(lines: Sequence[tuple[str, Sequence[tuple[float, float]]]]) -> str:
    """Return lines over seconds, each with its label, as one SVG element."""
    with matplotlib.rc_context(STYLE):
        figure = Figure(figsize=(7, 2.2), layout="constrained")
        axes: Any = figure.subplots()
        for label, points in lines:
            axes.plot(*zip(*points, strict=True), linewidth=1.2, label=label, drawstyle="steps-post")
        axes.set(xlabel="seconds since the start", ylim=(0, None))
        axes.spines[["top", "right"]].set_visible(False)
        axes.yaxis.set_major_formatter(_thousands())
        if len(lines) > 1:
            axes.legend(frameon=False, fontsize=8)
        written = StringIO()
        figure.savefig(written, format="svg", transparent=True, metadata={"Date": None, "Creator": None})
    return written.getvalue()[written.getvalue().index("<svg") :]


def _thousands() -> Callable[[float, int], str]:
    return lambda value, _: f"{value:,.0f}" if value >= 10 or value == int(value) else f"{value:.2g}"
