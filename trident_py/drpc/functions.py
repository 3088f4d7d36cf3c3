"""The DRPC functions of one run: compiled when the topology is submitted, registered where they are called."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from functools import partial
from typing import Protocol

from ..config import Config
from ..engine.processors import Answer
from ..engine.program import Program, compile_functions
from ..entry_points import load
from ..errors import DRPCExecutionException
from ..model.context import with_context
from ..model.plan import DRPCNode, Plan, ProcessorNode, describe
from ..model.retry import LONGEST
from ..report.progress import RunningTopology
from .local_drpc import TIMEOUT_SECONDS, LocalDRPC, default_drpc
from .workers import THREADS, Request, Workers

log = logging.getLogger("trident_py")

_CLOSING_SECONDS = 5.0


class Server(Protocol):
    """What serves the functions of a LocalDRPC over HTTP, until the last run that uses it leaves."""

    drpc: LocalDRPC

    @property
    def url(self) -> str: ...

    def leave(self, user: object) -> None: ...


class Functions:
    """The functions of a topology that is being submitted or runs. A run without functions has none of these."""

    def __init__(self, programs: Sequence[Program], conf: dict) -> None:
        self._programs = {program.component: program for program in programs}
        self._workers = Workers(self._programs, conf.get(Config.DRPC_WORKER_THREADS) or THREADS)
        self._timeout = float(conf.get(Config.DRPC_REQUEST_TIMEOUT_SECS) or TIMEOUT_SECONDS)
        self._running: RunningTopology | None = None
        self._needs: dict[str, set[str]] = {}
        self._forget: list[Callable[[], None]] = []
        self._conf = conf
        self._server: Server | None = None

    def begin(self, running: RunningTopology, programs: Sequence[Program]) -> None:
        """Register the functions and start their server, if the conf has one. ``programs``: the components with
        batches, whose states the functions may ask.

        Raises DefinitionError if the server cannot start or answers one of the functions for another run, or a package
        for it is missing; the run is then over.
        """
        self._running = running
        try:
            if self._conf.get(Config.DRPC_HTTP_PORT) is not None:
                self._server = load("the DRPC server", "drpc_server").server_of(self._conf, self)
                for function in self._programs:
                    self._server.drpc.check_free(function)
        except BaseException:
            if self._server is not None:
                self._server.leave(self)
            running.abandon()
            raise
        for function, program in self._programs.items():
            asked = _states(program)
            self._needs[function] = {other.component for other in programs if asked & _states(other)}
            for drpc in [_place(program), *([self._server.drpc] if self._server else [])]:
                drpc.register(function, self)
                self._forget.append(partial(drpc.forget, function, self))
            _tell_ends(program)
        if self._server is not None:
            log.info("DRPC of %s at %s", self.name, self._server.url)

    @property
    def name(self) -> str:
        """The topology."""
        return "" if self._running is None else self._running.name

    @property
    def is_active(self) -> bool:
        """Whether the topology's batches go on. One whose spouts are exhausted gives its functions to another."""
        return self._running is not None and self._running.isActive

    @property
    def url(self) -> str:
        """Where its server is; "" without one."""
        return "" if self._server is None else self._server.url

    @property
    def waiting(self) -> int:
        """How many requests wait for a thread."""
        return self._workers.waiting

    @property
    def counts(self) -> dict[str, tuple[int, int]]:
        """By function: how often it was asked, and how many of these requests are over."""
        asked, over = self._workers.asked, self._workers.over
        return {function: (asked[function], over[function]) for function in self._programs}

    def ask(self, function: str, args: str, timeout: float | None) -> tuple[Future[str], float]:
        """Ask; returns the answer to come, and for how many seconds to wait for it. Raises DRPCExecutionException."""
        seconds = min(self._timeout if timeout is None else timeout, LONGEST)
        ready = partial(self._ready, function, time.monotonic() + seconds)
        request = Request(function, args, ready, Future())
        self._workers.put(request)
        return request.answer, seconds

    def _ready(self, function: str, until: float) -> None:
        """Return when the states that the function asks are open."""
        assert self._running is not None
        if not self._running.await_open(self._needs[function], max(0.0, until - time.monotonic())):
            raise DRPCExecutionException(
                f"the function {function!r} was not answered in time: the topology {self.name!r} has not yet opened "
                "the states that it asks",
                "SERVER_TIMEOUT",
            )

    def end(self, reason: str) -> None:
        """Answer no more requests."""
        for forget in self._forget:
            forget()
        self._workers.end(reason)
        self._workers.join(_CLOSING_SECONDS)
        if self._server is not None:
            self._server.leave(self)


def functions_of(plan: Plan, conf: dict) -> Functions | None:
    """Return the functions of a built topology, None if it has none. ``conf`` has the run's context.

    Raises DefinitionError if another run answers one of them.
    """
    own = {key: value for key, value in conf.items() if key != Config.TOPOLOGY_DETERMINISM_CHECK}
    programs = compile_functions(plan, with_context(own, home=None))  # the engine is where the objects are
    for program in programs:
        _place(program).check_free(program.component)
    return Functions(programs, own) if programs else None


def _place(program: Program) -> LocalDRPC:
    """Return where the function is called."""
    source = next(node for node in program.lowered.plan.nodes if isinstance(node, DRPCNode))
    drpc: LocalDRPC = source.drpc if source.drpc is not None else default_drpc()
    return drpc


def _states(program: Program) -> set[str]:
    nodes = program.lowered.plan.nodes
    return {node.state.id for node in nodes if isinstance(node, ProcessorNode) and node.state is not None}


def _tell_ends(program: Program) -> None:
    """Log which end answers, if the stream branches."""
    plan = program.lowered.plan
    ends = [node for node in plan.nodes if not plan.children(node)]
    if len(ends) > 1:
        answer = next(node for node in ends if isinstance(node, ProcessorNode) and isinstance(node.spec, Answer))
        last = plan.by_id[plan.by_id[answer.parents[0]].parents[0]]
        text = "the DRPC stream %s has %d ends: it answers with that of its line, #%d %s"
        log.info(text, program.component, len(ends), last.id, describe(last))
