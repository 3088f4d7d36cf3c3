"""The commands that run a topology: `trident run`, `trident drpc serve`."""

from __future__ import annotations

import dataclasses
import os
import sys
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any

import click

from ..config import Config
from ..entry_points import load
from ..local import LocalCluster
from ..model.context import with_context
from ..model.json_text import parse_json
from ..report.guarantees import Guarantees, require
from ..report.progress import RunningTopology
from ..topology.topology import check_submission
from .check import looks_of, show_looks
from .display import ProgressLine, follow, terminable
from .failures import run_guarded
from .spark_options import SparkOptions, absolute, spark_options
from .targets import (
    Chosen,
    Target,
    add_options,
    leaving_no_trace,
    name_option,
    settings_option,
    target_argument,
    traceback_option,
)


@dataclasses.dataclass(frozen=True)
class RunCommand:
    """The options that the commands that run a topology share. ``more``: what else the command puts into the conf.
    ``lines``: what shows the run to programs (the extra ``event_lines``), and is open while the command runs.
    ``log_format``: "text" or "json"."""

    target: str | None
    local: bool
    checkpoint: str | None
    available_now: bool
    as_json: bool
    name: str | None
    settings: tuple[str, ...]
    full: bool
    spark: SparkOptions
    more: Config = dataclasses.field(default_factory=Config)
    events: str | None = None
    log_format: str = "text"
    lines: Any = None

    @classmethod
    def of(cls, options: dict[str, Any]) -> RunCommand:
        """Make the command of what was typed. Raises UsageError for options that contradict each other."""
        named = {field.name for field in dataclasses.fields(cls)} & set(options)
        own = {name: options.pop(name) for name in named}
        command = cls(**own, spark=SparkOptions(**options))
        command.check()
        if command.quiet or command.events:
            extra = load("--json, --events or --log-format", "event_lines")
            lines = extra.EventLines(command.as_json, command.events, command.log_format == "json")
            command = dataclasses.replace(command, lines=lines)
        return command

    @property
    def quiet(self) -> bool:
        """Whether nothing is shown to people."""
        return self.as_json or self.log_format == "json"

    def open_lines(self) -> AbstractContextManager[Any]:
        """Open the lines for programs, if there are any."""
        return self.lines or nullcontext()

    def check(self) -> None:
        """Raise UsageError for options that contradict each other."""
        self.spark.arguments()
        settings_of(self.settings)
        if self.local and self.available_now:
            raise click.UsageError("--available-now is for Spark; a run with --local ends with its spouts")
        if self.local and self.spark.given:
            raise click.UsageError("--local runs without Spark, and so without its options (--master, --conf ...)")

    def load(self) -> tuple[str, Chosen, Config]:
        """Return the name of the run, the topology, and the whole conf. Gives Spark its options."""
        here = Path.cwd()
        target = Target.of(self.target)
        name = self.name or target.name
        moves = target.draft is not None  # to the file's folder; what was typed is relative to this one
        if not self.local:
            (self.spark.within(here) if moves else self.spark).apply(name, target.spark())
        loaded = target.load()
        settings = Config(with_context(settings_of(self.settings), command_line=True))
        conf = Config({key: value for key, value in loaded.conf.items() if not key.startswith("spark.")})
        place = absolute(self.checkpoint, here) if self.checkpoint and moves else self.checkpoint
        loaded = dataclasses.replace(loaded, storage=place or loaded.storage)
        return name, loaded, Config(conf | settings | self.more)

    def __call__(self) -> int:
        """Run the topology to its end."""
        name, loaded, conf = self.load()
        self.show_guarantees(loaded.topology.guarantees(conf), conf, name)
        with cluster_for(self.local, loaded.storage) as cluster:
            return self.follow(self.submit(cluster, name, conf, loaded), name)

    def submit(self, cluster: Any, name: str, conf: Config, loaded: Chosen) -> RunningTopology:
        only_now = {"availableNow": True} if self.available_now and not self.local else {}
        return cluster.submitTopology(name, conf, loaded.topology, **only_now)

    def follow(self, running: RunningTopology, name: str) -> int:
        """Show the progress until the run ends; returns the exit code. After a second Ctrl-C or SIGTERM it ends the
        process in the middle of a batch, as a crash does."""
        if running.http:
            print(f"page at {running.http}", file=sys.stderr, flush=True)
        lines = [self.lines] if self.lines else []
        with nullcontext() if self.quiet else ProgressLine(name) as line:
            code = follow(running, [*lines, line] if line else lines)
        if running.isActive:
            os._exit(code)
        return code

    def show_guarantees(self, guarantees: Guarantees, conf: Config, name: str) -> None:
        """Print the guarantee of each state before anything starts. Raises DefinitionError if one is below the
        conf's."""
        require(guarantees, conf)
        if self.lines:
            self.lines.begin(name, guarantees)
        if guarantees and not self.quiet:
            print(guarantees, file=sys.stderr)

    def dry(self) -> int:
        """Show the guarantees and check the stores of the states. Starts nothing, writes nothing."""
        with leaving_no_trace():
            name, loaded, conf = self.load()
        check_submission(name, conf, loaded.topology)
        self.show_guarantees(loaded.topology.guarantees(conf), conf, name)
        return show_looks(looks_of(loaded.topology.plan, loaded.hide), "events" if self.as_json else "text")


