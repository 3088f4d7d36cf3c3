"""`trident txid`: what it says is so, asking changes nothing, and a fence shuts out a driver that runs."""

from __future__ import annotations

import json
import re
import signal
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest import mock

import pytest
import sqlalchemy as sa
from checkpoints.test_two_drivers import checkpoint
from click.testing import CliRunner
from faults.forks import Driver, Start, run
from faults.readings import Fold, Readings
from faults.steps import Fault
from faults.stores import differences, read
from remotes import Remote

from states.files import FileState
from states.sql import RowUpdater
from states.sql.store import close_stores
from trident_py import Fields, LocalCluster, TridentTopology
from trident_py.cli.run import run as run_topology
from trident_py.engine.program import compile_plan
from trident_py.errors import FailedException, LineageError
from trident_py.extras.txid import cli
from trident_py.extras.txid.components import Component, component_of, components_in
from trident_py.extras.txid.evidence import ComponentEvidence, StateEvidence
from trident_py.extras.txid.fence import shut_out
from trident_py.extras.txid.inspection import look
from trident_py.extras.txid.lines import about, lines
from trident_py.extras.txid.stores import look_at_states
from trident_py.extras.txid.tables import write
from trident_py.model.context import with_context
from trident_py.operations.builtin import Count
from trident_py.state import BaseStateUpdater, BatchParticipant, State, StateFactory
from trident_py.testing import FixedBatchSpout, MemoryMapState

SEED, LAST = 5, 6
ONLY = ("opaque", "append", "batch")
DYING = {
    "recorded": (Fault("recorded", "", 3), ONLY, "repeats", "opaque has nothing of it"),
    "committed": (Fault("committed", "opaque", 3), ONLY, "repeats", "opaque has a part of it"),
    "published": (Fault("published", "append", 3), ("opaque", "append"), "repeats", "appended has it complete"),
    "decided": (Fault("publish", "opaque", 3), ONLY, "publishes", "publishes txid 3 as attempt 0 has decided it"),
}


@pytest.fixture(autouse=True)
def closed() -> Iterator[None]:
    yield
    close_stores()


@pytest.fixture
def drivers() -> Iterator[list[Driver]]:
    made: list[Driver] = []
    yield made
    for driver in made:
        driver.close()


def component(start: Start, topology: Any = None, name: str = "faults") -> Component:
    conf = with_context({}, topology=name, run=f"{name}-asks", home=None)
    (program,) = compile_plan((topology or start.topology()).plan, conf)
    return component_of(start.place, program, dict(start.storage))


def everything(start: Start) -> Any:
    """Each byte of the folder, and each row of a server. SQLite's file of locks is no content."""
    files = {file: file.read_bytes() for file in sorted(start.folder.rglob("*")) if file.is_file()}
    kept = {file: data for file, data in files.items() if not file.name.endswith("-shm")}
    if start.url.startswith("sqlite"):
        return set(files), kept
    tables = sa.inspect(sa.create_engine(start.url, poolclass=sa.NullPool)).get_table_names()
    return kept, {table: Counter(read(start.url, f"SELECT * FROM {table}")) for table in tables}


def looked(start: Start, asked: Component | None = None) -> ComponentEvidence:
    """Asks twice, and nothing has changed."""
    asked = asked or component(start)
    before = everything(start)
    found = look(asked)
    assert look(asked) == found
    assert everything(start) == before
    return found


@pytest.mark.parametrize("step", DYING)
def test_what_a_killed_driver_has_left_is_told_and_the_next_start_does_what_was_said(
    database: str, tmp_path: Path, step: str
) -> None:
    fault, only, kind, words = DYING[step]
    start = Start(database, tmp_path, LAST, (fault,), SEED, only=only)
    dead = run(start)
    assert dead.process.exitcode == -signal.SIGKILL
    found = looked(start)
    assert (found.committed, found.begun, found.next.kind) == (2, 3, kind)
    assert words in found.next.sentence
    assert (found.driver["pid"], found.running) == (dead.process.pid, False)
    for state in found.states or ():
        assert (state.generation, state.owner, state.lineage) == (1, f"faults/{state.state}", found.lineage), state
    going_on = run(replace(start, faults=()))
    assert going_on.of("committed")[0][1] == 3
    assert differences(database, Fold(Readings(SEED), LAST), only) == []
    found = looked(start)
    assert (found.committed, found.begun, found.next.kind) == (LAST, None, "continues")
    assert {(state.complete, state.part, state.generation) for state in found.states or ()} == {(LAST, None, 2)}


def sqlite(folder: Path, *faults: Fault, last: int = LAST, only: tuple[str, ...] = ("opaque",)) -> Start:
    return Start(f"sqlite:///{folder}/store.db", folder, last, faults, SEED, only=only)


