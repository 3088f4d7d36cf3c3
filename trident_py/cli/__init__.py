"""The command line, `trident` or `python -m trident_py`: run, explain, check ... a topology file or MODULE:build.

Exit codes: 0 the run ended, or SIGTERM stopped it after a batch; 1 it failed; 2 the command, the module or the topology
is wrong; 130 Ctrl-C.
An error shows the user's own exception first, then the step that it ended. ``--traceback`` shows the user's traceback.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

import click

from ..model.resources import fill_standard_streams
from .check import check
from .commands import Commands
from .explain import explain
from .run import run


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="trident-py", prog_name="trident", message="%(prog)s %(version)s")
def trident() -> None:
    """Storm Trident topologies on Spark."""


for _command in (check, explain, run):
    trident.add_command(_command)


def _pin_hash_seed(arguments: list[str]) -> None:
    """Restart a local run, and what compares with one, with PYTHONHASHSEED=0, unless one is set, so that all runs have
    the same order of sets, as on Spark. Only a new process can change the seed."""
    runs = arguments[:1] in (["run"], ["profile"]) or arguments[:2] == ["drpc", "serve"]
    compares = arguments[:1] in (["txid"], ["import"])
    if (compares or (runs and "--local" in arguments)) and "PYTHONHASHSEED" not in os.environ:
        os.environ["PYTHONHASHSEED"] = "0"
        os.execv(sys.executable, sys.orig_argv)  # noqa: S606  this command again


def main() -> None:
    """Run the console script `trident`."""
    fill_standard_streams()
    sys.stdout = sys.stdout or Path(os.devnull).open("w", encoding="utf-8")  # noqa: SIM115  None where it was closed
    sys.stderr = sys.stderr or Path(os.devnull).open("w", encoding="utf-8")  # noqa: SIM115
    _pin_hash_seed(sys.argv[1:])
    trident(prog_name="trident")
