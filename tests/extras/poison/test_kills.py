"""SIGKILL of the driver around the decision what a batch excludes, and starts with another setting."""

from __future__ import annotations

from pathlib import Path

import pytest

from trident_py.checkpoints.append_log import AppendLogStore
from trident_py.checkpoints.metadata_store import MemoryMetadataStore
from trident_py.engine.program import compile_plan
from trident_py.errors import ZombieError
from trident_py.extras.poison.bisection import Poison

from .killed import BATCHES, Step, start
from .support import CONF, KINDS, build, dead, expected, found, letters

LASTING = [kind for kind in KINDS if not kind.startswith(("memory", "logged", "window"))]
EXACT = [kind for kind in LASTING if kind != "sql"]  # a non-transactional map counts a replayed batch twice
STEPS = [
    Step("dry"),
    Step("search"),
    *(Step("probe", number) for number in (1, 2, 5, 9, 14)),
    Step("found"),
    Step("fixed"),
    *(Step("finish", number) for number in (1, 2, 3, 5, 7)),
    Step("committed"),
    Step("published"),
    Step("saved"),
]


def agrees(kind: str, folder: Path) -> None:
    built = build(kind, folder, BATCHES)
    assert [(*row[:5], row[7]) for row in letters(folder)] == dead(BATCHES)
    for name, made in zip(("main", "side"), built.states, strict=True):
        assert found(kind, folder, name, made) == expected(kind, BATCHES), name


@pytest.mark.parametrize(("kind", "step"), [("append", Step("finish", 3)), ("sql-opaque", Step("found"))])
def test_a_driver_killed_in_a_commit_or_before_the_record_loses_nothing(tmp_path: Path, kind: str, step: Step) -> None:
    assert start(kind, tmp_path, step) == ""
    assert start(kind, tmp_path) == "done"
    agrees(kind, tmp_path)


@pytest.mark.whole("test_a_driver_killed_in_a_commit_or_before_the_record")
@pytest.mark.parametrize("kind", EXACT)
@pytest.mark.parametrize("step", STEPS, ids=lambda step: f"{step.name}{step.number}")
def test_a_driver_killed_at_any_step_loses_and_doubles_nothing(tmp_path: Path, kind: str, step: Step) -> None:
    if kind in ("batch", "file") and step.name == "dry":
        step = Step("probe")
    assert start(kind, tmp_path, step) == ""
    assert start(kind, tmp_path) == "done"
    agrees(kind, tmp_path)


@pytest.mark.whole("test_a_driver_killed_in_a_commit_or_before_the_record")
@pytest.mark.parametrize("kind", EXACT)
def test_a_driver_killed_again_and_again_loses_and_doubles_nothing(tmp_path: Path, kind: str) -> None:
    for step in STEPS:
        start(kind, tmp_path, step)
    assert start(kind, tmp_path) == "done"
    agrees(kind, tmp_path)


@pytest.mark.whole("test_a_driver_killed_in_a_commit_or_before_the_record")
@pytest.mark.parametrize("number", [3, 7])
def test_a_recorded_exclusion_holds_without_the_setting(tmp_path: Path, number: int) -> None:
    """The first start has committed a part of batch 2 without its poison tuples; the second must do the same."""
    assert start("append", tmp_path, Step("finish", number)) == ""
    told = start("append", tmp_path, None, {})
    assert "txid 3" in told and "poison at second" in told  # batch 3 has no record: it fails as without the setting
    assert [row[0] for row in letters(tmp_path)] == [2, 2, 2]
    assert found("append", tmp_path, "main", None) == expected("append", BATCHES[:2])
    assert start("append", tmp_path) == "done"
    agrees("append", tmp_path)


def test_a_batch_begun_without_checks_is_not_bisected_if_a_store_cannot_tell(tmp_path: Path) -> None:
    assert "poison at" in start("logged-opaque", tmp_path, None, {})
    assert "poison at" in start("logged-opaque", tmp_path)
    assert letters(tmp_path) == []


@pytest.mark.whole("test_a_driver_killed_in_a_commit_or_before_the_record")
@pytest.mark.parametrize("kind", EXACT)
def test_a_batch_that_failed_without_the_setting_is_bisected_with_it(tmp_path: Path, kind: str) -> None:
    assert "poison at" in start(kind, tmp_path, None, {})
    assert start(kind, tmp_path) == "done"
    agrees(kind, tmp_path)


def test_an_older_driver_records_nothing(tmp_path: Path) -> None:
    (program,) = compile_plan(build("append", tmp_path, BATCHES).topology.plan, CONF)
    older, newer = (Poison(program, AppendLogStore(tmp_path / "checkpoint")) for _ in range(2))
    older.open(0, "older", False)
    older.begin(1)
    newer.open(0, "newer", False)
    newer.begin(1)
    with pytest.raises(ZombieError, match="another driver"):
        older.fix(())
    newer.fix(())


@pytest.mark.parametrize("touched", [False, True])
def test_a_batch_of_which_a_part_may_be_committed_is_recorded(tmp_path: Path, touched: bool) -> None:
    (program,) = compile_plan(build("append", tmp_path, BATCHES).topology.plan, CONF)
    store = MemoryMetadataStore()
    Poison(program, store).open(4, "run", touched)
    assert store.get("poison", 5) == ([] if touched else None)
    Poison(program, store).open(5, "next", True)  # a run with checks came before: no attempt can have committed
    assert store.get("poison", 6) is None
