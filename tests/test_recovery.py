"""How a store may stand to a checkpoint: each row of the table, what it does, and that nothing is without a row."""

from __future__ import annotations

import itertools
import pickle
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trident_py.engine.recovery import Agreement, agree, check_spouts
from trident_py.engine.store_position import ABANDON, ACCEPT, BASE, CheckpointState, Seeded, StorePosition
from trident_py.errors import DefinitionError, LineageError
from trident_py.model.context import with_context
from trident_py.state import Remembered

ROOT = Path(__file__).parent.parent
JOINED = {"s": ["", 0, 0, False]}


def store(lineage: str = "mine", written: int = 5, **more: Any) -> Remembered:
    return Remembered("table 't'", lineage, written, **{"last": written, **more})


def standing(committed: int = 5, states: Mapping | None = JOINED, **more: Any) -> CheckpointState:
    record = {"base": 0, "topology": more.pop("wrote", "t"), "spouts": {"lines": "Lines"}, "run": more.pop("run", "")}
    record |= {} if states is None else {"states": states}
    return CheckpointState("/c/t/lines", "t", record, "mine", committed, **more)


SEEDED = Seeded("each words depends on the order of a set: list(set(s)) (words.py:1)", "7")
DRAWN = SEEDED._replace(seed="")
NEW = CheckpointState("/c/t/lines", "t", None, "mine")
KNOWN: list[tuple[StorePosition, CheckpointState, Remembered | None, dict]] = [
    (StorePosition.UNASKED, standing(), None, {}),
    (StorePosition.NEW, NEW, store("", 0), {}),
    (StorePosition.NEW, standing(states={}), store("", 0), {}),
    (StorePosition.NEW, standing(states={}), store("", 0, valued=5), {}),
    (StorePosition.NEW, standing(0, states=None), store("", 0), {}),
    (StorePosition.SAME, standing(), store(), {}),
    (StorePosition.BETWEEN, standing(begun=True), store(written=6, whole=5), {}),
    (StorePosition.BETWEEN, standing(begun=True, seeded=SEEDED), store(written=6, whole=5), {ACCEPT: "s@6:5"}),
    (StorePosition.SAME, standing(begun=True, seeded=SEEDED), store(), {}),
    (StorePosition.REORDERED, standing(begun=True, seeded=SEEDED), store(written=6, whole=5), {}),
    (StorePosition.REORDERED, standing(begun=True, seeded=DRAWN), store(written=6, whole=5), {ACCEPT: "s@5:5"}),
    (StorePosition.JOINED, standing(5, {"s": ["theirs", 3, 5, False]}), store("theirs", 3), {}),
    (StorePosition.CONTINUED, NEW, store("theirs"), {BASE: 7}),
    (StorePosition.CONTINUED, NEW, store("", 0, valued=5), {BASE: 5}),
    (StorePosition.ABANDONED, NEW, store("theirs"), {ABANDON: "theirs"}),
    (StorePosition.ACCEPTED, standing(), store(written=3), {ACCEPT: "s@3:5"}),
    (StorePosition.ACCEPTED, standing(), store("", 0), {ACCEPT: ["r@1:5", "s@0:5"]}),
    (StorePosition.ACCEPTED, standing(states={}), store("theirs", 3), {ACCEPT: "s@3:5"}),
    (StorePosition.ACCEPTED, standing(run="a"), store(run="b"), {ACCEPT: "s@5:5"}),
    (StorePosition.JOINED, standing(5, {"s": ["mine", 3, 5, False, "a", 3]}), store(written=3), {}),
    (StorePosition.LOST, NEW, store("theirs"), {}),
    (StorePosition.LOST, NEW, store("theirs"), {BASE: 4}),
    (StorePosition.LOST, NEW, store("theirs"), {ABANDON: "others"}),
    (StorePosition.LOST, NEW, store("theirs", valued=5), {ABANDON: "theirs"}),
    (StorePosition.UNOWNED, NEW, store("", 0, valued=5), {}),
    (StorePosition.UNOWNED, standing(states={}), store("", 0, valued=6), {}),
    (StorePosition.BEHIND, standing(), store(written=4), {}),
    (StorePosition.BEHIND, standing(), store(written=5, whole=4), {}),
    (StorePosition.BEHIND, standing(), store(written=3), {ACCEPT: "s@2:5"}),
    (StorePosition.BEHIND, standing(), store(written=3), {ACCEPT: ["s@3", "s@3:4"]}),
    (StorePosition.BEHIND, standing(5, {"s": ["mine", 5, 5, False, "a", 5]}), store(written=5, whole=4), {}),
    (StorePosition.BEHIND, standing(states={}), store(written=3), {}),
    (StorePosition.BEHIND, standing(5, {"s": ["theirs", 3, 3, False]}), store(written=3), {}),
    (StorePosition.GONE, standing(), store("", 0), {}),
    (StorePosition.GONE, standing(states=None), store("", 0), {}),
    (StorePosition.GONE, standing(), store("", 0, valued=5), {}),
    (StorePosition.RENAMED, standing(wrote="before"), store("", 0), {}),
    (StorePosition.AHEAD, standing(begun=True), store(written=7), {}),
    (StorePosition.AHEAD, standing(), store(written=6), {}),
    (StorePosition.AHEAD, standing(begun=True), store(written=6, last=7), {}),
    (StorePosition.AHEAD, standing(), store(last=7), {}),
    (StorePosition.SAME, standing(), store(last=6), {}),
    (StorePosition.FOREIGN, standing(), store("theirs"), {}),
    (StorePosition.FOREIGN, standing(5, {"s": ["theirs", 3, 5, False]}), store("theirs", 4), {}),
    (StorePosition.FOREIGN, standing(states={}), store("theirs", 6), {ACCEPT: "s@6:5"}),
    (StorePosition.SAME, standing(run="a"), store(run="a"), {}),
    (StorePosition.SAME, standing(run="a"), store(run=""), {}),
    (StorePosition.SAME, standing(), store(run="b"), {}),
    (StorePosition.SAME, standing(5, {"s": ["mine", 5, 5, False, "b", 5]}, run="a"), store(run="b"), {}),
    (StorePosition.CROSSED, standing(run="a"), store(run="b"), {}),
    (StorePosition.CROSSED, standing(5, {"s": ["mine", 4, 4, False, "b", 4]}, run="a"), store(run="b"), {}),
    (StorePosition.CROSSED, standing(begun=True, run="a"), store(written=6, run="b"), {ACCEPT: "s@5:5"}),
]


