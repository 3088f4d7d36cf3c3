"""Metadata stores: small, JSON, durable."""

from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

import pytest
from linked_files import LinkedFiles

from trident_py.checkpoints.append_log import AppendLogStore
from trident_py.checkpoints.uri_folder import open_folder
from trident_py.checkpoints.versioned_store import VersionedStore
from trident_py.errors import SpoutError, ZombieError
from trident_py.spouts import MemoryMetadataStore


def in_hadoop(kind, request):
    """Stores on one folder in HDFS or S3."""
    import remotes

    from trident_py.spark.hadoop_folder import HadoopFolder

    spark = request.getfixturevalue("spark")
    place = remotes.for_spark(kind, request.getfixturevalue(kind))
    for key, value in place.settings.items():
        spark.conf.set(key, value)
    return lambda: VersionedStore(HadoopFolder(spark, place.uri))


def without_spark(kind, request):
    import remotes

    place = remotes.folder(kind, request.getfixturevalue(kind))
    folder = open_folder(place.uri, place.storage)
    return lambda: VersionedStore(folder)


OWN = [pytest.param(f"own-{kind}", marks=pytest.mark.servers) for kind in ("hdfs", "s3")]  # without Spark
HADOOP = [
    pytest.param(
        kind, marks=[pytest.mark.spark, pytest.mark.whole("test_who_has_read_that_there_is_nothing_writes_over_nobody")]
    )
    for kind in ("hdfs", "s3")
]


WHOLE = [*(pytest.param(*own.values, marks=[pytest.mark.servers, HADOOP[0].marks[1]]) for own in OWN), *HADOOP]


def maker(kind, request, tmp_path):
    """Makes stores that share one folder, as drivers do."""
    if kind == "journal":
        return lambda: AppendLogStore(tmp_path / "meta")
    if kind == "versions":
        return lambda: VersionedStore(LinkedFiles(tmp_path / "meta"))
    if kind.startswith("own-"):
        return without_spark(kind.removeprefix("own-"), request)
    return in_hadoop(kind, request)


@pytest.fixture(params=["journal", "versions", *OWN, *HADOOP])
def stores(request, tmp_path):
    return maker(request.param, request, tmp_path)


@pytest.fixture(params=["memory", "journal", "versions", *WHOLE])
def store(request, tmp_path):
    return MemoryMetadataStore() if request.param == "memory" else maker(request.param, request, tmp_path)()


def test_what_was_put_is_found_under_its_txid_only(store):
    store.put("s/user/p", 3, {"at": [1, None, "x"]})
    assert store.get("s/user/p", 3) == {"at": [1, None, "x"]}
    assert store.get("s/user/p", 2) is None
    assert store.get("s/user/q", 3) is None


def test_previous_is_the_closest_earlier_txid(store):
    store.put("p", 2, "two")
    store.put("p", 5, "five")
    assert [store.previous("p", txid) for txid in (2, 3, 5, 6)] == [None, "two", "two", "five"]


def test_later_txids_are_known_and_entries_can_be_removed(store):
    store.put("p", 2, "two")
    assert store.has_later("p", 1)
    assert not store.has_later("p", 2)
    store.remove("p", 2)
    store.remove("p", 9)
    assert not store.has_later("p", 1)


def test_cleanup_keeps_what_is_not_older(store):
    for txid in (1, 2, 3):
        store.put("p", txid, txid)
    store.cleanup_before("p", 3)
    assert [store.get("p", txid) for txid in (1, 2, 3)] == [None, None, 3]


def test_cleanup_never_drops_the_newest_entry(store):
    store.put("p", 1, "one")
    store.put("p", 2, "two")
    store.cleanup_before("p", 9)
    assert store.previous("p", 9) == "two"


def test_paths_are_listed_by_prefix_whatever_their_letters(store):
    for path in ("a/user/x/y", "a/user/t@0 ü", "b/user/z"):
        store.put(path, 1, 0)
    assert store.paths("a/user/") == ["a/user/t@0 ü", "a/user/x/y"]


def test_a_value_is_what_json_makes_of_it_and_not_shared(store):
    value = {"at": (1, 2)}
    store.put("p", 1, value)
    value["at"] = "changed"
    found = store.get("p", 1)
    found["more"] = 1
    assert store.get("p", 1) == {"at": [1, 2]}


@pytest.mark.parametrize("value", [object(), b"x", {1, 2}, float("nan")])
def test_what_json_cannot_hold_is_refused_naming_the_path(store, value):
    with pytest.raises(SpoutError, match=r"s/user/p.*JSON"):
        store.put("s/user/p", 1, value)


