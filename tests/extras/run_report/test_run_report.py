"""`trident report`: what it shows is what the events say."""

from __future__ import annotations

import json
import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from trident_py.errors import DefinitionError
from trident_py.extras.run_report.cli import report
from trident_py.extras.run_report.run_events import RunEvents, read

TOPOLOGY = """
from trident_py import FailedException, TridentTopology
from trident_py.operations.builtin import Count
from trident_py.testing import FixedBatchSpout, MemoryMapState

failed = []

def words(sentence):
    if sentence == "to be" and not failed:
        failed.append(sentence)
        raise FailedException("<script>alert('once')</script>")
    return sentence.split(" ")

def build():
    topology = TridentTopology()
    spout = FixedBatchSpout("sentence", 2, ("the cow",), ("the man went",), ("to be",), ("or not",))
    words_of = topology.newStream("sentences", spout).each("sentence", words, "word")
    words_of.groupBy("word").persistentAggregate(MemoryMapState.Factory(), Count(), "count")
    return topology
"""


class Tables(HTMLParser):
    """The text of a page's table cells, and the tags that it has."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.cells: list[str] = []
        self.tags: set[str] = set()
        self.inside = False
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        self.tags.add(tag)
        if tag in ("td", "th"):
            self.cells.append("")
            self.inside = True

    def handle_endtag(self, tag: str) -> None:
        self.inside = self.inside and tag not in ("td", "th")

    def handle_data(self, data: str) -> None:
        if self.inside:
            self.cells[-1] += data


@pytest.fixture
def events(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The events of a run in which one batch failed once."""
    from trident_py.cli.run import run

    (tmp_path / "counted.py").write_text(TOPOLOGY)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    ran = CliRunner().invoke(run, ["counted:build", "--local", "--json"])
    assert ran.exit_code == 0, ran.output
    path = tmp_path / "run.jsonl"
    path.write_text(ran.stdout)
    return path


def show(*paths: Path) -> str:
    output = paths[0].with_suffix(".html")
    shown = CliRunner().invoke(report, [*map(str, paths), "-o", str(output)])
    assert shown.exit_code == 0, shown.output
    return output.read_text()


def test_a_page_shows_what_the_events_say(events: Path) -> None:
    run = read(events)
    records = map(json.loads, events.read_text().splitlines())
    committed = [record for record in records if record["event"] == "committed"]
    assert [batch.txid for batch in run.batches] == [record["txid"] for record in committed] == [1, 2]
    assert [batch.attempts for batch in run.batches] == [1, 2]
    assert run.count("tuples") == committed[-1]["emitted"] == {"sentences": 4}
    assert [sum(batch.tuples.values()) for batch in run.batches] == [2, 2]
    assert [kind for kind, *_ in run.list_causes()] == ["replay"]
    page = Tables(show(events))
    at = page.cells.index("tuples")
    assert page.cells[at + 1] == "4"
    assert "replay (1)" in page.cells
    milliseconds = float(page.cells[page.cells.index("whole batch") + 4].replace(",", ""))
    assert milliseconds == pytest.approx(max(batch.whole for batch in run.batches) * 1000, abs=0.1)


def test_a_page_loads_nothing_and_runs_nothing_of_the_events(events: Path) -> None:
    text = show(events)
    assert "alert(" in text  # the reason is there, as text
    assert not Tables(text).tags & {"script", "link", "iframe", "img"}
    assert re.findall(r"(?:src|href)=[\"'](?!#)", text.replace("xlink:href=\"#", "")) == []


def test_a_batch_that_was_told_without_its_counts_is_no_error(events: Path) -> None:
    events.write_text('{"event": "committed", "time": "2026-11-26T10:00:00+00:00", "txid": 1, "attempt": 0}\n')
    assert read(events).others == {"committed": 1}


def test_a_file_of_several_starts_counts_each(events: Path) -> None:
    once = read(events)
    events.write_text(events.read_text() * 2)
    twice = read(events)
    assert twice.count("tuples") == {"sentences": 8}
    assert twice.count("rows") == {name: 2 * number for name, number in once.count("rows").items()}
    assert len(twice.guarantees) == len(once.guarantees)


