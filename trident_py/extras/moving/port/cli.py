"""The command `trident port FILE.java...`.

Exit codes: 0 everything is translated; 1 some statements are not; 2 a file is no Java, or cannot be written.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import click

from ....cli.failures import guard
from ....errors import DefinitionError
from .modules import Module, translate_files

REFUSED = 1


@click.command()
@click.argument("files", metavar="FILE.java...", nargs=-1, required=True, type=click.Path(exists=True, path_type=Path))
@click.option(
    "--output", "-o", metavar="DIR", default=".", type=click.Path(path_type=Path), help="Folder of the modules."
)
@click.option("--force", is_flag=True, help="Replace modules that are there, and may have been changed by hand.")
@click.option("--json", "as_json", is_flag=True, help="Print the report as JSON.")
@guard
def port(files: tuple[Path, ...], output: Path, force: bool, as_json: bool) -> int:
    """Translate Java topologies into Python modules that run with trident_py.

    Give all files of a topology at once: a class of another package is looked for among them. A folder means all .java
    files in it.
    """
    paths = [one for file in files for one in (sorted(file.rglob("*.java")) if file.is_dir() else [file])]
    return translate(paths, output, force, as_json)


def translate(paths: list[Path], output: Path, force: bool, as_json: bool) -> int:
    modules = translate_files(paths)
    _check_places(modules, output, force)
    output.mkdir(parents=True, exist_ok=True)
    for module in modules:
        (output / module.report.python).write_text(module.text, encoding="utf-8")
    reports = [module.report for module in modules]
    if as_json:
        click.echo(json.dumps([report.as_json() for report in reports], indent=2))
    else:
        for module in modules:
            _print(module)
    return REFUSED if any(report.findings for report in reports) else 0


def _check_places(modules: Sequence[Module], output: Path, force: bool) -> None:
    """Raise DefinitionError, before anything is written, if two modules have one place, or one is taken."""
    made: dict[str, Module] = {}
    for module in modules:
        name = module.report.python
        if name in made:
            both = f"{made[name].report.java} and {module.report.java}"
            raise DefinitionError(f"{both} both become {name}: translate them into two folders. Nothing was written")
        made[name], there = module, output / name
        if not force and there.exists() and there.read_bytes() != module.text.encode():
            raise DefinitionError(f"{there} is there and differs: move it away, or give --force. Nothing was written")


def _print(module: Module) -> None:
    report = module.report
    done = report.statements - len(report.findings)
    click.echo(f"{report.java} -> {report.python}: {done} of {report.statements} statements ({report.share:.0%})")
    for finding in report.findings:
        click.echo(f"  {report.java}:{finding.line}: {finding.reason}")
        click.echo(f"    see docs/{finding.section}")
