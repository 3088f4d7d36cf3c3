"""Metadata stores: small, JSON, durable."""

from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

import pytest

from trident_py.errors import SpoutError, ZombieError
from trident_py.spouts import FileMetadataStore, MemoryMetadataStore


@pytest.fixture(params=["memory", "file"])
def store(request, tmp_path):
    return MemoryMetadataStore() if request.param == "memory" else FileMetadataStore(tmp_path / "meta")


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


def test_a_file_store_survives_its_process(tmp_path):
    FileMetadataStore(tmp_path).put("s/user/p", 4, {"offset": 7})
    again = FileMetadataStore(tmp_path)
    assert again.get("s/user/p", 4) == {"offset": 7}
    assert again.paths("") == ["s/user/p"]


def test_a_file_store_is_bounded_and_leaves_no_scratch_files(tmp_path):
    store = FileMetadataStore(tmp_path)
    for txid in range(1, 200):
        store.put("p", txid, {"offset": txid})
        store.cleanup_before("p", txid)
    assert sorted(file.name for file in tmp_path.iterdir()) == ["lock", "p.json"]
    assert (tmp_path / "p.json").stat().st_size < 200


def test_a_write_that_dies_before_the_rename_changes_nothing(tmp_path):
    FileMetadataStore(tmp_path).put("p", 1, "one")
    (tmp_path / "p.tmp").write_text('{"1": "o')
    assert FileMetadataStore(tmp_path).get("p", 1) == "one"


def test_who_has_read_that_there_is_nothing_writes_over_nobody(tmp_path):
    late = FileMetadataStore(tmp_path)
    assert late.get("p", 0) is None
    FileMetadataStore(tmp_path).put("p", 0, "first")
    with pytest.raises(ZombieError, match="another driver"):
        late.put("p", 0, "late")
    assert FileMetadataStore(tmp_path).get("p", 0) == "first"


def test_of_drivers_that_write_at_the_same_moment_one_does_and_the_others_are_told(tmp_path):
    def counts(_):
        done = 0
        for _ in range(60):
            store = FileMetadataStore(tmp_path)
            with suppress(ZombieError):
                store.put("p", 0, (store.get("p", 0) or 0) + 1)
                done += 1
        return done

    with ThreadPoolExecutor(8) as pool:
        done = sum(pool.map(counts, range(8)))
    assert FileMetadataStore(tmp_path).get("p", 0) == done
    assert 60 <= done < 480  # each round has one that writes; not all of them could


def test_a_damaged_file_is_named(tmp_path):
    (tmp_path / "p.json").write_text("{")
    with pytest.raises(SpoutError, match=r"p\.json is damaged"):
        FileMetadataStore(tmp_path).get("p", 1)
