"""The commands of the command line, and those of extras by entry point (`trident_py.entry_points`)."""

from __future__ import annotations

import sys

import click

from ..entry_points import COMMANDS, load, names
from ..errors import DefinitionError
from .failures import WRONG, tell


class Commands(click.Group):
    """Its own commands, and those that are installed. Loads one of these when it is asked for."""

    def list_commands(self, context: click.Context) -> list[str]:
        return sorted({*super().list_commands(context), *names(COMMANDS)})

    def get_command(self, context: click.Context, name: str) -> click.Command | None:
        command = super().get_command(context, name)
        return _load_extra(name) if command is None and name in names(COMMANDS) else command

    def resolve_command(
        self, context: click.Context, arguments: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if arguments[0].startswith("-") or self.get_command(context, arguments[0]) is not None:
            return super().resolve_command(context, arguments)
        there = ", ".join(self.list_commands(context))
        raise click.UsageError(
            f"No such command {arguments[0]!r}; there are: {there}. One of an extra needs that extra of trident-py "
            f"(an entry point of the group {COMMANDS})"
        )


def _load_extra(name: str) -> click.Command:
    """Return the command of an extra; if it cannot be loaded, one that says what is missing."""
    try:
        return load(f"trident {name}", name, COMMANDS)
    except DefinitionError as error:
        text = str(error)
    anything = {"ignore_unknown_options": True, "allow_extra_args": True}
    lacking = click.Command(name, anything, lambda **_: sys.exit(tell(f"error: {text}", WRONG)), short_help=text)
    lacking.params.append(click.Argument(["arguments"], nargs=-1, type=click.UNPROCESSED))
    lacking.add_help_option = False
    return lacking
