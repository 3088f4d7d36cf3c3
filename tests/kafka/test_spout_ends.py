"""Where a spout ends, with endingOffsets or with availableNow, while lost data may still come back."""

from __future__ import annotations

import ast
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from spout_support import Player, commit, delete, eventually, produce, values

import trident_py.kafka.coordinator
from trident_py.errors import SpoutError
from trident_py.kafka import KafkaSpout
from trident_py.kafka.topic_metadata import Watch

ENDS: dict[str, dict[str, Any]] = {"endingOffsets": {"endingOffsets": "latest"}, "availableNow": {}}
SOURCES = Path(trident_py.kafka.coordinator.__file__).parent


class Case:
    """Two topics of a broker with six records in the first, and the runs over them on one checkpoint."""

    def __init__(self, kafka: Any, kind: str, end: str) -> None:
        self.kafka, self.end = kafka, end
        self.topic, self.other = kafka.create_topic(), kafka.create_topic()
        self.options: dict[str, Any] = {"kind": kind, "fields": "value", "value": "string", "groupId": self.topic}
        self.options |= ENDS[end]
        self.names: dict[str, Any] = {"topics": [self.topic, self.other]}
        self.players: list[Player] = []
        self.txid = 0
        produce(kafka, self.topic, map(str, range(6)))

    def start(self) -> Player:
        last = self.players[-1] if self.players else None
        kept = {} if last is None else {"store": last.store, "restored": last.logged, "committed": self.txid}
        self.players.append(Player(KafkaSpout(self.kafka.bootstrap, **self.names, **self.options), **kept))
        return self.players[-1]

    def run(self) -> list:
        """What a whole run reads. With availableNow it ends as the clusters end it: not ready, and not pending."""
        return self.go_on(self.start())

    def go_on(self, player: Player) -> list:
        read: list = []
        while not self.is_over(player):
            if player.coordination.ready(self.txid + 1):
                read += values(player.batch(self.txid + 1))
                self.txid += 1
            else:
                time.sleep(0.01)
        return read

    def is_over(self, player: Player) -> bool:
        if self.end == "endingOffsets":
            return bool(player.coordination.is_exhausted(self.txid + 1))
        return not player.coordination.ready(self.txid + 1) and not player.coordination.is_pending()

    @property
    def told(self) -> list[str]:
        return [text for _, text in self.players[-1].reported]


def is_gone(case: Case) -> str:
    case.run()
    delete(case.kafka, case.other)
    return f"topic {case.other} is gone"


def matches_no_more(case: Case) -> str:
    case.names = {"pattern": f"{case.topic}|{case.other}"}
    return is_gone(case)


def is_missing(case: Case) -> str:
    delete(case.kafka, case.other)
    return f"there is no topic {case.other}"


def is_shorter(case: Case) -> str:
    commit(case.kafka, case.topic, {(case.topic, 0): 10})
    return "the log ends at offset 6, but was read up to 10: it was truncated"


FINDINGS: dict[str, list[Callable[[Case], str]]] = {
    "gone": [is_gone, matches_no_more],
    "missing": [is_missing],
    "cut": [is_shorter],
}
ALL = [how for ways in FINDINGS.values() for how in ways]


@pytest.fixture
def case(kafka: Any) -> Iterator[Callable[..., Case]]:
    made: list[Case] = []

    def start(kind: str, end: str) -> Case:
        made.append(Case(kafka, kind, end))
        return made[-1]

    yield start
    for each in made:
        for player in each.players:
            player.close()


def test_each_problem_that_may_pass_has_a_case() -> None:
    """A replay is none: it fails its batch, and so the run does not end."""
    found = set()
    for path in SOURCES.glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if not isinstance(node, ast.Call) or not node.args or not isinstance(node.args[0], ast.JoinedStr):
                continue
            name = ast.unparse(node.func)
            if name.endswith("is_lasting") or (name == "BrokenPromise" and len(node.args) == 3):
                found.add(str(ast.literal_eval(node.args[0].values[0])).split()[0])
    assert found == {*FINDINGS, "replay"}


