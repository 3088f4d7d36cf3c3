"""The command line: `python -m trident_py run` and `python -m trident_py explain`, of a topology file or MODULE:build.

Exit codes: 0 the run ended, or SIGTERM stopped it after a batch; 1 it failed; 2 the command, the module or the topology
is wrong; 130 Ctrl-C.
An error shows the user's own exception first, then the step that it ended. ``--traceback`` shows the user's traceback.
"""

from __future__ import annotations

import dataclasses
import json
import os
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from .blame import blame, describe_error
from .cli_doctor import tell_health
from .cli_drpc import drpc_client, serve_on, serve_options, served, tell_server
from .cli_profile import ON, measured, profile_options, tell_profiles
from .cli_project import init, print_schema
from .cli_spark import SparkOptions, absolute, spark_options
from .cli_states import check, looks_of, show_looks, states
from .cli_targets import Chosen, Target, leaving_no_trace, target_argument
from .config import Config
from .context import with_context
from .display import JsonLines, ProgressLine, exit_code, follow, print_record, terminable
from .errors import DefinitionError, TopologyError, TridentError
from .events.cli import events
from .explain import FORMS
from .guarantees import Guarantees, require
from .importing import NotFound
from .local import LocalCluster
from .topology.topology import check_submission

FAILED, WRONG = 1, 2


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="trident-py", prog_name="trident", message="%(prog)s %(version)s")
def trident() -> None:
    """Storm Trident topologies on Spark."""


trident.add_command(states)
trident.add_command(check)
trident.add_command(events)
trident.add_command(drpc_client)
trident.add_command(init)
trident.add_command(print_schema)


@dataclasses.dataclass(frozen=True)
class Run:
    """The options that `run` and `drpc serve` share. ``more``: what else the command puts into the conf."""

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

    def check(self) -> None:
        """Raises UsageError for options that contradict each other."""
        self.spark.arguments()
        settings_of(self.settings)
        if self.local and self.available_now:
            raise click.UsageError("--available-now is for Spark; a run with --local ends with its spouts")
        if self.local and self.spark.given:
            raise click.UsageError("--local runs without Spark, and so without its options (--master, --conf ...)")

    def load(self) -> tuple[str, Chosen, Config]:
        """The name of the run, the topology, and the whole conf. Gives Spark its options."""
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

    def __call__(self, serve: bool = False) -> int:
        """Runs the topology to its end; with ``serve`` answers requests after that too, until Ctrl-C or SIGTERM."""
        name, loaded, conf = self.load()
        show_guarantees(loaded.topology.guarantees(conf), conf, self.as_json)
        with cluster_for(self.local, loaded.storage) as cluster:
            running = self.submit(cluster, name, conf, loaded)
            if serve:
                tell_server(running)
            code = follow(running, JsonLines() if self.as_json else ProgressLine(name))
            if serve and code == 0 and not running.stopping.is_set():
                serve_on(running)
            return code

    def submit(self, cluster: Any, name: str, conf: Config, loaded: Chosen) -> Any:
        only_now = {"availableNow": True} if self.available_now and not self.local else {}
        return cluster.submitTopology(name, conf, loaded.topology, **only_now)

    def profiled(self, batches: int, warm_up: int) -> int:
        """Runs the topology for so many batches and prints where their time went."""
        self.more.update(ON)
        name, loaded, conf = self.load()
        with LocalCluster(loaded.storage) if self.local else cluster_on_spark(loaded.storage) as cluster:
            running = self.submit(cluster, name, conf, loaded)
            return tell_profiles(name, measured(running, batches, warm_up), self.as_json)

    def dry(self) -> int:
        """Shows the guarantees and checks the stores of the states. Starts nothing, writes nothing."""
        with leaving_no_trace():
            name, loaded, conf = self.load()
        check_submission(name, conf, loaded.topology)
        show_guarantees(loaded.topology.guarantees(conf), conf, self.as_json)
        return show_looks(looks_of(loaded.topology.plan, loaded.hide), "events" if self.as_json else "text")


