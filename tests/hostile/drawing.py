"""Bad inputs: how they are drawn, and what is asked of whoever gets one.

An input may be refused by an error of ours, which says more than a name, or taken. It never ends in another library's
exception, and never takes longer than `PATIENCE`. `make test` draws a few of each kind, always the same;
`make test-all` draws 2,000 and more of each.
"""

from __future__ import annotations

import json
import re
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

from trident_py import errors
from trident_py.errors import TridentError

PATIENCE = 60
_OTHERS = re.compile(rf"Traceback|^(?!({'|'.join(vars(errors))}):)(\w+Error|<class|\W*$)|object at 0x")


def often(quick: int, whole: int) -> settings:
    """How many are drawn in `make test`, and in `make test-all`."""
    count = quick if settings.default.derandomize else whole  # type: ignore[union-attr]
    return settings(max_examples=count, suppress_health_check=list(HealthCheck))


class Hung(BaseException):
    """It is at work for too long. No handler of errors takes it for one that a command ends with."""


@contextmanager
def patience(seconds: float = PATIENCE) -> Iterator[None]:
    """Whoever is still at work after so long has hung."""

    def hung(*_: object) -> None:
        raise Hung(f"no end after {seconds:g} s")

    before = signal.signal(signal.SIGALRM, hung)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def refusal(call: Callable[[], Any], *named: str) -> TridentError | None:
    """The error of ours with which ``call`` refuses its input, or None if it takes it. Each text of ``named`` stands in
    the error. Another library's exception passes through."""
    try:
        with patience():
            call()
    except TridentError as error:
        text = str(error)
        assert len(text) > 20 and not _OTHERS.search(text), text
        assert all(name in text for name in named), f"{named} should be named by: {text}"
        return error
    return None


# -- bytes that are not what was written

FOREIGN = [
    b"\x00", b"\x00" * 4096, b"\xff\xfe", b"\xef\xbb\xbf", b"\xed\xa0\x80", b"\r", b"\r\n", b"\n\n", b"\x1a", b"\t",
    b'"', b"'", b",",
    b"{", b"}", b"[", b"]", b":", b"\\u0000", b"\\ud800", b"NaN", b"-Infinity", b"1e999999", b"-0", b"9" * 400,
    b"9" * 5_000,
    b"PK\x03\x04", b"PAR1", b"\x1f\x8b\x08", b"<html>", b"null", b"[" * 3_000, b'{"a":' * 3_000, "é\u2028😀".encode(),
]  # fmt: skip


@st.composite
def damaged(draw: st.DrawFn, good: bytes, tokens: list[bytes] = FOREIGN) -> bytes:
    """These bytes, cut, flipped, doubled, moved, or with something foreign inside: one to three times."""
    data = good
    for _ in range(draw(st.integers(1, 3))):
        at = draw(st.integers(0, len(data)))
        until = min(len(data), at + draw(st.integers(0, 12)))
        way = draw(st.sampled_from(["cut", "drop", "flip", "double", "insert", "replace", "swap"]))
        if way == "cut":
            data = data[:at]
        elif way == "drop":
            data = data[:at] + data[until:]
        elif way == "flip" and at < len(data):
            data = data[:at] + bytes([data[at] ^ (1 << draw(st.integers(0, 7)))]) + data[at + 1 :]
        elif way == "double":
            data = data[:until] + data[at:]
        elif way == "insert":
            data = data[:at] + draw(st.sampled_from(tokens)) + data[at:]
        elif way == "replace":
            data = data[:at] + draw(st.sampled_from(tokens) | st.binary(max_size=12)) + data[until:]
        elif way == "swap":
            data = data[until:] + data[:until]
    return data


NUMBERS = st.sampled_from(
    [0, -1, 1, 2**31, 2**63, -(2**63) - 1, 10**30, 10**400, 1e308, -0.0, 1.5, float("nan"), float("inf")]
)
TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=8) | st.sampled_from(
    ["", " ", "\0", "a\0b", "../..", "/", "é" * 300, "x" * 5_000, "a b", "`;'\"--", "%s%n{}", "${HOME}", "${", "$$",
    "NaN", "\u202e", "\r\n",
     "key string", "key string, key string", "count decimal(99,99)", "array<array<int", "string " * 40, "sqlite:///",
     "mysql://@:99999/x",
     "redis://[", "s3://", "hdfs://:x/", "kafka:", "1", "-1", "true", "null", "os:system", "nothing.at.all:none"]
)  # fmt: skip
SCALARS = st.none() | st.booleans() | NUMBERS | TEXTS
VALUES = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3), max_leaves=6
)


@st.composite
def altered(draw: st.DrawFn, good: Any, values: st.SearchStrategy[Any] = VALUES) -> Any:
    """This tree with one to three of its values or names replaced, dropped or doubled."""
    tree = json.loads(json.dumps(good))
    for _ in range(draw(st.integers(1, 3))):
        places = list(_places(tree))
        if not places:
            break
        holder, key = draw(st.sampled_from(places))
        way = draw(st.sampled_from(["replace", "replace", "drop", "rename", "wrap"]))
        if way == "drop":
            del holder[key]
        elif way == "rename" and isinstance(holder, dict):
            holder[draw(TEXTS)] = holder.pop(key)
        elif way == "wrap":
            holder[key] = draw(st.sampled_from([lambda old: [old], lambda old: {"a": old}]))(holder[key])
        else:
            holder[key] = draw(values)
    return tree


def _places(tree: Any) -> Iterator[tuple[Any, Any]]:
    inner = tree.items() if isinstance(tree, dict) else enumerate(tree) if isinstance(tree, list) else ()
    for key, value in inner:
        yield tree, key
        yield from _places(value)
