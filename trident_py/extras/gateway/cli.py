"""The commands of the events gateway: `trident events serve`, `expire`, `lint`.

Exit codes: 0 it ended in order; 1 it failed; 2 the file is wrong, or a package is missing.
"""

from __future__ import annotations

import contextlib
import importlib
import sys
from collections.abc import Iterator
from typing import Any

import click

from ...errors import DefinitionError, TridentError, explain_missing
from .cli_lint import lint_command

FAILED, WRONG = 1, 2

_config = click.option("--config", metavar="FILE", required=True, help="The gateway's settings, such as events.yaml.")


@click.group()
def events() -> None:
    """Serve and check the HTTP gateway in front of Kafka that accepts every event once."""


events.add_command(lint_command)


@events.command()
@_config
def serve(config: str) -> None:
    """Serve POST /events until SIGTERM or Ctrl-C."""
    with _report_errors():
        _import_server().serve(config)


@events.command()
@_config
def expire(config: str) -> None:
    """Delete events older than expirySeconds now. The gateway itself does so from time to time."""
    with _report_errors():
        print(f"{_import_server().expire(config)} events deleted")


def _import_server() -> Any:
    """Import by name: other commands must not load the web server, and work without it."""
    try:
        return importlib.import_module("trident_py.extras.gateway.server")
    except ModuleNotFoundError as error:
        if (error.name or "").startswith("trident_py"):
            raise
        raise DefinitionError(explain_missing("the gateway", error.name, "events")) from None


@contextlib.contextmanager
def _report_errors() -> Iterator[None]:
    """Ends the process with the error and its exit code, if there is one."""
    try:
        yield
    except DefinitionError as error:
        print(f"error: {error}", file=sys.stderr)
        sys.exit(WRONG)
    except TridentError as error:
        print(f"{type(error).__name__}: {error}", file=sys.stderr)
        sys.exit(FAILED)