def run_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Adds the options of `Run` to a click command."""
    for option in reversed(_RUN):
        command = option(command)
    return command


_RUN = (
    target_argument,
    click.option("--local", is_flag=True, help="Run in this process, without a JVM."),
    click.option(
        "--checkpoint",
        metavar="DIR",
        help="Folder that stores txids; default: checkpoints (profile: none is kept).",
    ),
    click.option("--available-now", is_flag=True, help="Process the data that is available, then end (Spark only)."),
    click.option("--json", "as_json", is_flag=True, help="Print one JSON event per line on stdout, no progress line."),
    click.option("--name", metavar="NAME", help="Name of the topology; default: the one in the file, or the module's."),
    click.option(
        "--set", "settings", metavar="KEY=VALUE", multiple=True, help="Set a configuration key to JSON or text."
    ),
    spark_options,
    click.option("--traceback", "full", is_flag=True, help="Show the traceback of your own code."),
)


@trident.command()
@run_options
@click.option("--dry-run", is_flag=True, help="Check the topology, its guarantees and its stores; write nothing.")
def run(dry_run: bool, **options: Any) -> None:
    """Run the topology of FILE, or that the function build of MODULE returns, until its spouts end, or Ctrl-C.

    Without an argument: the trident.yml of this folder, or of the nearest one above it.
    """
    chosen = _chosen(options)
    with terminable():
        sys.exit(guarded(chosen.dry if dry_run else chosen, chosen.full))


@trident.command()
@run_options
@profile_options
def profile(batches: int, warm_up: int, **options: Any) -> None:
    """Run a topology for some batches, and show where their time went. It writes to its states as `run` does.

    Without --checkpoint, or one in the topology file, it begins at txid 1 and leaves no checkpoint.
    """
    chosen = _chosen(options)
    with terminable():
        sys.exit(guarded(lambda: chosen.profiled(batches, warm_up), chosen.full))


@trident.group()
def drpc() -> None:
    """Requests to the states of a running topology."""


@drpc.command()
@run_options
@serve_options
def serve(port: int, host: str | None, acl: str | None, **options: Any) -> None:
    """Run a topology and answer its DRPC functions over HTTP, until Ctrl-C or SIGTERM."""
    chosen = _chosen(options)
    served(chosen.more, port, host, acl)
    with terminable():
        sys.exit(guarded(lambda: chosen(serve=True), chosen.full))


def _chosen(options: dict[str, Any]) -> Run:
    named = {field.name for field in dataclasses.fields(Run)} & set(options)
    own = {name: options.pop(name) for name in named}
    chosen = Run(**own, spark=SparkOptions(**options))
    chosen.check()
    return chosen


@trident.command()
@target_argument
@click.option("--format", "form", type=click.Choice(list(FORMS)), default="text", help="A text, or a picture.")
@click.option("--traceback", "full", is_flag=True, help="Show the traceback of your own code.")
def explain(target: str | None, form: str, full: bool) -> None:
    """Show the steps of a topology, its stages, fields and states, and what is guaranteed for each state.

    The pictures mermaid and dot are texts; svg needs graphviz. Redirect them to a file.
    """

    def body() -> int:
        topology = Target.of(target).load().topology
        print(topology.explain(form))
        if form != "text":
            return 0
        print()
        guarantees = topology.guarantees()
        print("\n".join([str(guarantees), *guarantees.notes()]))
        return 0

    sys.exit(guarded(body, full))


@trident.command()
@target_argument
@click.option("--checkpoint", metavar="DIR", help="The folder that the run will store txids in; default: none.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.option("--set", "settings", metavar="KEY=VALUE", multiple=True, help="Set a configuration key to JSON or text.")
@spark_options
@click.option("--traceback", "full", is_flag=True, help="Show the traceback of your own code.")
def doctor(
    target: str | None, checkpoint: str | None, as_json: bool, settings: tuple[str, ...], full: bool, **spark: Any
) -> None:
    """Check that a topology can run on a cluster: its machines' packages, files, stores and clocks. Starts nothing."""
    examined = Run(target, False, checkpoint, False, as_json, "trident doctor", settings, full, SparkOptions(**spark))
    examined.check()

    def body() -> int:
        _, loaded, conf = examined.load()
        with cluster_on_spark(loaded.storage) as cluster:
            return tell_health(cluster.examine(conf, loaded.topology), as_json)

    sys.exit(guarded(body, full))


