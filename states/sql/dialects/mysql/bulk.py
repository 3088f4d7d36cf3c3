"""Rows in bulk on MySQL and MariaDB: LOAD DATA LOCAL if the server allows it, else INSERT with many rows."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import pyarrow as pa
import sqlalchemy as sa
from sqlalchemy.engine import Engine
from sqlalchemy.schema import CreateTable

from trident_py.databases.error_codes import mysql_code_of
from trident_py.errors import StateError

from ....columns.arrow import KeyedRows
from ....columns.values import Column
from ..base import KEYS, check_taken, names, undo_if_none
from ..bulk import BLOCK_BYTES, Loaded, blocks, insertions, packets
from .table import MySqlTable, Refusing, find_refusing, refuse_engine

_COM_QUERY = 3
ROOM = 4096  # bytes for the text around the values
_NO_ROOM = {3, 1021, 1114, 1118}  # on the disk, or in a row for one more column
NO_STAGE = {1044, 1142, 1148, 1173, 1227, 1286, 1290, 1785, 1786, 1787, 2068, 3748, 3750, 3948, 3950, 4166}
_BOUNDLESS = {"text": "string", "binary": "binary"}
_BY_VARIABLE = {"text": "{0}", "json": "{0}", "binary": "UNHEX(SUBSTRING({0}, 3))"}
_BYTES_OF_A_SIGN = 4
_ROW_BYTES = 30_000  # of the 65,535 that the columns of a row may have together
_MANY = 0.5  # from this share of known keys on, looking up the keys first is faster
_NO_LOCAL = {1148, 2068, 3948, 4166}
_OBJECTIONS = {1048, 1062, 1169, 1216, 1263, 1264, 1265, 1292, 1364, 1366, 1367, 1406, 1411, 1452, 1526, 1586, 1644,
               1690, 1748, 3140, 3157, 3819, 3903, 4025, 4038, 4078}  # fmt: skip
_LOADED = re.compile(rb"(\d+)\D+(\d+)\D+(\d+)\D+(\d+)\D*$")  # not the words: they are in the server's language
_INSERTED = re.compile(rb"(\d+)\D+(\d+)\D+(\d+)\D*$")


class MySqlBulk(MySqlTable):
    """The bulk methods of `MySql`."""

    temporary = "TEMPORARY TABLE"
    aside = ""
    joined = "STRAIGHT_JOIN"
    same = "{0} <=> {1}"
    exact = "CONVERT(CONVERT({0} USING utf8mb4) USING binary)"  # CAST would make NULL of a text longer than a packet
    stage_order = " ORDER BY trident_row"

    def load(
        self, connection: Any, table: str, columns: Sequence[Column], data: Iterable[bytes],
        ignore: bool = False,
    ) -> Loaded:  # fmt: skip
        """Send text in the form of `bulk.blocks` by LOAD DATA LOCAL.

        LOCAL turns every refusal (not only of duplicate keys) into a warning, with or without ``ignore``, so the caller
        compares the counts. Raises the driver's error if the server allows no local files.

        Texts are assigned from variables. In a TEXT column, MariaDB may otherwise keep a pointer into the buffer that
        it reads the next field of the row into (docs/decisions.md, 2026-11-25).
        """
        variables = {c.name: f"@b{i}" for i, c in enumerate(columns) if c.family in _BY_VARIABLE}
        targets = ", ".join(variables.get(column.name, f'"{column.name}"') for column in columns)
        turned = ", ".join(
            f'"{c.name}" = ' + _BY_VARIABLE[c.family].format(variables[c.name])
            for c in columns if c.name in variables
        )  # fmt: skip
        text = (
            f"LOAD DATA LOCAL INFILE 'trident' {'IGNORE ' if ignore else ''}INTO TABLE \"{table}\" "
            f"CHARACTER SET utf8mb4 ({targets}){' SET ' + turned if turned else ''}"
        )
        parts = packets(data, min(BLOCK_BYTES, connection.packet // 2))
        records, _deleted, skipped, warnings = _send_file(connection.raw, text, parts)
        return Loaded(records, skipped, warnings)

    def direct(self, connection: Any, table: str, rows: KeyedRows, known: float, every: bool) -> int | None:
        """IGNORE would also change or drop refused values. So the table must be able to refuse only a value or the key,
        and the server must count as many warnings as rows left out: then each row was left out for its key. A table
        that can refuse more must take every row that is sent, without a warning. Otherwise nothing is written.
        """
        reasons = find_refusing(connection, table, rows)
        if reasons is Refusing.ANY:
            return None
        if not every and (known >= _MANY or (known > 0 and reasons is Refusing.MORE)):
            rows = self._select_missing(connection, table, rows)
            if len(rows) == 0:
                return 0
        every = every or reasons is Refusing.MORE

        def insert() -> int | None:
            try:
                loaded = self._insert_ignoring(connection, table, rows)
            except Exception as error:
                if self.refuses(error):
                    return None
                raise
            left_out = 0 if every else loaded.skipped
            return loaded.records - loaded.skipped if loaded == (len(rows), left_out, left_out) else None

        return undo_if_none(connection, insert)

    def stage(self, engine: Engine, connection: Any, table: str, columns: Sequence[Column], name: str) -> None:
        wide = _wide(columns)
        stored = [
            sa.Column(c.name, self.storage(c), primary_key=i == 0, autoincrement=False)
            for i, c in enumerate(wide)
        ]
        refuse_engine(connection, table)
        options = self.table_options(connection, True)
        temporary = sa.Table(name, sa.MetaData(), *stored, prefixes=["TEMPORARY"], **options)
        connection.execute(str(CreateTable(temporary).compile(dialect=engine.dialect)))

    def stage_to_read(
        self, connection: Any, table: str, columns: Sequence[Column], arrays: Sequence[pa.Array], name: str
    ) -> str | None:
        """Fill a temporary table of Aria, without an index and with the types of the table's own columns.

        Aria takes no part in the transaction: a rollback to a savepoint would not restore what is deleted there.
        """
        refuse_engine(connection, table)
        if not has_aria(connection):
            return None
        row, *others = columns
        temporary_like(connection, table, name, f'CAST(0 AS SIGNED) AS "{row.name}", {names(others)}')
        self.fill(connection, name, columns, arrays, temporary=True)
        return "CONVERT({0} USING binary)"

    def cannot_stage(self, error: BaseException) -> bool:
        """Also for an error of a SELECT: Aria writes pages that it still keeps in memory when it needs their place."""
        refused = isinstance(error, StateError) or self.refuses(error)
        return refused or mysql_code_of(error) in NO_STAGE | _NO_ROOM

    def fill(
        self, connection: Any, table: str, columns: Sequence[Column], arrays: Sequence[pa.Array],
        temporary: bool = False,
    ) -> None:  # fmt: skip
        """Write all rows. Raises StateError if the server changed or left out a value."""
        try:
            loaded = self.load(connection, table, columns, blocks(columns, arrays))
        except Exception as error:
            if not _is_closed_to_files(error):
                raise
            self.send(connection, table, columns, arrays)
            return
        if loaded.warnings:
            why = _first_warning(connection)
            raise StateError(f"the server changed values while loading them into table {table!r}: {why}")
        check_taken(table, len(arrays[0]), loaded.records - loaded.skipped)

    def send(
        self, connection: Any, table: str, columns: Sequence[Column], arrays: Sequence[pa.Array], tail: str = "",
        size: int = BLOCK_BYTES,
    ) -> None:  # fmt: skip
        """Insert the rows in statements of about ``size`` bytes, each with the ``tail`` at its end."""
        head, end = _insert_text("INSERT", table, columns), tail.encode()
        blocks = insertions(columns, arrays, size, int(connection.packet) - ROOM)
        check_taken(table, len(arrays[0]), sum(connection.raw.query(head + block + end) for block in blocks))

    def unless_there(self, keys: Sequence[Column]) -> str:
        """None: INSERT IGNORE would ignore more than duplicate keys."""
        return ""

    def instead(self, connection: Any, keys: Sequence[str], others: Sequence[str], of: str = "") -> str:
        new = name_incoming(connection, of)
        changes = ", ".join(f'"{name}" = {new.value.format(name)}' for name in others or keys)
        return f"{new.alias} ON DUPLICATE KEY UPDATE {changes}"

    def longest(self, connection: Any, columns: Sequence[Column] | None = None) -> int | None:
        """Return the limit of a packet: a statement is one, and a longer one ends the connection. LOAD DATA is sent in
        many packets; but the function that it needs for bytes turns longer ones into NULL."""
        loads = columns is not None and connection.takes_files and not any(c.family == "binary" for c in columns)
        return None if loads else int(connection.packet) - ROOM

    def refuses(self, error: BaseException) -> bool:
        return mysql_code_of(error) in _OBJECTIONS

    def _select_missing(self, connection: Any, table: str, rows: KeyedRows) -> KeyedRows:
        """Return the rows whose key the table lacks, each key once; all rows if the server takes no temporary table of
        keys.

        The keys are compared as the table's own index does: a temporary column has the type of its column.
        """
        unique = rows.unique()
        columns = [Column("trident_row", "bigint"), *rows.keys]
        arrays = [pa.array(range(len(unique)), pa.int64()), *(rows.arrays[i].take(unique) for i in rows.at)]
        same = " AND ".join(f't."{key.name}" = k."{key.name}"' for key in rows.keys)
        try:
            temporary_like(connection, table, KEYS, f"CAST(0 AS SIGNED) AS trident_row, {names(rows.keys)}")
            self.fill(connection, KEYS, columns, arrays)
            numbers = connection.execute(
                f'SELECT k.trident_row FROM {KEYS} AS k LEFT JOIN "{table}" AS t ON {same}'
                f' WHERE t."{rows.keys[0].name}" IS NULL ORDER BY k.trident_row'
            ).fetchall()
        except Exception as error:
            if self.cannot_stage(error):
                return rows
            raise
        finally:
            with contextlib.suppress(Exception):
                connection.execute(f"DROP TEMPORARY TABLE IF EXISTS {KEYS}")
        return rows.take(unique.take(pa.array([row[0] for row in numbers], pa.int64())))

    def _insert_ignoring(self, connection: Any, table: str, rows: KeyedRows) -> Loaded:
        try:
            parts = (rows.take(positions) for positions in rows.in_key_order())
            data = (block for part in parts for block in blocks(part.columns, part.arrays))
            return self.load(connection, table, rows.columns, data, ignore=True)
        except Exception as error:
            if not _is_closed_to_files(error):
                raise
        inserted = warnings = 0
        text = _insert_text("INSERT IGNORE", table, rows.columns)
        for positions in rows.in_key_order():
            for block in insertions(rows.columns, rows.take(positions).arrays, most=int(connection.packet) - ROOM):
                inserted += connection.raw.query(text + block)
                warnings += _warnings(connection.raw._result)
        return Loaded(len(rows), len(rows) - inserted, warnings)


class Incoming(NamedTuple):
    """How an upsert names the rows that are inserted, and the format of a column of theirs."""

    alias: str
    value: str


def name_incoming(connection: Any, of: str = "") -> Incoming:
    """Return the SQL for `Dialect.instead`. MySQL has deprecated VALUES(column), MariaDB has nothing else."""
    if not connection.names_rows:
        return Incoming("", 'VALUES("{}")')
    return Incoming("" if of else " AS trident_new", f'{of or "trident_new"}."{{}}"')


def _wide(columns: Sequence[Column]) -> list[Column]:
    """Return columns for all checked values. Texts keep their length, which is faster, if such columns fit into a
    row."""
    sized = [column for column in columns if column.family == "text" and column.sizes]
    kept = sized if sum(_BYTES_OF_A_SIGN * column.sizes[0] for column in sized) < _ROW_BYTES else []
    return [Column(c.name, c.ddl if c in kept else _BOUNDLESS.get(c.family, c.ddl)) for c in columns]


def temporary_like(connection: Any, table: str, name: str, columns: str) -> None:
    """Create an empty temporary table of these columns of ``table``. MariaDB's Aria keeps no log for it and reads rows
    in insertion order, which halves the time."""
    engine = " ENGINE=Aria TRANSACTIONAL=0" if has_aria(connection) else ""
    connection.execute(f'CREATE TEMPORARY TABLE "{name}"{engine} AS SELECT {columns} FROM "{table}" LIMIT 0')


def has_aria(connection: Any) -> bool:
    """Return whether the server has the engine Aria. Asked once for each connection."""
    if connection.aria is None:
        text = "SELECT count(*) FROM information_schema.engines WHERE engine = 'Aria' AND support <> 'NO'"
        connection.aria = connection.execute(text).fetchone()[0] > 0
    return bool(connection.aria)


def _insert_text(verb: str, table: str, columns: Sequence[Column]) -> bytes:
    return f'{verb} INTO "{table}" ({names(columns)}) VALUES '.encode()


def _warnings(result: Any) -> int:
    """Return the number of warnings, from the message: the server's warning count ends at 65535."""
    counts = _INSERTED.search(result.message or b"")
    return int(counts.group(3)) if counts else int(result.warning_count)


def _first_warning(connection: Any) -> str:
    warning = connection.execute("SHOW WARNINGS LIMIT 1").fetchone()
    return str(warning[2]) if warning else "it read a different number of rows"


def _is_closed_to_files(error: BaseException) -> bool:
    return mysql_code_of(error) in _NO_LOCAL


def _send_file(raw: Any, text: str, data: Iterable[bytes]) -> list[int]:
    """Answer the server's request for a file with the data; return the counts in its final answer.

    Connections allow no local files elsewhere, so a server that requests a file in answer to another statement gets
    none. If the data cannot be sent completely, the connection is closed.
    """
    raw._execute_command(_COM_QUERY, text)
    if not raw._read_packet().is_load_local_packet():
        raise RuntimeError("the server did not request the data of LOAD DATA")
    try:
        for packet in data:
            raw.write_packet(packet)
    except BaseException:
        raw._force_close()  # an end of file would make the partial data count as all
        raise
    raw.write_packet(b"")
    answer = raw._read_packet()
    counts = _LOADED.search(answer.get_all_data())
    if counts is None:
        raise RuntimeError("the server did not count the rows of LOAD DATA")
    return [int(number) for number in counts.groups()]
