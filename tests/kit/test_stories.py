"""Stories: one run, step by step. And what the kit does around its drivers."""

from __future__ import annotations

from typing import Any

import pytest

from trident_py import DefinitionError
from trident_py.testing.faults import Story
from trident_py.testing.faults.feed import Feed, choose, from_text, select_all, shrink, to_text

from . import wordcount
from .wordcount import FIELDS


def test_a_story_of_a_crash_and_a_lost_commit() -> None:
    with Story(wordcount.build, FIELDS) as story:
        story.feed([("a",), ("b",)]).run()
        story.feed([("a",)]).crash_at("committed", "counts").run()
        story.run().expect("counts", {("a",): 2, ("b",): 1})
        assert story.contents("counts")["a",].txid == 2
        story.lose_last_commit().run().expect("counts", {("a",): 2, ("b",): 1})
        with pytest.raises(AssertionError, match=r"counts: 1 values differ\n  \('a',\): expected 3, found 2"):
            story.expect("counts", {("a",): 3, ("b",): 1})


@pytest.mark.parametrize(("build", "expected"), [(wordcount.opaque, 1), (wordcount.build, 3)])
def test_a_replay_with_other_content_counts_once_in_an_opaque_state_only(build: Any, expected: int) -> None:
    with Story(build, FIELDS, kind="opaque") as story:
        story.feed([("a",), ("a",), ("a",)]).crash_at("committed", partition=0).run()
        story.replay_with([("a",)]).run().expect("counts", {("a",): expected})


def test_a_crash_that_does_not_come_and_a_run_that_fails_are_told() -> None:
    def fails(spout: Any, store: str) -> Any:
        raise DefinitionError("no topology today")

    with Story(wordcount.build, FIELDS) as story:
        with pytest.raises(AssertionError, match="start 1 did not come to step committed of other, batch 1"):
            story.feed([("a",)]).crash_at("committed", "other").run()
        with pytest.raises(DefinitionError, match=r"nothing is known of 'other'; .*\['counts'\]"):
            story.contents("other")
        with pytest.raises(DefinitionError, match="a transactional spout replays the same batch"):
            story.replay_with([])
    with Story(fails) as story, pytest.raises(AssertionError, match="start 1 failed: no topology today"):
        story.run()


def test_a_selection_is_its_text_and_shrinks_to_what_fails() -> None:
    feed = Feed.of({"clicks/1": [[{"n": 1}, {"n": 2}], [{"n": 3}]], "views": [[{"n": 4}]]}, None, "transactional")
    everything = select_all(feed)
    assert to_text(everything) == "1:clicks%2F1.0,clicks%2F1.1,views.0+2:clicks%2F1.0"
    assert from_text(to_text(everything)) == everything
    assert choose(feed, everything) == Feed(feed.fields, (
        ("clicks/1", (((1,), (2,)), ((3,),))), ("views", (((4,),), ()))), "transactional", False)  # fmt: skip

    def fails(selection: Any) -> bool:
        return any((2, place) == (n, ("clicks/1", 0)) for n, rows in selection for place in rows)

    assert to_text(shrink(everything, fails)) == "2:clicks%2F1.0"
    with pytest.raises(DefinitionError, match="names rows that the test does not feed"):
        choose(feed, from_text("1:views.7"))
    with pytest.raises(DefinitionError, match="expected batches as"):
        from_text("x")


def test_fields_of_dicts_have_the_types_of_their_values() -> None:
    feed = Feed.of([[{"a": 1, "b": "x"}], [{"a": None, "b": 2}]], None, "opaque")
    fields = feed.fields[0][1]
    assert (list(fields), dict(fields.types)) == (["a", "b"], {"a": "bigint"})
    with pytest.raises(DefinitionError, match="rows that are no dicts need fields"):
        Feed.of([[(1,)]], None, "opaque")
    with pytest.raises(DefinitionError, match="has 2 values for the fields"):
        Feed.of([[(1, 2)]], "a", "opaque")
