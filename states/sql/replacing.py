"""For states whose rows take the place of others: the table may have no second way to be 'the same row'."""

from __future__ import annotations

from trident_py.errors import StateError

from .table import Place, Shape


def one_key(place: Place, shape: Shape) -> Shape:
    """The shape, once it is sure that an upsert can only hit the row that has its key.

    Asked when the table is prepared, once per process and shape. Raises StateError for a further unique index.
    """
    store = place.stores()[0]
    asked = ("one key", place, shape)
    if not shape.keys or asked in store.ready:
        return shape
    with store.errors(f"look at the indexes of table {place.table!r}"), store.reading() as connection:
        others = store.dialect.other_unique(connection, place.table, shape.keys)
    if others:
        keys = ", ".join(column.name for column in shape.keys)
        raise StateError(
            f"table {place.table!r} in {store.shown} has a further unique index {', '.join(map(repr, others))} beside "
            f"the key ({keys}): a row that is equal to another row in it would silently overwrite that row, whatever "
            "its key. Drop the index or make it a plain one, or use another table"
        )
    store.ready[asked] = True
    return shape
