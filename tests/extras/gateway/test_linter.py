"""The linter: what it finds in made samples, against a plain count, and in a year of real weather."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from hypothesis import given, settings
from hypothesis import strategies as st

from examples.weather import csv_file
from trident_py.extras.gateway.canonical import EventError, canonical
from trident_py.extras.gateway.cli_lint import lint_command
from trident_py.extras.gateway.fingerprints import Fingerprint
from trident_py.extras.gateway.linter import MOST_FIELDS, FieldCounts, Report, birthday, collision, lint, read

LOCAL = ["origin", "year", "month", "day", "hour"]
READINGS = 26_115


def command(*args: Any) -> Result:
    return CliRunner().invoke(lint_command, [str(each) for each in args])


def written(path: Path, events: list[dict[str, Any]]) -> Path:
    path.write_text("".join(json.dumps(event) + "\n" for event in events))
    return path


def weather(fingerprint: Fingerprint) -> Report:
    return lint(read(csv_file(), ("NA",)), fingerprint)


def test_the_local_hour_collides_at_every_station_when_the_clocks_go_back() -> None:
    report = weather(Fingerprint(LOCAL))
    assert (report.events, report.distinct, report.resent, report.lost) == (READINGS, READINGS - 3, 0, 3)
    assert report.collisions == 3
    assert [each.cause for each in report.examples] == ["fields"] * 3
    hours = [each.differing["time_hour"] for each in report.examples]
    assert hours == [("2013-11-03T05:00:00Z", "2013-11-03T06:00:00Z")] * 3
    assert report.differing["time_hour"] == 3 and not set(LOCAL) & set(report.differing)
    assert [each.name for each in report.never_varying] == ["year"]


@pytest.mark.parametrize(
    "chosen", [Fingerprint(["origin", "time_hour"]), Fingerprint(["origin"], "fnv1a", timestamp="time_hour")]
)
def test_the_hour_in_utc_collides_nowhere(chosen: Fingerprint) -> None:
    report = weather(chosen)
    assert (report.distinct, report.lost, report.collisions, report.examples) == (READINGS, 0, 0, [])
    assert set(report.key or []) == {"origin", "time_hour"}
    assert {each.name: each.null for each in report.incomplete}["wind_gust"] == 20_778


@settings(max_examples=60, deadline=None)
@given(st.lists(st.fixed_dictionaries({"a": st.integers(0, 2)}, optional={"b": st.integers(0, 2)}), max_size=25))
def test_its_numbers_are_those_of_a_plain_count(events: list[dict[str, int]]) -> None:
    payloads = {canonical(event): event["a"] for event in events}
    report = lint(iter(events), Fingerprint(["a"]))
    assert report.events == len(events)
    assert report.distinct == len({event["a"] for event in events})
    assert report.resent == len(events) - len(payloads)
    assert report.collisions == sum(count > 1 for count in Counter(payloads.values()).values())
    assert report.events == report.distinct + report.resent + report.lost + report.refused


def test_copies_that_differ_in_what_is_left_out_are_resends() -> None:
    events = [{"id": 1, "try": 1, "v": 5}, {"id": 1, "try": 2, "v": 5}, {"id": 1, "v": 6, "try": 3}]
    report = lint(events, Fingerprint(["id"], without=["try"]))
    assert (report.resent, report.lost) == (1, 1)
    assert report.differing == {"v": 1}


def test_a_copy_of_the_same_payload_is_a_resend_and_no_collision() -> None:
    report = lint([{"id": 1, "t": 20}, {"t": 20, "id": 1}, {"id": 1, "t": 20}, {"id": 2, "t": 20}], Fingerprint(["id"]))
    assert (report.distinct, report.resent, report.lost, report.collisions) == (2, 2, 0, 0)


def test_an_example_of_a_collision_shows_where_and_in_what_the_events_differ() -> None:
    events = [
        {"id": 1, "at": {"lat": 1, "lon": 2}},
        {"id": 2, "at": {"lat": 9, "lon": 9}},
        {"id": 1, "at": {"lat": 1.0, "lon": 2}, "note": "x"},
    ]
    report = lint(events, Fingerprint(["id"], "plain"))
    (example,) = report.examples
    assert (example.fingerprint, example.positions, example.cause) == ("~1", (0, 2), "fields")
    assert example.differing == {"at.lat": (1, 1.0), "note": (None, "x")}


def test_the_examples_are_the_first_collisions_of_the_sample() -> None:
    events = [{"id": 9 - n // 2, "t": n} for n in range(18)]
    report = lint(events, Fingerprint(["id"], "plain"))
    assert report.collisions == 9
    assert [each.positions for each in report.examples] == [(0, 1), (2, 3), (4, 5), (6, 7), (8, 9)]


def test_an_id_that_a_resend_keeps_is_unique_all_the_same() -> None:
    events = [{"sensor": n % 5, "hour": n // 5, "uuid": f"u{n}"} for n in range(50)]
    assert [each.name for each in lint(events * 2, Fingerprint(["sensor", "hour"])).pseudo_unique] == ["uuid"]


def test_a_field_that_some_events_have_not_does_vary() -> None:
    report = lint([{"a": 1, "note": "x", "same": 1}, {"a": 2, "same": 1}], Fingerprint())
    assert [each.name for each in report.never_varying] == ["same"]


def test_a_missing_value_can_be_what_tells_two_events_apart() -> None:
    counts = FieldCounts()
    for event in ({"i": 0}, {"i": 0, "a": 1}, {"i": 1, "a": 1}, {"i": 1}):
        counts.add(event, is_new=True)
    assert counts.key() == ["i", "a"]


def test_a_collision_of_the_hash_is_told_from_one_of_the_fields() -> None:
    pair = [(0, {"id": 1, "t": 1}), (5, {"id": 2, "t": 1})]
    assert collision(Fingerprint(["t"]), pair).cause == "fields"
    assert collision(Fingerprint(["id"]), pair).cause == "hash"


def test_fields_that_are_unique_in_every_copy_are_found() -> None:
    events = [{"sensor": n % 7, "hour": n // 7, "uuid": f"u{n}", "arrived": n * 1.5} for n in range(700)]
    report = lint(events, Fingerprint(["sensor", "hour"]))
    assert [each.name for each in report.pseudo_unique] == ["uuid", "arrived"]
    assert report.unique_inside == []
    assert set(report.key or []) == {"sensor", "hour"}
    assert [each.name for each in lint(events, Fingerprint(["uuid"])).unique_inside] == ["uuid"]
    assert [each.name for each in lint(events, Fingerprint(without=["arrived"])).pseudo_unique] == ["arrived"]


def test_an_arrival_time_that_is_named_does_not_make_a_resend_another_event() -> None:
    first = [{"id": n, "v": n % 3, "got": f"2024-01-01T00:{n:02d}:00Z"} for n in range(50)]
    again = [event | {"got": "2024-01-01T02:00:00Z"} for event in first[:5]]
    blind = lint([*first, *again], Fingerprint(["id"]))
    report = lint([*first, *again], Fingerprint(["id"]), times="got")
    assert (blind.lost, blind.resent, blind.longest) == (5, 0, None)
    assert (report.lost, report.resent, report.longest) == (0, 5, 7200.0)
    assert lint([*again, *first], Fingerprint(["id"]), times="got").longest == 7200.0
    assert lint(first, Fingerprint(["id"]), times="got").longest is None


def test_missing_and_null_fields_are_counted_and_events_without_a_fingerprint_refused() -> None:
    events: list[dict[str, Any]] = [{"id": 1, "t": 1}, {"id": 2, "t": None}, {"t": 3}, {"id": 4}, {"id": float("nan")}]
    report = lint(events, Fingerprint(["id"]))
    assert (report.events, report.distinct, report.refused) == (5, 3, 2)
    assert list(report.reasons) == [
        "no field 'id' in this event; it has: t",
        "field 'id' is nan: send null for a missing measurement, and 0.0 for -0.0",
    ]
    assert {each.name: (each.missing, each.null) for each in report.incomplete} == {"id": (1, 0), "t": (1, 1)}


def test_a_fingerprint_that_no_event_has_is_an_error_and_no_clean_report() -> None:
    with pytest.raises(EventError, match="none of 2 events has a fingerprint; the first: no field 'wrod'"):
        lint([{"a": 1}, {"a": 2}], Fingerprint(["wrod"]))
    assert lint([], Fingerprint(["a"])).events == 0


def test_a_key_is_hinted_at_without_fields_that_add_nothing() -> None:
    counts = FieldCounts()
    for n in range(36):  # `rough` has most values, but the other two say it all
        y, z = n % 6, n // 6
        counts.add({"rough": y // 2 * 3 + z // 2, "y": y, "z": z, "constant": 1}, is_new=True)
    assert counts.key() == ["y", "z"]
    assert counts.key(leave_out=["z"]) is None
    assert FieldCounts().key() == []


def test_its_memory_does_not_grow_with_the_sample() -> None:
    counts = FieldCounts(sample=10)
    for n in range(1_000):
        counts.add({f"f{n % 300}": n, "same": 1, "late": int(n > 900)}, is_new=True)
    fields = {each.name: each for each in counts.fields()}
    assert len(fields) == MOST_FIELDS and counts.left_out > 0
    assert max(each.sampled for each in fields.values()) == 10
    assert (fields["same"].varies, fields["late"].varies) == (False, True)


def test_a_field_that_is_there_twice_by_its_path_is_one_field() -> None:
    counts = FieldCounts()
    counts.add({"a.b": 1, "a": {"b": 2}}, is_new=True)
    counts.add({"a.b": 3}, is_new=True)
    assert [(each.name, each.missing, each.sampled) for each in counts.fields()] == [("a.b", 0, 2)]


def test_the_width_of_the_hash_is_judged_by_the_birthday_bound() -> None:
    assert birthday(1_000_000, 64) == pytest.approx(2.71e-8, rel=0.01)
    assert birthday(1_000_000_000, 64) == pytest.approx(0.0267, rel=0.01)
    assert birthday(5_056_937_541, 64) == pytest.approx(0.5, rel=0.01)
    assert birthday(23, 8) > 0.5 and birthday(10**30, None) == 0.0
    events = [{"a": 1}, {"a": 2}]
    assert "fnv1a" not in lint(events, Fingerprint(["a"], "fnv1a")).wide_enough
    assert "fnv1a" in lint(events, Fingerprint(["a"], "fnv1a"), expected=1_000_000).wide_enough
    assert lint(events, Fingerprint(["a"], "plain"), expected=10**18).wide_enough == ["plain", "sha1"]


def test_the_command_says_no_by_its_exit_code() -> None:
    done = command(csv_file(), "--fields", ",".join(LOCAL), "--null", "NA")
    assert done.exit_code == 1, done.output
    assert "3 of 3 fingerprints that different events share" in done.output
    assert "2013-11-03T05:00:00Z" in done.output
    assert "year never varies here" in done.output
    clean = command(csv_file(), "--fields", "origin", "--timestamp", "time_hour", "--algorithm", "fnv1a")
    assert clean.exit_code == 0, clean.output
    assert "64 bits and 1,000,000,000 events: one collision of the hash with p = 2.7e-02: too likely" in clean.output


def test_the_command_writes_json_for_programs(tmp_path: Path) -> None:
    events = [{"id": n, "uuid": f"ü{n}", "v": {"x": 1}} for n in range(10)] + [
        {"id": 1, "uuid": "again", "v": {"x": 1}}
    ]
    done = command(written(tmp_path / "s.jsonl", events), "--fields", "id", "--fields", "v.x", "--json")
    record = json.loads(done.output)
    assert done.exit_code == 1
    assert record["fingerprint"]["fields"] == ["id", "v.x"]
    assert (record["events"], record["lost"], record["pseudoUnique"]) == (11, 1, ["uuid"])
    assert record["examples"][0]["differing"] == {"uuid": ["ü1", "again"]}
    assert record["neverVarying"] == ["v.x"] and record["width"]["bits"] == 128


def test_the_command_shows_resends_left_out_fields_and_refusals(tmp_path: Path) -> None:
    events = [{"id": n // 2, "got": 1_000 + 60 * n} for n in range(10)] + [{"got": 5}]
    file = written(tmp_path / "s.jsonl", events)
    assert command(file, "--fields", "id").exit_code == 1
    done = command(file, "--fields", "id", "--times", "got")
    assert done.exit_code == 0, done.output
    assert "no field 'id' in this event; it has: got" in done.output
    assert "longest time between two events of one fingerprint: 60 s; expire later" in done.output
    assert command(file, "--without", "got").exit_code == 0


@pytest.mark.parametrize(
    ("name", "text", "told"),
    [
        ("s.csv", "a,b\n1,2\n1\n", "line 3: 1 values under 2 columns"),
        ("s.csv", "a,a\n1,2\n", "names a column twice: a"),
        ("s.jsonl", '{"a": 1}\nno\n', "line 2: not JSON"),
        ("s.jsonl", "[1]\n", "line 1: list, not an object"),
        ("s.jsonl", '{"a": ' + "[" * 100_000 + "\n", "line 1: not JSON (maximum recursion depth"),
        ("s.csv", "a,b\n1," + "x" * 200_000 + "\n", "field larger than field limit (131072); write JSON lines"),
        ("s.jsonl", '{"b": 1}\n', "none of 1 events has a fingerprint"),
    ],
)
def test_a_wrong_file_is_told_with_its_line(tmp_path: Path, name: str, text: str, told: str) -> None:
    file = tmp_path / name
    file.write_text(text)
    done = command(file, "--fields", "a")
    assert done.exit_code == 2
    assert told in done.stderr and "Traceback" not in done.stderr


def test_texts_are_shown_as_they_are(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    file = tmp_path / "s.jsonl"
    file.write_bytes(b'{"a": 1,\r"b": "[/red]"}\n{"a": 1, "b": "[bold]x"}\n{"[/c]": 1}\n')
    done = command(file, "--fields", "a")
    assert (done.exit_code, done.exception.__class__) == (1, SystemExit)
    assert 'b: "[/red]" / "[bold]x"' in done.output and "it has: [/c]" in done.output


def test_wrong_settings_and_unreadable_files_are_told(tmp_path: Path) -> None:
    assert "cannot read" in command(tmp_path / "none.csv").stderr
    (tmp_path / "latin.csv").write_bytes(b"a\n\xff\n")
    assert "is not UTF-8" in command(tmp_path / "latin.csv").stderr
    done = command(csv_file(), "--fields", "origin", "--without", "origin")
    assert (done.exit_code, "left out of it: origin" in done.stderr) == (2, True)


def test_csv_values_are_text_and_the_chosen_ones_null(tmp_path: Path) -> None:
    file = tmp_path / "s.CSV"
    file.write_text('\ufeffa,b\n1,"x\ny"\n\nNA,\n')
    assert list(read(file)) == [{"a": "1", "b": "x\ny"}, {"a": "NA", "b": None}]
    assert list(read(file, ("", "NA"))) == [{"a": "1", "b": "x\ny"}, {"a": None, "b": None}]