def test_a_durable_store_survives_its_process(stores):
    stores().put("s/user/p", 4, {"offset": 7})
    again = stores()
    assert again.get("s/user/p", 4) == {"offset": 7}
    assert again.paths("") == ["s/user/p"]


def test_a_store_of_versions_keeps_one_file_for_a_path(tmp_path):
    store = VersionedStore(LinkedFiles(tmp_path))
    for txid in range(1, 50):
        store.put("p/q", txid, {"offset": txid})
        store.cleanup_before("p/q", txid)
    assert [str(file.relative_to(tmp_path)) for file in tmp_path.rglob("*") if file.is_file()] == ["p%2Fq/49.json"]
    assert (tmp_path / "p%2Fq" / "49.json").stat().st_size < 200


def test_who_has_read_that_there_is_nothing_writes_over_nobody(stores):
    late = stores()
    assert late.get("p", 0) is None
    stores().put("p", 0, "first")
    with pytest.raises(ZombieError, match="another driver"):
        late.put("p", 0, "late")
    assert stores().get("p", 0) == "first"


def test_who_has_missed_many_writes_writes_over_nobody_either(stores):
    """The number that it would take next is free again."""
    late, other = stores(), stores()
    late.put("p", 0, "first")
    for n in range(5):
        other.put("p", 0, n)
    assert late.has_changed("p")
    assert not other.has_changed("p")
    with pytest.raises(ZombieError, match="another driver"):
        late.put("p", 0, "late")
    assert stores().get("p", 0) == 4
    other.put("p", 0, "next")
    assert stores().get("p", 0) == "next"


def test_what_another_driver_has_written_counts_after_it_was_read(stores):
    late, other = stores(), stores()
    late.put("p", 0, "first")
    other.put("p", 0, "second")
    late.reread("p")
    assert not late.has_changed("p")
    late.put("p", 1, "third")
    assert (stores().get("p", 0), stores().get("p", 1)) == ("second", "third")


def test_a_write_whose_answer_was_lost_is_not_taken_for_anothers(tmp_path):
    class Lost(LinkedFiles):
        lost = True

        def create(self, name, text):
            made = super().create(name, text)
            if made and self.lost:
                self.lost = False
                raise ConnectionError("no answer")
            return made

    folder = Lost(tmp_path)
    store = VersionedStore(folder)
    with pytest.raises(ConnectionError):
        store.put("p", 1, "one")
    store.put("p", 2, "two")
    folder.lost = True
    with pytest.raises(ConnectionError):
        store.put("p", 3, "three")
    store.put("p", 3, "three")
    assert [VersionedStore(folder).get("p", txid) for txid in (2, 3)] == ["two", "three"]


@pytest.mark.parametrize("stores", ["versions"], indirect=True)
def test_a_start_takes_over_from_a_driver_in_full_run(stores):
    """The older one writes between each reading of the newer one and its writing, some twenty times."""
    older, newer, batches = stores(), stores(), iter(range(1, 20))

    def owned(entries):
        for txid in batches:
            older.put("log", txid, "batch")
            break
        return 0, "newer"

    newer.take_over("log", owned)
    assert newer.get("log", 19) == "batch"
    with pytest.raises(ZombieError):
        older.put("log", 20, "batch")


@pytest.mark.parametrize("stores", ["versions", *WHOLE[:3]], indirect=True)
def test_of_drivers_that_write_at_the_same_moment_none_loses_what_it_wrote(stores):
    def writes(who):
        written = []
        for n in range(30):
            store = stores()
            with suppress(ZombieError):
                store.put("p", 0, [*(store.get("p", 0) or []), f"{who}-{n}"])
                written.append(f"{who}-{n}")
        return written

    with ThreadPoolExecutor(8) as pool:
        written = [each for some in pool.map(writes, range(8)) for each in some]
    stored = stores().get("p", 0)
    assert len(set(stored)) == len(stored)
    assert set(written) <= set(stored)
    assert 30 <= len(written) < 240  # each round has one that writes; not all of them could


def test_a_number_that_others_have_made_and_deleted_is_that_of_another_driver(tmp_path):
    class Late(LinkedFiles):
        def create(self, name, text):
            for n in range(2):
                other.put("p", 0, n)
            return False

    other, late = VersionedStore(LinkedFiles(tmp_path)), VersionedStore(Late(tmp_path))
    with pytest.raises(ZombieError, match="Nothing is written"):
        late.put("p", 0, "late")
    assert VersionedStore(LinkedFiles(tmp_path)).get("p", 0) == 1


def test_a_damaged_file_is_named(tmp_path):
    (tmp_path / "p").mkdir()
    (tmp_path / "p" / "1.json").write_text("[]")
    with pytest.raises(SpoutError, match=r"p/1\.json is damaged"):
        VersionedStore(LinkedFiles(tmp_path)).get("p", 1)
