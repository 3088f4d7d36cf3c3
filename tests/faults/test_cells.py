"""The guarantee table, measured: a run with killed drivers for every spout kind x kind of functions x state kind.

What a run must show is what `guarantees()` says of that very topology: a promise must hold whatever step the driver
is killed at, and where less is promised, rows are really lost or doubled. So the table says neither more nor less
than is true.
"""

from __future__ import annotations

import itertools
import os
import signal
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import databases
import pytest

from trident_py.report.guarantees import AT_LEAST, EXACTLY, IN_EFFECT, NONE, STATE_KINDS, WRONG, Guarantee, _cell
from trident_py.report.guarantees.matrix import effective_kind

from .cell_source import FUNCTIONS, SPOUTS, Shrinking
from .cell_topology import MAPS, Cell, CellStart
from .cell_verdict import Tries, Verdict, applied_records, applied_rows, applied_tuples, applied_words, totals
from .forks import run
from .steps import STEPS, Fault

pytestmark = pytest.mark.dear

Place = tuple[str, int]
"""A step, and the partition that takes it."""
EVERY: list[Place] = [*((step, 0) for step in STEPS), ("committed", 1), ("over", 0)]
SOME: list[Place] = [("half", 0), ("committed", 0), ("committed", 1), ("over", 0)]
AFTER: list[Place] = [("committed", 0), ("committed", 1), ("over", 0)]

# Where the spout itself brings other rows, other values are nothing new: one cell of the matrix.
CELLS = [
    Cell(*names)
    for names in itertools.product(SPOUTS, FUNCTIONS, STATE_KINDS)
    if names[:2] not in [("opaque", "other values"), ("non-transactional", "other values")]
]
ON_A_SERVER = [
    Cell("transactional", "deterministic", "transactional"),
    Cell("transactional", "deterministic", "append"),
    *(Cell("opaque", "other values", kind) for kind in ("opaque", "insert-ignore", "batch", "sequence", "window")),
]

IN_REDIS = [cell for cell in CELLS if cell.kind in (*MAPS, "upsert")]
IN_FILES = [cell for cell in CELLS if cell.kind == "batch" and cell.spout != "non-transactional"]


def told(cell: Cell) -> Guarantee:
    """What the topology says of its states, one answer for all."""
    found = cell.topology("nowhere:9092" if cell.kind == "upsert" else "sqlite:///nowhere", "", 1).guarantees()
    assert {each.guarantee for each in found} == {found[0].guarantee}
    assert [each.state_kind for each in found] == [cell.kind] * len(cell.states())
    return found[0]


def places(cell: Cell, guarantee: str) -> list[Place]:
    """Where the driver is killed: at every step where much is promised."""
    if guarantee in (EXACTLY, IN_EFFECT):
        at = SOME if cell.functions == "other keys" else EVERY
        return [place for place in at if cell.kind != "window" or place[0] != "half"]  # it writes a batch as one block
    return [("written", 0)] if guarantee == NONE else AFTER


def killed(cell: Cell, url: str, folder: Path, at: Sequence[Place]) -> Tries:
    """Kills the driver at each place, every time a batch further on, then lets it end."""
    last = len(at) + 2
    for txid, (step, partition) in enumerate(at, 2):
        fault = Fault(step, cell.states()[txid % len(cell.states())], txid, partition)
        driver = run(CellStart(url, folder, last, (fault,), cell=cell))
        assert driver.process.exitcode == -signal.SIGKILL, (fault, driver.told[-2:])
    driver = run(CellStart(url, folder, last, cell=cell))
    assert driver.told[-1][0] == "done", driver.told[-1]
    return Tries(folder)


def measured(cell: Cell, url: str, tries: Tries) -> Verdict:
    applied_of = {"upsert": applied_records, "window": applied_tuples}.get(cell.kind, applied_rows)
    rows = cell.kind not in MAPS
    tables = [applied_of(url, table) for table in cell.states()] if rows else [applied_words(url, cell.kind)]
    verdicts = [tries.verdict(applied, tries.sent(cell.spout)) for applied in tables]
    assert verdicts == verdicts[:1] * len(verdicts)
    return verdicts[0]


def exactly(verdict: Verdict) -> None:
    assert verdict == ([], [], [], [])


def in_effect(verdict: Verdict) -> None:
    """Each row once; which try its number is of may differ within a batch."""
    assert verdict[:2] == ([], [])


def at_least(verdict: Verdict) -> None:
    assert not verdict.lost
    assert verdict.doubled


def wrong(verdict: Verdict) -> None:
    """Something is lost, or a batch is a mixture of two tries: more than doubled rows."""
    assert verdict.lost or verdict.mixed


def nothing(verdict: Verdict) -> None:
    assert verdict.lost


SHOWS: dict[str, Callable[[Verdict], None]] = {
    EXACTLY: exactly, IN_EFFECT: in_effect, AT_LEAST: at_least, WRONG: wrong, NONE: nothing,
}  # fmt: skip