def test_a_running_driver_is_not_disturbed(tmp_path: Path, drivers: list[Driver]) -> None:
    start = sqlite(tmp_path, Fault("recorded", "", 3, action="ask"))
    drivers.append(Driver(start))
    assert drivers[0].next() == "at"
    found = looked(start)
    assert (found.running, found.begun) == (True, 3)
    drivers[0].go_on()
    drivers[0].next()
    assert drivers[0].told[-1] == ("done", LAST)


def test_a_driver_in_full_run_is_never_said_to_be_refused(tmp_path: Path, drivers: list[Driver]) -> None:
    start = sqlite(tmp_path, last=25, only=ONLY)
    drivers.append(Driver(start))
    drivers[0].until("committed")
    kinds: Counter[str] = Counter()
    while drivers[0].process.is_alive() and sum(kinds.values()) < 40:
        kinds[look(component(start)).next.kind] += 1
    assert set(kinds) <= {"repeats", "publishes", "continues", "moves"}, kinds


def test_a_refusal_is_told_in_the_words_of_the_start(tmp_path: Path) -> None:
    start = sqlite(tmp_path)
    run(start)
    journal = Path(look(component(start)).place) / "journal"
    journal.rename(tmp_path / "moved")
    found = looked(start)
    assert found.next.kind == "refused" and "remembers batch 6, written under another checkpoint" in found.next.sentence
    assert found.next.sentence.removeprefix("is refused: ") in run(start).told[-1][2]


def test_where_nothing_is_nothing_is_made(tmp_path: Path) -> None:
    found = looked(sqlite(tmp_path, only=ONLY))
    assert found.next.sentence == f"begins with txid 1: there is no checkpoint in {found.place}, so it makes one"
    assert list(tmp_path.iterdir()) == []


class Away(StateFactory, BatchParticipant):
    """A state whose store does not answer. On replay: nothing is kept."""

    kind = "opaque"

    def makeState(self, conf: dict, metrics: Any, partition: int, partitions: int) -> State:
        return State()

    def remembered(self, conf: dict) -> None:
        raise FailedException("it does not answer")

    def open(self, conf: dict) -> int:
        return 1

    def prepare(self, txid: int, attempt: int, numPartitions: int) -> None: ...

    def publish(self, txid: int, attempt: int, receipts: Any) -> None: ...

    def abort(self, txid: int, attempt: int) -> None: ...


class Ignoring(BaseStateUpdater):
    def updateState(self, state: State, tuples: Any, collector: Any) -> None: ...


def test_a_store_that_is_away_is_named_at_once(tmp_path: Path) -> None:
    topology = TridentTopology()
    stream = topology.newStream("in", FixedBatchSpout(Fields("value"), 1, (1,)))
    stream.partitionPersist(Away(), "value", Ignoring(), stateName="far")
    found = look(component(sqlite(tmp_path), topology.build()))
    assert found.next.sentence.startswith("waits for state far, for up to 60 s (topology.start.wait.secs), then")
    assert "far: it does not answer" in "\n".join(lines(found))


@pytest.mark.parametrize("inside", ["", "faults", "faults/readings"])
def test_the_folder_of_a_checkpoint_is_enough_to_see_its_log(tmp_path: Path, inside: str) -> None:
    start = sqlite(tmp_path, Fault("recorded", "", 3))
    run(start)
    (alone,) = components_in(Path(start.place) / inside)
    found = looked(start, alone)
    assert (found.topology, found.component, found.states) == ("faults", "readings", None)
    assert found.next.sentence.startswith("repeats txid 3") and lines(found)[-1].endswith(", if its states agree")
    fenced = CliRunner().invoke(cli.txid, ["fence", start.place, "--yes"])
    assert fenced.exit_code == 2 and "name the topology" in fenced.output


def test_a_checkpoint_in_hdfs_or_s3_is_read_and_left_alone(place_of_uri: Remote, tmp_path: Path) -> None:
    start = replace(sqlite(tmp_path, Fault("recorded", "", 3)), **place_of_uri.of_start)
    run(start)
    before = checkpoint(start)
    found = looked(start)
    assert checkpoint(start) == before
    assert (found.committed, found.begun, found.next.kind) == (2, 3, "repeats")


def test_one_batch_is_shown_with_what_the_log_keeps_of_it(tmp_path: Path) -> None:
    start = sqlite(tmp_path, Fault("recorded", "", 3))
    run(start)
    asked = component(start)
    found, log = look(asked), asked.read()
    shown = {txid: about(found, log, txid) for txid in (1, 2, 3, 4)}
    heads = [re.sub(r", since 20.*Z$", "", told[0].removeprefix("faults/readings: ")) for told in shown.values()]
    assert all(re.search(r", since 20\d\d-\d\d-\d\d \d\d:\d\d:\d\dZ$", shown[txid][0]) for txid in (1, 2))
    assert heads == [
        "txid 1 is over", "txid 2 is over", "txid 3 has begun and is not over", "txid 4 has not begun",
    ]  # fmt: skip
    assert any(each.startswith("  spout readings: ") for each in shown[2]) and "  opaque has it complete" in shown[2]
    assert any(each.startswith("  spout readings: ") for each in shown[1])
    assert not any("spout readings" in each for each in shown[4])


