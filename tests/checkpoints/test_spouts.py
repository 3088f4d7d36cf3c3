"""A checkpoint and the spouts of its topology: a batch that has begun is not replayed with other spouts.

The campaign of `faults` kills drivers with spouts that keep their position in what each batch is said to be.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from states.sql import SqlMapState
from states.sql.store import close_stores, parse_url, store_of
from trident_py import LocalCluster, TridentTopology
from trident_py.errors import TopologyError
from trident_py.operations.builtin import Count
from trident_py.testing import Crashing, FixedBatchSpout
from trident_py.testing.databases import connection


class Words(FixedBatchSpout):
    def __init__(self, stream: str) -> None:
        super().__init__("word", 1, *[[stream] for _ in range(4)])


def count(folder: Path, streams: str, fails: int | None = None, kind: str = "transactional") -> dict[str, int]:
    """Counts each stream's tuples. The run ends behind the map's commit in the batch that fails."""
    topology = TridentTopology()
    made = [topology.newStream(name, Words(name)) for name in streams]
    words = topology.merge(*made) if len(made) > 1 else made[0]
    url = f"sqlite:///{folder}/counts.db"
    state = getattr(SqlMapState, kind)(url, "counts", ["word string"], "n bigint")
    weak = Crashing(state, "afterCommit", set() if fails is None else {(fails, 0)}, how="error")
    words.groupBy("word").persistentAggregate(weak, Count(), "n")
    with LocalCluster(str(folder / "checkpoints")) as cluster:
        cluster.submitTopology("t", {}, topology.build()).awaitTermination()
    with store_of(parse_url(url)).reading() as connection:
        return dict(connection.execute('SELECT "word", "n" FROM "counts"').fetchall())


@pytest.mark.parametrize(("before", "after"), [("a", "ab"), ("ab", "a"), ("ab", "ac")])
def test_a_begun_batch_is_not_replayed_with_other_spouts(tmp_path: Path, before: str, after: str) -> None:
    """Its map may have the batch already: tuples of a new spout would be lost, and those of a missing one."""
    with pytest.raises(TopologyError, match="afterCommit in txid 2"):
        count(tmp_path, before, fails=2)
    folder = tmp_path / "checkpoints" / "t"
    written, read = (folder / "%2B".join(streams) for streams in (before, after))
    written.rename(read)
    told = f"has begun batch 2 with the streams {', '.join(before)}; the topology has the streams {', '.join(after)} "
    with pytest.raises(TopologyError, match=rf"{told}.* until batch 2 is over, then change them"):
        count(tmp_path, after)
    read.rename(written)
    assert count(tmp_path, before) == dict.fromkeys(before, 4)
    written.rename(read)
    count(tmp_path, after)  # no batch has begun


def test_a_begun_batch_is_not_replayed_by_a_state_of_another_kind(tmp_path: Path) -> None:
    """A value that a transactional map has left has no previous one: an opaque map would count from zero."""
    with pytest.raises(TopologyError, match="afterCommit in txid 2"):
        count(tmp_path, "a", fails=2)
    column = f"sqlite:///{tmp_path}/counts.db", "ALTER TABLE counts ADD COLUMN prev_n BIGINT"
    run(*column)
    with pytest.raises(TopologyError, match=r"of kind transactional; .* of kind opaque.* until batch 2 is over"):
        count(tmp_path, "a", kind="opaque")
    run(column[0], "ALTER TABLE counts DROP COLUMN prev_n")
    assert count(tmp_path, "a") == {"a": 4}
    run(*column)
    assert count(tmp_path, "a", kind="opaque") == {"a": 4}


def run(url: str, text: str) -> None:
    close_stores()
    with connection(url) as one:
        one.exec_driver_sql(text)