def check(cell: Cell, url: str, folder: Path, at: Sequence[Place], guarantee: str) -> None:
    tries = killed(cell, url, folder, at)
    assert tries.differ() == (cell.spout != "transactional" or cell.functions != "deterministic")
    verdict = measured(cell, url, tries)
    assert verdict.strange == []
    SHOWS[guarantee](verdict)
    if guarantee == EXACTLY and cell.kind in MAPS:
        assert totals(url, "sums", cell.kind) == tries.sums()


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    """In memory where there is such a place: a killed process has lost nothing that it has written to a file."""
    memory = Path("/dev/shm")
    with tempfile.TemporaryDirectory(dir=memory if os.access(memory, os.W_OK) else tmp_path) as name:
        yield Path(name)


@pytest.fixture
def url_of(request: pytest.FixtureRequest, folder: Path) -> Callable[[str], str]:
    """``url_of(kind)``: a place for states of this kind, with nothing in it."""

    def made(kind: str) -> str:
        if kind != "upsert":
            return databases.sqlite(folder)
        return f"{request.getfixturevalue('kafka').bootstrap}#cell-{folder.name}"

    return made


@pytest.mark.one_of_each
@pytest.mark.parametrize("cell", CELLS, ids=str)
def test_a_cell_holds_what_it_says_and_no_more(cell: Cell, url_of: Callable[[str], str], folder: Path) -> None:
    guarantee = told(cell).guarantee
    check(cell, url_of(cell.kind), folder, places(cell, guarantee), guarantee)


@pytest.mark.one_of_each
@pytest.mark.parametrize("cell", ON_A_SERVER, ids=str)
def test_a_promised_cell_holds_on_a_server_too(cell: Cell, url_on: Callable[[str], str], folder: Path) -> None:
    guarantee = told(cell).guarantee
    assert guarantee in (EXACTLY, IN_EFFECT)
    check(cell, url_on("mariadb"), folder, AFTER if cell.kind == "window" else SOME, guarantee)


@pytest.mark.one_of_each
@pytest.mark.parametrize("cell", IN_FILES, ids=str)
def test_a_promised_cell_holds_in_files_too(cell: Cell, folder: Path) -> None:
    guarantee = told(cell).guarantee
    assert guarantee == EXACTLY
    check(cell, f"file://{folder}/files", folder, EVERY, guarantee)


@pytest.mark.one_of_each
@pytest.mark.parametrize("cell", IN_REDIS, ids=str)
def test_a_cell_holds_in_redis_too(cell: Cell, redis: str, folder: Path) -> None:
    guarantee = told(cell).guarantee
    check(cell, f"{redis}#{folder.name}", folder, places(cell, guarantee), guarantee)


@pytest.mark.parametrize("kind", STATE_KINDS)
def test_without_a_kill_nothing_is_lost_or_doubled(kind: str, url_of: Callable[[str], str], folder: Path) -> None:
    """So it is the replays that do it."""
    cell, url = Cell("transactional", "other keys", kind), url_of(kind)
    exactly(measured(cell, url, killed(cell, url, folder, [])))


def test_s12_a_word_that_only_a_failed_try_has_counts_twice_in_an_opaque_map(folder: Path) -> None:
    """The first try of batch 2 has rows 8 to 15 and is committed; its replay has 8 to 11, batch 3 has 12 to 19."""
    cell = Cell("opaque", "deterministic", "opaque", Shrinking)
    assert told(cell).guarantee == EXACTLY
    assert "(S12)" in told(cell).reason
    url = databases.sqlite(folder)
    verdict = measured(cell, url, killed(cell, url, folder, [("publish", 0)]))
    assert verdict.lost == verdict.mixed == []
    assert verdict.doubled == sorted(f"p{partition}-{number}" for partition in (0, 1) for number in range(12, 16))


def test_s12_does_not_reach_rows_with_a_key(folder: Path) -> None:
    cell, url = Cell("opaque", "deterministic", "insert-ignore", Shrinking), databases.sqlite(folder)
    exactly(measured(cell, url, killed(cell, url, folder, [("publish", 0)])))


@pytest.mark.parametrize("cell", CELLS, ids=str)
def test_a_measured_topology_stands_in_its_cell_of_the_matrix(cell: Cell) -> None:
    deterministic, moved = cell.functions == "deterministic", cell.functions == "other keys"
    assert told(cell).guarantee == _cell(effective_kind(cell.spout, not deterministic), cell.kind, moved).guarantee
    assert bool(told(cell).functions) != deterministic


def test_every_cell_of_the_matrix_is_measured() -> None:
    seen = {(effective_kind(cell.spout, cell.functions != "deterministic"), cell.functions == "other keys", cell.kind)
            for cell in CELLS}  # fmt: skip
    columns = {(spout, moved) for spout, moved, _ in seen}
    assert columns >= {("transactional", False), ("opaque", False), ("opaque", True), ("non-transactional", False)}
    assert seen == {(*column, kind) for column in columns for kind in STATE_KINDS}
