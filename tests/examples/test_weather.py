"""The main job: the tables equal one pass of pandas, and neither a crash nor a second run changes a byte."""

from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import sqlalchemy as sa
from click.testing import CliRunner

from examples import weather

ROOT = Path(__file__).parents[2]
FILE = ROOT / "examples" / "weather.yaml"


def rows(database: Path | str, statement: str) -> list[tuple]:
    """The answer of a database by its URL, or of a SQLite file."""
    url = f"sqlite:///{database}" if isinstance(database, Path) else database
    with sa.create_engine(url, poolclass=sa.NullPool).connect() as connection:
        return list(map(tuple, connection.execute(sa.text(statement))))


def digest(database: Path | str) -> str:
    return weather.digest(weather.tables(f"sqlite:///{database}" if isinstance(database, Path) else database))


@pytest.fixture(scope="session")
def frame() -> pd.DataFrame:
    """The same file in one pass of pandas; temperatures and rain in hundredths, as in the example."""
    frame = pd.read_csv(weather.csv_file())
    frame["temperature"] = (frame["temp"] * 100).round().astype("Int64")
    frame["rain"] = (frame["precip"] * 100).round().astype("Int64")
    return frame


def assert_equals_pandas(database: Path | str, frame: pd.DataFrame) -> None:
    readings = rows(database, "SELECT origin, time_hour, month, temperature, rain FROM reading ORDER BY 1, 2")
    expected = frame[["origin", "time_hour", "month", "temperature", "rain"]].sort_values(["origin", "time_hour"])
    assert readings == [tuple(None if pd.isna(v) else v for v in row) for row in expected.itertuples(index=False)]
    stations = frame.groupby("origin").agg(
        readings=("origin", "size"), measured=("temperature", "count"), total=("temperature", "sum"),
        lowest=("temperature", "min"), highest=("temperature", "max"),
    )  # fmt: skip
    found = rows(database, "SELECT origin, readings, measured, total, lowest, highest FROM station ORDER BY 1")
    assert found == [tuple(row) for row in stations.itertuples()]
    rain = frame.groupby(["origin", "month"])["rain"].sum()
    assert rows(database, "SELECT origin, month, rain FROM rain ORDER BY 1, 2") == [(*k, v) for k, v in rain.items()]


def test_in_process_the_tables_equal_one_pass_of_pandas(tmp_path: Path, frame: pd.DataFrame) -> None:
    database = tmp_path / "weather.sqlite"
    topology = weather.build(weather.tables(f"sqlite:///{database}"), batch=5_000)
    weather.run(topology, tmp_path / "checkpoints", local=True, batches=6)
    assert_equals_pandas(database, frame)


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The digest of the tables of an undisturbed run."""
    folder = tmp_path_factory.mktemp("plain")
    tables = weather.tables(f"sqlite:///{folder}/plain.sqlite")
    weather.run(weather.build(tables, batch=5_000), folder, local=True, batches=6)
    return weather.digest(tables)


def test_with_states_from_a_file_every_database_gets_the_same_tables(
    database: str, tmp_path: Path, frame: pd.DataFrame, plain: str
) -> None:
    def typed(*arguments: Any) -> Any:
        told = map(str, ["--out", tmp_path, "--states", FILE, *arguments])
        return CliRunner().invoke(weather.main, list(told), env={"TRIDENT_DB": database})

    done = typed("--local", "--batch", 5_000)
    assert done.exit_code == 0, done.output
    assert "26,115 readings" in done.stdout
    assert sa.make_url(database).render_as_string() in done.stdout.replace("\n", "")
    assert_equals_pandas(database, frame)
    assert typed("--digest").stdout.strip() == plain

    again = typed("--local", "--batch", 5_000)
    assert again.exit_code == 1  # this cluster begins anew, the tables remember batch 6
    assert "LineageError" in again.stderr and "Traceback" not in again.stderr
    assert typed("--digest").stdout.strip() == plain


def test_a_file_without_one_of_the_states_is_refused_by_name(tmp_path: Path) -> None:
    file = tmp_path / "states.yaml"
    file.write_text(FILE.read_text().replace("  rain:", "  snow:"))
    done = example("--out", tmp_path, "--states", file, "--local", url=f"sqlite:///{tmp_path}/t.sqlite")
    assert done.returncode == 2
    assert "has no state named rain; it has: reading, station, snow" in " ".join(done.stderr.split())
    assert not (tmp_path / "t.sqlite").exists()


def test_the_utc_key_is_unique_and_the_local_one_merges_a_reading_per_station(frame: pd.DataFrame) -> None:
    assert len(frame) == weather.READINGS
    assert not frame.duplicated(["origin", "time_hour"]).any()
    merged = frame[frame.duplicated(["origin", "year", "month", "day", "hour"])]
    assert sorted(merged["origin"]) == ["EWR", "JFK", "LGA"]
    assert {tuple(row) for row in merged[["month", "day", "hour"]].itertuples(index=False)} == {(11, 3, 1)}
    with closing(sqlite3.connect(":memory:")) as db:
        db.execute("CREATE TABLE reading (origin, year, month, day, hour, UNIQUE (origin, year, month, day, hour))")
        keys = frame[["origin", "year", "month", "day", "hour"]].itertuples(index=False, name=None)
        db.executemany("INSERT OR IGNORE INTO reading VALUES (?, ?, ?, ?, ?)", keys)
        assert db.execute("SELECT count(*) FROM reading").fetchone() == (weather.READINGS - 3,)


def example(*arguments: Any, url: str = "") -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "examples.weather", *map(str, arguments)]
    environment = {**os.environ, "TRIDENT_DB": url}
    return subprocess.run(
        command, capture_output=True, text=True, cwd=ROOT, env=environment, stdin=subprocess.DEVNULL, timeout=240
    )


@pytest.mark.spark
@pytest.mark.whole("test_in_process_the_tables_equal_one_pass_of_pandas", "test_the_driver_died_exactly_there")
@pytest.mark.timeout(600)  # three runs, each with a JVM of its own
def test_on_spark_a_crash_and_a_second_run_change_nothing(tmp_path: Path, frame: pd.DataFrame) -> None:
    undisturbed, database = tmp_path / "undisturbed.sqlite", tmp_path / "weather.sqlite"
    topology = weather.build(weather.tables(f"sqlite:///{undisturbed}"), batch=5_000)
    weather.run(topology, tmp_path / "none", local=True, batches=6)

    died = example("--out", tmp_path, "--batch", 5_000, "--crash-at", 3)
    assert died.returncode == -signal.SIGKILL, died.stderr
    assert 0 < len(rows(database, "SELECT 1 FROM reading")) < weather.READINGS

    again = example("--out", tmp_path, "--batch", 5_000)
    assert again.returncode == 0, again.stderr
    assert digest(database) == digest(undisturbed)
    assert_equals_pandas(database, frame)
    page = (ROOT / "docs" / "examples.md").read_text()
    assert "26,115 readings" in again.stdout
    assert [line for line in again.stdout.splitlines() if line.startswith("│") and line not in page] == []
    assert (tmp_path / "rain.png").stat().st_size > 10_000

    second = example("--out", tmp_path, "--batch", 5_000)
    assert second.returncode == 0, second.stderr
    assert digest(database) == digest(undisturbed)
