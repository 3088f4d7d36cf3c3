"""What SQLite and PostgreSQL have in common: ON CONFLICT, which names the key that it means."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .columns import Column
from .dialect import names, replacing_text


class OnConflict:
    """The methods of such a dialect."""

    def longest(self, connection: Any, columns: Sequence[Column] | None = None) -> int | None:
        return None

    def other_unique(self, connection: Any, table: str, keys: Sequence[Column]) -> list[str]:
        return []  # a row that another unique index refuses is an error

    def unless_there(self, keys: Sequence[Column]) -> str:
        return f" ON CONFLICT ({names(keys)}) DO NOTHING"

    def instead(self, keys: Sequence[str], others: Sequence[str]) -> str:
        """What ends INSERT ... SELECT: a row whose key is there takes the new values."""
        return replacing_text(keys, others)
