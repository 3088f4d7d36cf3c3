"""What `trident port` makes of Java topologies gives what the Java gives on real Storm."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from needed import needed

from . import on_storm, ours
from .cases import NAMES, case, expected, text

ERRORS = [
    ("NumbersOfMeters", "quotient(value, by)", "value // by"),
    ("NumbersOfMeters", "remainder(value, by)", "value % by"),
    ("NumbersOfMeters", "to_int(value * value)", "value * value"),
    ("NumbersOfMeters", "float(quotient(by, 2))", "quotient(by, 2)"),
    ("CollectionTraps", "words = HashMap()", "words = {}"),
    ("TextTraps", 'split(text, ",")', 'text.split(",")'),
    ("PartitionedReadings", "min(offset +", "min(1 + offset +"),
]
"""Mistakes in a translation: in which, what stands there, and what in its place."""


def same(found: dict[str, Any], wanted: dict[str, Any]) -> bool:
    """Whether results are the same as JSON: 1 is not 1.0."""
    return text(found) == text(wanted)


@pytest.mark.parametrize("name", NAMES)
def test_a_translated_topology_gives_what_storm_gives(name: str, tmp_path: Path) -> None:
    one = case(name)
    modules = ours.translate([one], tmp_path)
    found = ours.run(one, modules[name], tmp_path)
    assert found == expected(name)
    assert same(found, expected(name)), "only the types of numbers differ"


@pytest.mark.parametrize(("name", "right", "wrong"), ERRORS, ids=[wrong for *_, wrong in ERRORS])
def test_one_mistake_in_a_translation_is_found(name: str, right: str, wrong: str, tmp_path: Path) -> None:
    one = case(name)
    module = ours.translate([one], tmp_path)[name]
    path = tmp_path / f"{module}.py"
    changed = path.read_text().replace(right, wrong, 1)
    assert changed != path.read_text()
    path.write_text(changed)
    assert not same(ours.run(one, module, tmp_path), expected(name))


@pytest.mark.whole("test_a_translated_topology_gives_what_storm_gives")
def test_the_record_is_what_storm_gives(tmp_path: Path) -> None:
    cases = [case(name) for name in NAMES]
    with needed("Java"):
        results = on_storm.run(cases, tmp_path)
    assert [name for name in NAMES if not same(results[name], expected(name))] == []
