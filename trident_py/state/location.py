"""Where a state keeps its data: what two states must not have in common."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True)
class Location:
    """A value that a factory tells without opening anything (`StateFactory.location`).

    ``stores``: the store's addresses, each in one spelling (absolute files without links, ``host:port/database``,
    brokers); two stores are one if they have an address in common. ``names``: its tables or its topic there.
    ``shared``: "" if the state must be the only one, because it reads back what it wrote, or what it writes depends on
    what is there. Else how others may write beside it, those that say the same. ``shown``: for eyes, without secrets.
    """

    stores: frozenset[str]
    names: frozenset[str]
    shared: str = ""
    shown: str = field(default="", compare=False)

    def meets(self, other: Location) -> bool:
        """Whether something of both is in one place."""
        return bool(self.stores & other.stores and self.names & other.names)

    def admits(self, other: Location) -> bool:
        """Whether both may be written, by two states."""
        return not self.meets(other) or (self.shared != "" and self.shared == other.shared)
