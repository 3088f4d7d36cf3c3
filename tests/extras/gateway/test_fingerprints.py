"""The canonical encoding and the fingerprints: known vectors, and what must hold for every event."""

from __future__ import annotations

import copy
import hashlib
import json
import pickle
import random
import subprocess
import sys
import unicodedata
from typing import Any
from urllib.parse import quote, unquote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trident_py import DefinitionError, TridentError
from trident_py.extras.gateway.canonical import EventError, canonical, payload_hash
from trident_py.extras.gateway.fingerprints import ALGORITHMS, HASHES, Fingerprint, instant

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=6)
NUMBERS = st.integers() | st.floats(allow_nan=False, allow_infinity=False).filter(lambda x: str(x) != "-0.0")
SCALARS = st.none() | st.booleans() | NUMBERS | TEXT
JSON = st.recursive(SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3))
# few different ones, so that two drawn values are often equal or nearly so
SMALL = st.sampled_from([0, 0.0, 1, 1.0, True, False, None, "1", "1.0", "true", "null", "", "[1]", [], {}, '"1"'])
NEAR = st.recursive(
    SMALL, lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from("ab"), inner), max_leaves=3
)


def same(a: Any, b: Any) -> bool:
    """Equal as JSON: of one type, too."""
    if type(a) is not type(b):
        return False
    if isinstance(a, dict):
        return a.keys() == b.keys() and all(same(a[key], b[key]) for key in a)
    if isinstance(a, list):
        return len(a) == len(b) and all(map(same, a, b))
    return bool(a == b)


def shuffled(value: Any, dice: random.Random) -> Any:
    """The same value, the keys of its objects in another order."""
    if isinstance(value, dict):
        keys = list(value)
        dice.shuffle(keys)
        return {key: shuffled(value[key], dice) for key in keys}
    return [shuffled(each, dice) for each in value] if isinstance(value, list) else value


@given(NEAR, NEAR)
def test_two_values_are_equal_exactly_if_their_encodings_are(a: Any, b: Any) -> None:
    assert (canonical(a) == canonical(b)) == same(a, b)


@given(JSON, st.randoms(use_true_random=False))
def test_the_order_of_keys_does_not_matter(value: Any, dice: random.Random) -> None:
    assert canonical(shuffled(value, dice)) == canonical(value)


@given(JSON)
def test_the_encoding_is_json_and_nothing_is_lost_in_it(value: Any) -> None:
    assert same(json.loads(canonical(value)), value)


def test_the_encoding_is_what_another_language_would_write() -> None:
    event = {"b": [1, 1.0, 1e22, 2.5e-7], "a": {"ü": "é\u2028\n\x01", "A": None}, "big": 2**70, "yes": True}
    written = (
        '{"a":{"A":null,"ü":"é\u2028\\n\\u0001"},"b":[1,1.0,1e+22,2.5e-07],"big":1180591620717411303424,"yes":true}'
    )
    assert canonical(event).decode() == written


def test_composed_and_decomposed_text_are_two_texts() -> None:
    assert canonical("é") != canonical(unicodedata.normalize("NFD", "é"))


@pytest.mark.parametrize(
    ("value", "told"),
    [
        (float("nan"), "the event is nan"),
        ({"a": {"b": [1, float("inf")]}}, r"field 'a.b\[1\]' is inf"),
        ({"a": -0.0}, "field 'a' is -0.0"),
        ({"a": [{"b": -0.0}]}, r"field 'a\[0\].b' is -0.0"),
        ({"a": {1: 2}}, r"field 'a' has the key 1 \(int\)"),
        ({"a": (1,)}, "field 'a' is a tuple"),
        ({"a": b"1"}, "field 'a' is a bytes"),
        ({"a": "\ud800"}, "lone surrogate"),
        ({"\udfff": 1}, "lone surrogate"),
        ("\ud83d\ude00", "lone surrogate"),
        pytest.param(10**5000, "cannot be encoded", id="huge"),
    ],
)
def test_what_json_has_not_is_refused_with_its_place(value: Any, told: str) -> None:
    with pytest.raises(EventError, match=told):
        canonical(value)


