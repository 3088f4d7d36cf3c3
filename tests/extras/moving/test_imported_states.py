"""The first start after a move is refused until each map is filled, or left out: none counts from zero unnoticed."""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import resumed_words
from click.testing import CliRunner
from faults.forks import fork
from own_spouts import dump_nodes, fill

from states.redis import RedisMapState
from trident_py import LocalCluster
from trident_py.cli import trident
from trident_py.errors import LineageError, TopologyError
from trident_py.extras.moving import import_cli, state_import
from trident_py.extras.moving.imported_states import map_at, map_of
from trident_py.extras.moving.sources import DumpSource, RedisSource
from trident_py.state import StateType

PLACE = "ck/resumed_words/words"
STORMS = {"a": 2, "b": 5}
SUM = {word: count + 2 for word, count in STORMS.items()}


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYTHONHASHSEED", "0")
    fill(tmp_path)
    dump_nodes(tmp_path, {resumed_words.STREAM: resumed_words.AFTER})
    write_values(STORMS)
    return tmp_path


def write_values(values: dict[str, int]) -> None:
    rows = [{"key": word, "value": [2, count, None]} for word, count in values.items()]
    Path("values.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))


def call(*arguments: str, code: int = 0) -> str:
    done = CliRunner().invoke(trident, arguments)
    assert done.exit_code == code, done.output
    return " ".join(done.output.split())


def offsets(target: str = "build", *more: str) -> str:
    target = f"resumed_words:{target}"
    return call("import", "offsets", target, "--name", "resumed_words", "--dump", "nodes.jsonl", "--checkpoint", "ck")


def state(name: str, code: int = 0, checkpoint: str = "ck") -> str:
    source = ("--from", "values.jsonl", "--kind", "opaque", "--checkpoint", checkpoint)
    return call("import", "state", *source, "--into", f"s.yaml:{name}", code=code)


def skip(name: str, code: int = 0) -> str:
    return call("import", "skip", name, "--checkpoint", "ck", code=code)


def start(cluster: Any, build: Callable[[], Any] = resumed_words.build) -> None:
    cluster.submitTopology("resumed_words", {}, build().build()).awaitTermination(200)


def refusal(cluster: Any, build: Callable[[], Any] = resumed_words.build) -> str:
    with pytest.raises(TopologyError) as refused:
        start(cluster, build)
    assert isinstance(refused.value.__cause__, LineageError)
    return str(refused.value)


def count(table: str) -> dict[str, int]:
    connection = sqlite3.connect("c.db")
    try:
        return dict(connection.execute(f"SELECT word, count FROM {table}").fetchall())
    finally:
        connection.close()


def is_refused_until_all_are_filled(cluster: Any, place: Path) -> None:
    assert "is refused until `trident import state` fills, or `skip` names: counts, others" in offsets()
    both, whole = refusal(cluster), f"{place}/{PLACE}"
    for text in ("state 'counts' (table 'counts' in sqlite", "state 'others' (table", f"{whole} continues Storm's run",
                 f"--into FILE:STATE (or --in-place) --checkpoint {whole}", "trident import skip STATE"):  # fmt: skip
        assert text in both
    assert not (place / "c.db").exists()
    assert state("counts").endswith("is refused until `trident import state` fills, or `skip` names: others")
    one = refusal(cluster)
    assert "'counts'" not in one and f"trident import skip others --checkpoint {whole}" in one
    assert skip("others").startswith("state 'others' of resumed_words/words begins as it is: table 'others' in")
    start(cluster)
    assert (count("counts"), count("others")) == (SUM, {"a": 2, "b": 2})
    start(cluster)  # from now on the ledgers tell


def test_the_first_start_on_a_local_cluster_is_refused(place: Path) -> None:
    is_refused_until_all_are_filled(LocalCluster("ck"), place)


@pytest.mark.spark
def test_the_first_start_on_spark_is_refused(spark_cluster: Callable[..., Any], place: Path) -> None:
    is_refused_until_all_are_filled(spark_cluster(place / "ck"), place)


def test_the_next_start_is_foretold(place: Path) -> None:
    offsets()
    told = call("txid", "ls", "resumed_words:build", "--checkpoint", "ck", code=1)
    assert "the next start is refused: Storm's values are missing in state 'counts'" in told


def _die_behind_the_values() -> None:
    def die(*arguments: Any) -> None:
        os.kill(os.getpid(), 9)

    import_cli._show = die
    state("counts")


def test_killed_between_the_values_and_the_note_of_them(place: Path) -> None:
    offsets()
    skip("others")
    process = fork(_die_behind_the_values)
    process.start()
    process.join()
    assert (process.exitcode, count("counts")) == (-9, STORMS)
    assert "state 'counts'" in refusal(LocalCluster("ck"))
    state("counts")
    start(LocalCluster("ck"))
    assert count("counts") == SUM


def test_a_repeated_import_that_fails_leaves_the_state_unfilled(place: Path) -> None:
    offsets()
    skip("others")
    state("counts")
    write_values({"c": 1})
    assert "holds 3 keys, and Storm's state 1" in state("counts", code=1)
    assert "state 'counts'" in refusal(LocalCluster("ck"))


def _start_on_it() -> None:
    state("counts")
    start(LocalCluster("ck"))


def _import_all_anew() -> None:
    shutil.rmtree("ck")
    write_values(SUM)
    dump_nodes(Path.cwd(), {resumed_words.STREAM: resumed_words.AFTER + 2})
    offsets()
    state("counts")


@pytest.mark.parametrize(
    ("meanwhile", "refused"),
    [
        (_start_on_it, "a topology has started on the checkpoint"),
        (_import_all_anew, "was removed or imported anew meanwhile"),
        (lambda: shutil.rmtree("ck"), "was removed or imported anew meanwhile"),
    ],
    ids=["started", "imported anew", "removed"],
)
def test_an_import_that_wakes_up_writes_nothing_more(
    meanwhile: Callable[[], None], refused: str, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was stopped between two parts; the user went on in another shell."""
    offsets()
    skip("others")
    read, parts = DumpSource.read, []

    def stand_still(source: DumpSource, *arguments: Any) -> Iterator[Any]:
        for part in read(source, *arguments):
            if parts:
                monkeypatch.setattr(DumpSource, "read", read)
                meanwhile()
            parts.append(part)
            yield part

    monkeypatch.setattr(state_import, "SIZE", 1)
    monkeypatch.setattr(state_import, "_work_ahead", iter)  # a command called in a thread would take this one's output
    monkeypatch.setattr(DumpSource, "read", stand_still)
    assert refused in state("counts", code=1)
    assert len(parts) == 2
    assert "b" not in count("counts") or count("counts") == SUM


def test_a_map_that_is_elsewhere_since_the_import_is_not_filled(place: Path) -> None:
    offsets()
    state("counts")
    skip("others")
    assert "state 'renamed' (table 'renamed'" in refusal(LocalCluster("ck"), resumed_words.renamed)
    definitions = json.loads((place / "s.yaml").read_text())
    definitions["states"]["counts"]["table"] = "renamed"
    (place / "s.yaml").write_text(json.dumps(definitions))
    refused = state("counts", code=2)
    assert "table 'renamed' in" in refused and "repeat that as it was" in refused
    assert offsets("renamed").endswith("or `skip` names: renamed")
    state("counts")
    start(LocalCluster("ck"), resumed_words.renamed)
    assert count("renamed") == SUM


def test_a_second_import_of_the_offsets_forgets_no_state(place: Path) -> None:
    offsets()
    state("counts")
    skip("others")
    assert "there already: the checkpoint" in offsets()
    start(LocalCluster("ck"))
    assert "its states may hold newer values" in skip("others", code=1)


def test_a_name_of_no_state_is_refused(place: Path) -> None:
    offsets()
    told = skip("count", code=2)
    assert "state 'count' is no map of the component whose checkpoint this is" in told and "has counts (table" in told


@pytest.mark.parametrize("hash_", [None, "words"])
@pytest.mark.parametrize("url", ["redis://h/3", "redis://h:6379?db=3", "rediss://u:p%40@h:1/0", "unix:///r.sock?db=1"])
def test_a_state_in_place_is_where_storms_is(url: str, hash_: str | None) -> None:
    source = RedisSource(url, hash_, StateType.OPAQUE)
    assert map_at(source.location) == map_of(RedisMapState.opaque(url, hash_))
