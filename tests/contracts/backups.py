"""A copy of all tables of a database, in memory, and putting it back: as a restored backup, without a restart."""

from __future__ import annotations

import sqlalchemy as sa

from states.sql.store import Store

Tables = dict[str, list[tuple]]


def tables_of(store: Store) -> Tables:
    with store.reading() as connection:
        found = {
            name: connection.execute(f'SELECT * FROM "{name}"').fetchall()
            for name in sa.inspect(store.engine).get_table_names()
        }
    return {name: [tuple(row) for row in rows] for name, rows in found.items()}


def put_back(store: Store, tables: Tables) -> None:
    """The rows of the tables are those of the copy. Tables made since are empty."""
    with store.writing() as connection:
        for name in sa.inspect(store.engine).get_table_names():
            connection.execute(f'DELETE FROM "{name}"')
            if rows := tables.get(name):
                places = ", ".join("?" * len(rows[0]))
                connection.executemany(f'INSERT INTO "{name}" VALUES ({places})', rows)
