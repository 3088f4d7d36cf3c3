"""What a translated program prints is what Java prints."""

from __future__ import annotations

from pathlib import Path

import pytest
from needed import needed

from . import generator
from .programs import NAMES, read_record, run_here, run_in_java, source_of


@pytest.mark.parametrize("name", NAMES)
def test_a_translated_program_prints_what_java_prints(name: str, tmp_path: Path) -> None:
    assert run_here(name, source_of(name), tmp_path).splitlines() == read_record(name).splitlines()


@pytest.mark.whole("test_a_translated_program_prints_what_java_prints")
def test_the_record_is_what_java_prints(tmp_path: Path) -> None:
    with needed("Java"):
        printed = run_in_java({name: source_of(name) for name in NAMES}, tmp_path)
    assert [name for name in NAMES if printed[name] != read_record(name)] == []


@pytest.mark.whole("test_a_translated_program_prints_what_java_prints")
def test_programs_of_many_seeds_print_what_java_prints(tmp_path: Path) -> None:
    sources = {f"Seed{seed}": generator.program(f"Seed{seed}", seed) for seed in range(100, 130)}
    with needed("Java"):
        printed = run_in_java(sources, tmp_path)
    for name, source in sources.items():
        assert run_here(name, source, tmp_path).splitlines() == printed[name].splitlines(), name
