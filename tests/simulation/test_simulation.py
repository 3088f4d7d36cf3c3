"""The protocol under steered faults: all schedules of one fault, drawn ones of many, and bugs that must be found."""

from __future__ import annotations

import logging
import multiprocessing
import shlex
from collections.abc import Iterator
from typing import Any

import pytest

from .exhaustive import BOUNDS, explore
from .planted import AIMED, PLANTS, ROOT, SCRIPTS, mutated, seek
from .random import MORE_KINDS, arguments_of, draw, draw_until
from .schedules import MANY, Found, Written, as_text, from_text, replay, shrink, try_schedule
from .specification import CELLS, MORE, OTHER_BEGINNINGS, TAKEN_BACK, TIMED, Cell
from .spouts import Here
from .world import DENIALS

PROMISED = [cell for cell in CELLS if cell.guarantee != "wrong"]
QUICK = [Cell("opaque", "partitioned"), Cell("append", "transactional", True), Cell("batch", "opaque")]
DRAWN, HALVES = 2_500, 2
ONE_FAULT = BOUNDS._replace(faults=1)


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    logging.disable(logging.CRITICAL)
    yield
    logging.disable(logging.NOTSET)


@pytest.mark.parametrize(
    "cell", [pytest.param(cell, marks=[] if cell in QUICK else pytest.mark.whole, id=str(cell)) for cell in PROMISED]
)
def test_every_schedule_of_one_fault(cell: Cell) -> None:
    explored = explore(cell, ONE_FAULT)
    assert explored.found is None, str(explored.found)
    assert explored.done and explored.schedules > 150
    print(explored)


def test_what_is_left_out_leads_to_the_same_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Here, "positions", 4)
    cell = Cell("append", "transactional", True)
    less, all_of_them = (explore(cell, ONE_FAULT._replace(reduced=reduced)) for reduced in (True, False))
    assert less.ends == all_of_them.ends and less.schedules < all_of_them.schedules / 3


@pytest.mark.whole("test_drawn_schedules_of_many_faults_keep_every_promise")
@pytest.mark.parametrize("cell", MORE, ids=str)
def test_every_schedule_of_one_fault_of_two_states_and_of_batches_without_tuples(cell: Cell) -> None:
    explored = explore(cell, ONE_FAULT._replace(kinds=BOUNDS.kinds | MORE_KINDS))
    assert explored.found is None, str(explored.found)
    assert explored.done


@pytest.mark.whole("test_what_is_aimed_at_a_rule_keeps_every_promise")
@pytest.mark.parametrize("cell", TIMED, ids=str)
def test_every_schedule_of_one_fault_of_windows_by_time(cell: Cell) -> None:
    explored = explore(cell, ONE_FAULT._replace(kinds=BOUNDS.kinds | {"jump"}))
    assert explored.found is None, str(explored.found)
    assert explored.done


@pytest.mark.parametrize("cell", [TAKEN_BACK[0], *(pytest.param(it, marks=pytest.mark.whole) for it in TAKEN_BACK[1:])])
def test_a_log_that_is_taken_back_gives_a_restored_store_what_it_lacks(cell: Cell) -> None:
    """Whatever fails: the user types the command until it is done, and starts."""
    explored = explore(cell, BOUNDS._replace(faults=1))
    assert explored.found is None, str(explored.found)
    assert explored.done


@pytest.mark.parametrize("cell", OTHER_BEGINNINGS, ids=str)
def test_a_start_goes_on_or_is_refused_as_its_places_demand(cell: Cell) -> None:
    explored = explore(cell, BOUNDS._replace(faults=0))
    assert explored.found is None, str(explored.found)


def test_what_is_aimed_at_a_rule_keeps_every_promise() -> None:
    for cell, lines in SCRIPTS:
        chosen = Written(lines)
        world = try_schedule(Cell(*cell), chosen, MANY._replace(kinds=MANY.kinds | DENIALS))
        assert world.violation is None, str(world.violation)
        assert chosen.at >= len(lines) - 1  # the product may refuse the start before the last one
    for cell, kinds, faults in AIMED:
        explored = explore(Cell(*cell), BOUNDS._replace(faults=faults, kinds=frozenset(kinds)), 100)
        assert explored.found is None, str(explored.found)


