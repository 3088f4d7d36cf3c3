"""Bloom filters: what they must never do, and what they cost."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trident_py import DefinitionError
from trident_py.extras.gateway.bloom import BloomFilter, RotatingBloom


class Clock:
    """A clock that a test turns."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


@settings(deadline=None)
@given(
    fingerprints=st.lists(st.text(max_size=40), max_size=300),
    capacity=st.integers(1, 300),
    error_rate=st.floats(1e-6, 0.5),
)
def test_a_filter_never_denies_what_it_has_however_full(
    fingerprints: list[str], capacity: int, error_rate: float
) -> None:
    bloom = BloomFilter(capacity, error_rate)
    half = len(fingerprints) // 2
    bloom.add_many(fingerprints[:half])
    for fingerprint in fingerprints[half:]:
        bloom.add(fingerprint)
    assert [each for each in fingerprints if each not in bloom] == []


@pytest.mark.parametrize("error_rate", [0.1, 0.01, 0.001])
def test_a_full_filter_errs_as_often_as_asked_and_knows_it(error_rate: float) -> None:
    bloom = BloomFilter(20_000, error_rate)
    bloom.add_many([f"there-{n}" for n in range(20_000)])
    asked = 100_000 if error_rate > 0.001 else 400_000
    wrong = sum(f"not-there-{n}" in bloom for n in range(asked)) / asked
    assert wrong == pytest.approx(error_rate, rel=0.35)
    assert bloom.estimated_error == pytest.approx(wrong, rel=0.35)
    assert 0.4 < bloom.fill < 0.6


def test_an_empty_filter_denies_everything_and_one_too_full_says_that_it_is_useless() -> None:
    bloom = BloomFilter(1_000)
    assert (bloom.fill, bloom.estimated_error, "anything" in bloom) == (0.0, 0.0, False)
    bloom.add_many([str(n) for n in range(20_000)])
    assert bloom.estimated_error > 0.9


def test_adding_twice_does_not_fill_it() -> None:
    bloom = BloomFilter(1_000)
    bloom.add_many(["again"] * 10_000)
    assert bloom.fill < 0.01


@pytest.mark.parametrize(("error_rate", "bits"), [(0.01, 9.6), (0.001, 14.4)])
def test_its_memory_is_that_of_the_theory(error_rate: float, bits: float) -> None:
    assert 8 * BloomFilter(1_000_000, error_rate).bytes / 1_000_000 == pytest.approx(bits, rel=0.01)


@pytest.mark.parametrize("settings", [(0,), (-1,), (1.5,), (10, 0), (10, 1), (10, 0.9)])
def test_senseless_settings_are_refused(settings: tuple) -> None:
    with pytest.raises(DefinitionError, match="Bloom filter is"):
        BloomFilter(*settings)


@settings(deadline=None)
@given(steps=st.lists(st.tuples(st.floats(0, 25), st.text(max_size=5)), max_size=60))
def test_a_rotating_filter_holds_each_fingerprint_for_its_seconds(steps: list[tuple[float, str]]) -> None:
    clock = Clock()
    bloom = RotatingBloom(1_000, seconds=10, clock=clock)
    added: dict[str, float] = {}
    for wait, fingerprint in steps:
        clock.now += wait
        assert [each for each, at in added.items() if clock.now - at < 10 and each not in bloom] == []
        bloom.add(fingerprint)
        added[fingerprint] = clock.now


def test_a_rotating_filter_forgets_after_twice_its_seconds() -> None:
    clock = Clock()
    bloom = RotatingBloom(1_000, seconds=10, clock=clock)
    bloom.add("old")
    for clock.now in (9.9, 10, 15, 19.9):
        bloom.add_many([f"at {clock.now}"])
        assert "old" in bloom
    clock.now = 20
    assert "old" not in bloom
    assert "at 15" in bloom


def test_after_a_pause_everything_is_forgotten_at_once() -> None:
    clock = Clock()
    bloom = RotatingBloom(1_000, seconds=10, clock=clock)
    bloom.add("old")
    clock.now = 20
    assert "old" not in bloom
    assert bloom.estimated_error == 0.0


def test_a_rotating_filter_costs_two_filters_and_errs_like_two() -> None:
    clock = Clock()
    bloom = RotatingBloom(1_000, 0.01, seconds=10, clock=clock)
    one = bloom.bytes
    bloom.add_many([f"first {n}" for n in range(1_000)])
    clock.now = 10
    bloom.add_many([f"second {n}" for n in range(1_000)])
    assert bloom.bytes == 2 * one
    assert bloom.estimated_error == pytest.approx(0.02, rel=0.3)


def test_a_rotating_filter_without_time_is_refused() -> None:
    with pytest.raises(DefinitionError, match="a number above 0, not 0"):
        RotatingBloom(10, seconds=0)