def found(where: CheckpointState, each: Remembered | None, conf: dict, deciding: Any = ()) -> Agreement:
    return agree(conf, where, {"s": each}, deciding)


@pytest.mark.parametrize(("relation", "where", "each", "conf"), KNOWN)
def test_every_relation_goes_on_or_is_refused_with_the_ways_on(
    relation: StorePosition, where: CheckpointState, each: Remembered | None, conf: dict
) -> None:
    if relation.value.goes_on:
        assert found(where, each, conf).relations == {"s": relation}
        return
    with pytest.raises(LineageError) as told:
        found(where, each, conf)
    said = str(told.value)
    assert said.startswith("state 's' of topology 't' in table 't'") or "stream" in said
    assert "Choose: (1) " in said and "; (2) " in said and said.endswith("Nothing was changed")
    assert "lineage ''" not in said  # nothing is offered that cannot be taken


@pytest.mark.parametrize(("place", "told"), [("in memory", True), ("/c/t/lines", False)])
def test_a_cluster_without_a_folder_is_told_to_get_one(place: str, told: bool) -> None:
    with pytest.raises(LineageError, match=r"Choose: \(1\) restore the checkpoint that wrote the store") as error:
        found(CheckpointState(place, "t", None, "mine"), store("theirs"), {})
    assert ("give it the same one each time, checkpoints=FOLDER); (2) " in str(error.value)) == told


def test_every_row_of_the_table_is_tried_and_printed() -> None:
    assert {relation for relation, *_ in KNOWN} | {StorePosition.OTHER_SPOUT} == set(StorePosition)
    page = (ROOT / "docs/reliability.md").read_text()
    for each in StorePosition:
        does = "goes on" if each.value.goes_on else "**refused**"
        assert f"| {each.value.case} | {does} | {each.value.action} |" in page


def test_a_state_that_shows_batches_needs_the_decision_for_the_one_between() -> None:
    """An older copy of the checkpoint may have begun the same batch; an opaque spout would emit it otherwise."""
    shown = store(written=6)
    assert found(standing(begun=True, decided=True), shown, {}, ["s"]).relations == {"s": StorePosition.BETWEEN}
    with pytest.raises(LineageError, match="has committed batch 5 and has no decision about it"):
        found(standing(begun=True), shown, {}, ["s"])


def test_states_that_are_not_at_one_txid_do_not_go_on_together_under_a_new_checkpoint() -> None:
    asked = {"a": store("old", 6), "b": store("old", 4)}
    with pytest.raises(LineageError, match="up to 4, other states of this topology have batch 6"):
        agree({BASE: 6}, NEW, asked)
    agreed = agree({BASE: 6, ACCEPT: "b@4:6"}, NEW, asked)
    assert (agreed.txid, list(agreed.relations.values())) == (6, [StorePosition.CONTINUED, StorePosition.ACCEPTED])
    assert agree({BASE: 6}, NEW, {"a": store("old", 6), "b": store("old", 5)}).txid == 6  # one between


def test_all_states_of_one_kind_are_told_at_once_with_one_setting() -> None:
    with pytest.raises(LineageError) as told:
        agree({}, standing(), {"s": store(written=3), "r": store(written=2)})
    assert "The same holds for 'r' (batch 2). " in str(told.value)
    assert f"conf[\"{ACCEPT}\"] = ['s@3:5', 'r@2:5']" in str(told.value)
    agree({ACCEPT: ["s@3:5", "r@2:5"]}, standing(), {"s": store(written=3), "r": store(written=2)})


