"""What `trident port` makes of Java topologies gives what the Java gives on real Storm."""

from __future__ import annotations

from pathlib import Path

import pytest
from needed import needed

from . import on_storm, ours
from .cases import NAMES, case, expected


@pytest.mark.parametrize("name", NAMES)
def test_a_translated_topology_gives_what_storm_gives(name: str, tmp_path: Path) -> None:
    one = case(name)
    modules = ours.translate([one], tmp_path)
    assert ours.run(one, modules[name], tmp_path) == expected(name)


@pytest.mark.whole("test_a_translated_topology_gives_what_storm_gives")
def test_the_record_is_what_storm_gives(tmp_path: Path) -> None:
    cases = [case(name) for name in NAMES]
    with needed("Java"):
        results = on_storm.run(cases, tmp_path)
    assert results == {one.name: expected(one.name) for one in cases}
