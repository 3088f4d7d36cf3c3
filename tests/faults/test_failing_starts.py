"""A state that fails its start, before or after the others have agreed: every way on is still there, and exact."""

from __future__ import annotations

import pytest

from trident_py import TopologyError

from . import backups
from .starts import STATES, TABLES
from .test_recovery import CLUSTERS, Make, world
from .weak import RAISED, raises
from .worlds import TOPOLOGY

pytestmark = pytest.mark.dear

__all__ = ["world"]  # the fixture
POINTS = ("remembered", "open", "opened", "prepare")


@pytest.mark.parametrize("cluster", CLUSTERS)
@pytest.mark.parametrize("failing", STATES)
def test_a_state_that_fails_its_start_before_or_after_the_other_has_agreed_leaves_every_way_on(
    world: Make, cluster: str, failing: str
) -> None:
    """Each start after the first is under another name: new checkpoint, tables of the one before."""
    made = world(cluster)
    made.states = STATES
    made.start(1)
    name, last = TOPOLOGY, 1
    for at in POINTS:
        taken = {"topology.owner.replace": [f"{name}/{TABLES[state]}" for state in STATES]}
        conf = {**taken, "topology.txid.base": last}
        name, last, held = f"after-{at}", last + 1, backups.contents(made.url)
        for _ in range(2):
            with pytest.raises(TopologyError, match=RAISED):
                made.start(last, conf, weak={failing: raises(at)}, name=name)
            made.holds(*range(1, last))
        if at != "prepare":
            assert backups.contents(made.url) == held
        made.start(last, conf, name=name)
        made.holds(*range(1, last + 1))


@pytest.mark.parametrize("cluster", CLUSTERS)
@pytest.mark.parametrize("failing", STATES)
def test_a_state_that_fails_its_start_leaves_a_restored_store_to_be_accepted(
    world: Make, cluster: str, failing: str
) -> None:
    made = world(cluster)
    made.states = STATES
    made.start(1)
    there = [1]
    for number, at in enumerate(POINTS, 1):
        backup, last = made.dump(), max(there)
        made.start(last + 1)
        made.restore(backup)
        held = backups.contents(made.url)
        conf = {"topology.lineage.accept": [f"{TABLES[state]}@{last}:{last + 1}" for state in STATES]}
        with pytest.raises(TopologyError, match=RAISED):
            made.start(last + 2, conf, weak={failing: raises(at)})
        made.holds(*there)
        if at != "prepare":
            assert backups.contents(made.url) == held
        made.start(last + 2, conf)
        there.append(last + 2)
        made.holds(*there)
        assert len(there) == number + 1
