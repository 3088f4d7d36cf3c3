"""The command `trident checkpoint convert`."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from ..checkpoints.converting import convert
from ..checkpoints.kinds import LOCAL, NEW, SPARK, inside, kind_of
from ..errors import LineageError

IN_MEMORY = "values of states in memory are not in a checkpoint: they ended with the process that held them"


@click.group()
def checkpoint() -> None:
    """The folders in which topologies record what is done."""


@checkpoint.command("convert")
@click.argument("folder")
@click.option("--to", type=click.Choice([LOCAL, SPARK]), required=True, help="The cluster of the next run.")
def convert_command(folder: str, to: str) -> None:
    """Let a run that was on Spark go on with --local, or the other way round.

    FOLDER is that of one topology, CHECKPOINTS/NAME, on this machine. It is converted in its place, exactly: the same
    txids, and a batch that has begun stays as it is. The run must have ended, or its process been killed.
    """
    try:
        if "://" in folder:
            raise LineageError(f"{folder} is not on this machine; only a checkpoint in a local folder can be converted")
        lines = convert(Path(folder), to)
    except LineageError as error:
        raise click.ClickException(str(error)) from error
    print("\n".join([*lines, IN_MEMORY]))


def hand_over(checkpoints: str, topology: str, to: str) -> None:
    """Converts a topology's checkpoint if the other cluster has written it, and says so on stderr. Raises LineageError,
    and has changed nothing, if a driver runs on it, or if it cannot be converted."""
    folder = Path(checkpoints) / inside(topology, "")
    if any(kind_of(component) not in (NEW, to) for component in folder.glob("*")):
        print("\n".join(convert(folder, to)), file=sys.stderr, flush=True)
