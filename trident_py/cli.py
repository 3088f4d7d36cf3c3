"""The command line: `python -m trident_py run MODULE:build` and `python -m trident_py explain MODULE:build`.

Exit codes: 0 the run ended, or SIGTERM stopped it after a batch; 1 it failed; 2 the command, the module or the topology
is wrong; 130 Ctrl-C.
An error shows the user's own exception first, then the step that it ended. ``--traceback`` shows the user's traceback.
"""

from __future__ import annotations

import dataclasses
import importlib
import importlib.util
import inspect
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
from .cli_spark import SparkOptions, spark_options
from .cli_states import check, states
from .config import Config
from .context import with_context
from .display import JsonLines, ProgressLine, exit_code, follow, terminable
from .errors import DefinitionError, TopologyError, TridentError
from .events.cli import events
from .explain import FORMS
from .guarantees import Guarantees, require
from .local import LocalCluster
from .topology import Topology, TridentTopology

FAILED, WRONG = 1, 2


class NotLoadable(Exception):
    """MODULE:build does not lead to a topology. The message says what exists instead."""


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
def trident() -> None:
    """Storm Trident topologies on Spark."""


trident.add_command(states)
trident.add_command(check)
trident.add_command(events)
trident.add_command(drpc_client)


@dataclasses.dataclass(frozen=True)
class Run:
    """The options that `run` and `drpc serve` share."""

    target: str
    local: bool
    checkpoint: str | None
    available_now: bool
    as_json: bool
    name: str | None
    settings: tuple[str, ...]
    full: bool

    def title(self) -> str:
        return self.name or self.target.partition(":")[0].rsplit(".", 1)[-1]

    def conf(self) -> Config:
        return Config(with_context(settings_of(self.settings), command_line=True))

    def check(self, options: SparkOptions) -> None:
        """Gives Spark its options. Raises UsageError for options that contradict each other."""
        if not self.local:
            options.apply(self.title())
        elif self.available_now:
            raise click.UsageError("--available-now is for Spark; a run with --local ends with its spouts")
        elif options.given:
            raise click.UsageError("--local runs without Spark, and so without its options (--master, --conf ...)")

    def __call__(self, conf: Config, serve: bool = False) -> int:
        """Runs the topology to its end; with ``serve`` answers requests after that too, until Ctrl-C or SIGTERM."""
        topology = load(self.target)
        show_guarantees(topology.guarantees(conf), conf, self.as_json)
        with cluster_for(self.local, self.checkpoint) as cluster:
            only_now = {"availableNow": True} if self.available_now and not self.local else {}
            running = cluster.submitTopology(self.title(), conf, topology, **only_now)
            if serve:
                tell_server(running)
            code = follow(running, JsonLines() if self.as_json else ProgressLine(self.title()))
            if serve and code == 0 and not running.stopping.is_set():
                serve_on(running)
            return code


def run_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Adds the options of `Run` to a click command."""
    for option in reversed(_RUN):
        command = option(command)
    return command


_RUN = (
    click.argument("target", metavar="MODULE:build"),
    click.option("--local", is_flag=True, help="Run in this process, without a JVM."),
    click.option(
        "--checkpoint",
        metavar="DIR",
        help="Folder that stores txids; default: checkpoints on Spark, none (in memory) with --local.",
    ),
    click.option("--available-now", is_flag=True, help="Process the data that is available, then end (Spark only)."),
    click.option("--json", "as_json", is_flag=True, help="Print one JSON event per line on stdout, no progress line."),
    click.option("--name", metavar="NAME", help="Name of the topology; default: the module's name."),
    click.option(
        "--set", "settings", metavar="KEY=VALUE", multiple=True, help="Set a configuration key to JSON or text."
    ),
    spark_options,
    click.option("--traceback", "full", is_flag=True, help="Show the traceback of your own code."),
)


@trident.command()
@run_options
def run(**options: Any) -> None:
    """Run the topology that the function build of MODULE returns, until its spouts end, or Ctrl-C."""
    chosen, conf = _chosen(options)
    with terminable():
        sys.exit(guarded(lambda: chosen(conf), chosen.full))


@trident.group()
def drpc() -> None:
    """Requests to the states of a running topology."""


@drpc.command()
@run_options
@serve_options
def serve(port: int, host: str | None, acl: str | None, **options: Any) -> None:
    """Run a topology and answer its DRPC functions over HTTP, until Ctrl-C or SIGTERM."""
    chosen, conf = _chosen(options)
    served(conf, port, host, acl)
    with terminable():
        sys.exit(guarded(lambda: chosen(conf, serve=True), chosen.full))


def _chosen(options: dict[str, Any]) -> tuple[Run, Config]:
    own = {field.name: options.pop(field.name) for field in dataclasses.fields(Run)}
    chosen = Run(**own)
    chosen.check(SparkOptions(**options))
    return chosen, chosen.conf()


@trident.command()
@click.argument("target", metavar="MODULE:build")
@click.option("--format", "form", type=click.Choice(list(FORMS)), default="text", help="A text, or a picture.")
@click.option("--traceback", "full", is_flag=True, help="Show the traceback of your own code.")
def explain(target: str, form: str, full: bool) -> None:
    """Show the steps of a topology, its stages, fields and states, and what is guaranteed for each state.

    The pictures mermaid and dot are texts; svg needs graphviz. Redirect them to a file.
    """

    def body() -> int:
        topology = load(target)
        print(topology.explain(form))
        if form != "text":
            return 0
        print()
        guarantees = topology.guarantees()
        print("\n".join([str(guarantees), *guarantees.notes()]))
        return 0

    sys.exit(guarded(body, full))


@trident.command()
@click.argument("target", metavar="MODULE:build")
@click.option("--checkpoint", metavar="DIR", help="The folder that the run will store txids in; default: none.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.option("--set", "settings", metavar="KEY=VALUE", multiple=True, help="Set a configuration key to JSON or text.")
@spark_options
@click.option("--traceback", "full", is_flag=True, help="Show the traceback of your own code.")
def doctor(
    target: str, checkpoint: str | None, as_json: bool, settings: tuple[str, ...], full: bool, **spark: Any
) -> None:
    """Check that a topology can run on a cluster: its machines' packages, files, stores and clocks. Starts nothing."""
    SparkOptions(**spark).apply("trident doctor")
    conf = settings_of(settings)

    def body() -> int:
        topology = load(target)
        with cluster_on_spark(checkpoint) as cluster:
            return tell_health(cluster.examine(conf, topology), as_json)

    sys.exit(guarded(body, full))