def test_a_rotated_file_counts_what_its_own_batches_added(events: Path) -> None:
    """The counts of an event are those since the start, which is in an older file."""
    lines = events.read_text().splitlines(True)
    started = next(number for number, line in enumerate(lines) if '"started"' in line)
    events.write_text("".join(lines[started + 1 :]))
    run = read(events)
    assert [sum(batch.tuples.values()) for batch in run.batches] == [0, 2]
    assert sum(run.batches[0].rows.values()) == 0 < sum(run.batches[1].rows.values())


def test_a_start_that_was_told_without_its_component_counts_anew(events: Path) -> None:
    """Events from before the command looks have none."""
    started = [line for line in events.read_text().splitlines(True) if '"started"' in line]
    early = {key: value for key, value in json.loads(started[0]).items() if key != "component"}
    assert len(started) == 1
    events.write_text(events.read_text() + events.read_text().replace(started[0], f"{json.dumps(early)}\n"))
    assert read(events).count("tuples") == {"sentences": 8}


def test_half_a_character_in_a_cause_is_shown(events: Path) -> None:
    events.write_text(events.read_text().replace("once", "on\\ud800ce"))
    assert "on\\ud800ce" in show(events)


def test_two_runs_stand_side_by_side(events: Path, tmp_path: Path) -> None:
    other = tmp_path / "other.jsonl"
    other.write_text("".join(line + "\n" for line in events.read_text().splitlines() if '"txid": 2' not in line))
    page = show(events, other)
    assert page.count("<section") == 2
    assert "run and other" in page


def test_a_line_that_was_cut_off_is_left_out_and_the_next_start_counts(events: Path) -> None:
    whole, cut = read(events), events.read_text() + '{"event": "comm'
    events.write_text(cut)
    assert read(events).summarize() == whole.summarize()
    events.write_text(f"{cut}\n{events.read_text()}")
    assert read(events).count("tuples") == {"sentences": 8}
    events.write_text(f"{cut}{events.read_text()}")  # by an older version, or by the shell's >>
    assert len(read(events).batches) == 3 * len(whole.batches)


def test_a_page_never_replaces_its_events(events: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = events.read_bytes()
    monkeypatch.chdir(events.parent)
    shown = CliRunner().invoke(report, [str(events), "-o", f"./{events.name}"])
    assert shown.exit_code == 2 and "is one of the files of events" in shown.output
    assert events.read_bytes() == before


@pytest.mark.parametrize(
    ("line", "why"),
    [("[]", "TypeError"), ('{"event": "committed"}', "KeyError: 'time'"), ("nonsense", "Expecting value"),
     ('{"event": "committed", "time": "yesterday"}', "ValueError"), ("[" * 100_000, "nested too deeply"),
     ('{"event": "committed", "time": "2026-01-01T00:00:00+00:00", "component": "c", "emitted": 1, "persisted": {}}',
      "TypeError")],
)  # fmt: skip
def test_what_is_no_event_is_named(events: Path, line: str, why: str) -> None:
    events.write_text(f"{line[:200_000]}\n{events.read_text()}")
    with pytest.raises(DefinitionError, match=f"run.jsonl:1 is no event of trident run --json .*({why})"):
        read(events)


def test_a_file_without_events_is_refused(tmp_path: Path) -> None:
    empty = tmp_path / "empty.jsonl"
    empty.write_text("\n")
    shown = CliRunner().invoke(report, [str(empty), "-o", str(tmp_path / "x.html")])
    assert shown.exit_code == 2
    assert "has no event" in shown.output
    assert not (tmp_path / "x.html").exists()


def test_a_run_without_a_batch_has_a_page() -> None:
    run = RunEvents("idle")
    run.add({"event": "started", "time": "2026-11-26T10:00:00+00:00"})
    from trident_py.extras.run_report.cli import render

    assert "started 1" in render([run])
