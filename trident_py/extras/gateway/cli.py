"""The commands of the events gateway: `trident events serve`, `expire`, `lint`.

Exit codes: 0 it ended in order; 1 it failed; 2 the file is wrong, or a package is missing.
"""

from __future__ import annotations

import importlib
from typing import Any

import click

from ...cli.failures import guard
from ...errors import DefinitionError, explain_missing
from .cli_lint import lint_command

_config = click.option("--config", metavar="FILE", required=True, help="The gateway's settings, such as events.yaml.")


@click.group()
def events() -> None:
    """Serve and check the HTTP gateway in front of Kafka that accepts every event once."""


events.add_command(lint_command)


@events.command()
@_config
@guard
def serve(config: str) -> int:
    """Serve POST /events until SIGTERM or Ctrl-C."""
    _import_server().serve(config)
    return 0


@events.command()
@_config
@guard
def expire(config: str) -> int:
    """Delete events older than expirySeconds now. The gateway itself does so from time to time."""
    print(f"{_import_server().expire(config)} events deleted")
    return 0


def _import_server() -> Any:
    """Import by name: other commands must not load the web server, and work without it."""
    try:
        return importlib.import_module("trident_py.extras.gateway.server")
    except ModuleNotFoundError as error:
        if (error.name or "").startswith("trident_py"):
            raise
        raise DefinitionError(explain_missing("the gateway", error.name, "events")) from None
