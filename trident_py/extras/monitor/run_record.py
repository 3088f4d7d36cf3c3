"""What is known of a run: the timelines of its components, its events, and what follows from them."""

from __future__ import annotations

import itertools
import logging
import re
from collections import deque
from collections.abc import Mapping
from functools import cached_property
from typing import Any, NamedTuple

from ...config import Config
from ...engine.program import Program
from ...errors import TridentError
from ...model.context import RunContext
from ...model.plan import Node, Plan
from ...model.secrets import hide
from ...report.explain import render
from ...report.explain.sketch import Sketch, sketch
from ...report.guarantees import guarantees
from ...report.progress import Event, Progress, RunningTopology
from .diagnosis import ComponentView, diagnose
from .sizes import StateSizes
from .timeline import make_clock, watch

log = logging.getLogger("trident_py")

EVENTS, FAILURES = 10_000, 100
FAILED = ("replay", "task-retry", "poison", "failed")
LONGEST = 2_000  # characters of a reason
READY_SECONDS = 60.0


class RunEvent(NamedTuple):
    """An event, its number, its time in seconds since 1970, and its component; "" for one of the whole run."""

    number: int
    time: float
    component: str
    event: Event


class RunRecord:
    """What is known of a run. ``programs``: its programs, with the timelines as their watchers.

    ``guarantees``: those of the states, by name. ``over``: whether it has ended. ``changes``: how many events there
    were.
    """

    running: RunningTopology

    def __init__(self, plan: Plan, conf: Mapping[str, Any], programs: list[Program]) -> None:
        self.plan, self.conf, self.now = plan, conf, make_clock()
        context = RunContext.of(conf)
        # now, as it reads the code of modules, and the run imports some
        self.guarantees = {each.state: each for each in guarantees(plan, conf)}
        self.name, self.id = context.topology, f"{re.sub('[^A-Za-z0-9_.-]', '_', context.topology)}-{context.token}"
        self.timelines, self.programs = watch(programs, context.run, self.now)
        self.sizes = StateSizes({name: factory for each in programs for name, factory in each.states().items()})
        self.events: deque[RunEvent] = deque(maxlen=EVENTS)
        self.failures: deque[RunEvent] = deque(maxlen=FAILURES)
        self.began = self.now()
        self.changes = 0
        self._numbers = itertools.count(1)
        self.over = False

    def attach(self, running: RunningTopology) -> None:
        """Called with the run before it starts."""
        self.running = running
        for component, timeline in self.timelines.items():
            timeline.progress = running.progress[component]
        running.addListener(self._record)

    def _record(self, event: Event, progress: Progress | None) -> None:
        component = "" if progress is None else progress.component
        if event.reason:
            event = event._replace(reason=hide(event.reason)[:LONGEST])
        if progress is not None:
            self.timelines[component].event(event)
        elif event.kind == "ended":
            self.over = True
            for timeline in self.timelines.values():
                timeline.finish()
        found = RunEvent(next(self._numbers), self.now(), component, event)  # components have threads of their own
        self.changes = found.number
        self.events.append(found)
        if event.kind in FAILED:
            self.failures.append(found)

    # -- what follows -----------------------------------------------------------------------------------------

    @cached_property
    def picture(self) -> str:
        """The topology as SVG; "" if that cannot be drawn here."""
        try:
            return render(self.plan, "svg")
        except TridentError as error:
            log.info("the page shows the topology as text: %s", error)
            return ""

    @cached_property
    def explained(self) -> str:
        """The topology as text."""
        return render(self.plan)

    @cached_property
    def sketch(self) -> Sketch:
        """The topology as it runs: stages, arrows, states."""
        return sketch(self.plan)

    @cached_property
    def nodes(self) -> dict[int, tuple[str, Node]]:
        """The operations by their number, each with its component."""
        return {node.id: (each.component, node) for each in self.programs for node in each.lowered.plan.nodes}

    def program(self, component: str) -> Program:
        return next(program for program in self.programs if program.component == component)

    def view(self, component: str) -> ComponentView:
        timeline, spouts = self.timelines[component], [spout.id for spout in self.program(component).spouts]
        with timeline.lock:
            return ComponentView.of(timeline, spouts, self.running.inactive.is_set())

    def measure_states(self, seconds: float = 0.0) -> None:
        """Ask the stores for sizes, if it is time, and wait so long for them."""
        opened = [name for timeline in self.timelines.values() for name in timeline.progress.generations]
        self.sizes.look(opened, seconds)

    @property
    def status(self) -> str:
        """Storm's word for what the run does."""
        if self.over or self.running.stopping.is_set():
            return "KILLED"
        return "INACTIVE" if self.running.inactive.is_set() else "ACTIVE"

    def unready(self) -> str:
        """Return why the run is not ready; "" if each component has committed or was idle of late."""
        most = float(self.conf.get(Config.TOPOLOGY_HTTP_READY_SECONDS) or READY_SECONDS)
        for component in self.timelines:
            view = self.view(component)
            if view.status != "running":
                return f"{component}: {diagnose(view).sentence}"
            if view.current is not None and view.now - view.current.began > most:
                return f"{component}: txid {view.current.txid} is not committed; {diagnose(view).sentence}"
        return ""