def show_guarantees(guarantees: Guarantees, conf: Config, as_json: bool) -> None:
    """Prints the guarantee of each state before anything starts. Raises DefinitionError if one is below the conf's."""
    require(guarantees, conf)
    if as_json:
        for guarantee in guarantees:
            print(json.dumps({"event": "guarantee", **dataclasses.asdict(guarantee)}), flush=True)
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
    """The cluster of a run. With ``local``, a checkpoint is kept only if one is named."""
    return LocalCluster(checkpoint) if local else cluster_on_spark(checkpoint or str(Path("checkpoints").absolute()))


def cluster_on_spark(checkpoint: str | None) -> Any:
    from .spark import SparkCluster  # `--local` must not load pyspark

    return SparkCluster(checkpoints=checkpoint)


def load(target: str) -> Topology:
    """The topology that `MODULE:build` returns. Raises NotLoadable; exceptions of the module pass through."""
    module_name, _, function = target.partition(":")
    if str(Path.cwd()) not in sys.path:
        sys.path.insert(0, str(Path.cwd()))
    build = getattr(find_module(module_name), function or "build", None)  # the user's module, by the user's name
    if not callable(build):
        raise NotLoadable(f"module {module_name} has no function {function or 'build'!r}; {builders(module_name)}")
    topology = build()
    if isinstance(topology, TridentTopology):
        return topology.build()
    if isinstance(topology, Topology):
        return topology
    raise NotLoadable(f"{target} returned {type(topology).__name__}; it must return a TridentTopology, or its build()")


def find_module(name: str) -> Any:
    """Imports a module. Raises NotLoadable if it is missing, but not if a module that it imports is missing."""
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name is None or not (name == error.name or name.startswith(f"{error.name}.")):
            raise
        raise NotLoadable(f"no module {name!r} ({error}); {neighbours(name)}") from None
    except ValueError as error:
        raise NotLoadable(f"{name!r} is not a module name: {error}") from None


def neighbours(name: str) -> str:
    """Suggestions: the modules next to the missing one."""
    folder = Path.cwd().joinpath(*name.split(".")[:-1])
    if not folder.is_dir():
        return f"looked in {Path.cwd()} and in the installed packages"
    modules = sorted(path.stem for path in folder.glob("*.py") if not path.stem.startswith("_"))
    where = folder.relative_to(Path.cwd()).as_posix()
    return f"in {'this folder' if where == '.' else where} there are: {', '.join(modules) or 'no modules'}"


def builders(module_name: str) -> str:
    """Suggestions: the functions that a module itself defines."""
    module = sys.modules[module_name]
    functions = inspect.getmembers_static(module, inspect.isfunction)
    names = [name for name, value in functions if value.__module__ == module_name and not name.startswith("_")]
    return f"it has: {', '.join(names)}" if names else "it has no functions"


def guarded(body: Callable[[], int], full: bool) -> int:
    """The exit code of ``body``. Errors are printed, not raised."""
    try:
        return body()
    except KeyboardInterrupt as stopped:
        return exit_code(stopped)
    except NotLoadable as error:
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
    runs = arguments[:1] == ["run"] or arguments[:2] == ["drpc", "serve"]
    if runs and "--local" in arguments and "PYTHONHASHSEED" not in os.environ:
        os.environ["PYTHONHASHSEED"] = "0"
        os.execv(sys.executable, sys.orig_argv)


def main() -> None:
    """The console script `trident`."""
    _pin_hash_seed(sys.argv[1:])
    trident(prog_name="trident")
