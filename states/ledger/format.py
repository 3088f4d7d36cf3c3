"""The format of ledgers in stores. Format 1 carries no number; a later one does: in SQL in a column ``format`` of
`trident_fence`, elsewhere under the name ``ledger_format`` in the row, the record or the mark."""

from __future__ import annotations

from typing import Any

from trident_py.errors import StateError

FORMAT = 1
NAME = "ledger_format"


def check_format(shown: str, found: Any) -> None:
    """Raise StateError for a ledger of a later format. ``found``: the number that it carries; None if none."""
    number = 1 if found is None else int(found)
    if number > FORMAT:
        raise StateError(
            f"{shown}: its ledger has format {number}, this version of trident_py reads {FORMAT}: start it with the "
            "version that wrote it. Nothing was changed"
        )
