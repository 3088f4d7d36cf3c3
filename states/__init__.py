"""States with a store of their own: where, and how. `trident_py` decides when, and under which txid.

`states.sql` keeps maps and rows in SQL tables. A third party adds a store through the entry point group
``trident_py.states``.
"""

from .rows import InsertIgnoreUpdater, RowUpdater

__all__ = ["InsertIgnoreUpdater", "RowUpdater"]
