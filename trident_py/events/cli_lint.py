"""The command `trident events lint FILE`: what a fingerprint would do to sample events.

Exit codes: 0 no collision; 1 different events share a fingerprint; 2 the settings or the file are wrong.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import click
from rich.console import Console
from rich.table import Table

from ..errors import TridentError
from .fingerprints import ALGORITHMS, Fingerprint
from .linter import EXPECTED, MOST_FIELDS, SAMPLE, Field, Report, lint, read

COLLIDES, WRONG = 1, 2
SHOWN = 60


def names(_: click.Context, __: click.Parameter, given: tuple[str, ...]) -> list[str]:
    """Options may be repeated, or have several names with commas."""
    return [name.strip() for text in given for name in text.split(",") if name.strip()]


@click.command("lint")
@click.argument("file", metavar="FILE", type=click.Path(path_type=Path))
@click.option("--fields", metavar="A,B", multiple=True, callback=names, help="The fields that decide; default: all.")
@click.option("--without", metavar="A,B", multiple=True, callback=names, help="Fields left out.")
@click.option("--algorithm", type=click.Choice(ALGORITHMS), default="blake2b", show_default=True)
@click.option("--timestamp", metavar="FIELD", help="A field that belongs to the fingerprint as an instant.")
@click.option("--round-seconds", metavar="N", type=int, help="Round the time stamp down to N seconds.")
@click.option("--times", metavar="FIELD", help="The field that says when a copy arrived; copies may differ in it.")
@click.option("--expect", metavar="N", type=click.IntRange(min=1), default=EXPECTED, show_default=True,
              help="Events that the store will remember at once.")  # fmt: skip
@click.option("--null", "nulls", metavar="TEXT", multiple=True, default=("",), help="CSV: text that means null.")
@click.option("--json", "as_json", is_flag=True, help="As JSON.")
def lint_command(
    file: Path, fields: list[str], without: list[str], algorithm: str, timestamp: str | None,
    round_seconds: int | None, times: str | None, expect: int, nulls: tuple[str, ...], as_json: bool,
) -> None:  # fmt: skip
    """Run a fingerprint over sample events (CSV, or JSON lines): collisions, resends, fields that would spoil it."""
    try:
        chosen = Fingerprint(fields or None, algorithm, timestamp, round_seconds, without)
        report = lint(read(file, nulls), chosen, times, expect)
    except TridentError as error:
        print(f"error: {error}", file=sys.stderr)
        sys.exit(WRONG)
    if as_json:
        print(json.dumps(report.as_record(), indent=2, ensure_ascii=False, default=str))
    else:
        show(report, Console(highlight=False))
    sys.exit(COLLIDES if report.collisions else 0)


def show(report: Report, console: Console) -> None:
    """Prints the report as text."""
    console.print(counts(report))
    for table in (collisions(report), refusals(report), fields(report)):
        if table is not None:
            console.print(table)
    for line in findings(report):
        console.print(line, markup=False, soft_wrap=True)


def counts(report: Report) -> Table:
    chosen = ", ".join(report.fingerprint.names()) or "the whole event"
    table = heading(f"{report.fingerprint.algorithm} of {chosen}", "events", "")
    table.add_row("in the sample", f"{report.events:,}")
    table.add_row("distinct fingerprints", f"{report.distinct:,}")
    table.add_row("resent: the same payload again", f"{report.resent:,}")
    table.add_row("LOST: another payload under a known fingerprint", f"{report.lost:,}")
    table.add_row("refused: no fingerprint", f"{report.refused:,}")
    return table


def collisions(report: Report) -> Table | None:
    if not report.examples:
        return None
    title = f"{len(report.examples)} of {report.collisions:,} fingerprints that different events share"
    table = heading(title, "fingerprint", "events, from 0", "because of", "they differ in")
    for each in report.examples:
        differing = "\n".join(f"{name}: {short(a)} / {short(b)}" for name, (a, b) in each.differing.items())
        cause = "the fields" if each.cause == "fields" else "the hash"
        table.add_row(each.fingerprint, f"{each.positions[0]}, {each.positions[1]}", cause, differing)
    return table


def refusals(report: Report) -> Table | None:
    if not report.reasons:
        return None
    table = heading("refused", "events", "reason")
    for reason, number in report.reasons.items():
        table.add_row(f"{number:,}", reason)
    return table


def fields(report: Report) -> Table | None:
    """Returns a table of the fields that need attention."""
    roles = [("unique", report.pseudo_unique), ("unique, in the fingerprint", report.unique_inside),
             ("never varies, in the fingerprint", report.never_varying)]  # fmt: skip
    told = {each.name: each for each in report.incomplete}
    said: dict[str, list[str]] = {}
    for role, found in roles:
        for each in found:
            told[each.name] = each
            said.setdefault(each.name, []).append(role)
    if not told:
        return None
    table = heading("fields", "field", "different values", "missing", "null", "")
    for name, each in told.items():
        table.add_row(name, distinct(each), f"{each.missing:,}", f"{each.null:,}", "; ".join(said.get(name, [])))
    return table


def findings(report: Report) -> list[str]:
    """Returns one line for each finding."""
    lines = [f"{each.name} is (nearly) unique: with it in the fingerprint, a copy with another one is a new event"
             for each in report.pseudo_unique]  # fmt: skip
    lines += [f"{each.name} is (nearly) unique by itself: right only if a resend has the same one"
              for each in report.unique_inside]  # fmt: skip
    lines += [f"{each.name} never varies here: it tells nothing apart" for each in report.never_varying]
    if report.collisions:
        lines.append(f"fields that differ where fingerprints collide: {', '.join(report.differing)}")
    if report.key is not None:
        lines.append(f"few fields that tell the sample's events apart: {', '.join(report.key) or 'none is needed'}")
    if report.longest is not None:
        lines.append(f"longest time between two events of one fingerprint: {report.longest:,.0f} s; remember longer")
    if report.fields_left_out:
        lines.append(f"only the first {MOST_FIELDS} fields were looked at; {report.fields_left_out:,} values were not")
    if report.events > SAMPLE:
        lines.append(f"different values and keys: of the first {SAMPLE:,} different events")
    return [*lines, width(report)]


def width(report: Report) -> str:
    """Returns the line that says whether the hash is wide enough."""
    if report.fingerprint.bits is None:
        return "plain fingerprints have no collisions of their own"
    risk = f"{report.fingerprint.bits} bits and {report.expected:,} events: one collision of the hash with p = "
    enough = report.fingerprint.algorithm in report.wide_enough
    return f"{risk}{report.risk:.1e}: " + ("enough" if enough else f"too much; take {', '.join(report.wide_enough)}")


def distinct(field: Field) -> str:
    return f"{field.distinct:,} of {field.sampled:,}"


def short(value: object) -> str:
    text = json.dumps(value, ensure_ascii=False, default=str)
    return text if len(text) <= SHOWN else f"{text[:SHOWN]}..."


def heading(title: str, *columns: str) -> Table:
    table = Table(title=title, title_justify="left")
    for column in columns:
        table.add_column(column, overflow="fold")
    return table
