"""`trident import offsets` with the answers of a person: all of them count, and a second import with others is seen."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from click.testing import CliRunner
from needed import needed
from own_spouts import dump_nodes, fill

from testbed.storm import ZooKeeper
from trident_py.checkpoints.append_log import entries_of, write_journal
from trident_py.cli import trident
from trident_py.errors import TridentError
from trident_py.extras.moving import zookeeper
from trident_py.extras.moving.zookeeper import _check_still
from trident_py.extras.txid.components import components_in


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def offsets(target: str, *more: str) -> tuple[int, str]:
    place = ("--dump", "nodes.jsonl", "--checkpoint", "ck")
    done = CliRunner().invoke(trident, ["import", "offsets", f"own_spouts:{target}", *place, *more])
    return done.exit_code, " ".join(done.output.split())


def positions() -> dict[str, Any]:
    """Return where the streams begin."""
    stores = [each.read().store for each in components_in(Path("ck"))]
    return {path.split("/")[0]: store.newest(path)["p"]["pos"] for store in stores for path in store.paths("")
            if path.endswith("/positions")}  # fmt: skip


def test_a_second_import_with_other_answers_is_refused(place: Path) -> None:
    dump_nodes(place, {"x": 8, "y": 8})
    swapped, right = ("--stream", "a=y", "--stream", "b=x"), ("--stream", "a=x", "--stream", "b=y")
    assert offsets("build", *swapped)[0] == 0
    code, shown = offsets("build", *right)
    assert (code, "is there already, and not from this import" in shown) == (1, True), shown
    assert positions() == {"a": "y8", "b": "x8"}
    code, shown = offsets("build", *swapped)
    assert (code, "there already: the checkpoint" in shown) == (0, True), shown


@pytest.mark.parametrize("change", [
    lambda entries: entries["moved"][0].update(base=9), lambda entries: entries["component"][0].update(run="r-1"),
    lambda entries: entries["component"][0]["states"].update(counts=["", 0, 7, False, "", 0]),
    lambda entries: entries["a/positions"][7].update(q={"pos": 1}), lambda entries: entries.update(new={7: 1}),
    lambda entries: entries.pop("b/positions"), lambda entries: entries["log"][0]["over"].update(txid=9),
])  # fmt: skip
def test_each_entry_of_the_checkpoint_is_compared(change: Any, place: Path) -> None:
    dump_nodes(place, {"a": 8, "b": 8})
    assert offsets("build")[0] == 0
    (folder,) = (each.parent for each in place.glob("ck/*/*/journal"))
    entries = entries_of((folder / "journal").read_bytes(), "journal")
    change(entries)
    write_journal(folder, entries)
    assert offsets("build")[0] == 1


@pytest.mark.parametrize(("target", "answers", "text"), [
    ("build", ("--stream", "B=y"), "--stream B=y: we have no stream B; there are a, b"),
    ("build", ("--stream", "b=a"), "stream a of Storm would be read by a and b"),
    ("build", ("--stream", "b=y", "--stream", "a=y"), "stream y of Storm would be read by a and b"),
    ("apart", ("--stream", "b=a"), "stream a of Storm would be read by a and b"),
    ("apart", ("--stream", "B=y"), "--stream B=y: we have no stream B; there are a, b"),
    ("apart", ("--stream", "b=z"), "--stream b=z: Storm has no stream z; there are a, y"),
    ("build", ("--start", "t@0=5"), "--start t@0=5: no stream that is imported reads t@0"),
    ("apart", ("--start", "t@0=5"), "--start t@0=5: no stream that is imported reads t@0"),
])  # fmt: skip
def test_an_answer_that_nobody_asked_for_is_refused(target: str, answers: Any, text: str, place: Path) -> None:
    dump_nodes(place, {"a": 8, "y": 8})
    code, shown = offsets(target, *answers)
    assert (code, text in shown) == (2, True), shown
    assert not (place / "ck").exists()


def test_a_new_component_is_left_out_and_the_others_are_made(place: Path) -> None:
    dump_nodes(place, {"b": 8})
    code, shown = offsets("apart")
    assert (code, positions()) == (0, {"b": "b8"})
    assert "own_spouts/a: Storm remembers none of its streams a; it begins as a new one" in shown
    dump_nodes(place, {"other": 8})
    code, shown = offsets("apart")
    assert (code, "remembers none of its streams a; it has other. Name them by --stream" in shown) == (2, True), shown


def with_checkpoint(checkpoint: str) -> list[tuple[int, str]]:
    """Run both commands that take a checkpoint which `import offsets` has made."""
    common = ("--kind", "opaque", "--checkpoint", checkpoint)
    commands = (("import", "state", "--from", "values.jsonl", "--into", "s.yaml:counts", *common),
                ("compare", "values.jsonl", "s.yaml:counts", *common))  # fmt: skip
    done = [CliRunner().invoke(trident, command) for command in commands]
    return [(each.exit_code, " ".join(each.output.split())) for each in done]


def test_of_several_checkpoints_the_one_of_the_state_is_taken(place: Path) -> None:
    fill(place)
    dump_nodes(place, {"a": 8, "b": 8})
    assert offsets("apart")[0] == 0
    (imported, told), (compared, shown) = with_checkpoint("ck")
    assert imported == 0, told
    told = f"the folder of one: {place}/ck/own_spouts/a, {place}/ck/own_spouts/b"
    assert (compared, told in shown) == (2, True), shown


def test_a_state_of_another_component_is_refused(place: Path) -> None:
    """Its values would be re-based at the txids of streams that it does not read."""
    fill(place)
    dump_nodes(place, {"a": 8, "b": 20})
    assert offsets("apart")[0] == 0
    code, shown = with_checkpoint("ck/own_spouts/b")[0]
    where = f"{place}/ck/own_spouts/b has others (table 'others' in sqlite:///{place}/c.db)"
    assert (code, "table 'counts' in" in shown, where in shown) == (2, True, True), shown
    assert with_checkpoint("ck/own_spouts/a")[0][0] == 0


def test_a_source_without_values_is_a_mistake(place: Path) -> None:
    """A hash of Redis that is not there cannot be told from an empty one."""
    fill(place)
    dump_nodes(place, {"a": 8, "b": 8})
    (place / "values.jsonl").write_text("\n")
    assert offsets("build")[0] == 0
    code, shown = with_checkpoint("ck")[0]
    told = "values.jsonl: no values are there. Check its name; a state that was empty in Storm is named by `trident"
    assert (code, told in shown) == (1, True), shown


def test_files_are_named_from_the_folder_of_the_command(place: Path) -> None:
    """That of the topology file becomes the current one when it is loaded."""
    dump_nodes(place, {"a": 8, "b": 8})
    (place / "app").mkdir()
    (place / "app/trident.yml").write_text("name: own\ntopologySource: {className: 'own_spouts:build'}\n")
    named = ("--dump", "nodes.jsonl", "--checkpoint", "ck")
    done = CliRunner().invoke(trident, ["import", "offsets", "app/trident.yml", *named])
    assert (done.exit_code, len(components_in(place / "ck/own"))) == (0, 1), done.output


@pytest.mark.parametrize("uri", ["ck", "file://{}/ck", "file://{}/ck/own_spouts/a%2Bb"])
def test_a_checkpoint_of_this_machine_is_found(uri: str, place: Path) -> None:
    fill(place)
    dump_nodes(place, {"a": 8, "b": 8})
    assert offsets("build")[0] == 0
    assert [code for code, _ in with_checkpoint(uri.format(place))] == [0, 0]


def test_a_checkpoint_in_s3_is_found(s3: Any, place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    own = s3.storage
    for name, key in {"ENDPOINT_URL": "endpoint_override", "ACCESS_KEY_ID": "access_key",
                      "SECRET_ACCESS_KEY": "secret_key", "DEFAULT_REGION": "region"}.items():  # fmt: skip
        monkeypatch.setenv(f"AWS_{name}", own[key])
    s3.make_bucket("moved")
    fill(place)
    dump_nodes(place, {"a": 8, "b": 8})
    assert offsets("build", "--checkpoint", "s3://moved/ck")[0] == 0
    started = ("txid", "ls", "own_spouts:build", "--checkpoint", "s3://moved/ck")
    assert "Storm's values are missing in state 'counts'" in CliRunner().invoke(trident, started).output
    assert [code for code, _ in with_checkpoint("s3://moved/ck/own_spouts/a%2Bb")] == [0, 0]
    assert "continues after txid 7" in CliRunner().invoke(trident, started).output
    for other in ("s3://moved/ck", "s3://moved/ck/own_spouts/b", "s3://moved"):
        for code, shown in with_checkpoint(other):
            assert (code, "name the folder of one, such as checkpoints/words/sentences" in shown) == (2, True), shown


def test_a_checkpoint_on_which_a_topology_has_run_is_not_comparable(place: Path) -> None:
    fill(place)
    dump_nodes(place, {"a": 8, "b": 8})
    assert offsets("build")[0] == 0
    (folder,) = (each.parent for each in place.glob("ck/*/*/journal"))
    entries = entries_of((folder / "journal").read_bytes(), "journal")
    entries["component"][0]["run"] = "r-1"
    write_journal(folder, entries)
    (imported, _), (compared, shown) = with_checkpoint("ck")
    assert (imported, compared, "a topology has started on the checkpoint" in shown) == (1, 2, True), shown


@contextmanager
def writing(client: Any, path: str) -> Iterator[None]:
    """Write a node some times a second, as a topology in Storm does."""
    over = threading.Event()

    def write() -> None:
        number = 0
        while not over.wait(0.3):
            number += 1
            client.set(path, str(number).encode())

    thread = threading.Thread(target=write)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


@pytest.mark.servers
@pytest.mark.whole("test_a_topology_that_still_runs_is_seen")
def test_a_live_zookeeper_of_several_topologies(place: Path) -> None:
    from kazoo.client import KazooClient

    dump_nodes(place, {"a": 8, "b": 8, "other": 5})
    with needed("Storm"), ZooKeeper() as zookeeper:
        client = KazooClient(zookeeper.hosts)
        client.start()
        for line in (place / "nodes.jsonl").read_text().splitlines():
            node = json.loads(line)
            client.create(node["path"], node["data"].encode(), makepath=True)
        live = ("import", "offsets", "own_spouts:build", "--zookeeper", zookeeper.hosts, "--checkpoint", "ck")
        with writing(client, "/transactional/a/user/p/7"):
            refused = CliRunner().invoke(trident, live)
        assert (refused.exit_code, "/transactional/a/user/p/7 has changed" in refused.output) == (1, True), (
            refused.output
        )
        client.set("/transactional/a/user/p/7", b'{"pos": "a8"}')
        with writing(client, "/transactional/other/coordinator/currtx"):
            done = CliRunner().invoke(trident, live)
        elsewhere = CliRunner().invoke(trident, (*live[:-1], "ck2", "--root", "/nowhere"))
        client.stop()
        client.close()
    assert (elsewhere.exit_code, "there is /transactional, /zookeeper" in elsewhere.output) == (2, True), (
        elsewhere.output
    )
    assert (done.exit_code, positions()) == (0, {"a": "a8", "b": "b8"}), done.output


class LaggingServer:
    """A client of a server that has the last batch once it was told to catch up."""

    def __init__(self, *hosts: Any, **settings: Any) -> None:
        self.batch = 7

    def sync(self, path: str) -> None:
        self.batch = 8

    def get(self, path: str) -> tuple[bytes, SimpleNamespace]:
        return str(self.batch).encode(), SimpleNamespace(last_modified_transaction_id=self.batch)

    def get_children(self, path: str) -> list[str]:
        return [] if path.endswith("/currtx") else ["currtx"] if path.endswith("/mine") else ["mine"]

    def start(self, timeout: float) -> None: ...
    def stop(self) -> None: ...
    def close(self) -> None: ...


def test_a_server_that_lags_behind_is_read_when_it_has_caught_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kazoo.client.KazooClient", LaggingServer)
    monkeypatch.setattr(zookeeper, "STILL", 0)
    assert zookeeper.read_live("zoo", "/transactional", ["mine"])["/transactional/mine/currtx"] == "8"


def test_a_topology_that_still_runs_is_seen() -> None:
    before = {"/t/mine/currtx": ("7", 1), "/t/mine2/currtx": ("7", 1), "/t/other/currtx": ("5", 2)}
    _check_still("zoo", "/t/mine", before, {"/t/mine/currtx": ("7", 1)})
    for now in ({"/t/mine/currtx": ("8", 4)}, {}, {"/t/mine/currtx": ("7", 1), "/t/mine/new": ("", 5)}):
        with pytest.raises(TridentError, match="has changed while it was read: the topology still runs in Storm"):
            _check_still("zoo", "/t/mine", before, now)
