"""Different names never make one: components, the places of spouts' metadata. Nor do two classes share a name."""

from __future__ import annotations

import ast
import re
from collections import Counter
from functools import cache
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from syntax import nodes, tree

from trident_py import Fields, LocalCluster, TridentTopology
from trident_py.engine.program import compile_plan
from trident_py.model.names import join_names
from trident_py.spouts.opaque_offsets import partition_path
from trident_py.testing import FixedBatchSpout, collect

ROOT = Path(__file__).parent.parent
PARTS = st.sampled_from(["a", "b", "+", "/", "%", "25", "2B", "2F", "/user/"])
NAMES = st.lists(PARTS, min_size=1, max_size=5).map("".join)


@given(st.lists(NAMES, min_size=1, max_size=4), st.lists(NAMES, min_size=1, max_size=4), st.sampled_from("+/"))
def test_other_names_make_another_one(one: list[str], other: list[str], separator: str) -> None:
    assert (join_names(separator, one) == join_names(separator, other)) == (one == other)


@given(NAMES, NAMES, NAMES, NAMES)
@example("a", "b/user/c", "a/user/b", "c")
def test_other_spouts_and_partitions_have_another_place(spout: str, part: str, other: str, of_other: str) -> None:
    same = (spout, part) == (other, of_other)
    assert (partition_path(spout, part) == partition_path(other, of_other)) == same
    if spout != other:
        assert not partition_path(other, of_other).startswith(partition_path(spout, ""))


def test_usual_names_stay_as_they_are() -> None:
    assert join_names("+", ["a b", "c/d-e.f_é"]) == "a b+c/d-e.f_é"
    assert partition_path("a b", "c/d") == "a b/user/c/d"


@pytest.mark.parametrize("kept", [False, True])
def test_merged_streams_run_beside_one_that_is_called_like_both(tmp_path: Path, kept: bool) -> None:
    topology = TridentTopology()
    a, b, both = (topology.newStream(name, FixedBatchSpout(Fields("n bigint"), 1, (1,), (2,))) for name in
                  ("a", "b", "a+b"))  # fmt: skip
    collect(topology.merge(a, b), "merged")
    collect(both, "beside")
    built = topology.build()
    assert [program.component for program in compile_plan(built.plan, {})] == ["a+b", "a%2Bb"]
    for run in range(2 if kept else 1):
        with LocalCluster(str(tmp_path) if kept else None) as cluster:
            running = cluster.submitTopology("t", {}, built)
            assert running.awaitTermination(60)
        merged, beside = running.collected("merged"), running.collected("beside")
        assert (sum(map(len, merged.values())), sum(map(len, beside.values()))) == ((4, 2) if run == 0 else (0, 0))


def test_no_two_public_classes_share_a_name() -> None:
    files = [path for package in ("trident_py", "states") for path in (ROOT / package).rglob("*.py")]
    classes = Counter(
        node.name for path in files for node in tree(path).body if isinstance(node, ast.ClassDef)
    )
    twice = {name for name, count in classes.items() if count > 1 and not name.startswith("_")}
    assert twice == set()