def test_an_event_nested_without_end_is_refused() -> None:
    value: list = []
    for _ in range(100_000):
        value = [value]
    with pytest.raises(EventError, match="nested too deeply"):
        canonical(value)


def test_the_payload_hash_is_blake2b_of_the_encoding() -> None:
    event = {"b": 1, "a": "x"}
    assert payload_hash(event) == hashlib.blake2b(b'{"a":"x","b":1}', digest_size=16).hexdigest()
    assert payload_hash({"b": 1.0, "a": "x"}) != payload_hash(event) == payload_hash({"a": "x", "b": 1})


@pytest.mark.parametrize(
    ("algorithm", "data", "digest"),
    [  # RFC 1321; FIPS 180; SMHasher's and isthe.com's published values; b2sum -l 128
        ("md5", b"abc", "900150983cd24fb0d6963f7d28e17f72"),
        ("sha1", b"abc", "a9993e364706816aba3e25717850c26c9cd0d89d"),
        ("murmur3", b"", "00000000000000000000000000000000"),
        ("murmur3", b"hello", "029bbd41b3a7d8cb191dae486a901e5b"),
        ("fnv1a", b"", "cbf29ce484222325"),
        ("fnv1a", b"a", "af63dc4c8601ec8c"),
        ("fnv1a", b"foobar", "85944171f73967e8"),
        ("blake2b", b"", "cae66941d9efbd404e4d88758ea67670"),
        ("blake2b", b"abc", "cf4ab791c62b8d2b2109c90275287816"),
    ],
)
def test_the_hashes_are_the_ones_everybody_computes(algorithm: str, data: bytes, digest: str) -> None:
    assert HASHES[algorithm](data) == digest


EVENT = {"station": "EWR", "year": 2013, "temp": 39.02, "at": "2013-11-03T01:00:00-05:00", "device": {"id": "a/7"}}


@pytest.mark.parametrize("algorithm", list(HASHES))
def test_a_fingerprint_is_the_hash_of_the_fields_as_a_json_array(algorithm: str) -> None:
    chosen = Fingerprint(["station", "year", "device.id"], algorithm)
    assert chosen.key(EVENT) == b'["EWR",2013,"a/7"]'
    assert chosen.of(EVENT) == HASHES[algorithm](b'["EWR",2013,"a/7"]')


@pytest.mark.parametrize(
    ("values", "text"),
    [
        (["EWR", 2013, 1], "EWR:~2013:~1"),
        (["EWR", "2013", None, True, 39.02], "EWR:2013:~null:~true:~39.02"),
        (["a:b", "~1", "a/7 %"], "a%3Ab:%7E1:a%2F7%20%25"),
        (["", ".", ".."], "~%22%22:~%22.%22:~%22..%22"),
        ([{"x": ["~"]}], "~%7B%22x%22%3A%5B%22%7E%22%5D%7D"),
    ],
)
def test_a_plain_fingerprint_can_be_read(values: list, text: str) -> None:
    names = [f"f{n}" for n in range(len(values))]
    assert Fingerprint(names, "plain").of(dict(zip(names, values, strict=True))) == text


@given(st.lists(NEAR | TEXT | SMALL, min_size=1, max_size=3), st.lists(NEAR | TEXT | SMALL, min_size=1, max_size=3))
def test_plain_fingerprints_are_equal_exactly_if_the_values_are_and_safe_in_a_url(a: list, b: list) -> None:
    def plain(values: list) -> str:
        names = [f"f{n}" for n in range(len(values))]
        return Fingerprint(names, "plain").of(dict(zip(names, values, strict=True)))

    assert (plain(a) == plain(b)) == same(a, b)
    assert quote(plain(a), safe="~%:") == plain(a) not in ("", ".", "..")


def test_a_plain_fingerprint_too_long_for_a_key_is_refused() -> None:
    with pytest.raises(EventError, match=r"256 characters .* at most 255"):
        Fingerprint(["a"], "plain").of({"a": "x" * 256})
    assert len(Fingerprint(["a"], "plain").of({"a": "x" * 255})) == 255


