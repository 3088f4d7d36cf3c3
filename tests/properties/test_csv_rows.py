"""FileSpout reads CSV as Python's ``csv`` does, wherever batches and partitions are cut; or it is an error.

A run of many examples: ROUND_TRIPS=20000 python -m pytest tests/properties/test_csv_rows.py --hypothesis-seed=1
"""

from __future__ import annotations

import csv
import io
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from spouts.harness import Player, flat

from trident_py.errors import SpoutError
from trident_py.extras.file_spout import file_list, readers, row_positions
from trident_py.spouts import FileSpout

EXAMPLES = int(os.environ.get("ROUND_TRIPS", settings.default.max_examples))
often = settings(max_examples=EXAMPLES, deadline=None, database=None, suppress_health_check=list(HealthCheck))
NO_NULL = ("no value",)

pieces = st.sampled_from(['"', '"', ",", ",", "\n", "\n", "\r\n", "\r", "a", "NA", " ", "\t", "\0", "\ufeff", "ü"])
value = st.lists(pieces, max_size=4).map("".join)


def quoted(text: str) -> str:
    return '"{}"'.format(text.replace('"', '""'))


@st.composite
def rows_as_text(draw: st.DrawFn) -> str:
    """Rows of two values; each as it stands, or quoted, or neither by any rule."""
    row = st.tuples(value, value, st.booleans(), st.booleans())
    end = draw(st.sampled_from(["\n", "\r\n"]))
    lines = [f"{quoted(a) if qa else a},{quoted(b) if qb else b}" for a, b, qa, qb in draw(st.lists(row, max_size=5))]
    return end.join(lines) + draw(st.sampled_from([end, ""]))


def parsed(text: str) -> list[list[str]]:
    return list(csv.reader(io.StringIO(text, newline="")))


def is_open(text: str) -> bool:
    """Whether a quote is open at the end of the text."""
    return parsed(text + "\nEND")[-1] != ["END"]


def ends(text: str) -> Iterator[int]:
    """Where a row ends, or would if no quote were open."""
    return (at for at, each in enumerate(text) if each in "\r\n" and text[at : at + 2] != "\r\n")


def is_plain(text: str, multiline: bool) -> bool:
    """Whether the rows are CSV of this kind: two values each, all quotes closed, no CR as a line's end."""
    bare = any(text[at] == "\r" and not is_open(text[:at]) for at in ends(text))
    broken = not multiline and any(text[at] == "\n" and is_open(text[:at]) for at in ends(text))
    return not (is_open(text) or bare or broken) and all(len(row) == 2 for row in parsed(text) if row)


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("csv_rows") / "x.csv"


@pytest.fixture(scope="module", autouse=True)
def small_blocks() -> Iterator[pytest.MonkeyPatch]:
    with pytest.MonkeyPatch.context() as patch:
        yield patch


def read(path: Path, text: str, size: int, partitions: int, multiline: bool) -> tuple[list[list[str]], bool]:
    """The rows up to the first error, and whether there was one."""
    path.write_bytes(text.encode())
    spout = FileSpout(path, ["a", "b"], batchSize=size, multiline=multiline, nulls=NO_NULL)
    player, found = Player(spout, partitions=partitions), []
    try:
        for txid in range(1, len(text) + 2):
            if player.coordination.is_exhausted(txid):
                return found, False
            found += map(list, flat(player.batch(txid)))
    except SpoutError:
        return found, True
    finally:
        player.close()
    raise AssertionError("more batches than characters")


@often
@example('1,a\n2,b\n3,12" vinyl', 1, 1, True, 4)
@example('1,a\n2,12" vinyl\n3,"two\nlines"\n4,c\n', 1, 2, True, 64)
@example('a,"x\n', 1, 1, False, 64)
@example('a,"x\r\ny"\r\n', 5, 1, False, 64)
@example("\ufeffa,b\n\ufeffc,d\n", 1, 1, False, 64)
@example('a,b\rc,d\n', 2, 1, True, 64)
@example("a,b\rc,d\n\n", 2, 1, True, 64)
@given(rows_as_text() | st.lists(pieces).map("".join), st.integers(1, 4), st.integers(1, 3), st.booleans(),
       st.sampled_from([1, 2, 3, 7, 64]))  # fmt: skip
def test_csv_is_what_python_reads(
    path: Path, small_blocks: pytest.MonkeyPatch, text: str, size: int, partitions: int, multiline: bool, block: int
) -> None:
    small_blocks.setattr(file_list, "FIRST_BLOCK", block)
    small_blocks.setattr(row_positions, "BLOCK", block)
    small_blocks.setattr(readers, "BLOCK", block)
    found, failed = read(path, "a,b\n" + text, size, partitions, multiline)
    plain = is_plain(text, multiline)
    assert failed is not plain
    assert not plain or found == [row for row in parsed(text) if row]