run_options = add_options(
    target_argument,
    click.option("--local", is_flag=True, help="Run in this process, without a JVM."),
    click.option(
        "--checkpoint",
        metavar="DIR",
        help="Folder or URI that stores txids; default: checkpoints (profile: none is kept).",
    ),
    click.option("--available-now", is_flag=True, help="Process the data that is available, then end (Spark only)."),
    click.option("--json", "as_json", is_flag=True, help="Print one JSON event per line on stdout, no progress line."),
    name_option,
    settings_option,
    spark_options,
    traceback_option,
)
"""The options of `RunCommand`."""


@click.command()
@run_options
@click.option("--dry-run", is_flag=True, help="Check the topology, its guarantees and its stores; write nothing.")
@click.option("--http", metavar="[HOST:]PORT", help="Show the run on a page there, with metrics; 0: any free port.")
@click.option("--events", metavar="FILE", help="Add each event to FILE, as a line of JSON; it is rotated.")
@click.option("--log-format", type=click.Choice(["text", "json"]), default="text", help="json: JSON lines on stderr.")
def run(dry_run: bool, http: str | None, **options: Any) -> None:
    """Run the topology of FILE, or that the function build of MODULE returns, until its spouts end, or Ctrl-C.

    Without an argument: the trident.yml of this folder, or of the nearest one above it.
    """
    chosen = RunCommand.of(options)
    if http is not None:
        chosen.more[Config.TOPOLOGY_HTTP] = http

    with terminable(), chosen.open_lines():
        sys.exit(run_guarded(chosen.dry if dry_run else chosen, chosen.full))


def settings_of(settings: tuple[str, ...]) -> Config:
    """Make a Config of `KEY=VALUE` pairs. A value that is not JSON is text."""
    conf = Config()
    for setting in settings:
        key, equals, value = setting.partition("=")
        if not equals:
            raise click.UsageError(f"--set {setting}: expected KEY=VALUE")
        try:
            conf[key] = parse_json(value)
        except ValueError:
            conf[key] = value
    return conf


def cluster_for(local: bool, checkpoint: str | None) -> Any:
    """Return the cluster of a run. Both have the same checkpoint by default, and either goes on where the other
    stopped."""
    if checkpoint is None:
        checkpoint = str(Path("checkpoints").absolute())
    return LocalCluster(checkpoint) if local else cluster_on_spark(checkpoint)


def cluster_on_spark(checkpoint: str | None) -> Any:
    from ..spark import SparkCluster  # `--local` must not load pyspark

    return SparkCluster(checkpoints=checkpoint)
