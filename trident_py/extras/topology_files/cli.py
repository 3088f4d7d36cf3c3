"""The commands around a topology file: `trident init` and `trident schema`."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

import click

from ...cli.failures import guard


@click.command("init")
@click.argument("name", metavar="NAME")
@guard
def init(name: str) -> int:
    """Write a small project into the new folder NAME: a topology file, its module, a states file, a test."""
    from .project import create

    for file in create(name, Path.cwd()):
        print(f"{name}/{file.name}")
    print(f"Run it: cd {shlex.quote(f'./{name}')} && trident run --local")
    return 0


@click.command("schema")
def print_schema() -> None:
    """Print the JSON schema of the topology file, for editors."""
    from .schema import schema

    print(json.dumps(schema(), indent=2))
