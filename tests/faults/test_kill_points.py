"""kill -9 of the driver at every point of a batch, on one checkpoint, again and again; then one run to the end.

Each start goes on where the last one was killed: it replays that batch, and is killed in the next one at the
next point. Between two starts nothing runs, and every row of every state is compared with a plain fold. `make test`
dies at two of the points.
"""

from __future__ import annotations

import signal
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import pytest

from . import story
from .driver import Order
from .evidence import Evidence, counted, drifted_prefix, evidence, halfway, partition_of
from .hooks import STATES
from .processes import Drivers
from .story import EMPTY, ONE_WORD, fold
from .topology import Shape
from .traces import StoryTrace

pytestmark = [pytest.mark.spark, pytest.mark.timeout(900)]


@dataclass(frozen=True)
class Death:
    """One start, killed in ``txid``. ``left``: how many partitions of each state have committed that txid."""

    point: str
    txid: int
    left: tuple[int, int, int, int, int]
    states: tuple[str, str] = ("", "")
    partitions: int = 2
    spout_partitions: int = 2

    def __str__(self) -> str:
        return "-".join(filter(None, (self.point, *self.states)))


NOBODY, EVERYBODY = (0, 0, 0, 0, 0), (2, 2, 2, 2, 2)
DEATHS = [
    Death("log", 2, NOBODY),
    Death("function", 3, NOBODY),
    Death("begun", 4, (2, 1, 0, 0, 0), ("trans", "opaque")),
    Death("begun", 5, (1, 1, 1, 1, 0), ("rows", "drift")),
    Death("updated", 6, (2, 1, 0, 0, 0), ("trans", "opaque")),
    Death("updated", 7, (1, 1, 1, 1, 0), ("rows", "drift")),
    Death("one", 8, (1, 1, 1, 1, 1)),
    # the replay of a batch that is committed in one of two partitions runs in three, the one after in two
    Death("all", 9, (3, 3, 3, 3, 3), partitions=3, spout_partitions=1),
    Death("published", 10, EVERYBODY),
    Death("over", 11, EVERYBODY),
]
ALWAYS = ("one", "published")
LAST = ONE_WORD
BATCHES = range(1, LAST + 1)


@dataclass(frozen=True)
class Chain:
    """What was there after each death, and after the run to the end."""

    folder: Path
    codes: dict[Death, int] = field(default_factory=dict)
    after: dict[Death, Evidence] = field(default_factory=dict)

    def die(self, death: Death, drivers: Drivers) -> None:
        shape = Shape(LAST, death.partitions, death.spout_partitions)
        order = Order(str(self.folder), shape, death.point, death.txid, death.states)
        self.codes[death] = drivers.start(order, ahead=True).wait_killed()
        self.after[death] = evidence(self.folder)
        self.trace.look(f"killed at {death}")

    @cached_property
    def trace(self) -> StoryTrace:
        return StoryTrace(self.folder)

    @cached_property
    def end(self) -> Evidence:
        return evidence(self.folder)


@pytest.fixture(scope="module")
def chain(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Chain]:
    """Dies wherever a test of this run asks for it."""
    chain = Chain(tmp_path_factory.mktemp("chain"))
    drivers = Drivers(chain.folder)
    asked = {test.callspec.params.get("death") for test in request.session.items if hasattr(test, "callspec")}
    try:
        for death in DEATHS:
            if death in asked:
                chain.die(death, drivers)
        last = drivers.start(Order(str(chain.folder), Shape(LAST)))
        assert last.until("done", "error") == ["done", LAST], last.errors
        last.end()
        chain.trace.look("done")
        chain.trace.end()
        yield chain
    finally:
        drivers.close()


def params(deaths: list[Death]) -> list[Any]:
    return [pytest.param(each, marks=[] if each.point in ALWAYS else [pytest.mark.whole]) for each in deaths]


deaths = pytest.mark.parametrize("death", params(DEATHS), ids=str)


