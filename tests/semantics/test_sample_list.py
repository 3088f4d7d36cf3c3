"""Every block of code in Storm's three Trident documents belongs to a sample, and every sample has its test.

A line of a list: the test without its ``test_``, and the numbers of the document's blocks that it ports, results and
interfaces included. Samples that the document tells in words have none.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

LISTS = {
    ("Trident-tutorial.md", 14, "test_samples_tutorial.py"): """
        d01_the_word_count 1 2 3
        d02_the_word_count_into_a_database 4
        d03_the_sum_of_the_counts_of_some_words 5 6
        d04_the_reach_of_a_url 7 8
        d05_a_filter_on_one_field_sees_only_that 9 10
        d06_add_and_multiply_are_appended 11 12
        d07_the_sum_of_a_batch 13
        d07_the_sum_of_each_group 14
    """,
    ("Trident-API-Overview.md", 43, "test_samples_api_overview.py"): """
        d08_a_function 1 2 3 4
        d08_a_filter 5 6 7 8
        d08_map 9 10
        d08_flat_map 11 12
        d08_flat_map_and_map_in_a_chain 13
        d08_map_with_an_output_field 14
        d08_flat_map_with_an_output_field 15
        d08_peek 16
        d09_min_by 17 18 19
        d10_min_and_min_by_with_comparators 20 21
        d09_max_by 22 23
        d10_max_and_max_by_with_comparators 24 25
        d11_tumbling_window 26
        d11_sliding_window 27
        d11_window_by_a_config 28
        d12_a_window_in_a_store 29
        d13_partition_aggregate 30 31 32
        d13_count_as_a_combiner_aggregator 33 34
        d13_count_as_a_reducer_aggregator 35 36
        d13_count_as_an_aggregator 37 38
        d13_chained_aggregators 39
        d14_project 40
        d14_repartitioning
        d14_the_count_of_a_batch 41
        d15_merge 42
        d15_join 43
        d15_a_join_with_the_last_hour
    """,
    ("Trident-state.md", 20, "test_samples_state.py"): """
        d16_the_table_of_a_transactional_state 1 2 3
        d16_a_transactional_state_skips_what_the_txid_has_written
        d17_the_table_of_an_opaque_state 4 5 6
        d17_an_opaque_state_of_the_next_txid
        d17_an_opaque_state_of_the_same_txid
        d18_the_word_count_in_an_opaque_state 7
        d19_a_state_and_its_factory 8 9 10
        d20_a_query_of_one_location_at_a_time 11 12
        d20_a_query_in_bulk 13 14
        d21_partition_persist_of_locations 15 16
        d22_persistent_aggregate 17
        d22_a_map_state_and_a_snapshottable_of_ones_own 18 19
        d22_map_states_over_a_backing_map 20
    """,
}


@pytest.mark.parametrize(("document", "blocks", "file"), LISTS, ids=[file for _, _, file in LISTS])
def test_every_sample_of_the_document_has_its_test_in_its_order(document: str, blocks: int, file: str) -> None:
    lines = [line.split() for line in LISTS[document, blocks, file].split("\n") if line.strip()]
    text = Path(__file__).with_name(file).read_text()
    assert document in text
    assert re.findall(r"^def test_(\w+)", text, re.MULTILINE) == [name for name, *_ in lines]
    assert [int(number) for _, *numbers in lines for number in numbers] == list(range(1, blocks + 1))


def test_no_sample_of_the_reference_is_missing() -> None:
    """The reference numbers the samples of the three documents from D1 to D22."""
    found = {int(number) for text in LISTS.values() for number in re.findall(r"\bd(\d\d)_", text)}
    assert found == set(range(1, 23))


@pytest.mark.parametrize("file", [file for _, _, file in LISTS])
def test_every_sample_with_a_cluster_runs_on_both(file: str) -> None:
    text = Path(__file__).with_name(file).read_text()
    for marks, name, arguments in re.findall(r"((?:^@.*\n)*)^def test_(\w+)\((.*)\)", text, re.MULTILINE):
        assert ("@both" in marks) == ("cluster:" in arguments), name
