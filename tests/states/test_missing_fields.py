"""A field that a state needs and the stream lacks is told where the topology is defined, for every type of state."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, get_args, get_type_hints

import pytest

from states.loading.settings import NamesFields, find_types
from states.rows import RowUpdater
from states.sql import SqlMapState, SqlQuery
from trident_py import Fields, TridentTopology
from trident_py.errors import DefinitionError
from trident_py.extras.gateway.processed import ProcessedState
from trident_py.extras.redis.rows import FieldMapper, RedisState, RedisStateQuerier, RedisStateUpdater
from trident_py.operations.builtin import Count, MapGet, SnapshotGet
from trident_py.state import StateFactory
from trident_py.state.updaters import MapCombinerAggStateUpdater
from trident_py.testing import FixedBatchSpout
from trident_py.testing.failures import Crashing
from trident_py.topology import Stream
from trident_py.windowing import MakesWindows

SQL = {"url": "sqlite:///never.db", "table": "t"}
KAFKA = {"bootstrap": "localhost:9", "topic": "t"}
REDIS = {"url": "redis://localhost:9/0"}
SETTINGS: dict[str, dict[str, Any]] = {
    "append": SQL,
    "batch": SQL,
    "compacted-topic": {**KAFKA, "key": "word", "value": "n bigint"},
    "file": {"uri": "never"},
    "insert-ignore": {**SQL, "key": "word string"},
    "redis": {**REDIS, "key": "word", "value": "n"},
    "redis-map": {**REDIS, "kind": "opaque"},
    "sequence": {**SQL, "sender": "word string", "sequence": "n bigint"},
    "sql-map": {**SQL, "kind": "opaque", "key": "word string"},
    "topic": KAFKA,
    "transactional-topic": KAFKA,
    "window": SQL,
}
"""What each type needs, with the fields of `stream`."""
BY_POSITION = {("sql-map", "value")}
"""Fields that are not matched by name: the value is what the aggregator returns."""


def stream() -> Stream:
    return TridentTopology().newStream("sentences", FixedBatchSpout(Fields("word string", "n bigint"), 1))


def is_marked(hint: Any) -> bool:
    return any(isinstance(part, NamesFields) or is_marked(part) for part in get_args(hint))


def hints_of(name: str) -> dict[str, Any]:
    """Return the settings of a type that name fields, with their types."""
    model = TYPES[name].settings
    hints = get_type_hints(model, include_extras=True)
    return {setting: hint for setting, hint in hints.items() if is_marked(hint)}


def made(name: str, **more: Any) -> Any:
    model = TYPES[name].settings
    assert model is not None, TYPES[name].problem
    return model(**{**SETTINGS[name], **more}).make()


def define(factory: Any) -> None:
    """Use the state as its type is meant."""
    if isinstance(factory, MakesWindows):
        return
    if factory.own_updater is not None:
        stream().partitionPersist(factory)
    else:
        stream().groupBy("word").persistentAggregate(factory, Count(), "count")


TYPES = find_types()
CASES = [(name, setting) for name in TYPES for setting in hints_of(name) if (name, setting) not in BY_POSITION]


def absent(name: str, setting: str) -> Any:
    """Return the setting with the field ``wrod``: all columns have those of the key, and a key has a second field."""
    given = SETTINGS[name]
    if "list[" not in str(hints_of(name)[setting]):
        return "wrod"
    keys = ("key", "sender", "sequence") if setting in ("columns", "key") else ()
    return [*(given[key] for key in keys if key in given), "wrod bigint"]


def test_every_type_is_here() -> None:
    assert set(SETTINGS) == set(TYPES)
    assert set(TYPES) - {name for name, _ in CASES} == {"redis-map", "window"}  # they name no fields of the tuples


@pytest.mark.parametrize("name", TYPES)
def test_a_state_whose_fields_are_there_is_taken(name: str) -> None:
    define(made(name))


@pytest.mark.parametrize(("name", "setting"), CASES)
def test_a_field_that_is_missing_is_told_at_definition(name: str, setting: str) -> None:
    factory = made(name, **{setting: absent(name, setting)})
    with pytest.raises(DefinitionError) as caught:
        define(factory)
    if factory.own_updater is None:
        assert "grouped by [word], but the key of" in str(caught.value) and "is [word, wrod]" in str(caught.value)
        return
    state = {"redis": "strings", "file": "never"}.get(name, "t")
    assert str(caught.value) == (
        f"{type(factory.own_updater).__name__} of state {state!r} needs the field 'wrod', which stream "
        "'sentences' does not have; it has: [word, n]. Did you mean 'word'?"
    )


URL = SQL["url"]
QUERY = SqlQuery(URL, "SELECT :wrod", "wrod", "x")
MISSING = "needs the field 'wrod', which stream 'sentences' does not have"
KEYED = SqlMapState.opaque(URL, "t", "word string")
TEXTS = RedisState(REDIS["url"])
PLAIN = made("compacted-topic")


def ask(factory: StateFactory, inputs: Any, query: Any) -> Callable[[Stream], Any]:
    return lambda given: given.stateQuery(given.topology.newStaticState(factory), inputs, query, "x")


REFUSED: dict[str, tuple[Callable[[Stream], Any], str]] = {
    "fields that the call leaves out": (
        lambda given: given.partitionPersist(made("append", columns=["word string", "n bigint"]), "n", RowUpdater()),
        r"needs the field 'word', which the input fields \[n\] leave out: add it to them",
    ),
    "a stream with a label": (
        lambda given: given.name("letters").partitionPersist(made("append", columns="wrod string")),
        "which stream 'letters' does not have",
    ),
    "two streams that were merged": (
        lambda given: given.topology.merge(
            given, given.topology.newStream("more", FixedBatchSpout(["word", "n"], 1))
        ).partitionPersist(made("append", columns="wrod string")),
        r"which stream 'sentences \+ more' does not have",
    ),
    "an updater of Redis": (
        lambda given: given.partitionPersist(TEXTS, "n", RedisStateUpdater(FieldMapper("wrod", "n"))), MISSING,
    ),
    "a query of Redis": (ask(TEXTS, "n", RedisStateQuerier(FieldMapper("wrod"))), MISSING),
    "a query of SQL": (ask(QUERY.source, "n", QUERY), MISSING),
    "the status of events": (lambda given: given.partitionPersist(ProcessedState(URL, "wrod")), MISSING),
    "an updater of a map": (
        lambda given: given.partitionPersist(KEYED, "n", MapCombinerAggStateUpdater(Count(), "wrod", "n")), MISSING,
    ),
    "a state that a test makes fail": (
        lambda given: given.partitionPersist(Crashing(made("append", columns="wrod string"), "put", {(1, 0)})), MISSING,
    ),
    "a key of another length": (
        ask(KEYED, ["word", "n"], MapGet()), r"MapGet of state 't' needs one input field for each field of the key "
        r"\[word\], in that order; got \[word, n\]",
    ),
    "one value of a keyed map": (
        ask(KEYED, "n", SnapshotGet()), r"has the key \[word\]; a global aggregate needs key=None",
    ),
    "a global aggregate in a keyed map": (
        lambda given: given.persistentAggregate(KEYED, Count(), "c"), "a global aggregate needs key=None",
    ),
    "a global aggregate in a keyed topic": (
        lambda given: given.persistentAggregate(made("compacted-topic", kind="opaque"), Count(), "c"),
        "a global aggregate needs key=None",
    ),
    "an aggregate in plain rows": (
        lambda given: given.groupBy("word").persistentAggregate(PLAIN, Count(), "c"),
        "a plain compacted topic cannot be updated",
    ),
    "two fields where a map has one": (
        lambda given: given.groupBy(["word", "n"]).persistentAggregate(made("redis-map"), Count(), "c"),
        r"is \[one text without a keyFactory\]",
    ),
}  # fmt: skip


@pytest.mark.parametrize("what", REFUSED)
def test_what_does_not_fit_is_told_at_definition(what: str) -> None:
    call, words = REFUSED[what]
    with pytest.raises(DefinitionError, match=words):
        call(stream())


def test_rows_that_cannot_be_stored_whole_are_told_when_the_topology_is_built() -> None:
    for factory, words in (
        (made("compacted-topic", value="n"), r"takes rows of \(word, n\), got the fields \[word, n, more\]"),
        (made("file"), "the fields more have no type, and parquet files need one"),
    ):
        given = stream().each("n", lambda n: n, "more")
        given.partitionPersist(factory)
        with pytest.raises(DefinitionError, match=words) as caught:
            given.topology.build()
        assert caught.value.node == 2


class Adding(RowUpdater):
    """An updater of a user, which may store other rows than it gets."""


class Own(StateFactory):
    """A user's factory, which names no fields."""

    def makeState(self, conf: dict, metrics: Any, partitionIndex: int, numPartitions: int) -> Any:
        raise NotImplementedError


def test_what_a_user_has_written_is_taken() -> None:
    stream().partitionPersist(made("append", columns="wrod string"), "n", Adding())
    stream().partitionPersist(Own(), "n", RowUpdater())
    stream().groupBy(["word", "n"]).persistentAggregate(Own(), Count(), "count")
