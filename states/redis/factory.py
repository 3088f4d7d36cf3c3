"""What the factories of both states in Redis share."""

from __future__ import annotations

from collections.abc import Sequence

from trident_py.state import Location, Needs, Reading

from ..diagnostics import Finding
from . import durability
from .location import RedisPlace
from .server import needs_of_server


class RedisFactory:
    """Inherited before StateFactory by the factories, which are frozen dataclasses with these fields."""

    url: str
    hash: str | None

    @property
    def stateName(self) -> str:
        return "strings" if self.hash is None else self.hash

    @property
    def needs(self) -> Needs:
        return needs_of_server(self.url)

    @property
    def location(self) -> Location:
        return self.place.location

    @property
    def reading(self) -> Reading:
        return Reading.CURRENT

    @property
    def place(self) -> RedisPlace:
        return RedisPlace(self.url, self.hash)

    @property
    def remark(self) -> str:
        """The condition of the guarantee, for the table."""
        return durability.REMARK

    def check(self) -> Sequence[Finding]:
        """Look at the server and write nothing."""
        return durability.findings(self.place.server)