@given(st.dictionaries(TEXT.filter(bool), JSON, min_size=1), st.sampled_from(list(HASHES)), st.randoms())
def test_a_resend_has_the_same_fingerprint_whatever_the_order_of_its_keys(
    event: dict, algorithm: str, dice: random.Random
) -> None:
    for chosen in (Fingerprint(algorithm=algorithm), Fingerprint(list(event), algorithm)):
        before = copy.deepcopy(event)
        assert chosen.of(shuffled(event, dice)) == chosen.of(event)
        assert same(event, before)


def test_a_fingerprint_is_the_same_in_another_process() -> None:
    chosen = pickle.loads(pickle.dumps(Fingerprint(["station"], timestamp="at")))
    code = (
        "import json, sys; from trident_py.extras.gateway.fingerprints import Fingerprint; "
        f"print({chosen!r}.of(json.loads(sys.argv[1])))"
    )
    done = subprocess.run([sys.executable, "-c", code, json.dumps(EVENT)], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == chosen.of(EVENT)


def test_the_whole_event_decides_when_no_fields_are_named() -> None:
    assert Fingerprint().of(EVENT) == payload_hash(EVENT)
    assert Fingerprint().of(EVENT | {"temp": 39.03}) != Fingerprint().of(EVENT)


def test_what_is_left_out_does_not_matter_even_if_it_is_missing() -> None:
    chosen = Fingerprint(without=["arrived", "device.attempt", "year.no.such"])
    first = EVENT | {"arrived": 1, "device": {"id": "a/7", "attempt": 1}}
    again = EVENT | {"arrived": 2, "device": {"id": "a/7", "attempt": 2}}
    assert chosen.of(first) == chosen.of(again) == Fingerprint().of(EVENT)
    assert first["device"] == {"id": "a/7", "attempt": 1}
    assert chosen.payload(first) == chosen.payload(again) == payload_hash(EVENT)
    nested = Fingerprint(["device"], without=["device.attempt"])
    assert nested.of(first) == nested.of(again) != Fingerprint(["device"]).of(again)


def test_a_key_with_a_dot_is_found_before_a_nested_one() -> None:
    assert Fingerprint(["a.b"], "plain").of({"a.b": 1, "a": {"b": 2}}) == "~1"
    assert Fingerprint(["a.b"], "plain").of({"a": {"b": 2}}) == "~2"
    assert Fingerprint(["a"], "plain").of({"a": None}) == "~null"
    by_time = Fingerprint(timestamp="a.b", roundSeconds=10)
    assert by_time.of({"a.b": 1, "a": {"b": 2}}) == by_time.of({"a.b": 3, "a": {"b": 2}})
    assert by_time.of({"a.b": 1, "a": {"b": 2}}) != by_time.of({"a.b": 11, "a": {"b": 2}})


@pytest.mark.parametrize("missing", ["wrod", "device.name", "station.id", "device.id.x"])
def test_a_missing_field_is_named_with_what_the_event_has(missing: str) -> None:
    with pytest.raises(
        EventError, match=rf"no field '{missing}' in this event; it has: at, device, station, temp, year"
    ):
        Fingerprint(["station", missing]).of(EVENT)


def test_of_many_keeps_the_order_and_says_which_event_is_wrong() -> None:
    events = [{"a": n} for n in range(100)]
    chosen = Fingerprint(["a"])
    assert chosen.of_many(iter(events)) == [chosen.of(event) for event in events]
    assert chosen.of_many([]) == []
    with pytest.raises(EventError, match="event 2: no field 'a' in this event; it has: nothing"):
        chosen.of_many([*events[:2], {}])


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("2013-11-03T06:00:00Z", "20131103T060000Z"),
        ("2013-11-03T01:00:00-05:00", "20131103T060000Z"),
        ("20131103T010000-0500", "20131103T060000Z"),
        ("2013-11-03 06:00:00.25+00:00", "20131103T060000.250000Z"),
        (1383458400, "20131103T060000Z"),
        (1383458400.0, "20131103T060000Z"),
        (1383458400.25, "20131103T060000.250000Z"),
        (-1, "19691231T235959Z"),
    ],
)
def test_one_instant_has_one_text(value: Any, text: str) -> None:
    assert instant(value, "at") == text


