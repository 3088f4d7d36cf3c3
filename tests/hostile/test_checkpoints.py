"""A checkpoint that is not what was written: it is told with the file, nothing is written, a copy goes on."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from linked_files import LinkedFiles

from states.sql import SqlMapState
from states.sql.store import close_stores
from trident_py import LocalCluster, TopologyError, TridentTopology
from trident_py.checkpoints.batch_log import BatchLog
from trident_py.checkpoints.versioned_store import VersionedStore
from trident_py.operations.builtin import Count
from trident_py.spouts import FileSpout
from trident_py.testing import stored

from .drawing import FOREIGN, damaged, often, refusal

WORDS = [f"w{n % 4}" for n in range(18)]
Files = dict[str, bytes]


class Place:
    """A folder with the input, a store, and the checkpoint of a run that ended in its third batch of six."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.state = SqlMapState.opaque(f"sqlite:///{folder}/store.db", "counts", "word string", "count bigint")
        (folder / "words.txt").write_text("".join(f"{word}\n" for word in WORDS))
        (folder / "stop").touch()
        with pytest.raises(TopologyError, match="asked by the test"):
            self.run()
        (folder / "stop").unlink()
        self.before = self.files()
        self.parts = [name for name in self.before if "/" in name and not name.endswith("/lock")]

    def run(self) -> None:
        seen, stop = Counter[str](), self.folder / "stop"

        def passed(word: str) -> bool:
            seen[word] += 1
            if stop.exists() and seen.total() > 7:
                raise RuntimeError("asked by the test")
            return True

        topology = TridentTopology()
        lines = topology.newStream("lines", FileSpout(self.folder / "words.txt", "word string", 3))
        lines.filter("word", passed).groupBy("word").persistentAggregate(self.state, Count(), "count")
        try:
            with LocalCluster(str(self.folder / "checkpoints")) as cluster:
                assert cluster.submitTopology("hostile", {}, topology.build()).awaitTermination(60)
        finally:
            close_stores()

    def files(self) -> Files:
        files = (file for file in self.folder.rglob("*") if file.is_file() and file.name != "words.txt")
        return {str(file.relative_to(self.folder)): file.read_bytes() for file in files}

    def restore(self, files: Files) -> None:
        for name in self.files():
            (self.folder / name).unlink()
        for name, content in files.items():
            (self.folder / name).write_bytes(content)

    def exact(self) -> bool:
        found = {word: value.curr for (word,), value in stored(self.state).items()}
        close_stores()
        return found == Counter(WORDS)


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    yield Place(tmp_path_factory.mktemp("checkpoint"))


@often(20, 2_000)
@given(data=st.data())
def test_any_damage_of_the_journal(place: Place, data: st.DataObject) -> None:
    name = data.draw(st.sampled_from(place.parts))
    content = data.draw(damaged(place.before[name], [*FOREIGN, place.before[name], place.before[name][:40]]))
    given = {**place.before, name: content}
    place.restore(given)
    error = refusal(place.run, str(place.folder))
    if error is not None:
        left = place.files()
        assert content.startswith(left.pop(name)), "at most an incomplete end is dropped, which is told"
        written = {each for each, now in left.items() if given.get(each) != now}
        assert not written, f"{written} was written before: {error}"
        place.restore(place.before)
        place.run()
    assert place.exact()


def batches(folder: Path) -> BatchLog:
    return BatchLog(VersionedStore(LinkedFiles(folder)), str(folder), "t", lambda: {"order": "0"})


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, bytes]:
    """The one file of a log whose first batch is over and whose second has begun."""
    folder = tmp_path_factory.mktemp("versions")
    log = batches(folder)
    log.take()
    log.begin(1, {"s": {"at": 12.5}})
    log.end(1, {"s": {"at": 12.5}})
    log.begin(2, {"s": {"at": [17, "é"]}})
    [file] = (folder / "log").iterdir()
    return file, file.read_bytes()


@often(60, 2_000)
@given(data=st.data())
def test_any_damage_of_a_log_file_in_a_store_of_files(written: tuple[Path, bytes], data: st.DataObject) -> None:
    file, good = written
    folder = file.parents[1]
    file.write_bytes(good)
    known = batches(folder).last(), batches(folder).find_begun(2)
    content = data.draw(damaged(good))
    file.write_bytes(content)
    found: list[object] = []
    error = refusal(lambda: found.extend((batches(folder).last(), batches(folder).find_begun(2))), str(file))
    assert error is not None or tuple(found) == known, "what was damaged was taken for what was written"
    assert [each.read_bytes() for each in file.parent.iterdir()] == [content], "something was written"
    file.write_bytes(good)
    assert (batches(folder).last(), batches(folder).find_begun(2)) == known


NAMES = st.text(st.characters(categories=["Nd", "No", "Nl", "L", "P"], exclude_characters="/"), min_size=1, max_size=8)


@example(stray="²", ending=".json")  # a digit to Python, but no number
@example(stray="٣", ending=".json")  # a number, but not as we write it
@often(60, 2_000)
@given(stray=NAMES | st.from_regex(r"[-+_ ]?[0-9]{1,9}", fullmatch=True), ending=st.sampled_from([".json", ".new", ""]))
def test_any_file_beside_those_of_a_log_in_a_store_of_files(
    written: tuple[Path, bytes], stray: str, ending: str
) -> None:
    """A name that is no version of ours is left alone; one that is counts, and has nothing that a version has."""
    file, _ = written
    folder, beside = file.parents[1], file.with_name(stray + ending)
    known = batches(folder).last(), batches(folder).find_begun(2)
    if beside.exists() or stray in (".", ".."):
        return
    beside.write_bytes(b"")
    found: list[object] = []
    try:
        error = refusal(lambda: found.extend((batches(folder).last(), batches(folder).find_begun(2))), str(folder))
        assert error is not None or tuple(found) == known
        assert beside.read_bytes() == b"" and len(list(file.parent.iterdir())) == 2
    finally:
        beside.unlink()
