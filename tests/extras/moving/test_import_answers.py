"""`trident import offsets` with the answers of a person: all of them count, and a second import with others is seen."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from trident_py.checkpoints.append_log import entries_of, write_journal
from trident_py.cli import trident
from trident_py.extras.txid.components import components_in


def dump_nodes(folder: Path, streams: Mapping[str, int], more: Mapping[str, Any] | None = None) -> None:
    """Write what Storm keeps of streams whose spouts are opaque: the current txid of each."""
    nodes: dict[str, Any] = {}
    for name, current in streams.items():
        nodes |= {f"{name}/coordinator/currtx": current, f"{name}/coordinator/meta/{current - 1}": "m",
                  f"{name}/user/p/{current - 1}": {"pos": f"{name}{current}"}}  # fmt: skip
    nodes |= more or {}
    rows = [{"path": f"/transactional/{path}", "data": json.dumps(data)} for path, data in nodes.items()]
    (folder / "nodes.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))


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
    ("build", ("--start", "t@0=5"), "--start t@0=5: no stream of the topology reads t@0"),
    ("apart", ("--start", "t@0=5"), "--start t@0=5: no stream of the topology reads t@0"),
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
