"""A map in a compacted topic after a move: the first start waits for its values, and `import state` brings them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import resumed_words
from click.testing import CliRunner
from compacted_reading import folded
from own_spouts import dump_nodes

from states.kafka import CompactedTopicState
from trident_py import LocalCluster
from trident_py.cli import trident
from trident_py.errors import LineageError, StateError, TopologyError
from trident_py.extras.moving.checkpoint import Moved
from trident_py.extras.moving.sources import DumpSource
from trident_py.extras.moving.state_import import Result, import_values
from trident_py.state import OpaqueValue, StateType
from trident_py.state.roles import opens_values

pytestmark = pytest.mark.servers
STORMS = {"a": 2, "b": 5}
FORMS: dict[StateType, dict[str, Any]] = {
    StateType.NON_TRANSACTIONAL: {"a": 3, "b": 4}, StateType.TRANSACTIONAL: {"a": [6, 3], "b": [7, 4]},
    StateType.OPAQUE: {"a": [6, 3, 2], "b": [7, 4, None]},
}  # fmt: skip


def state_of(kafka: Any, folder: Path, kind: str, key: str | None = "word string") -> CompactedTopicState:
    return CompactedTopicState(kafka.bootstrap, folder.name, key, "count bigint", kind, partitions=2)


def dump(folder: Path, rows: dict[str, Any]) -> Path:
    lines = [json.dumps({"key": key, "value": value}) + "\n" for key, value in rows.items()]
    (folder / "values.jsonl").write_text("".join(lines))
    return folder / "values.jsonl"


def take(folder: Path, rows: dict[str, Any], kind: StateType, target: CompactedTopicState) -> Result:
    source = DumpSource(dump(folder, rows), kind)
    return import_values(source, target.open_values(), Moved(7, 7), None, False, lambda keys: None)


def call(*arguments: str, code: int = 0) -> str:
    done = CliRunner().invoke(trident, arguments)
    assert done.exit_code == code, done.output
    return " ".join(done.output.split())


@pytest.fixture
def moved(kafka: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[CompactedTopicState]:
    """A state whose checkpoint is imported, and whose values are not."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYTHONHASHSEED", "0")
    state = state_of(kafka, tmp_path, "opaque")
    place = {"type": "compacted-topic", "bootstrap": state.bootstrap, "topic": state.topic, "partitions": 2}
    values = {"key": "word string", "value": "count bigint", "kind": "opaque"}
    (tmp_path / "s.yaml").write_text(json.dumps({"states": {"counts": {**place, **values}}}))
    dump_nodes(tmp_path, {resumed_words.STREAM: resumed_words.AFTER})
    target = ("resumed_words:named", "--name", "words")
    told = call("import", "offsets", *target, "--dump", "nodes.jsonl", "--checkpoint", "ck")
    assert told.endswith(f"fills, or `skip` names: {state.topic}")
    yield state


def start() -> None:
    LocalCluster("ck").submitTopology("words", {}, resumed_words.named().build()).awaitTermination(100)


def test_the_first_start_waits_for_the_values(moved: CompactedTopicState, tmp_path: Path) -> None:
    with pytest.raises(TopologyError, match=f"Storm's values are missing in state '{moved.topic}'") as refused:
        start()
    assert isinstance(refused.value.__cause__, LineageError) and moved.stored() == {}
    dump(tmp_path, {word: [2, count, None] for word, count in STORMS.items()})
    source = ("--from", "values.jsonl", "--kind", "opaque", "--checkpoint", "ck")
    for _ in range(2):
        assert "2 keys read, 2 there" in call("import", "state", *source, "--into", "s.yaml:counts")
    start()
    assert folded(moved.bootstrap, moved.topic) == {("a",): 4, ("b",): 7}
    start()  # from now on the marks tell


def test_a_topic_that_is_left_out_begins_as_it_is(moved: CompactedTopicState) -> None:
    call("import", "skip", moved.topic, "--checkpoint", "ck")
    start()
    assert folded(moved.bootstrap, moved.topic) == {("a",): 2, ("b",): 2}


@pytest.mark.parametrize("target", list(StateType), ids=lambda kind: f"into {kind.value}")
@pytest.mark.parametrize("source", list(StateType), ids=lambda kind: kind.value)
def test_every_form_goes_into_every_kind(kafka: Any, source: StateType, target: StateType, tmp_path: Path) -> None:
    state = state_of(kafka, tmp_path, target.value)
    take(tmp_path, FORMS[source], source, state).check("c")
    plain = target is StateType.NON_TRANSACTIONAL
    assert {key[0]: value if plain else value[1] for key, value in state.stored().items()} == {"a": 3, "b": 4}


def test_a_global_aggregate_has_its_own_key_here(kafka: Any, tmp_path: Path) -> None:
    state = state_of(kafka, tmp_path, "opaque", None)
    take(tmp_path, {"$STORM$": [6, 3, 2]}, StateType.OPAQUE, state).check("c")
    assert state.stored() == {("$GLOBAL$",): OpaqueValue(6, 3, 2)}
    with pytest.raises(StateError, match="has one value, that of a global aggregate, and got 2 keys"):
        take(tmp_path, FORMS[StateType.OPAQUE], StateType.OPAQUE, state)


def test_keys_of_others_are_told(kafka: Any, tmp_path: Path) -> None:
    state = state_of(kafka, tmp_path, "opaque")
    take(tmp_path, {"stranger": [1, 1, None]}, StateType.OPAQUE, state).check("c")
    with pytest.raises(StateError, match="holds 3 keys, and Storm's state 2"):
        take(tmp_path, FORMS[StateType.OPAQUE], StateType.OPAQUE, state).check("c")


def test_a_null_is_kept_under_its_txid_and_refused_without_one(kafka: Any, tmp_path: Path) -> None:
    state = state_of(kafka, tmp_path, "opaque")
    take(tmp_path, {"a": [6, None, 2], "b": [7, 4, None]}, StateType.OPAQUE, state).check("c")
    assert state.open_values().get([("a",)]) == [OpaqueValue(6, None, 2)]
    (tmp_path / "other").mkdir()
    with pytest.raises(StateError, match=r"key \['a'\] has the value null, which a compacted topic cannot keep"):
        other = state_of(kafka, tmp_path / "other", "non-transactional")
        take(tmp_path, {"a": None}, StateType.NON_TRANSACTIONAL, other)


def test_rows_by_key_are_no_map() -> None:
    """A topology need not fill them, and they cannot be filled."""
    rows, counts = (
        CompactedTopicState("h:1", "t", "word string", "count bigint", kind) for kind in ("plain", "opaque")
    )
    assert [opens_values(rows), opens_values(counts)] == [False, True]