def test_a_watch_prints_what_has_changed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    start = sqlite(tmp_path, Fault("recorded", "", 3))
    run(start)
    away = mock.patch.object(cli, "look", side_effect=FailedException("the store does not answer"))
    turns = iter([None, lambda: run(replace(start, faults=())), away.start, None, away.stop, None])

    def pause(seconds: float) -> None:
        try:
            happens = next(turns)
        except StopIteration:
            raise KeyboardInterrupt from None
        if happens is not None:
            happens()

    monkeypatch.setattr(cli, "time", SimpleNamespace(sleep=pause))
    with pytest.raises(KeyboardInterrupt):
        cli._watch_lines([component(start)], 1)
    first, second, third, fourth = capsys.readouterr().out.splitlines()
    assert third.endswith("Z faults/readings: cannot be read now: the store does not answer")
    assert fourth.partition(" ")[2] == second.partition(" ")[2]
    assert "committed: txid 2; begun: txid 3; opaque 2; the next start repeats txid 3" in first
    assert second.endswith(f"committed: txid {LAST}; opaque {LAST}; the next start continues after txid {LAST}")
    with pytest.raises(KeyboardInterrupt):
        cli._watch_live([component(start)], 1)
    assert f"the next start continues after txid {LAST}" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("step", "state"), [("described", ""), ("recorded", ""), ("committed", "opaque"), ("over", "")]
)
def test_a_driver_that_is_fenced_ends_and_the_next_start_goes_on(
    tmp_path: Path, drivers: list[Driver], step: str, state: str
) -> None:
    start = sqlite(tmp_path, Fault(step, state, 3, action="ask"), only=("opaque",) if state else ONLY)
    drivers.append(Driver(start))
    assert drivers[0].next() == "at"
    shut = component(start)
    assert set(shut_out(shut).values()) == {2}
    told = look(shut)
    assert told.driver["pid"] != drivers[0].process.pid and told.committed == 2
    drivers[0].go_on()
    drivers[0].next()
    kind, name, words = drivers[0].told[-1]
    assert (kind, name) == ("error", "ZombieError")
    assert "has taken it over since this one started" in words or "a newer one with generation 2" in words
    assert "`trident txid fence`" in words
    after = look(shut)
    assert (after.committed, after.next, after.driver) == (told.committed, told.next, told.driver)
    assert run(replace(start, faults=())).told[-1] == ("done", LAST)
    assert differences(start.url, Fold(Readings(SEED), LAST), start.only) == []


@pytest.mark.parametrize(("typed", "told"), [
    (["ls", "counted:build", "--checkpoint", "empty"], "/empty holds no checkpoint of topology 'counted'"),
    (["show", "1", "counted:build", "--checkpoint", "none"], "--checkpoint none: there is no folder "),
    (["ls", "empty"], "empty is no folder with a checkpoint"),
    (["ls", "chekpoints"], "nor is there a folder chekpoints with a checkpoint"),
    (["watch", "--every", "inf", "counted:build"], "inf is not in the range"),
])  # fmt: skip
def test_what_is_wrong_is_named(typed: list[str], told: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "counted.py").write_text(
        "from trident_py import TridentTopology\nfrom trident_py.testing import FixedBatchSpout\n"
        "def build():\n    made = TridentTopology()\n"
        "    made.newStream('s', FixedBatchSpout('a', 1, (1,))).peek(print)\n    return made\n"
    )
    (tmp_path / "empty").mkdir()
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    done = CliRunner().invoke(cli.txid, typed)
    assert done.exit_code == 2 and told in done.stderr, done.output
    new = CliRunner().invoke(cli.txid, ["fence", "counted:build", "--yes"])
    assert new.exit_code == 1 and "the driver is nobody: none has taken the checkpoint" in new.stdout
    ways = CliRunner().invoke(cli.txid, ["rewind", "counted:build", "--dry-run"])
    assert ways.exit_code == 1 and "there is no checkpoint in" in ways.stderr and not ways.stdout


def test_a_fence_that_is_refused_changes_nothing(tmp_path: Path) -> None:
    start = sqlite(tmp_path)
    run(start)
    journal = Path(look(component(start)).place) / "journal"
    journal.unlink()
    before = read(start.url, "SELECT * FROM trident_fence")
    with pytest.raises(LineageError, match="remembers batch 6, written under another checkpoint"):
        shut_out(component(start))
    assert read(start.url, "SELECT * FROM trident_fence") == before
    assert not journal.exists()


