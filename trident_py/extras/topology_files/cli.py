"""The commands around a topology file: `trident init` and `trident schema`."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import click

from ...errors import DefinitionError

WRONG = 2


@click.command("init")
@click.argument("name", metavar="NAME")
def init(name: str) -> None:
    """Write a small project into the new folder NAME: a topology file, its module, a states file, a test."""
    from .project import create

    try:
        files = create(name, Path.cwd())
    except DefinitionError as error:
        print(f"error: {error}", file=sys.stderr)
        sys.exit(WRONG)
    for file in files:
        print(f"{name}/{file.name}")
    print(f"Run it: cd '{name}' && trident run --local")


@click.command("schema")
def print_schema() -> None:
    """Print the JSON schema of the topology file, for editors."""
    from .schema import schema

    print(json.dumps(schema(), indent=2))
