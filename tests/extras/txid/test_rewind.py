"""`trident txid rewind`: afterwards the run goes on as if the later batches had never been."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from faults.forks import Driver, run
from faults.readings import Fold, Readings
from faults.steps import Fault
from faults.stores import differences, read

from going_back import Noting, component, killed
from states.sql.store import close_stores
from trident_py.errors import LineageError
from trident_py.extras.txid.inspection import look
from trident_py.extras.txid.rewind import examine, list_kept, rewind

SEED, LAST = 5, 7
ROWS = ("append", "rows", "batch")
BACK = 3


@pytest.fixture(autouse=True)
def closed() -> Iterator[None]:
    yield
    close_stores()


def begin(url: str, folder: Path, only: tuple[str, ...] = ROWS, txid: int = 6, state: str = "append") -> Noting:
    """A run whose driver was killed when one partition of a state had committed a batch."""
    start = Noting(url, folder, LAST, (Fault("committed", state, txid),), SEED, only=only)
    assert run(start).process.exitcode == -signal.SIGKILL
    return Noting(url, folder, LAST, seed=SEED, only=only)


def go_on(start: Noting) -> None:
    """The next start runs to the end, and every row is that of a plain fold."""
    assert run(start).told[-1] == ("done", LAST)
    assert differences(start.url, Fold(Readings(SEED), LAST), start.only) == []


def sqlite(folder: Path) -> str:
    return f"sqlite:///{folder}/store.db"


STEPS = [
    ("rewind fenced", ""), ("rewind intended", ""), ("rewind opened", ""), ("undone", "append"),
    ("rewind rewound", "appended"), ("rewind rewound", "batched"), ("rewind forgotten", ""), ("rewind over", ""),
]  # fmt: skip


@pytest.mark.parametrize(("step", "name"), STEPS, ids=lambda word: word)
def test_a_rewind_that_is_killed_is_finished_by_the_same_command(
    database: str, tmp_path: Path, step: str, name: str
) -> None:
    start = begin(database, tmp_path)
    assert killed(start, BACK, step, name)
    found = look(component(start))
    if step not in ("rewind fenced", "rewind over"):
        assert found.next.kind == "refused" and f"on its way back from txid 5 to {BACK}" in found.next.sentence
        assert found.next.sentence.removeprefix("is refused: ") in run(start).told[-1][2]
    if step != "rewind over":
        assert sorted(rewind(component(start), BACK)) == ["appended", "batched", "rows_by_id"]
    found = look(component(start))
    assert (found.committed, found.begun, found.next.sentence) == (BACK, None, f"continues after txid {BACK}")
    assert differences(database, Fold(Readings(SEED), BACK), ROWS) == []
    go_on(start)
