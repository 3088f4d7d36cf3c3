"""Poison tuples against a plain fold of the input, for every kind of state: nothing lost, nothing twice."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from trident_py import LocalCluster

from .support import CONF, KINDS, PLACES, Row, agree, build

NO_SHRINKING = (Phase.explicit, Phase.generate)
EACH = settings(suppress_health_check=list(HealthCheck), deadline=None, max_examples=2, phases=NO_SHRINKING)


@st.composite
def batches(draw: Any) -> list[list[list[Row]]]:
    """Two to four batches of two partitions, with up to five poison tuples each and at least one healthy one."""
    made, number = [], 0
    for _ in range(draw(st.integers(2, 4))):
        batch: list[list[Row]] = [[], []]
        poison = draw(st.lists(st.sampled_from(PLACES), max_size=5))
        places = draw(st.permutations([*poison, *[""] * draw(st.integers(1, 9))]))
        for place in places:
            number += 1
            row = Row(f"r{number}", draw(st.sampled_from("abcd")), draw(st.integers(1, 50)), 1, place)
            batch[draw(st.integers(0, 1))].append(row)
        made.append(batch)
    return made


@pytest.mark.parametrize("kind", KINDS)
@EACH
@given(made=batches())
def test_every_state_holds_what_a_fold_of_the_healthy_tuples_holds(
    tmp_path_factory: Any, kind: str, made: list[list[list[Row]]]
) -> None:
    folder: Path = tmp_path_factory.mktemp(kind)
    built = build(kind, folder, made)
    with LocalCluster() as cluster:
        running = cluster.submitTopology("t", CONF, built.topology)
        assert running.awaitTermination(60)
        agree(kind, folder, made, built, running)
