"""The monitor of a run: records it, and serves what it has recorded until the run ends."""

from __future__ import annotations

import logging
import os
from collections.abc import Mapping
from typing import Any

from ...config import Config
from ...engine.program import Program
from ...errors import DefinitionError
from ...model.plan import Plan
from ...report.progress import Event, Progress, RunningTopology
from ..drpc_server.web_server import LOCAL, WebServer
from . import TOKEN
from .app import application
from .run_record import RunRecord

log = logging.getLogger("trident_py")


class Monitor:
    """Records a run and serves it at ``topology.http`` of the conf. ``programs``: those to run in place of the given.

    Raises DefinitionError if other machines could call without a token.
    """

    def __init__(self, plan: Plan, conf: Mapping[str, Any], programs: list[Program]) -> None:
        self.host, self.port = address_of_page(conf[Config.TOPOLOGY_HTTP])
        self._token = os.environ.get(TOKEN, "")
        if not self._token and self.host not in LOCAL:
            raise DefinitionError(
                f"topology.http listens at {self.host}, so other machines could see and stop the run without a token. "
                f"Set {TOKEN} in the environment, or serve this machine only: {LOCAL[0]}"
            )
        self.record = RunRecord(plan, conf, programs)
        self.programs = self.record.programs

    def begin(self, running: RunningTopology) -> None:
        """Start the server. Called before the run starts. If it raises DefinitionError, the run is over."""
        self.record.attach(running)
        try:
            served = application(self.record, self._token)
            self._server = WebServer(served, "the page of the run", Config.TOPOLOGY_HTTP, self.host, self.port).start()
        except BaseException:
            running.abandon()
            raise
        running.http = self._server.url
        running.addListener(self._end)
        log.info("%s is shown at %s", running.name, running.http)

    def _end(self, event: Event, progress: Progress | None) -> None:
        if event.kind == "ended":
            self._server.stop()


def address_of_page(value: Any) -> tuple[str, int]:
    """Return host and port of ``[HOST:]PORT``."""
    host, _, port = str(value).rpartition(":")
    return host.strip("[]") or LOCAL[0], int(port)
