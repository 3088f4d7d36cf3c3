"""Checkpoints that earlier versions wrote go on; a later version's is refused. ``tests/data/checkpoints`` keeps one
folder for each format: its driver was killed in batch 4, when a state had committed in one partition."""

from __future__ import annotations

import json
import re
import shutil
import zlib
from pathlib import Path

import pytest
from faults.stores import read

from trident_py import LocalCluster
from trident_py.engine.store_position import FORMAT
from trident_py.errors import TopologyError

from . import both
from .both import Order, obey

KEPT = Path(__file__).parents[1] / "data" / "checkpoints"
LAST = 8


@pytest.fixture(params=[f"format_{number}" for number in range(1, FORMAT + 1)])
def kept(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    return Path(shutil.copytree(KEPT / request.param, tmp_path / "kept"))


def test_a_checkpoint_of_every_format_goes_on_in_the_middle_of_its_batch(kept: Path) -> None:
    url = f"sqlite:///{kept / 'store.db'}"
    assert {txid for (txid,) in read(url, "SELECT txid FROM trident_fence")} == {3}
    assert obey(Order(str(kept), url, "local", LAST)) == 0
    both.exact(url, LAST)


def test_a_checkpoint_of_a_later_format_is_refused_in_words(kept: Path) -> None:
    (journal,) = kept.glob("checkpoints/*/*/journal")
    journal.write_text("".join(map(later, journal.read_text().splitlines(keepends=True))))
    before = journal.read_bytes()
    url = f"sqlite:///{kept / 'store.db'}"
    with LocalCluster(str(kept / "checkpoints")) as cluster, pytest.raises(TopologyError, match=refusal()):
        cluster.submitTopology(both.NAME, {}, both.build(url, kept, LAST)).awaitTermination(60)
    assert journal.read_bytes() == before
    assert {txid for (txid,) in read(url, "SELECT txid FROM trident_fence")} == {3}


def refusal() -> str:
    return f"has format {FORMAT + 1}, this version of trident_py reads {FORMAT}: start it with the version that wrote"


def later(line: str) -> str:
    """The line of a journal, with the next format in the record of a start."""
    found = re.fullmatch(r"[0-9a-f]{8} (\[\d+,\"component\".*\])\n", line)
    if found is None:
        return line
    durable, path, txid, record = json.loads(found[1])
    text = json.dumps([durable, path, txid, {**record, "format": FORMAT + 1}], separators=(",", ":"))
    return f"{zlib.crc32(text.encode()):08x} {text}\n"
