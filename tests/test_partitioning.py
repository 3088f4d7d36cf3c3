"""Where tuples go."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trident_py import Fields, TridentError
from trident_py.model.chunks import Chunk
from trident_py.model.partitioning import (
    FEW,
    BatchGlobal,
    Broadcast,
    Custom,
    FieldsPartition,
    Global,
    Identity,
    Partitioner,
    Route,
    Shuffle,
    column_hashes,
    java_hash,
)

ROWS = [(i, f"w{i}") for i in range(10)]


def sent(partitioner: Partitioner, rows: list = ROWS, fields: Any = ("n", "w"), **route: int) -> dict[int, list]:
    chunk = Chunk.of_rows(Fields.of(fields), rows)
    made = Route(**{"txid": 1, "source": 0, "sent": 0, "targets": 3, **route})
    own = partitioner.prepare(None, "", made.targets)
    return {target: part.rows(fields) for target, part in own.split(chunk, made)}


# what Java answers: Long, Double, Boolean, String, List.hashCode()
HASHES: list[tuple[Any, int]] = [
    (None, 0), (0, 0), (1, 1), (-1, 0), (2**40, 256), (2**63 - 1, -(2**31)), (1.0, 1072693248), (0.0, 0),
    (-0.0, -(2**31)), (float("nan"), 2146959360), (True, 1231), (False, 1237), ("", 0), ("a", 97), ("storm", 109770985),
    ("é", 233), ("😀", 1772899), ((), 1), ((1, 2), 994), (["a", None], 3968),
]  # fmt: skip


@pytest.mark.parametrize(("value", "expected"), HASHES, ids=lambda value: repr(value))
def test_hashes_are_javas(value: Any, expected: int) -> None:
    assert java_hash(value) == expected % 2**32


NUMBERS: dict[str, Any] = {
    **{kind: st.integers(-(2**bits), 2**bits - 1) for kind, bits in (("tinyint", 7), ("int", 31), ("bigint", 63))},
    **{kind: st.floats(width=width) for kind, width in (("float", 32), ("double", 64))},
    "boolean": st.booleans(),
}


@given(st.sampled_from(sorted(NUMBERS)), st.data(), st.integers(0, 3))
def test_a_column_of_numbers_hashes_as_its_values_do(kind: str, data: Any, start: int) -> None:
    numbers = data.draw(st.lists(st.one_of(NUMBERS[kind], st.none()), min_size=1))
    whole = Chunk.of_rows(Fields(f"n {kind}"), [(number,) for number in numbers])
    chunk = whole.between(min(start, len(numbers) - 1), len(numbers))
    assert column_hashes(chunk, "n").tolist() == [java_hash(number) for number in chunk.pylist("n")]


WORDS = st.one_of(st.text("ab\x00\x7f", max_size=6), st.text(max_size=4), st.just("long" * 20), st.none())


@given(st.one_of(st.lists(st.text("abcde ", max_size=9), min_size=1), st.lists(WORDS, min_size=1)), st.integers(0, 3))
def test_a_column_of_texts_hashes_as_its_values_do(words: list[str | None], start: int) -> None:
    whole = Chunk.of_rows(Fields("w string"), [(word,) for word in words])
    chunk = whole.between(min(start, len(words) - 1), len(words))
    assert column_hashes(chunk, "w").tolist() == [java_hash(word) for word in chunk.pylist("w")]


@pytest.mark.parametrize("value", [2**70, b"x", {"a": 1}, frozenset([1])])
def test_any_other_value_has_a_hash_that_does_not_change(value: Any) -> None:
    assert java_hash(value) == java_hash(value) < 2**32


@given(st.text(st.characters(exclude_categories=()), max_size=20), st.integers(1, 100))
def test_a_text_hashes_as_in_java(part: str, times: int) -> None:
    """Also a long one, which would be drawn too seldom."""
    units = (part * times).encode("utf-16-be", "surrogatepass")
    plain = sum(
        int.from_bytes(units[at : at + 2]) * pow(31, len(units) // 2 - 1 - at // 2, 2**32)
        for at in range(0, len(units), 2)
    )
    assert java_hash(part * times) == plain % 2**32


@pytest.mark.parametrize("fields", [Fields("n", "w"), Fields("n bigint", "w string")])
def test_fields_partition_is_the_same_for_typed_and_untyped_columns(fields: Fields) -> None:
    found = sent(FieldsPartition(Fields("w", "n")), ROWS * 2, fields)
    assert found == sent(FieldsPartition(Fields("w", "n")), ROWS * 2)
    for target, rows in found.items():
        for n, word in rows:
            code = (31 + java_hash(word)) * 31 + n
            assert ((code + 2**31) % 2**32 - 2**31) % 3 == target


ANY = st.one_of(
    st.none(), st.booleans(), st.integers(-(2**70), 2**70), st.floats(), st.text(), st.binary(), st.decimals(),
    st.datetimes(), st.lists(st.integers() | st.text(), max_size=3), st.dictionaries(st.text(), st.floats()),
)  # fmt: skip
TYPED = {
    "bigint": st.integers(-(2**63), 2**63 - 1), "double": st.floats(), "string": st.text(), "boolean": st.booleans(),
    "decimal(10, 2)": st.decimals(-99_999_999, 99_999_999, places=2), "timestamp_ntz": st.datetimes(),
}  # fmt: skip


@given(st.data(), st.integers(2, 7))
def test_few_tuples_go_where_they_go_among_many(data: st.DataObject, targets: int) -> None:
    kind = data.draw(st.sampled_from(["", *TYPED]))
    column = data.draw(st.lists(TYPED[kind] | st.none() if kind else ANY, min_size=1, max_size=FEW))
    by, fields = FieldsPartition(Fields("v", "n")), Fields(f"v {kind}".strip(), "n")
    rows = [(value, number % 3) for number, value in enumerate(column)]
    few = sent(by, rows, fields, targets=targets)
    many = sent(by, rows * (FEW // len(rows) + 1), fields, targets=targets)
    assert {target: {repr(row) for row in found} for target, found in few.items()} == {
        target: {repr(row) for row in found} for target, found in many.items()
    }
    assert [repr(row) for row in few.get(0, [])] == [repr(row) for row in many.get(0, [])[: len(few.get(0, []))]]


def test_s29_equal_looking_values_of_other_types_go_their_own_ways() -> None:
    rows = [(1, ""), (1.0, ""), (True, ""), ("1", "")]
    found = sent(FieldsPartition(Fields("n")), rows * 2, targets=1000)
    assert sorted(len(part) for part in found.values()) == [2, 2, 2, 2]


def test_shuffle_goes_on_where_the_chunk_before_ended() -> None:
    first = sent(Shuffle(), ROWS[:4], source=1)
    second = sent(Shuffle(), ROWS[4:], source=1, sent=4)
    assert sorted(len(first[t]) + len(second[t]) for t in range(3)) == [3, 3, 4]
    assert first[1][0] == ROWS[0]


@pytest.mark.parametrize("fields", [Fields("n", "w"), Fields("n bigint", "w string")], ids=["untyped", "typed"])
@pytest.mark.parametrize("targets", [1, 2, 128, 70_000])
def test_rows_keep_their_order_among_few_targets_and_among_many(fields: Fields, targets: int) -> None:
    rows = [(7919 * i % 500, f"w{i}") for i in range(1000)]
    expected: dict[int, list] = {}
    for row in rows:
        expected.setdefault((31 + row[0]) % targets, []).append(row)
    found = sent(FieldsPartition(Fields("n")), rows, fields, targets=targets)
    assert found == expected and list(found) == sorted(found)


def test_the_others_send_a_chunk_whole() -> None:
    assert sent(Global(), txid=5, source=2) == {0: ROWS}
    assert sent(BatchGlobal(), txid=5, source=0) == {2: ROWS}
    assert sent(Identity(), source=2) == {2: ROWS}
    assert sent(Broadcast()) == {0: ROWS, 1: ROWS, 2: ROWS}


def test_an_empty_chunk_goes_nowhere_by_value() -> None:
    for partitioner in (FieldsPartition(Fields("n")), Shuffle()):
        assert sent(partitioner, []) == {}


def test_a_custom_grouping_says_where_in_the_tasks_that_prepare_was_given() -> None:
    class Grouping:
        def prepare(self, context: Any, stream: Any, targetTasks: list[int]) -> None:
            self.tasks = targetTasks

        def chooseTasks(self, taskId: int, values: Any) -> list[int]:
            return [self.tasks[-1]] if values[0] > 7 else []

    assert sent(Custom(Grouping(), Fields("n", "w"))) == {2: ROWS[8:]}
    assert sent(Custom(lambda values: values.getValueByField("n") + 7, Fields("n", "w")), ROWS[:2]) == {
        1: ROWS[:1],
        2: ROWS[1:2],
    }


def test_a_custom_grouping_must_choose_an_existing_partition() -> None:
    class Beyond:
        def chooseTasks(self, taskId: int, values: Any) -> list[int]:
            return [-1]

    with pytest.raises(TridentError, match="chose partition -1; return a number from 0 to 2"):
        sent(Custom(Beyond(), Fields("n")))


def test_a_custom_grouping_shows_no_secret() -> None:
    class Lookup:
        def __init__(self, password: str) -> None:
            self.password, self.url, self.by = password, f"redis://me:{password}@there/0", 3

        def chooseTasks(self, taskId: int, values: Any) -> list[int]:
            return [-1]

    one, other = (Custom(Lookup(password), Fields("n")) for password in ("s3cret", "s4cret"))
    assert one.name != other.name
    assert one.shown == "partition Lookup(by=3, password=***, url='redis://me:***@there/0')"
    with pytest.raises(TridentError, match="the custom grouping chose partition -1") as found:
        sent(one)
    assert "s3cret" not in str(found.value)