@pytest.mark.parametrize("first", [0, pytest.param(1, marks=pytest.mark.whole)])
def test_drawn_schedules_of_many_faults_keep_every_promise(first: int) -> None:
    """In halves, of which `make test` runs one."""
    count, different, found = draw_until(seed=1, first=first, step=HALVES, most=DRAWN // HALVES, until=None)
    assert found is None, str(found)
    print(f"{count} schedules, {len(different)} different")


@pytest.mark.parametrize("cell", [cell for cell in CELLS if cell.guarantee == "wrong" and cell.recording], ids=str)
def test_what_the_table_calls_wrong_is_found_wrong(cell: Cell, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Cell, "guarantee", "exactly once")
    found = explore(cell, BOUNDS._replace(kinds=frozenset(["lost", "other"]))).found
    assert found is not None
    attempts = [option for *_, option in replay(cell, found.choices, found.bounds)[1].taken]
    assert [kind for kind, _ in attempts] == ["lost", "other"]  # the next attempt has other tuples


@pytest.mark.whole("test_every_schedule_of_one_fault", "test_drawn_schedules_of_many_faults_keep_every_promise")
def test_a_decided_batch_stays_as_it_was_decided() -> None:
    """A driver dies, and the spout would describe the batch otherwise after the restart."""
    explored = explore(Cell("batch", "opaque"), BOUNDS._replace(kinds=frozenset(["die", "other"])))
    assert explored.found is None, str(explored.found)
    assert explored.done


def test_of_two_starts_at_once_the_older_one_hears_of_the_newer_one() -> None:
    """It does not get choices for stores that the newer one has written meanwhile."""
    explored = explore(Cell("opaque", "opaque", True), BOUNDS._replace(kinds=frozenset(["start", "wake"])), 300)
    assert explored.found is None, str(explored.found)


def test_a_schedule_is_repeated_exactly_and_shrunk(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Cell, "guarantee", "exactly once")
    cell = Cell("append", "partitioned", True)
    found = next(found for number in range(2_000) if isinstance(found := draw(3, number, [cell]), Found))
    first, again = (replay(cell, from_text(as_text(found.choices)), found.bounds)[1] for _ in range(2))
    assert first.taken == again.taken and str(first.violation) == str(again.violation) == found.told
    assert [store.content for store in first.stores] == [store.content for store in again.stores]
    shrunk = shrink(found)
    assert len(shrunk.choices) <= len(found.choices)
    for at in shrunk.choices:
        fewer = {other: option for other, option in shrunk.choices.items() if other != at}
        assert replay(cell, fewer, found.bounds)[1].violation is None  # no choice is left that is not needed


def test_the_arguments_that_are_printed_name_each_kind_of_fault() -> None:
    bounds = ONE_FAULT._replace(kinds=frozenset(["die", "log back"]))
    told = shlex.split(shlex.join(arguments_of(Found(QUICK[0], {3: 1, 9: 2}, "", 1, bounds))))
    assert told[2:] == ["--choices", "3:1 9:2", "--kinds", "die", "log back"]


def test_the_text_of_each_planted_bug_is_there() -> None:
    assert len({plant.name for plant in PLANTS}) == len(PLANTS) >= 100
    for plant in PLANTS:
        compile(mutated(plant), plant.file, "exec")
        if plant.test:
            file, _, name = plant.test.partition("::")
            assert f"def {name.partition('[')[0]}(" in (ROOT / file).read_text()


@pytest.mark.parametrize("name", ["an older driver is admitted", "the batch is not recorded before it is emitted"])
def test_a_planted_bug_is_found(name: str) -> None:
    """All of them: `make planted`."""
    number = next(number for number, plant in enumerate(PLANTS) if plant.name == name)
    assert _in_a_new_process(number)["exhaustive"]


def _in_a_new_process(number: int) -> dict[str, Any]:
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        return pool.apply(seek, (number, 1_000, 0, 1))