def show_guarantees(guarantees: Guarantees, conf: Config, as_json: bool) -> None:
    """Prints the guarantee of each state before anything starts. Raises DefinitionError if one is below the conf's."""
    require(guarantees, conf)
    if as_json:
        for guarantee in guarantees:
            print_record("guarantee", **dataclasses.asdict(guarantee))
    elif guarantees:
        print(guarantees, file=sys.stderr)


def settings_of(settings: tuple[str, ...]) -> Config:
    """Makes a Config of `KEY=VALUE` pairs. A value that is not JSON is text."""
    conf = Config()
    for setting in settings:
        key, equals, value = setting.partition("=")
        if not equals:
            raise click.UsageError(f"--set {setting}: expected KEY=VALUE")
        try:
            conf[key] = json.loads(value)
        except json.JSONDecodeError:
            conf[key] = value
    return conf


def cluster_for(local: bool, checkpoint: str | None) -> Any:
    """The cluster of a run. Both have the same checkpoint by default, and either goes on where the other stopped."""
    if checkpoint is None:
        checkpoint = str(Path("checkpoints").absolute())
    return LocalCluster(checkpoint) if local else cluster_on_spark(checkpoint)


def cluster_on_spark(checkpoint: str | None) -> Any:
    from .spark import SparkCluster  # `--local` must not load pyspark

    return SparkCluster(checkpoints=checkpoint)


def guarded(body: Callable[[], int], full: bool) -> int:
    """The exit code of ``body``. Errors are printed, not raised."""
    try:
        return body()
    except KeyboardInterrupt as stopped:
        return exit_code(stopped)
    except click.ClickException:
        raise
    except NotFound as error:
        return tell(f"error: {error}", WRONG)
    except DefinitionError as error:
        return tell(f"error: {error}{origin(error)}", WRONG, trace_of(error, full))
    except TopologyError as error:
        return tell(str(error), FAILED, error.trace if full else "")
    except TridentError as error:
        return tell(f"{describe_error(error)}{origin(error)}", FAILED, trace_of(error, full))
    except Exception as error:  # the user's own module failed while it was imported or built
        text = f"{describe(error)}\nerror: the module or its build function failed"
        return tell(text, WRONG, trace_of(error, full))


def tell(text: str, code: int, trace: str = "") -> int:
    print(f"{trace}{text}", file=sys.stderr)
    return code


def trace_of(error: BaseException, full: bool) -> str:
    return blame(error).trace if full else ""


def describe(error: BaseException) -> str:
    return "".join(traceback.format_exception_only(error)).strip() + origin(error)


def origin(error: BaseException) -> str:
    """The innermost line of the user's own code, if the traceback has one."""
    line = blame(error).origin
    return f"\n  at {line}" if line else ""


def _pin_hash_seed(arguments: list[str]) -> None:
    """Restarts a local run with PYTHONHASHSEED=0, unless one is set, so that all runs have the same order of sets, as
    on Spark. Only a new process can change the seed."""
    runs = arguments[:1] in (["run"], ["profile"]) or arguments[:2] == ["drpc", "serve"]
    if runs and "--local" in arguments and "PYTHONHASHSEED" not in os.environ:
        os.environ["PYTHONHASHSEED"] = "0"
        os.execv(sys.executable, sys.orig_argv)


def main() -> None:
    """The console script `trident`."""
    _pin_hash_seed(sys.argv[1:])
    trident(prog_name="trident")
