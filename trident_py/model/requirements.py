"""What a state or a spout needs on each machine that runs its tasks, said before anything is started; and roles."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, fields
from typing import Any, Protocol, TypeVar, cast, runtime_checkable

from ..errors import DefinitionError

Role = TypeVar("Role", bound=type)
_ADDRESS = re.compile(r"\s*(\[[^\]\s]+\]|[^\s,:/@]+):(\d{1,5})\s*")


@dataclass(frozen=True)
class Needs:
    """What must be there on each machine that runs tasks. A cluster checks it before the start (`docs/doctor.md`).

    ``modules``: names that are imported. ``install``: the packages that bring them, as pip takes them. ``addresses``:
    "host:port"; of several in one text, "a:9092,b:9092", one must answer. ``paths``: files, folders and sockets that
    must exist there. ``one_machine``: if set, the tasks must all run on one machine, and this says why. ``home``: the
    data lives in the driver process, and the tasks reach it there. ``executors``: if set, no task may run in the driver
    process, however small the batch (docs/small_batches.md), and this says why.

    No value may hold a secret: all of them are shown. Raises DefinitionError for a malformed address.
    """

    modules: tuple[str, ...] = ()
    install: str = ""
    addresses: tuple[str, ...] = ()
    paths: tuple[str, ...] = ()
    one_machine: str = ""
    home: bool = False
    executors: str = ""

    def __post_init__(self) -> None:
        for field in ("modules", "addresses", "paths"):
            given: Any = vars(self)[field]
            values = (given,) if isinstance(given, str) else tuple(given)
            if not all(isinstance(value, str) for value in values):
                raise DefinitionError(f"Needs: {field} must be texts, got {given!r}")
            object.__setattr__(self, field, values)
        for address in self.addresses:
            split_addresses(address)

    def __bool__(self) -> bool:
        return any(vars(self)[field.name] for field in fields(self))


def role(protocol: Role) -> Role:
    """Make isinstance ask the object for the members of a runtime-checkable protocol. Since Python 3.12 it looks for
    them without asking, so an object that passes calls on (``__getattr__``) would play no role."""
    kind = cast(Any, type(protocol))
    names = [name for name in vars(protocol) if not name.startswith("_")]

    class Asked(kind):  # type: ignore[misc,valid-type]
        def __instancecheck__(cls, thing: object) -> bool:
            return all(hasattr(thing, name) for name in names) if cls is protocol else super().__instancecheck__(thing)

    protocol.__class__ = Asked
    return protocol


@role
@runtime_checkable
class HasNeeds(Protocol):
    """A spout, or a factory of states, that says what it needs. Read on the driver, before the start. Of an operation's
    needs only ``executors`` is read."""

    @property
    def needs(self) -> Needs: ...


def needs_of(thing: object) -> Needs:
    """Return the needs of a spout, factory or operation; none if it does not say. Raises DefinitionError for another
    type."""
    needs = thing.needs if isinstance(thing, HasNeeds) else Needs()
    if not isinstance(needs, Needs):
        raise DefinitionError(f"needs of {thing!r} must be a trident_py.state.Needs, got {needs!r}")
    return needs


def split_addresses(text: str) -> list[tuple[str, int]]:
    """Return the hosts and ports of "a:9092,[::1]:9093". Raises DefinitionError for any other text."""
    found = [_ADDRESS.fullmatch(part) for part in text.split(",")]
    if not all(found):
        raise DefinitionError(f"Needs: {text!r} is not an address such as 'db:3306', or several with commas")
    return [(match[1].strip("[]"), int(match[2])) for match in found if match is not None]


def address_of(host: str, port: int | str) -> str:
    """Return ``host:port``; an IPv6 address in brackets."""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def together(*several: Needs) -> Needs:
    """Return the modules, addresses and paths of several, each once; ``install`` names all packages."""
    return Needs(
        modules=_each_once(value for needs in several for value in needs.modules),
        install=" ".join(_each_once(package for needs in several for package in needs.install.split())),
        addresses=_each_once(value for needs in several for value in needs.addresses),
        paths=_each_once(value for needs in several for value in needs.paths),
        one_machine="; ".join(_each_once(needs.one_machine for needs in several if needs.one_machine)),
        home=any(needs.home for needs in several),
        executors="; ".join(_each_once(needs.executors for needs in several if needs.executors)),
    )


def _each_once(values: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(values))
