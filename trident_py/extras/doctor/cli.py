"""What `trident doctor` prints: a table of the machines, and what is wrong, as text or as JSON.

Exit codes: 0 the topology can start; 1 a finding stops the start, or a store answers nobody; 2 the command, the module
or the topology is wrong.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import click

from ...cli.failures import guard
from ...cli.run import RunCommand, cluster_on_spark
from ...cli.spark_options import SparkOptions, spark_options
from ...cli.targets import settings_option, target_argument, traceback_option
from ...report.guarantees.table import align

COLUMNS = ("machine", "Python", "trident_py", "pyarrow", "clock", "modules", "addresses", "files")


def tell_health(health: Any, as_json: bool) -> int:
    """Print a `trident_py.extras.doctor.probe.Health`, and return the exit code."""
    machines = [machine_of(report) for report in health.machines]
    if as_json:
        findings = [{"level": found.level, "machine": found.host, "text": found.text} for found in health.findings]
        print(json.dumps({"master": health.master, "machines": machines, "findings": findings}, indent=2))
    else:
        print("\n".join([*table(machines), "", *health.lines()]))
    return 0 if health.can_start else 1


def machine_of(report: Any) -> dict[str, str]:
    """Return the row of one machine."""
    said = report.said
    version, sources, arrow = said["versions"]["trident-py"], said["ours"], said["versions"]["pyarrow"]
    ours = sources if sources == "missing" else f"{version or '?'} {sources}".strip()
    shares = [share(said[asked]) for asked in ("modules", "addresses", "files")]
    cells = [report.shown, said["python"], ours, arrow or "missing", clock(report.between, said["clock"]), *shares]
    return dict(zip(COLUMNS, cells, strict=True))


def clock(between: tuple[float, float], there: float) -> str:
    """Return how far the clock certainly is from the driver's, which was read before and after it."""
    before, after = between
    off = there - after if there > after else min(0.0, there - before)
    return "same" if abs(off) < 1 else f"{off:+.0f} s"


def share(answers: dict[str, str]) -> str:
    """Return how many of the answers tell no problem."""
    return f"{sum(not why for why in answers.values())} of {len(answers)}" if answers else "-"


def table(machines: Sequence[dict[str, str]]) -> list[str]:
    return align([COLUMNS, *([machine[column] for column in COLUMNS] for machine in machines)])


@click.command()
@target_argument
@click.option("--checkpoint", metavar="DIR", help="The folder that the run will store txids in; default: none.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@settings_option
@spark_options
@traceback_option
@guard
def doctor(
    target: str | None, checkpoint: str | None, as_json: bool, settings: tuple[str, ...], **spark: Any
) -> int:
    """Check that a topology can run on a cluster: its machines' packages, files, stores and clocks. Starts nothing."""
    examined = RunCommand(
        target, False, checkpoint, False, as_json, "trident doctor", settings, False, SparkOptions(**spark)
    )
    examined.check()
    _, loaded, conf = examined.load()
    with cluster_on_spark(loaded.storage) as cluster:
        return tell_health(cluster.examine(conf, loaded.topology), as_json)
