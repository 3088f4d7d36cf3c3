"""Location: where a state keeps its data. Two states of a topology must not share a place."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True)
class Location:
    """The place of a state's data. A factory gives it without opening anything (`StateFactory.location`).

    ``stores``: the store's addresses, each in one spelling (absolute files without links, ``host:port/database``,
    brokers); two stores with a common address are one. ``names``: its tables or its topic there. ``shared``: "" if the
    state must be the only writer, because it reads back what it wrote, or its writes depend on existing data; otherwise
    only states with the same ``shared`` may write beside it. ``shown``: the place in messages, without secrets.
    """

    stores: frozenset[str]
    names: frozenset[str]
    shared: str = ""
    shown: str = field(default="", compare=False)

    def meets(self, other: Location) -> bool:
        """Whether both have a table or topic in common."""
        return bool(self.stores & other.stores and self.names & other.names)

    def admits(self, other: Location) -> bool:
        """Whether two states may write both places."""
        return not self.meets(other) or (self.shared != "" and self.shared == other.shared)
