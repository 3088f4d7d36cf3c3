"""The commands of the events gateway: `trident events serve`, `expire`, `lint`.

Exit codes: 0 it ended in order; 1 it failed; 2 the file is wrong, or a package is missing.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable
from typing import Any

import click

from ..errors import DefinitionError, TridentError
from .cli_lint import lint_command

FAILED, WRONG = 1, 2

_config = click.option("--config", metavar="FILE", required=True, help="The gateway's settings, such as events.yaml.")


@click.group()
def events() -> None:
    """The HTTP gateway in front of Kafka that takes every event once."""


events.add_command(lint_command)


@events.command()
@_config
def serve(config: str) -> None:
    """Serve POST /events until SIGTERM or Ctrl-C."""
    _told(lambda: _serving().serve(config))


@events.command()
@_config
def expire(config: str) -> None:
    """Forget events that are older than expirySeconds, now. The gateway does so itself from time to time."""
    _told(lambda: print(f"{_serving().expire(config)} events forgotten"))


def _serving() -> Any:
    """By its name: other commands must not load the web server, and work without it."""
    try:
        return importlib.import_module("trident_py.events.serving")
    except ModuleNotFoundError as error:
        if (error.name or "").startswith("trident_py"):
            raise
        raise DefinitionError(f"the gateway needs {error.name}: pip install 'trident-py[events]'") from None


def _told(body: Callable[[], Any]) -> None:
    try:
        body()
    except DefinitionError as error:
        print(f"error: {error}", file=sys.stderr)
        sys.exit(WRONG)
    except TridentError as error:
        print(f"{type(error).__name__}: {error}", file=sys.stderr)
        sys.exit(FAILED)
