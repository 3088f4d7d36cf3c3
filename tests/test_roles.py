"""Roles on every version of Python: the object itself is asked for the methods."""

from __future__ import annotations

from typing import Any

from trident_py.model.requirements import HasNeeds
from trident_py.operations.roles import Keeps, Prepares
from trident_py.state.roles import RollsBack


class Even(Keeps):
    def isKeep(self, tuple: Any) -> bool:
        return bool(tuple[0] % 2 == 0)

    def rollback(self, txid: int | None) -> None: ...


class PassedOn:
    def __init__(self, inner: Any) -> None:
        self.inner = inner

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)


def test_an_object_that_passes_calls_on_plays_the_roles_of_what_is_behind_it() -> None:
    for thing in (Even(), PassedOn(Even())):
        played = [role for role in (Keeps, RollsBack, Prepares, HasNeeds) if isinstance(thing, role)]
        assert played == [Keeps, RollsBack]


def test_a_class_that_inherits_from_a_role_is_not_one() -> None:
    assert isinstance(Even(), Even)
    assert not isinstance(PassedOn(Even()), Even)