@pytest.mark.parametrize(
    ("value", "told"),
    [
        ("2013-11-03T01:00:00", "no zone, and a local time occurs twice"),
        ("2013-11-03", "no zone"),
        ("yesterday", "not an instant"),
        (None, "it is None"),
        (True, "it is True"),
        (float("inf"), "not an instant"),
        (float("nan"), "not an instant"),
        pytest.param(10**30, "not an instant", id="huge"),
        ("0001-01-01T00:00:00+14:00", "not an instant"),
    ],
)
def test_what_is_no_instant_is_refused_with_what_to_send(value: Any, told: str) -> None:
    with pytest.raises(EventError, match=rf"field 'at' .*{told}.*"):
        instant(value, "at")


def test_the_time_stamp_counts_as_an_instant_and_may_be_rounded_down() -> None:
    chosen = Fingerprint(["station"], "plain", timestamp="at", roundSeconds=60)
    times = ["2013-11-03T06:00:00Z", "2013-11-03T01:00:59.999999-05:00", "2013-11-03T06:01:00Z"]
    first, same_minute, next_minute = (chosen.of(EVENT | {"at": time}) for time in times)
    assert first == same_minute == "EWR:20131103T060000Z"
    assert next_minute == "EWR:20131103T060100Z"
    assert instant(-1, "at", 60) == "19691231T235900Z"


def test_the_time_stamp_keeps_its_place_among_the_fields() -> None:
    assert Fingerprint(["at", "station"], "plain", timestamp="at").of(EVENT) == "20131103T060000Z:EWR"
    assert Fingerprint(["station"], timestamp="at").names() == ("station", "at")


def test_with_the_whole_event_the_time_stamp_is_an_instant_too() -> None:
    chosen = Fingerprint(timestamp="at", roundSeconds=3600)
    assert chosen.of(EVENT | {"at": "2013-11-03T06:59:00Z"}) == chosen.of(EVENT)
    assert chosen.of(EVENT | {"at": "2013-11-03T07:00:00Z"}) != chosen.of(EVENT)
    assert chosen.of(EVENT | {"temp": 0}) != chosen.of(EVENT)


def test_without_the_time_stamp_equal_readings_are_one_event() -> None:
    chosen = Fingerprint(["station", "temp"])
    assert chosen.of(EVENT) == chosen.of(EVENT | {"at": "2014-01-01T00:00:00Z"})


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        ({"fields": []}, "needs at least one field"),
        ({"fields": "station"}, "is a list of names"),
        ({"without": "station"}, "is a list of names"),
        ({"fields": ["a", "b", "a"]}, "named twice: a"),
        ({"algorithm": "crc32"}, "no algorithm 'crc32'; there are: plain, md5, sha1, murmur3, fnv1a, blake2b"),
        ({"fields": ["a"], "without": ["a"]}, "left out of it: a"),
        ({"fields": ["a.b"], "without": ["a"]}, r"left out of it: a\.b"),
        ({"timestamp": "at", "without": ["at"]}, "left out of it: at"),
        ({"roundSeconds": 60}, "name its field in timestamp"),
        ({"timestamp": "at", "roundSeconds": 0}, "integer from 1 on, not 0"),
        ({"timestamp": "at", "roundSeconds": 1.5}, r"integer from 1 on, not 1\.5"),
    ],
)
def test_settings_that_contradict_each_other_are_refused_at_birth(settings: dict, told: str) -> None:
    with pytest.raises(DefinitionError, match=told):
        Fingerprint(**settings)


def test_a_fingerprint_is_a_plain_value() -> None:
    chosen = Fingerprint(["a"], "md5", "at", 60, ["b"])
    assert chosen == Fingerprint(("a",), "md5", "at", 60, ("b",)) and hash(chosen)
    assert [Fingerprint(algorithm=name).bits for name in ALGORITHMS] == [None, 128, 160, 128, 64, 128]
    assert all(len(Fingerprint(["a"], name).of({"a": 1})) * 4 == Fingerprint(algorithm=name).bits for name in HASHES)
    assert issubclass(EventError, TridentError)
    assert unquote(Fingerprint(["a"], "plain").of({"a": "x/y"})) == "x/y"