def test_on_the_command_line_a_setting_is_told_as_it_is_given_there() -> None:
    with pytest.raises(LineageError) as told:
        found(NEW, store("theirs"), with_context({}, command_line=True))
    assert "--set topology.txid.base=5" in str(told.value) and "conf[" not in str(told.value)
    with pytest.raises(LineageError, match=r"--set 'topology.lineage.accept=\[\"s@3:5\", \"r@2:5\"\]'"):
        agree(with_context({}, command_line=True), standing(), {"s": store(written=3), "r": store(written=2)})


def test_abandoning_is_offered_only_where_it_helps() -> None:
    with pytest.raises(LineageError, match=ABANDON):
        found(NEW, store("theirs"), {})
    with pytest.raises(LineageError) as told:
        found(NEW, store("theirs", valued=5), {})
    assert ABANDON not in str(told.value)
    with pytest.raises(LineageError, match="'r'") as told:  # and where it helps all states that are refused
        agree({}, NEW, {"s": store("theirs"), "r": store("theirs", valued=5)})
    assert ABANDON not in str(told.value)


@pytest.mark.parametrize("base", [-1, "five", True, 1.5, "continue"])
def test_a_base_that_is_none_is_refused(base: Any) -> None:
    with pytest.raises(DefinitionError, match="a number, at least 0"):
        found(NEW, store("", 0), {BASE: base})


class TestSpouts:
    def test_a_spout_of_another_class_under_the_same_name_is_refused_until_told(self) -> None:
        with pytest.raises(LineageError, match="as a spout of class Lines left it; the topology has a Words") as told:
            check_spouts({}, standing(), {"lines": "Words"})
        assert f"conf[\"{ACCEPT}\"] = 'lines@5=Words'" in str(told.value)
        check_spouts({ACCEPT: "lines@5=Words"}, standing(), {"lines": "Words"})

    def test_before_the_first_batch_there_is_no_position(self) -> None:
        check_spouts({}, standing(0), {"lines": "Words"})
        check_spouts({}, standing(), {"lines": "Lines"})
        with pytest.raises(LineageError):
            check_spouts({}, standing(0, begun=True), {"lines": "Words"})


NUMBERS = st.integers(0, 4)
LINEAGES = st.sampled_from(["", "mine", "theirs"])


@given(
    new=st.booleans(), committed=NUMBERS, begun=st.booleans(), had=st.sampled_from([None, {}, JOINED]),
    lineage=LINEAGES, written=NUMBERS, lag=st.integers(0, 1), valued=NUMBERS,
)  # fmt: skip
def test_without_a_setting_nothing_goes_on_that_could_lose_or_double_a_batch(
    new: bool, committed: int, begun: bool, had: Any, lineage: str, written: int, lag: int, valued: int
) -> None:
    """Whatever is found: what goes on has the checkpoint's own lineage and txid, or nobody has written it."""
    told = 0 if lineage == "mine" else valued
    each = Remembered("table 't'", lineage, written, max(0, written - lag), written, told)
    where = NEW if new else standing(committed, had, begun=begun)
    try:
        agreed = found(where, each, {})
    except LineageError:
        return
    ahead = (0, 1) if begun else (0,)
    own = lineage == "mine" and not new and written - committed in ahead and each.least >= committed
    unwritten = each.highest == 0 or (not lineage and each.highest <= committed)
    unwritten = unwritten and (new or lineage != "mine")
    assert own or unwritten, agreed.relations


@given(
    new=st.booleans(), committed=NUMBERS, begun=st.booleans(), had=st.sampled_from([None, {}, JOINED]),
    lineage=LINEAGES, written=NUMBERS, valued=NUMBERS,
)  # fmt: skip
def test_a_setting_that_a_refusal_offers_is_taken(
    new: bool, committed: int, begun: bool, had: Any, lineage: str, written: int, valued: int
) -> None:
    each = Remembered("table 't'", lineage, written, None, written, 0 if lineage == "mine" else valued)
    where = NEW if new else standing(committed, had, begun=begun)
    try:
        found(where, each, {})
    except LineageError as error:
        values = each.highest, committed, lineage, f"s@{written}:{committed}"
        for key, value in itertools.product((BASE, ABANDON, ACCEPT), values):
            if f'conf["{key}"] = {value!r}' in str(error):
                moved = NEW if f"move {where.where} away" in str(error) and key == BASE else where
                found(moved, each, {key: value})


def test_what_was_agreed_is_known_to_the_next_start_without_the_setting() -> None:
    told = found(NEW, store("theirs", run="b"), {BASE: 5})
    record = pickle.loads(pickle.dumps(told.record(NEW, {"lines": "Lines"}, {}, "a")))
    assert record["base"] == 5 and record["states"] == {"s": ["theirs", 5, 5, False, "b", 5]}
    again = CheckpointState("/c/t/lines", "t", record, "mine", 5)
    assert found(again, store("theirs"), {}).relations == {"s": StorePosition.JOINED}
    assert found(again, store("mine"), {}).relations == {"s": StorePosition.SAME}
    with pytest.raises(LineageError):
        found(again, store("theirs", 6), {})  # the old checkpoint has gone on meanwhile
