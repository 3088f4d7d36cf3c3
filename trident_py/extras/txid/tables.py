"""The evidence as tables of a SQLite file, for questions that no command answers."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import asdict
from pathlib import Path
from typing import Any

from .evidence import ComponentEvidence

Record = dict[str, Any]


def write(file: Path, found: Sequence[ComponentEvidence]) -> None:
    """Make a file, with the tables `components`, `states` and `batches`, that nobody writes afterwards."""
    file.open("xb").close()  # somebody else's file of this name is an error
    try:
        _fill(file, found)
    except BaseException:
        file.unlink()
        raise
    file.chmod(0o444)


def _fill(file: Path, found: Sequence[ComponentEvidence]) -> None:
    with closing(sqlite3.connect(file)) as connection, connection:
        for table, of in (("components", _component), ("states", _states), ("batches", _batches)):
            records = [record for each in found for record in of(each)]
            columns = list(records[0]) if records else ["topology", "component", "state", "txid", "has"]
            connection.execute(f"CREATE TABLE {table} ({', '.join(columns)})")
            values = ", ".join(f":{column}" for column in columns)
            connection.executemany(f"INSERT INTO {table} VALUES ({values})", records)  # noqa: S608  names are ours


def _component(found: ComponentEvidence) -> Iterator[Record]:
    record = asdict(found)
    driver, following, _, _ = (record.pop(name) for name in ("driver", "next", "states", "kept"))
    yield {**record, "host": driver.get("host"), "pid": driver.get("pid"), "next": following["kind"],
           "sentence": following["sentence"]}  # fmt: skip


def _states(found: ComponentEvidence) -> Iterator[Record]:
    for state in found.states or ():
        yield {"topology": found.topology, "component": found.component, **asdict(state)}


def _batches(found: ComponentEvidence) -> Iterator[Record]:
    """Yield what each state has of the last batch that is over, and of the one that has begun."""
    for state in found.states or ():
        for txid in {found.committed, found.begun} - {0, None}:
            named = {"topology": found.topology, "component": found.component, "state": state.state}
            yield {**named, "txid": txid, "has": state.of(txid or 0)}
