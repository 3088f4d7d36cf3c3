"""A cut-over from Storm's JDBC states, with times in their tables: rows go on where they are, values are taken over."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import databases
import pytest
import sqlalchemy as sa
from click.testing import CliRunner
from own_spouts import dump_nodes

import states
from trident_py import Fields, LocalCluster, TridentTopology
from trident_py.cli import trident
from trident_py.errors import StateError
from trident_py.extras.moving.connectors import jdbc
from trident_py.operations import CombinerAggregator
from trident_py.testing import FixedBatchSpout

THEN = [datetime(2024, 2, 29, 23, 30, second, 250_000, UTC) for second in range(8)]
SALES = [(item, int(then.timestamp() * 1000)) for item, then in zip("abababab", THEN, strict=True)]
TYPES = {"mysql": "datetime(6)", "postgresql": "timestamp"}
DONE = 4  # of them by Storm, in its batches 1 and 2


@pytest.fixture(params=TYPES)
def url(request: pytest.FixtureRequest) -> Iterator[str]:
    with databases.fresh(request.getfixturevalue(request.param)) as url:
        yield url


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder on a machine whose zone, which is that of Storm's Java, is not UTC."""
    monkeypatch.chdir(tmp_path)
    with pytest.MonkeyPatch.context() as zone:
        zone.setenv("TZ", "America/New_York")
        time.tzset()
        yield tmp_path
    time.tzset()


class Latest(CombinerAggregator):
    """The last of some times."""

    def init(self, tuple: Any) -> Any:
        return tuple[0]

    def combine(self, val1: Any, val2: Any) -> Any:
        return max(filter(None, (val1, val2)))

    def zero(self) -> Any:
        return None


def local(millis: int) -> datetime:
    """Return the time that Java writes into a column without a zone."""
    return datetime.fromtimestamp(millis / 1000)


def execute(url: str, *statements: tuple[str, dict[str, Any]]) -> list[Any]:
    """Run statements; return the rows of the last one."""
    engine = sa.create_engine(url)
    with engine.begin() as connection:
        results = [connection.execute(sa.text(text), values) for text, values in statements]
        rows = [tuple(row) for row in results[-1].fetchall()] if results[-1].returns_rows else []
    engine.dispose()
    return rows


def play_storm(url: str) -> None:
    kind = TYPES[sa.make_url(url).get_backend_name()]
    execute(
        url, (f"CREATE TABLE sales (item varchar(20), noted {kind})", {}),
        (f"CREATE TABLE latest (item varchar(20), txid bigint, at {kind} NULL, old {kind} NULL)", {}),
        *(("INSERT INTO sales VALUES (:i, :at)", {"i": item, "at": local(at)}) for item, at in SALES[:DONE]),
        *(("INSERT INTO latest VALUES (:i, 2, :at, :old)", {"i": item, "at": local(at), "old": local(at - 2000)})
          for item, at in SALES[DONE - 2 : DONE]),
    )  # fmt: skip


def make_provider(url: str) -> Any:
    found = sa.make_url(url)
    place = f"jdbc:{found.get_backend_name()}://{found.host}:{found.port}/{found.database}"
    settings = {"jdbcUrl": place, "username": found.username, "password": found.password or ""}
    return jdbc.HikariCPConnectionProvider(settings)


def build(url: str) -> TridentTopology:
    provider = make_provider(url)
    options = jdbc.JdbcState.Options().withConnectionProvider(provider).withTableName("sales")
    options.withMapper(jdbc.SimpleJdbcMapper("sales", provider))
    topology, fields = TridentTopology(), Fields("item string", "noted bigint")
    sales = topology.newStream("sales", FixedBatchSpout(fields, 2, *SALES))
    sales.partitionPersist(jdbc.JdbcStateFactory(options), fields, jdbc.JdbcUpdater(), Fields())
    timed = sales.each("noted", lambda noted: [local(noted)], "at timestamp_ntz")
    timed.groupBy("item").persistentAggregate(states.load("states.yaml")["latest"], "at", Latest(), "latest")
    return topology


def call(*arguments: str) -> str:
    done = CliRunner().invoke(trident, arguments)
    assert done.exit_code == 0, done.output
    return done.output


@pytest.mark.servers
def test_rows_and_values_go_on_with_the_times_that_storm_writes(
    url: str, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    play_storm(url)
    state = {"type": "sql-map", "kind": "opaque", "url": url, "table": "ours", "key": "item string",
             "value": "at timestamp"}  # fmt: skip
    Path("states.yaml").write_text(json.dumps({"states": {"latest": state}}))
    dump_nodes(place, {"sales": 3})
    monkeypatch.setenv("SALES_URL", url)
    named = ("--name", "t", "--dump", "nodes.jsonl", "--checkpoint", "ck")
    call("import", "offsets", "test_jdbc_cut_over:build_here", *named)
    columns = ("--key", "item", "--value", "at", "--txid", "txid", "--previous", "old")
    lay = ("--kind", "opaque", "--table", "latest", *columns)
    call("import", "state", "--from", url, "--into", "states.yaml:latest", "--checkpoint", "ck", *lay)
    assert "2 equal, 0 different" in call("compare", url, "states.yaml:latest", "--txids", *lay)
    LocalCluster("ck").submitTopology("t", {}, build(url).build()).awaitTermination(60)
    rows = execute(url, ("SELECT item, noted FROM sales ORDER BY noted", {}))
    assert rows == [(item, local(at)) for item, at in SALES]
    rows = execute(url, ("SELECT item, txid, at, prev_at FROM ours ORDER BY item", {}))
    assert rows == [(item, 4, local(at), local(at - 2000)) for item, at in SALES[-2:]]


def build_here() -> TridentTopology:
    return build(os.environ["SALES_URL"])


@pytest.mark.servers
@pytest.mark.parametrize("written", ["mysql timestamp(6)", "mysql datetime", "postgresql timestamptz"])
def test_a_column_that_no_state_writes_is_refused(written: str, request: pytest.FixtureRequest) -> None:
    """Left out, it would be null in each row."""
    server, kind = written.split(" ")
    with databases.fresh(request.getfixturevalue(server)) as url:
        execute(url, (f"CREATE TABLE sales (item varchar(20), noted {kind})", {}))
        with pytest.raises(StateError, match=r"SimpleJdbcMapper: table 'sales' has the column 'noted' as .*Alter it"):
            jdbc.SimpleJdbcMapper("sales", make_provider(url))
