"""The command `trident explain`."""

from __future__ import annotations

import click

from ..report.explain import FORMS
from .failures import guard
from .targets import Target, target_argument, traceback_option


@click.command()
@target_argument
@click.option("--format", "form", type=click.Choice(FORMS), default="text", help="A text, or a picture.")
@traceback_option
@guard
def explain(target: str | None, form: str) -> int:
    """Show the steps of a topology, its stages, fields and states, and what is guaranteed for each state.

    The pictures mermaid and dot are texts; svg needs graphviz. Redirect them to a file.
    """
    topology = Target.of(target).load().topology
    print(topology.explain(form))
    if form != "text":
        return 0
    print()
    guarantees = topology.guarantees()
    print("\n".join([str(guarantees), *guarantees.notes()]))
    return 0
