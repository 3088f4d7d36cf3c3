"""The command `trident report`: one HTML file about runs that are over."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

import click
from jinja2 import Environment, PackageLoader

from ...errors import DefinitionError
from .charts import draw
from .run_events import PERCENTILES, RunEvents, read

WRONG = 2


@click.command()
@click.argument("events", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option("-o", "--output", required=True, type=click.Path(path_type=Path, dir_okay=False), help="HTML file.")
def report(events: tuple[Path, ...], output: Path) -> None:
    """Make one HTML file of the events of runs: rates, percentiles, backlog, replays and their causes.

    EVENTS is the output of `trident run --json`, a file for each run. Several runs stand side by side.
    """
    try:
        if output.resolve() in {path.resolve() for path in events}:
            raise DefinitionError(f"-o {output} is one of the files of events, and would replace it; name another file")
        page = render([read(path) for path in events])
        output.write_text(page, encoding="utf-8", errors="backslashreplace")
    except (DefinitionError, OSError) as error:
        print(f"error: {error}", file=sys.stderr)
        sys.exit(WRONG)


def render(runs: Sequence[RunEvents]) -> str:
    """Return the page about these runs. It loads nothing from elsewhere."""
    environment = Environment(loader=PackageLoader(__package__, ""), autoescape=True, trim_blocks=True)
    template = environment.get_template("page.html.j2")
    return template.render(runs=runs, charts=[draw(run) for run in runs], percentiles=PERCENTILES)
