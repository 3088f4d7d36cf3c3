"""What counts as poison, what does not, and what a topology must have for it."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import pytest

from states.files import FileState
from states.sql import AppendState, BatchState, InsertIgnoreState, RowUpdater
from trident_py import DefinitionError, FailedException, Fields, LocalCluster, TopologyError, TridentTopology
from trident_py.checkpoints.metadata_store import MemoryMetadataStore
from trident_py.engine.processors import LETTER, Excluded
from trident_py.engine.program import compile_plan
from trident_py.extras.poison.bisection import Poison, Span, halves, size
from trident_py.operations import BaseAggregator
from trident_py.operations.builtin import Count, Sum
from trident_py.spouts import IBatchSpout, IOpaquePartitionedTridentSpout
from trident_py.state import QueryFunction
from trident_py.testing import Crashing, FixedBatchSpout, MemoryMapState, stored

from .support import Healthy, Row, Rows, build, factory, found, letters, table

ON = {"topology.poison": "bisect", "topology.poison.attempts": 2}


@pytest.fixture
def cluster() -> Iterator[Any]:
    with LocalCluster() as cluster:
        yield cluster


class Words:
    """A count of words with dead letters. ``check`` is the function that may fail, and is called for each tuple."""

    def __init__(self, folder: Path, check: Any, spout: Any = None) -> None:
        topology = TridentTopology()
        spout = spout or FixedBatchSpout("word", 4, *([word] for word in ("a", "bad", "b", "a", "c", "a")))
        words = topology.newStream("words", spout)
        self.counts = MemoryMapState.Factory()
        checked = words.map(lambda tuple: (check(tuple[0]),), Fields("checked"))
        checked.groupBy("checked").persistentAggregate(self.counts, Count(), "count")
        self.file = folder / "letters.db"
        words.deadLetters().partitionPersist(AppendState(f"sqlite:///{self.file}", "letters"))
        self.topology = topology.build()

    @property
    def found(self) -> dict[Any, Any]:
        return {key[0]: value.curr for key, value in stored(self.counts).items()}

    @property
    def letters(self) -> list[tuple]:
        text = 'SELECT txid, "index", tuple, operation, error FROM letters ORDER BY txid, "index"'
        return table(self.file, text)


def not_bad(word: Any) -> Any:
    if word == "bad":
        raise ValueError("bad word")
    return word


def run(cluster: Any, topology: Any, conf: dict | None = None) -> Any:
    running = cluster.submitTopology("words", ON if conf is None else conf, topology)
    running.awaitTermination(30)
    return running


def fails(cluster: Any, topology: Any, conf: dict | None = None) -> str:
    running = cluster.submitTopology("words", ON if conf is None else conf, topology)
    with pytest.raises(TopologyError) as caught:
        running.awaitTermination(30)
    assert [each.dead_letters for each in running.progress.values()] == [0]
    assert [event for event in running.events if event.kind == "poison"] == []
    return str(caught.value)


# -- found --------------------------------------------------------------------------------------------------------


def test_the_tuple_is_named_and_the_rest_commits(cluster: Any, tmp_path: Path) -> None:
    words = Words(tmp_path, not_bad)
    running = run(cluster, words.topology)
    assert words.found == {"a": 3, "b": 1, "c": 1}
    assert [(*row[:3], row[4]) for row in words.letters] == [(1, 1, '["bad"]', "ValueError: bad word")]
    (event,) = [event for event in running.events if event.kind == "poison"]
    assert event.txid == 1 and "tuple 1 of partition 0 of spout words" in event.reason
    assert "failed in partition 0: ValueError: bad word" in event.reason
    assert [event.kind for event in running.events].count("replay") == 1
    assert running.progress["words"].dead_letters == 1
    assert running.progress["words"].seconds["check"] > 0


class Nameless:
    def __repr__(self) -> str:
        raise AttributeError("no name")


def test_a_tuple_that_has_no_text_is_excluded_too(cluster: Any, tmp_path: Path) -> None:
    def check(word: Any) -> Any:
        return not_bad(word if isinstance(word, str) else "bad")

    words = Words(tmp_path, check, FixedBatchSpout("word", 3, ["a"], [Nameless()], ["b"], ["a"], [10**5000], ["b"]))
    run(cluster, words.topology)
    assert words.found == {"a": 2, "b": 2}
    shown = ["<Nameless: its text is unknown, as __repr__ raised AttributeError>", "<int: a number of 16,610 bits>"]
    texts = [f'["{text}"]' for text in shown]
    assert [row[2] for row in words.letters] == texts


class Wordless(ValueError):
    def __str__(self) -> str:
        raise AttributeError("no text")


def test_a_tuple_whose_error_has_no_text_is_excluded_too(cluster: Any, tmp_path: Path) -> None:
    def check(word: Any) -> Any:
        if word == "bad":
            raise Wordless
        return word

    words = Words(tmp_path, check)
    run(cluster, words.topology)
    assert words.found == {"a": 3, "b": 1, "c": 1}
    assert [row[4] for row in words.letters] == ["Wordless: its text is unknown, as __str__ raised AttributeError"]


def test_without_the_setting_the_tuple_ends_the_run(cluster: Any, tmp_path: Path) -> None:
    assert "bad word" in fails(cluster, Words(tmp_path, not_bad).topology, {})


def test_an_aggregate_behind_an_exchange_in_the_stage_of_the_state_is_found(cluster: Any, tmp_path: Path) -> None:
    topology = TridentTopology()
    words = topology.newStream("words", FixedBatchSpout(["word", "n"], 4, ["a", 1], ["b", None], ["a", 2], ["c", 3]))
    sums = AppendState(f"sqlite:///{tmp_path}/sums.db", "sums", columns=Fields("word string", "sum bigint"))
    words.groupBy("word").aggregate("n", Total(), "sum").partitionPersist(sums)
    words.deadLetters().partitionPersist(AppendState(f"sqlite:///{tmp_path}/letters.db", "letters"))
    running = run(cluster, topology.build())
    assert sorted(table(tmp_path / "sums.db", "SELECT word, sum FROM sums")) == [("a", 3), ("c", 3)]
    assert [(row[3], row[4]) for row in letters(tmp_path)] == [(1, '["b", null]')]
    assert running.progress["words"].persisted["sums"] == 2


def test_what_json_cannot_hold_is_in_the_letter(cluster: Any, tmp_path: Path) -> None:
    values = [b"\x00", float("nan"), "\ud800", {"b": {1, }, "a": "é"}, None, (1, 2)]
    rows = [[value] for pair in zip(values, "abcdef", strict=True) for value in pair]

    def text(value: Any) -> Any:
        if not (isinstance(value, str) and value in "abcdef"):
            raise ValueError("\ud800 \0 password=hunter2")
        return value

    words = Words(tmp_path, text, FixedBatchSpout("word", 4, *rows))
    run(cluster, words.topology)
    assert [row[2] for row in words.letters] == [
        '["b\'\\\\x00\'"]', '["nan"]', '["\\ud800"]', '[{"a": "é", "b": "{1}"}]', "[null]", "[[1, 2]]"
    ]  # fmt: skip
    assert all(json.loads(row[2]) for row in words.letters)
    assert {row[4] for row in words.letters} == {"ValueError: \\ud800 \\0 password=***"}


def test_spouts_that_meet_in_a_join_each_have_their_letters(cluster: Any, tmp_path: Path) -> None:
    topology = TridentTopology()
    made, kept = [], AppendState(f"sqlite:///{tmp_path}/pairs.db", "pairs", columns=Fields("key string"))
    for name, bad in (("left", "x"), ("right", "y")):
        spout = FixedBatchSpout("key", 4, *([key] for key in "axbyc"))
        stream = topology.newStream(name, spout)
        state = BatchState(f"sqlite:///{tmp_path}/{name}.db", name)
        stream.deadLetters().partitionPersist(state)
        made.append(stream.map(lambda row, bad=bad: (1 // (row[0] != bad) and row[0],), Fields("key")))
    topology.join(made[0], "key", made[1], "key", "key").partitionPersist(kept)
    running = run(cluster, topology.build())
    assert sorted(table(tmp_path / "pairs.db", "SELECT key FROM pairs")) == [("a",), ("b",), ("c",)]
    for name, bad in (("left", "x"), ("right", "y")):
        assert table(tmp_path / f"{name}.db", f"SELECT spout, tuple FROM {name}") == [(name, f'["{bad}"]')]
    assert running.progress["left+right"].dead_letters == 2


def test_halves_lose_and_double_nothing() -> None:
    group = (Span("a", 0, 0, 3), Span("a", 1, 5, 6), Span("b", 0, 2, 7))
    todo, singles = [group], []
    while todo:
        part = todo.pop()
        singles += part if size(part) == 1 else []
        todo += [] if size(part) == 1 else halves(part)
    everything = [(s.spout, s.partition, index) for s in group for index in range(s.start, s.end)]
    assert sorted(single[:3] for single in singles) == everything


class Total(BaseAggregator):
    """Fails at the end of a group that has no number."""

    def init(self, batchId: Any, collector: Any) -> list:
        return []

    def aggregate(self, val: list, tuple: Any, collector: Any) -> None:
        val.append(tuple[0])

    def complete(self, val: list, collector: Any) -> None:
        collector.emit((sum(val),))


class Apart(BaseAggregator):
    """Fails if a batch has both "a" and "b"."""

    def init(self, batchId: Any, collector: Any) -> list:
        return []

    def aggregate(self, val: list, tuple: Any, collector: Any) -> None:
        val.append(tuple[0])

    def complete(self, val: list, collector: Any) -> None:
        if {"a", "b"} <= set(val):
            raise ValueError("a and b")
        for word in val:
            collector.emit((word,))


# -- no poison ----------------------------------------------------------------------------------------------------


def test_more_failing_tuples_than_the_cap_are_no_poison(cluster: Any, tmp_path: Path) -> None:
    spout = FixedBatchSpout("word", 8, *([word] for word in ["bad"] * 7 + ["a"]))
    words = Words(tmp_path, not_bad, spout)
    error = fails(cluster, words.topology, {**ON, "topology.poison.max.tuples": 6})
    assert "bad word" in error and "more than 6 parts of the batch fail (topology.poison.max.tuples)" in error
    assert (words.found, words.letters) == ({}, [])
    (tmp_path / "more").mkdir()
    words = Words(tmp_path / "more", not_bad, spout)
    run(cluster, words.topology, {**ON, "topology.poison.max.tuples": 7})
    assert words.found == {"a": 1} and len(words.letters) == 7


def test_if_every_tuple_fails_none_is_poison(cluster: Any, tmp_path: Path) -> None:
    words = Words(tmp_path, lambda word: 1 // 0, FixedBatchSpout("word", 3, ["a"], ["b"], ["c"]))
    assert "all 3 tuples fail" in fails(cluster, words.topology)


def test_tuples_that_only_fail_together_are_no_poison(cluster: Any, tmp_path: Path) -> None:
    topology = TridentTopology()
    words = topology.newStream("words", FixedBatchSpout("word", 4, ["a"], ["x"], ["b"], ["y"]))
    kept = AppendState(f"sqlite:///{tmp_path}/kept.db", "kept", columns=Fields("word string"))
    words.global_().aggregate("word", Apart(), "word").partitionPersist(kept)
    words.deadLetters().partitionPersist(AppendState(f"sqlite:///{tmp_path}/letters.db", "letters"))
    assert "4 of its tuples fail together" in fails(cluster, topology.build())
    assert letters(tmp_path) == table(tmp_path / "kept.db", "SELECT word FROM kept") == []


def test_a_failure_in_the_commit_phase_is_no_poison(cluster: Any, tmp_path: Path) -> None:
    class Failing(RowUpdater):
        def updateState(self, state: Any, tuples: Any, collector: Any) -> None:
            if any(values[0] == "bad" for values in tuples):
                raise ValueError("in the updater")

    for number, kind in enumerate((AppendState, BatchState)):
        url, topology = f"sqlite:///{tmp_path}/{number}.db", TridentTopology()
        words = topology.newStream("words", FixedBatchSpout("word", 4, ["a"], ["bad"], ["b"]))
        words.partitionPersist(kind(url, "kept", columns=Fields("word string")), "word", Failing())
        words.deadLetters().partitionPersist(kind(url, "letters", columns=LETTER))
        error = fails(cluster, topology.build())
        assert "in the updater" in error
        assert ("it fails in the commit phase or behind it" in error) == (kind is BatchState)


def test_a_folder_that_goes_back_while_the_tuple_is_looked_for_is_named(cluster: Any, tmp_path: Path) -> None:
    """It is restored as it was after the first batch, in the middle of the third one."""
    rows, copy = tmp_path / "rows", tmp_path / "copy"
    seen: list[Any] = []

    def put_back(word: Any) -> Any:
        seen.append(word)
        if word == "second" and not copy.exists():
            shutil.copytree(rows, copy)
        if word == "bad" and seen.count("bad") == 2:
            shutil.rmtree(rows)
            shutil.copytree(copy, rows)
        return not_bad(word)

    topology = TridentTopology()
    words = topology.newStream("words", FixedBatchSpout("word string", 1, ["first"], ["second"], ["bad"]))
    checked = words.map(lambda tuple: (put_back(tuple[0]),), Fields("checked string"))
    state = FileState(rows, columns=Fields("checked string"))
    checked.partitionPersist(state, Fields("checked"), RowUpdater())
    words.deadLetters().partitionPersist(BatchState(f"sqlite:///{tmp_path}/letters.db", "letters"))
    told = fails(cluster, topology.build())
    assert "gone back while the topology ran: its last complete batch is 1" in told
    assert "topology.poison=bisect was looking for the tuple that makes map " in told


def test_a_request_for_a_replay_is_no_poison(cluster: Any, tmp_path: Path) -> None:
    away = [5]

    def check(word: str) -> str:
        if word == "bad" and away[0]:
            away[0] -= 1
            raise FailedException("the service is away")
        return word

    words = Words(tmp_path, check)
    running = run(cluster, words.topology)
    assert words.found == {"a": 3, "bad": 1, "b": 1, "c": 1} and words.letters == []
    assert [event.kind for event in running.events].count("replay") == 5


LIMITED = {**ON, "topology.max.batch.attempts": 3}


def never_bad(word: str) -> str:
    if word == "bad":
        raise FailedException("the service does not know the word")
    return word


def test_a_request_for_a_replay_is_poison_once_the_batch_has_had_all_its_attempts(
    cluster: Any, tmp_path: Path
) -> None:
    words = Words(tmp_path, never_bad)
    running = run(cluster, words.topology, LIMITED)
    assert words.found == {"a": 3, "b": 1, "c": 1}
    assert [(*row[:3], row[4]) for row in words.letters] == [
        (1, 1, '["bad"]', "FailedException: the service does not know the word")
    ]
    assert [event.kind for event in running.events].count("replay") == 2


def test_a_service_that_is_away_for_all_tuples_makes_none_of_them_poison(cluster: Any, tmp_path: Path) -> None:
    def check(word: str) -> str:
        raise FailedException("the service is away")

    error = fails(cluster, Words(tmp_path, check).topology, LIMITED)
    assert "the service is away" in error and "something that all tuples need has failed" in error


class Asked(QueryFunction):
    def batchRetrieve(self, state: Any, args: Any) -> list[Any]:
        return [never_bad(arg[0]) for arg in args]

    def execute(self, tuple: Any, result: Any, collector: Any) -> None:
        collector.emit([result])


def test_a_replay_that_a_query_asks_for_is_the_stores(cluster: Any, tmp_path: Path) -> None:
    topology = TridentTopology()
    words = topology.newStream("words", FixedBatchSpout("word", 4, ["a"], ["bad"]))
    known = topology.newStaticState(MemoryMapState.Factory())
    asked = words.stateQuery(known, "word", Asked(), "known")
    asked.groupBy("known").persistentAggregate(MemoryMapState.Factory(), Count(), "n")
    words.deadLetters().partitionPersist(AppendState(f"sqlite:///{tmp_path}/letters.db", "letters"))
    error = fails(cluster, topology.build(), LIMITED)
    assert "after 3 attempts" in error and "found no single tuple" not in error


def test_a_failure_that_passes_excludes_nothing(cluster: Any, tmp_path: Path) -> None:
    left = [2]

    def check(word: str) -> str:
        if word == "bad" and left[0]:
            left[0] -= 1
            raise ValueError("once more")
        return word

    words = Words(tmp_path, check)
    run(cluster, words.topology)
    assert words.found == {"a": 3, "bad": 1, "b": 1, "c": 1} and words.letters == []


# -- exactness ----------------------------------------------------------------------------------------------------


class Late:
    """Fails for "bad" once a commit of the first batch has failed."""

    def __init__(self) -> None:
        self.committed = False

    def __call__(self, word: str) -> str:
        if word == "bad" and self.committed:
            raise ValueError("too late")
        return word


def late(folder: Path) -> tuple[Any, Any, Any]:
    """One state commits, the other fails, and only then a tuple turns out to be poison."""
    check, topology = Late(), TridentTopology()
    words = topology.newStream("words", FixedBatchSpout("word", 4, ["a"], ["bad"], ["b"]))
    first, second = MemoryMapState.Factory(), MemoryMapState.Factory()

    def crash(txid: int, attempt: int) -> bool:
        crashes, check.committed = not check.committed, True
        return crashes

    checked = words.map(lambda tuple: (check(tuple[0]),), Fields("checked"))
    checked.groupBy("checked").persistentAggregate(first, Count(), "count")
    checked.groupBy("checked").persistentAggregate(Crashing(second, "commit", crash), Count(), "count")
    words.deadLetters().partitionPersist(AppendState(f"sqlite:///{folder}/letters.db", "letters"))
    return topology.build(), first, second


def test_nothing_is_excluded_once_an_attempt_may_have_committed(cluster: Any, tmp_path: Path) -> None:
    topology, first, _ = late(tmp_path)
    error = fails(cluster, topology)
    assert "too late" in error
    assert "topology.poison=bisect excludes no further tuple of this batch, of which an attempt may have" in error
    assert {key[0]: value.curr for key, value in stored(first).items()} == {"a": 1, "bad": 1, "b": 1}


def test_without_that_rule_the_tuple_would_be_counted_and_be_a_letter(
    cluster: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("trident_py.engine.poison.TAKING_BACK", ("batch", "window", "opaque", "append"))
    topology, first, second = late(tmp_path)
    run(cluster, topology)
    assert {key[0]: value.curr for key, value in stored(first).items()} == {"a": 1, "bad": 1, "b": 1}  # wrong
    assert {key[0]: value.curr for key, value in stored(second).items()} == {"a": 1, "bad": 1, "b": 1}
    assert [row[4] for row in letters(tmp_path)] == ['["bad"]']


@dataclass(frozen=True)
class Changing(IOpaquePartitionedTridentSpout):
    """One batch of these rows. Once a file is there, of ``others``."""

    rows: tuple[Row, ...]
    file: Path
    others: tuple[Row, ...]

    def getOutputFields(self) -> Fields:
        return Rows([]).getOutputFields()

    def getCoordinator(self, conf: dict, context: Any) -> Any:
        return self

    def getEmitter(self, conf: dict, context: Any) -> Any:
        return self

    def isReady(self, txid: int) -> bool:
        return txid == 1

    def isExhaustedAt(self, txid: int) -> bool:
        return txid > 1

    def getPartitionsForBatch(self) -> list[int]:
        return [0]

    def getOrderedPartitions(self, allPartitionInfo: list[int]) -> list[int]:
        return allPartitionInfo

    def emitBatchNew(self, tx: Any, collector: Any, partitions: Any, lastPartitionMeta: dict) -> dict:
        for row in self.others if self.file.exists() else self.rows:
            collector.emit(list(row))
        return {0: 1}

    def close(self) -> None: ...


ONE, TWO, THREE = Row("r1", "a", 1), Row("r2", "b", 2, 1, "first"), Row("r3", "c", 4)
LONGER, SHORTER = (Row("new", "a", 100), ONE, TWO, THREE), (TWO,)
CHANGES = pytest.mark.parametrize("others", [LONGER, SHORTER], ids=["longer", "shorter"])


def changing(folder: Path, kind: str, others: tuple[Row, ...], monkeypatch: pytest.MonkeyPatch) -> Any:
    """The spout changes as soon as the exclusions are decided."""
    rows = (ONE, TWO, THREE)
    fix = Poison.fix

    def fixed(self: Poison, excluded: tuple) -> None:
        fix(self, excluded)
        (folder / "changed").touch()

    monkeypatch.setattr(Poison, "fix", fixed)
    return build(kind, folder, [], Changing(rows, folder / "changed", others))


@CHANGES
def test_if_another_tuple_is_at_its_place_the_run_ends(
    cluster: Any, tmp_path: Path, others: tuple[Row, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    """If there is none at its place, the poison tuple is at another one, and fails first."""
    built = changing(tmp_path, "append", others, monkeypatch)
    running = cluster.submitTopology("t", ON, built.topology)
    with pytest.raises(TopologyError, match="no longer emits tuple 1 of partition 0 as it did"):
        running.awaitTermination(30)
    assert running.progress["rows"].dead_letters == 0 and letters(tmp_path) == []


@CHANGES
def test_states_that_take_back_let_the_new_content_be_bisected(
    cluster: Any, tmp_path: Path, others: tuple[Row, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    built = changing(tmp_path, "batch", others, monkeypatch)
    running = cluster.submitTopology("t", ON, built.topology)
    assert running.awaitTermination(30)
    assert [(row[3], json.loads(row[4])[0]) for row in letters(tmp_path)] == [(others.index(TWO), "r2")]
    ids = table(tmp_path / "batch.db", "SELECT id FROM main ORDER BY id")
    assert ids == [(row.id,) for row in others if row != TWO]


def test_a_tuple_stays_excluded_where_its_partition_is_gone(tmp_path: Path) -> None:
    """One state and the letters have committed. In the next run the spout has one partition, and the function takes the
    tuple: the first state would skip its key, the other one would count it."""
    rows = [[[ONE], [Row("r2", "a", 8, 1, "first")]]]

    def run(parallelism: int, check: Any, crashes: bool) -> bool:
        topology, place = TridentTopology(), (tmp_path, "main")
        stream = topology.newStream("rows", Rows(rows)).parallelismHint(parallelism)
        totals = stream.filter("poison", check).groupBy("word")
        totals.persistentAggregate(factory("sql-transactional", *place), "n", Sum(), "total")
        other = Crashing(MemoryMapState.Factory(), "commit", lambda txid, attempt: crashes)
        totals.persistentAggregate(other, "n", Sum(), "total")
        letters = InsertIgnoreState(f"sqlite:///{tmp_path}/letters.db", "letters", ["txid", "partition", "index"])
        stream.deadLetters().partitionPersist(letters)
        with LocalCluster(tmp_path / "kept") as cluster:
            conf = {**ON, "topology.max.batch.attempts": 1}
            return cluster.submitTopology("t", conf, topology.build()).awaitTermination(30)

    with pytest.raises(TopologyError, match="in partitionPersist"):
        run(2, Healthy("first"), True)
    with pytest.raises(TopologyError, match="tuple 0 of partition 1 of spout 'rows' as poison"):
        run(1, lambda poison: True, False)
    assert run(2, lambda poison: True, False)
    assert found("sql-transactional", tmp_path, "main", None) == {"a": 1}
    assert [row[2:5] for row in letters(tmp_path)] == [(1, 0, '["r2", "a", 8, 1, "first"]')]


def test_states_that_take_back_forget_an_exclusion_whose_partition_is_gone(tmp_path: Path) -> None:
    (program,) = compile_plan(build("batch", tmp_path, [[[ONE]]]).topology.plan, ON)
    poison = Poison(program, MemoryMetadataStore())
    poison.store.put("poison", 1, [asdict(Excluded("rows", 7, 0, "", "", "filter Healthy", 0, ""))])
    poison.begin(1)
    assert poison.fixed is None and poison.store.get("poison", 1) is None


class Rotating(Changing):
    """The rows begin with another one in each attempt."""

    def emitBatchNew(self, tx: Any, collector: Any, partitions: Any, lastPartitionMeta: dict) -> dict:
        first = tx.attemptId % len(self.rows)
        for row in (*self.rows[first:], *self.rows[:first]):
            collector.emit(list(row))
        return {0: 1}


@pytest.mark.parametrize("count", [2, 3, 7])
@pytest.mark.parametrize("kind", ["batch", "append"])
def test_content_that_changes_in_each_attempt_is_told_as_such(
    cluster: Any, tmp_path: Path, kind: str, count: int
) -> None:
    rows = (TWO, *(Row(f"r{n}", "a", n) for n in range(10, 9 + count)))
    built = build(kind, tmp_path, [], Rotating(rows, tmp_path / "never", ()))
    assert "its spout emits other tuples in each attempt" in fails(cluster, built.topology)
    assert letters(tmp_path) == []


def test_with_such_states_alone_a_healthy_batch_runs_once(cluster: Any, tmp_path: Path) -> None:
    built = build("batch", tmp_path, [[[Row("r1", "a", 1)], [Row("r2", "b", 2)]]])
    running = cluster.submitTopology("t", ON, built.topology)
    assert running.awaitTermination(30)
    assert running.attempts == {1: 0}
    (tmp_path / "checked").mkdir()
    checked = build("append", tmp_path / "checked", [[[Row("r1", "a", 1)], [Row("r2", "b", 2)]]])
    running = cluster.submitTopology("t2", ON, checked.topology)
    assert running.awaitTermination(30)
    assert running.attempts == {1: 1}


def test_the_guarantees_say_what_it_costs(tmp_path: Path) -> None:
    checked, taken_back = (build(kind, tmp_path, [[[], []]]).topology for kind in ("append", "batch"))
    assert "every batch first runs dry" in str(checked.guarantees(ON))
    assert "a batch that fails first runs dry" in str(taken_back.guarantees(ON))
    assert "runs dry" not in str(checked.guarantees({}))


# -- refused ------------------------------------------------------------------------------------------------------


class Once(IBatchSpout):
    kind = "non-transactional"

    def getOutputFields(self) -> Fields:
        return Fields("word")

    def open(self, conf: dict, context: Any) -> None: ...

    def emitBatch(self, batchId: int, collector: Any) -> None: ...

    def ack(self, batchId: int) -> None: ...

    def close(self) -> None: ...


def test_letters_that_reach_no_state_are_refused(cluster: Any) -> None:
    topology = TridentTopology()
    stream = topology.newStream("words", FixedBatchSpout("word", 1, ["a"]))
    stream.groupBy("word").persistentAggregate(MemoryMapState.Factory(), Count(), "count")
    stream.deadLetters().filter("txid", lambda txid: True)
    with pytest.raises(DefinitionError, match="the dead letters of spout 'words' reach no state"):
        cluster.submitTopology("words", ON, topology.build())
    cluster.submitTopology("words", {}, topology.build()).awaitTermination(30)


def test_a_spout_without_a_promise_is_refused(cluster: Any, tmp_path: Path) -> None:
    with pytest.raises(DefinitionError, match="does not promise to emit a failed batch again"):
        cluster.submitTopology("words", ON, Words(tmp_path, not_bad, Once()).topology)


@pytest.mark.parametrize(
    ("key", "value"),
    [("topology.poison", "on"), ("topology.poison.attempts", 0), ("topology.poison.max.tuples", "many")],
)
def test_other_values_are_refused(cluster: Any, tmp_path: Path, key: str, value: Any) -> None:
    with pytest.raises(DefinitionError, match=key):
        cluster.submitTopology("words", {key: value}, Words(tmp_path, not_bad).topology)


def test_only_a_spouts_own_stream_has_letters() -> None:
    stream = TridentTopology().newStream("words", FixedBatchSpout("word", 1, ["a"]))
    with pytest.raises(DefinitionError, match="belongs to the stream of a spout"):
        stream.filter("word", bool).deadLetters()
