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

from ...errors import TridentError
from .fingerprints import ALGORITHMS, Fingerprint
from .linter import EXPECTED, MOST_FIELDS, SAMPLE, Field, Report, lint, read

COLLIDES, WRONG = 1, 2
SHOWN = 60


def names(_: click.Context, __: click.Parameter, values: tuple[str, ...]) -> list[str]:
    """Split options, which may be repeated, or have several names with commas."""
    return [name.strip() for text in values for name in text.split(",") if name.strip()]


@click.command("lint")
@click.argument("file", metavar="FILE", type=click.Path(path_type=Path))
@click.option("--fields", metavar="A,B", multiple=True, callback=names, help="Fields to compare; default: all.")
@click.option("--without", metavar="A,B", multiple=True, callback=names, help="Fields to leave out.")
@click.option("--algorithm", type=click.Choice(ALGORITHMS), default="blake2b", show_default=True)
@click.option("--timestamp", metavar="FIELD", help="Field to compare as an instant.")
@click.option("--round-seconds", metavar="N", type=int, help="Round the instant down to N seconds.")
@click.option("--times", metavar="FIELD", help="Field with the arrival time of a copy; copies may differ in it.")
@click.option("--expect", metavar="N", type=click.IntRange(min=1), default=EXPECTED, show_default=True,
              help="Events that the store will hold at once.")  # fmt: skip
@click.option("--null", "nulls", metavar="TEXT", multiple=True, default=("",), help="CSV: text that means null.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def lint_command(
    file: Path, fields: list[str], without: list[str], algorithm: str, timestamp: str | None,
    round_seconds: int | None, times: str | None, expect: int, nulls: tuple[str, ...], as_json: bool,
) -> None:  # fmt: skip
    """Try a fingerprint on sample events (CSV, or JSON lines): find collisions, resends and unsuitable fields."""
    try:
        fingerprint = Fingerprint(fields or None, algorithm, timestamp, round_seconds, without)
        report = lint(read(file, nulls), fingerprint, times, expect)
    except TridentError as error:
        print(f"error: {error}", file=sys.stderr)
        sys.exit(WRONG)
    if as_json:
        print(json.dumps(report.as_record(), indent=2, ensure_ascii=False, default=str))
    else:
        show(report, Console(highlight=False, markup=False))
    sys.exit(COLLIDES if report.collisions else 0)


def show(report: Report, console: Console) -> None:
    """Print the report as text."""
    console.print(counts(report))
    for table in (collisions(report), refusals(report), fields(report)):
        if table is not None:
            console.print(table)
    for line in findings(report):
        console.print(line, soft_wrap=True)


def counts(report: Report) -> Table:
    compared = ", ".join(report.fingerprint.names()) or "the whole event"
    table = make_table(f"{report.fingerprint.algorithm} of {compared}", "events", "")
    table.add_row("in the sample", f"{report.events:,}")
    table.add_row("distinct fingerprints", f"{report.distinct:,}")
    table.add_row("resent: the same payload again", f"{report.resent:,}")
    table.add_row("LOST: another payload under the same fingerprint", f"{report.lost:,}")
    table.add_row("refused: no fingerprint", f"{report.refused:,}")
    return table


def collisions(report: Report) -> Table | None:
    if not report.examples:
        return None
    title = f"{len(report.examples)} of {report.collisions:,} fingerprints that different events share"
    table = make_table(title, "fingerprint", "events, from 0", "because of", "differing fields")
    for example in report.examples:
        differing = "\n".join(f"{name}: {short(a)} / {short(b)}" for name, (a, b) in example.differing.items())
        cause = "the fields" if example.cause == "fields" else "the hash"
        table.add_row(example.fingerprint, f"{example.positions[0]}, {example.positions[1]}", cause, differing)
    return table


def refusals(report: Report) -> Table | None:
    if not report.reasons:
        return None
    table = make_table("refused", "events", "reason")
    for reason, number in report.reasons.items():
        table.add_row(f"{number:,}", reason)
    return table


def fields(report: Report) -> Table | None:
    """Return a table of the fields that need attention."""
    roles = [("unique", report.pseudo_unique), ("unique, in the fingerprint", report.unique_inside),
             ("never varies, in the fingerprint", report.never_varying)]  # fmt: skip
    listed: dict[str, tuple[Field, list[str]]] = {field.name: (field, []) for field in report.incomplete}
    for role, members in roles:
        for field in members:
            listed.setdefault(field.name, (field, []))[1].append(role)
    if not listed:
        return None
    table = make_table("fields", "field", "different values", "missing", "null", "")
    for name, (field, remarks) in listed.items():
        values = f"{field.distinct:,} of {field.sampled:,}"
        table.add_row(name, values, f"{field.missing:,}", f"{field.null:,}", "; ".join(remarks))
    return table


def findings(report: Report) -> list[str]:
    """Return one line for each finding."""
    lines = [f"{field.name} is (nearly) unique: in the fingerprint, it would make a copy with another value a new event"
             for field in report.pseudo_unique]  # fmt: skip
    lines += [f"{field.name} is (nearly) unique by itself: right only if a resend has the same value"
              for field in report.unique_inside]  # fmt: skip
    lines += [f"{field.name} never varies here: it distinguishes no events" for field in report.never_varying]
    if report.collisions:
        lines.append(f"fields that differ where fingerprints collide: {', '.join(report.differing)}")
    if report.key is not None:
        lines.append(f"few fields that distinguish all sampled events: {', '.join(report.key) or 'none is needed'}")
    if report.longest is not None:
        lines.append(f"longest time between two events of one fingerprint: {report.longest:,.0f} s; expire later")
    if report.fields_left_out:
        lines.append(f"only the first {MOST_FIELDS} fields were examined; {report.fields_left_out:,} values were not")
    if report.events > SAMPLE:
        lines.append(f"different values and fields are those of the first {SAMPLE:,} different events")
    return [*lines, width(report)]


def width(report: Report) -> str:
    """Return the line that says whether the hash is wide enough."""
    if report.fingerprint.bits is None:
        return "plain fingerprints have no hash collisions"
    risk = f"{report.fingerprint.bits} bits and {report.expected:,} events: one collision of the hash with p = "
    enough = report.fingerprint.algorithm in report.wide_enough
    return f"{risk}{report.risk:.1e}: " + ("enough" if enough else f"too likely; use {', '.join(report.wide_enough)}")


def short(value: object) -> str:
    text = json.dumps(value, ensure_ascii=False, default=str)
    return text if len(text) <= SHOWN else f"{text[:SHOWN]}..."


def make_table(title: str, *columns: str) -> Table:
    table = Table(title=title, title_justify="left")
    for column in columns:
        table.add_column(column, overflow="fold")
    return table
