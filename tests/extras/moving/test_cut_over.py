"""Real Storm is killed at a random moment, and the run goes on here: no key differs from the fold."""

from __future__ import annotations

from pathlib import Path

import large_cut_over
import pytest
from cut_over import Round, Servers, go_on, run_rounds
from needed import needed

SEED = 3


@pytest.mark.servers
@pytest.mark.whole("test_a_run_goes_on_where_storm_was_killed")
def test_a_cut_over_at_a_random_moment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONHASHSEED", "0")
    with needed("Storm"), Servers.running() as servers:
        (verdict,) = run_rounds(servers, [Round.draw(SEED)], tmp_path, go_on)
    assert verdict.differ == {}, verdict.output


@pytest.mark.servers
@pytest.mark.whole("test_a_run_goes_on_where_storm_was_killed")
def test_a_cut_over_of_many_keys_by_the_commands_of_the_guide(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONHASHSEED", "0")
    with needed("Storm"):
        told = large_cut_over.cut_over(100_000, tmp_path)
    assert (told["compared"], told["wrong"]) == ("equal", 0), told