def test_a_fence_tells_the_next_start_of_each_component(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    module = (
        "from trident_py import TridentTopology\nfrom trident_py.testing import FixedBatchSpout\n"
        "def build():\n    made = TridentTopology()\n    for name, rows in (('a', [(1,)] * 3), ('b', [(1,)])):\n"
        "        made.newStream(name, FixedBatchSpout('n', 1, *rows)).peek(id)\n    return made\n"
    )
    (tmp_path / "two_parts.py").write_text(module)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    assert CliRunner().invoke(run_topology, ["two_parts:build", "--local"]).exit_code == 0
    done = CliRunner().invoke(cli.txid, ["fence", "two_parts:build", "--yes"])
    assert done.exit_code == 0 and done.stdout.splitlines()[-4:] == [
        "two_parts/a: older drivers are shut out", "  the next start continues after txid 3",
        "two_parts/b: older drivers are shut out", "  the next start continues after txid 1",
    ]  # fmt: skip


def test_files_tell_their_batches_and_memory_keeps_none(tmp_path: Path) -> None:
    start = sqlite(tmp_path)
    topology = TridentTopology()
    stream = topology.newStream("in", FixedBatchSpout(Fields("word string"), 1, ("a",), ("b",)))
    stream.partitionPersist(FileState(str(tmp_path / "files"), format="json"), "word", RowUpdater(), stateName="files")
    stream.groupBy("word").persistentAggregate(MemoryMapState.Factory(), Count(), "count", stateName="memory")
    built = topology.build()
    with LocalCluster(start.place) as cluster:
        cluster.submitTopology("faults", {}, built).awaitTermination(60)
    found = looked(start, component(start, built))
    assert {state.state: (state.complete, state.owner) for state in found.states or ()} == {
        "files": (2, "faults/files"), "memory": (None, ""),
    }  # fmt: skip
    assert found.next.sentence == "continues after txid 2"


def test_a_file_of_states_is_enough_to_see_what_their_stores_have(tmp_path: Path) -> None:
    start, file = sqlite(tmp_path, Fault("committed", "opaque", 3)), tmp_path / "states.yaml"
    run(start)
    at = f"url: '{start.url}'"
    file.write_text(
        "states:\n"
        f"  mine: {{type: sql-map, kind: opaque, {at}, table: opaque, key: word string, value: [total bigint]}}\n"
        f"  other: {{type: append, {at}, table: nobodys}}\n"
        f"  absent: {{type: append, url: 'sqlite:///{tmp_path}/absent.db', table: rows}}\n"
    )
    (asked,) = looked(start, component(start)).states or ()
    before = read(start.url, "SELECT * FROM trident_fence")
    assert look_at_states(str(file)) == [replace(asked, state="mine"), StateEvidence("other"), StateEvidence("absent")]
    shown = CliRunner().invoke(cli.txid, ["ls", str(file)])
    assert shown.exit_code == 0 and "no checkpoint is known" in shown.output and "faults/opaque" in shown.output
    (told, *_) = json.loads(CliRunner().invoke(cli.txid, ["ls", "--json", str(file)]).output)
    assert (told["complete"], told["part"], told["owner"]) == (2, 3, "faults/opaque")
    assert read(start.url, "SELECT * FROM trident_fence") == before and not (tmp_path / "absent.db").exists()
    file.write_text("states: {away: {type: redis-map, kind: opaque, url: 'redis://127.0.0.1:1/0', hash: a}}\n")
    away = CliRunner().invoke(cli.txid, ["ls", str(file)])
    assert away.exit_code == 1 and "away: " in away.output, away.output


def test_the_tables_of_a_file_have_the_same_facts(tmp_path: Path) -> None:
    start = sqlite(tmp_path, Fault("committed", "opaque", 3))
    run(start)
    write(tmp_path / "facts.db", [look(component(start))])
    url = f"sqlite:///{tmp_path}/facts.db"
    assert read(url, "SELECT component, committed, begun, next FROM components") == [("readings", 2, 3, "repeats")]
    assert read(url, "SELECT state, part, generation FROM states") == [("opaque", 3, 1)]
    assert read(url, "SELECT txid, has FROM batches ORDER BY txid") == [(2, "has it complete"), (3, "has a part of it")]
    again = CliRunner().invoke(cli.txid, ["sql", str(tmp_path / "facts.db"), start.place])
    assert again.exit_code == 2 and "is there already" in again.output
    assert CliRunner().invoke(cli.txid, ["sql", str(tmp_path / "alone.db"), start.place]).exit_code == 0
    assert read(f"sqlite:///{tmp_path}/alone.db", "SELECT count(*) FROM states") == [(0,)]