# Modules that end in -ing and are terms of the field, or of Storm.
TERMS = {
    "backing", "failing", "lowering", "ordering", "partitioning", "pickling", "recording", "spark_listing",
}  # fmt: skip
# What modules were called before they were named after a term of the field.
NO_MODULES = {
    "agreement", "asking", "blame", "calls_apart", "channel", "codes", "comparing", "converting", "deciding", "driving",
    "feeding", "following", "holding", "home", "inline", "kinds", "leftovers", "letters", "needs", "neighbour",
    "nursery", "opening", "orders", "patience", "placement", "place", "places", "placing", "settling", "shipping",
    "spread", "standing", "steps", "story", "texts", "travelling", "tripwire", "watch", "ways", "worker_memory",
}  # fmt: skip
# Household words, by which nobody knows what a function does.
NO_FUNCTIONS = {"comes", "patiently", "until_there", "way", "ways"}
# Participles that end in neither -ed nor -ing, apart from those that are imperatives too, such as "read" and "set".
PARTICIPLES = {
    "begun", "bound", "broken", "brought", "built", "chosen", "done", "drawn", "found", "given", "gone", "held",
    "hidden", "kept", "known", "left", "lost", "made", "meant", "met", "paid", "seen", "sent", "shown", "spent",
    "stood", "stuck", "taken", "told", "understood", "written",
}  # fmt: skip
# Verbs that only look like participles.
VERBS = {"feed", "need", "seed"}
# What keeps such a name, and why.
NAMES_KEPT = {
    "chainedAgg": "Storm's", "mixed": "Storm's, of JoinType", "slidingWindow": "Storm's", "tumblingWindow": "Storm's",
    "sharedWithTasks": "spouts implement it",
    "remembered": "participants of states implement it",
    "stored": "states implement it, and tests call it", "held": "as `stored`: the waiting rows of a sequence",
    "collected": "tests call it", "collected_by_partition": "tests call it", "failing": "tests call it",
    **dict.fromkeys((
        "ceiling", "ceilingEntry", "ceilingKey", "checked", "comparing", "descending", "descendingMap", "joining",
        "counting", "summing", "summing_doubles", "averaging", "mapping", "grouping_by",
        "partitioning_by", "reducing", "collecting_and_then", "lookingAt", "sorted", "substring", "trailing_zeros",
    ), "Java's, of its collections, streams and texts"),
    **dict.fromkeys(("string_literal", "parenthesized", "enhanced_for", "labeled", "synchronized"),
        "a node of Java's grammar"),
    "consumed": "states call it", "vectorized": "decorates users' functions",
    "processed": "the status of an event that a claim store sets", "produced": "the status of an event, as `processed`",
}  # fmt: skip
NO_VERB = {
    "A", "About", "After", "All", "An", "And", "Any", "As", "At", "Because", "Before", "By", "Each", "Every",
    "Everything", "For", "From", "How", "If", "In", "Inside", "Its", "No", "Nobody", "Of", "On", "One", "Only", "Our",
    "So", "Some", "That", "The", "Their", "These", "This", "Those", "Two", "What", "Whatever", "When", "Where",
    "Whether", "Which", "Who", "Why", "With", "Without",
}  # fmt: skip
VERBS_IN_S = {"Access", "Address", "Discuss", "Pass", "Process"}
SOURCES = sorted(path for package in ("trident_py", "states") for path in (ROOT / package).rglob("*.py"))


@cache
def functions() -> list[tuple[str, ast.FunctionDef | ast.AsyncFunctionDef]]:
    return [
        (f"{path.relative_to(ROOT)}:{node.lineno}", node)
        for path in SOURCES
        for node in nodes(path)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    ]


def test_modules_are_nouns_of_the_field() -> None:
    modules = {path.stem for path in SOURCES}
    assert {name for name in modules if name.endswith("ing")} == TERMS
    assert modules & NO_MODULES == set()


def test_functions_are_named_after_what_they_do() -> None:
    named = [(where, node) for where, node in functions() if node.name.strip("_") in NO_FUNCTIONS]
    assert [each for each in named if "property" not in map(ast.unparse, each[1].decorator_list)] == []


def begins_with_a_participle(name: str) -> bool:
    word = re.match("[A-Z]?[a-z]*", name.lstrip("_"))[0].lower()  # type: ignore[index]
    return word in PARTICIPLES or (word.endswith(("ed", "ing")) and word not in VERBS)


def test_functions_do_not_begin_with_a_participle() -> None:
    """Those of properties and contexts may: they read as adjectives."""
    participles = {
        node.name: where
        for where, node in functions()
        if begins_with_a_participle(node.name) and not node.name.startswith("__")
        if not any("property" in (kind := ast.unparse(each)) or "context" in kind for each in node.decorator_list)
    }
    assert {name: where for name, where in participles.items() if name not in NAMES_KEPT} == {}
    assert NAMES_KEPT.keys() - participles.keys() == set()


def begins_with_a_verb(docstring: str) -> bool:
    """Not with another kind of word, nor with a verb in the third person. "Called when ..." tells who calls a hook."""
    word = docstring.split()[0].rstrip(".,:;")
    return (
        word.replace("-", "").isalpha()
        and word[0].isupper()
        and word not in NO_VERB
        and (not word.endswith("s") or word in VERBS_IN_S)
    )


def test_docstrings_of_functions_begin_with_a_verb() -> None:
    """Those of properties and contexts are nouns, or say what holds inside."""
    wrong = [
        f"{where} {text.splitlines()[0]}"
        for where, node in functions()
        if (text := ast.get_docstring(node)) and not begins_with_a_verb(text)
        if not any("property" in (kind := ast.unparse(each)) or "context" in kind for each in node.decorator_list)
    ]
    assert wrong == []
