"""The command `trident explain`."""

from __future__ import annotations

import sys

import click

from ..report.explain import FORMS
from .failures import run_guarded
from .targets import Target, target_argument, traceback_option


@click.command()
@target_argument
@click.option("--format", "form", type=click.Choice(FORMS), default="text", help="A text, or a picture.")
@traceback_option
def explain(target: str | None, form: str, full: bool) -> None:
    """Show the steps of a topology, its stages, fields and states, and what is guaranteed for each state.

    The pictures mermaid and dot are texts; svg needs graphviz. Redirect them to a file.
    """

    def body() -> int:
        topology = Target.of(target).load().topology
        print(topology.explain(form))
        if form != "text":
            return 0
        print()
        guarantees = topology.guarantees()
        print("\n".join([str(guarantees), *guarantees.notes()]))
        return 0

    sys.exit(run_guarded(body, full))
