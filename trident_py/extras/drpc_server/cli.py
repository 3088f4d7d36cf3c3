"""The commands of DRPC: `trident drpc serve` and `trident drpc-client`.

Exit codes of the client: 0 every request was answered; 1 one failed; 2 the command is wrong.
"""

from __future__ import annotations

import sys
import threading
from typing import Any

import click

from ...cli.display import terminable
from ...cli.failures import run_guarded, tell
from ...cli.run import RunCommand, run_options
from ...cli.targets import Chosen
from ...config import Config
from ...errors import DefinitionError, DRPCExecutionException
from ...model.plan import DRPCNode
from ...report.progress import RunningTopology
from .client import PORT, DRPCClient

FAILED, WRONG = 1, 2


class ServeCommand(RunCommand):
    """Runs a topology, and answers requests after its batches too."""

    def submit(self, cluster: Any, name: str, conf: Config, loaded: Chosen) -> RunningTopology:
        """Start the topology. Raises DefinitionError, before it does, for one without a DRPC stream."""
        if not any(isinstance(node, DRPCNode) for node in loaded.topology.plan.nodes):
            raise DefinitionError("the topology has no DRPC stream, so there is nothing to serve; see newDRPCStream")
        return super().submit(cluster, name, conf, loaded)

    def follow(self, running: RunningTopology, name: str) -> int:
        """Show the progress, then wait until Ctrl-C or SIGTERM."""
        assert running.requests is not None
        print(f"DRPC at {running.requests.url}", file=sys.stderr, flush=True)
        code = super().follow(running, name)
        if code == 0 and not running.stopping.is_set():
            print("the spouts are exhausted; requests are answered until Ctrl-C", file=sys.stderr, flush=True)
            threading.Event().wait()
        return code


@click.group()
def drpc() -> None:
    """Send requests to the states of a running topology."""


@drpc.command()
@run_options
@click.option("--port", type=click.IntRange(0, 65_535), default=PORT, show_default=True, help="0: any free one.")
@click.option("--host", metavar="HOST", help="The address to listen at; default: 127.0.0.1, this machine only.")
@click.option("--acl", metavar="FILE", help="Who may call which function, such as drpc-auth-acl.yaml.")
def serve(port: int, host: str | None, acl: str | None, **options: Any) -> None:
    """Run a topology and answer its DRPC functions over HTTP, until Ctrl-C or SIGTERM."""
    chosen = ServeCommand.of(options)
    chosen.more[Config.DRPC_HTTP_PORT] = port
    if host is not None:
        chosen.more[Config.DRPC_HTTP_HOST] = host
    if acl is not None:
        chosen.more[Config.DRPC_AUTHORIZER_ACL_FILENAME] = acl
    with terminable(), chosen.open_lines():
        sys.exit(run_guarded(chosen, chosen.full))


@click.command("drpc-client")
@click.option("-f", "--function", metavar="FUNCTION", help="Calls this function with each ARG.")
@click.option("--host", default="localhost", show_default=True, help="Where the server runs.")
@click.option("--port", type=click.IntRange(1, 65_535), default=PORT, show_default=True)
@click.option("--timeout", type=click.FloatRange(min=0, min_open=True), metavar="SECONDS", help="default: 605")
@click.argument("arguments", metavar="[FUNCTION ARG]... | -f FUNCTION ARG...", nargs=-1)
def drpc_client(function: str | None, host: str, port: int, timeout: float | None, arguments: tuple[str, ...]) -> None:
    """Call DRPC functions. Prints each answer, a JSON array of rows, on a line.

    The bearer token, if the server asks for one, is TRIDENT_DRPC_TOKEN of the environment.
    """
    calls = [(function, args) for args in arguments] if function is not None else _pairs(arguments)
    failed = False
    try:
        client = DRPCClient(None, host, port, timeout)
    except DefinitionError as error:
        sys.exit(tell(f"error: {error}", WRONG))
    with client:
        for name, args in calls:
            try:
                print(client.text(name, args), flush=True)
            except DRPCExecutionException as error:
                failed = True
                print(f"{error.type}: {error}", file=sys.stderr, flush=True)
    sys.exit(FAILED if failed else 0)


def _pairs(arguments: tuple[str, ...]) -> list[tuple[str, str]]:
    if not arguments or len(arguments) % 2:
        raise click.UsageError("give FUNCTION ARG, in pairs, or -f FUNCTION and its ARGs")
    return list(zip(arguments[::2], arguments[1::2], strict=True))
