"""What counts as growth in a soak."""

from __future__ import annotations

from faults.soak import find_growth, is_flat, lasts

MIB = float(1 << 20)


def test_growth_is_what_the_last_third_has_beyond_the_middle_one() -> None:
    assert find_growth({"driver: threads": [1, 1, 5, 6, 7, 9, 8, 9], "few": [1, 2]}) == {"driver: threads": (5.5, 8.5)}


def test_a_twentieth_and_little_are_flat_and_more_is_not() -> None:
    assert is_flat("driver: memory", 600 * MIB, 629 * MIB)
    assert not is_flat("driver: memory", 600 * MIB, 631 * MIB)
    assert is_flat("tables: rows", 4, 8)
    assert not is_flat("tables: rows", 4, 9)
    assert not is_flat("gateway: sockets", 100, 106)


def test_only_what_lives_through_all_kills_shows_growth() -> None:
    names = ["driver: memory", "broker: memory", "tables: rows", "log: checkpoint files"]
    assert [name for name in names if lasts(name, "broker")] == names[1:]