@deaths
def test_the_driver_died_exactly_there(chain: Chain, death: Death) -> None:
    seen = chain.after[death]
    assert chain.codes[death] == -signal.SIGKILL
    assert tuple(len(seen.committed(state, death.txid)) for state in STATES) == death.left
    assert seen.over == death.txid - 1
    assert seen.begun == death.txid - (1 if death.point == "log" else 0)


@deaths
def test_what_it_left_is_whole_partitions_over_exact_batches(chain: Chain, death: Death) -> None:
    seen = chain.after[death]
    assert seen.stored["trans"] == halfway(seen, "trans", death.txid).transactional()
    assert seen.stored["opaque"] == halfway(seen, "opaque", death.txid).opaque()
    rows = {key: row for key, row in seen.stored["rows"].items() if key[0].startswith("r")}
    done = seen.committed("rows", death.txid)
    mine = [row for row in story.batch(death.txid) if any(partition_of(row[0], of) == p for p, of in done)]
    assert rows == story.table([row for n in range(1, death.txid) for row in story.batch(n)] + mine)


@deaths
def test_what_an_opaque_spout_had_before_counts_once(chain: Chain, death: Death) -> None:
    seen = chain.after[death]
    counts = drifted_prefix(seen.stored["drift"], death.txid)
    assert all(count >= 8 * (death.txid - 1) for count in counts)
    assert story.table(story.drifted(counts)).items() <= seen.stored["rows"].items()


def test_at_the_end_every_row_is_that_of_an_undisturbed_run(chain: Chain) -> None:
    counts = drifted_prefix(chain.end.stored["drift"], LAST + 1)
    everything = [row for n in BATCHES for row in story.batch(n)] + story.drifted(counts)
    assert chain.end.stored["trans"] == fold(BATCHES).transactional()
    assert chain.end.stored["opaque"] == fold(BATCHES).opaque()
    assert chain.end.stored["rows"] == story.table(everything)


def test_no_restart_was_taken_for_a_zombie(chain: Chain) -> None:
    assert [line for line in chain.end.log if line.what == "refused"] == []


@pytest.mark.parametrize("death", params([death for death in DEATHS if sum(death.left)]), ids=str)
def test_what_was_committed_before_a_death_was_committed_again(chain: Chain, death: Death) -> None:
    """The proof that the states were put to the test."""
    for state, left in zip(STATES, death.left, strict=True):
        assert len(chain.end.committed(state, death.txid)) > max(left, 1), state


@pytest.mark.whole("test_an_attempt_that_failed_in_one_partition_of_each_state_counts_once")  # dies too seldom for it
def test_a_non_transactional_state_counts_every_replay_again(chain: Chain) -> None:
    """Not guaranteed, and so it is: what the guarantee table calls at least once."""
    found = chain.end.stored["plain"]
    assert found == counted(chain.end)
    exact = Counter((word,) for n in BATCHES for _, word, _ in story.batch(n))
    assert found.keys() == exact.keys()
    assert all(found[key] > exact[key] for key in exact)


def test_the_opaque_spout_replayed_other_tuples(chain: Chain) -> None:
    for death in [death for death in chain.after if death not in DEATHS[:2]]:  # then it had not been asked, or not both
        for partition in range(story.PARTITIONS):
            tries = story.tried_batch(chain.folder, death.txid, partition).stat().st_size
            assert tries > 1, death
            assert len({story.size_of_try(death.txid, n) for n in range(tries)}) == tries


def test_an_empty_batch_commits_nothing_and_is_over(chain: Chain) -> None:
    assert chain.end.over >= EMPTY
    assert [line for line in chain.end.log if line.txid == EMPTY] == []


def test_a_partition_without_tuples_is_not_called(chain: Chain) -> None:
    only = (partition_of(story.WORDS[0], 2), 2)
    for state in ("trans", "opaque", "plain"):
        assert chain.end.committed(state, ONE_WORD) == [only]
    assert chain.end.committed("drift", ONE_WORD) == []