@pytest.mark.parametrize("end", ENDS)
@pytest.mark.parametrize("lose", ALL)
def test_a_transactional_spout_does_not_end_over_lost_data(case: Any, lose: Callable[[Case], str], end: str) -> None:
    run = case("transactional", end)
    run.names = {"topics": [run.topic]} if lose is is_shorter else run.names
    run.options |= {"firstPollOffsetStrategy": "UNCOMMITTED_EARLIEST"}
    told = lose(run)
    for _ in range(2):
        with pytest.raises(SpoutError, match=told.replace("|", r"\|")):
            run.run()


@pytest.mark.parametrize("end", ENDS)
@pytest.mark.parametrize("lose", [is_gone, matches_no_more])
def test_an_opaque_spout_tells_of_a_topic_that_is_gone_and_reads_on(
    case: Any, lose: Callable[[Case], str], end: str
) -> None:
    run = case("opaque", end)
    told = lose(run)
    assert run.run() == []
    assert [told in text for text in run.told] == [True]
    produce(run.kafka, run.topic, ["x"])
    assert run.run() == ["x"]


@pytest.mark.parametrize("end", ENDS)
def test_an_opaque_spout_tells_of_a_shorter_log_and_skips_nothing_that_is_written_later(case: Any, end: str) -> None:
    run = case("opaque", end)
    run.options |= {"firstPollOffsetStrategy": "UNCOMMITTED_EARLIEST"}
    told = is_shorter(run)
    assert run.run() == []
    assert [told in text for text in run.told] == [True]
    produce(run.kafka, run.topic, ["a", "b", "c"])
    assert run.run() == ["a", "b", "c"]
    produce(run.kafka, run.topic, map(str, range(6)))
    assert run.run() == list(map(str, range(6)))
    assert run.told == []


@pytest.mark.parametrize("over", ENDS)
@pytest.mark.parametrize("kind", ["transactional", "opaque"])
def test_a_log_that_became_shorter_than_at_the_start_of_the_run(
    case: Any, monkeypatch: pytest.MonkeyPatch, kind: str, over: str
) -> None:
    """The first look sees four offsets more than the log has later."""
    run, looks, ends = case(kind, "endingOffsets"), [], Watch.ends

    def longer_at_first(watch: Watch, places: Any) -> Any:
        looks.append(watch)
        return {place: end + 4 * (len(looks) == 1 and end > 0) for place, end in ends(watch, places).items()}

    monkeypatch.setattr(Watch, "ends", longer_at_first)
    player, run.end = run.start(), over
    eventually(lambda: player.coordination.ready(1) and len(looks) > 1)
    assert values(player.batch(1)) == list(map(str, range(6)))
    told, run.txid = "the log ends at offset 6, but ended at 10: it was truncated", 1
    if kind == "opaque":
        assert run.go_on(player) == []
        assert [told in text for text in run.told] == [True]
    else:
        with pytest.raises(SpoutError, match=told):
            run.go_on(player)


@pytest.mark.parametrize("kind", ["transactional", "opaque"])
def test_a_log_that_seems_shorter_for_a_moment_is_read_to_its_end(
    case: Any, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    """The end is fixed once the log is as long as it was."""
    run, looks, ends = case(kind, "endingOffsets"), [], Watch.ends
    assert run.run() == list(map(str, range(6)))
    produce(run.kafka, run.topic, ["x"])

    def shorter_at_first(watch: Watch, places: Any) -> Any:
        looks.append(watch)
        return {place: end - 5 * (len(looks) == 1 and end > 0) for place, end in ends(watch, places).items()}

    monkeypatch.setattr(Watch, "ends", shorter_at_first)
    assert run.run() == ["x"]
    assert run.told == []


def test_what_is_lost_before_the_last_batch_is_told_before_the_spout_ends(case: Any) -> None:
    run = case("transactional", "endingOffsets")
    run.options |= {"maxRecordsPerBatch": 3}
    player = run.start()
    for run.txid in (1, 2):
        eventually(lambda: player.coordination.ready(run.txid))
        assert len(values(player.batch(run.txid))) == 3
        if run.txid == 1:
            delete(run.kafka, run.other)
    with pytest.raises(SpoutError, match=f"topic {run.other} is gone"):
        run.go_on(player)
