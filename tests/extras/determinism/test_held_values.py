"""What functions were given when a topology was defined: a restart in the middle of a batch compares it."""

from __future__ import annotations

import functools
import os
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from trident_py import TridentTopology
from trident_py.extras.determinism.held_values import MOST, HeldValues
from trident_py.operations import Function
from trident_py.testing import FixedBatchSpout, collect

ROOT = Path(__file__).parents[3]
LIMIT = 3
SECRET_TOKEN = "abc"

TOPOLOGY = """
import os
import numpy as np
from settings import SUFFIX
from states.sql import SqlMapState
from trident_py import LocalCluster, SparkCluster, TridentTopology
from trident_py.operations import Function
from trident_py.operations.builtin import Count
from trident_py.testing import Crashing, FixedBatchSpout



class Salt(Function):
    def __init__(self, salt):
        self.salt = salt

    def execute(self, tuple, collector):
        collector.emit([f"{tuple[0]}-{self.salt}"])

def closure(salt):
    return lambda word: [f"{word}-{salt}"]

def by_global(word):
    return [f"{word}-{SUFFIX}"]

def of_objects(salt):
    salts = np.array([salt, None], dtype=object)
    return lambda word: [f"{word}-{salts[0]}"]

MADE = {
    "objects": of_objects(os.environ["SALT"]),
    "attribute": Salt(os.environ["SALT"]),
    "closure": closure(os.environ["SALT"]),
    "global": by_global,
}

def run(made, kind="transactional", crash=None, conf=None, cluster=LocalCluster):
    topology = TridentTopology()
    spout = FixedBatchSpout("w", 2, ("a",), ("b",), ("c",), ("d",))
    stream = topology.newStream("s", spout).each("w", MADE[made], "salted")
    factory = getattr(SqlMapState, kind)("sqlite:///counts.db", "counts", "word string", value="n bigint")
    crashing = Crashing(factory, "commit", {(2, 0)} if crash else set(), crash or "fail")
    key = "salted" if kind == "transactional" else "w"
    stream.groupBy(key).persistentAggregate(crashing, [], Count(), "n", stateName="counts")
    with cluster(checkpoints="kept") as running_cluster:
        running = running_cluster.submitTopology("given", conf, topology.build())
        try:
            running.awaitTermination(60)
        except Exception as error:
            print(type(error.__cause__ or error).__name__, error)
        print([event.reason for event in running.events if event.kind == "reported"])
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "salting.py").write_text(TOPOLOGY)
    return tmp_path


def process(folder: Path, salt: str, code: str, check: bool = True) -> str:
    (folder / "settings.py").write_text(f"SUFFIX = {salt!r}\n")
    environment = {
        **os.environ,
        "PYTHONHASHSEED": "0",
        "SALT": salt,
        "PYTHONDONTWRITEBYTECODE": "1",
        "PYTHONPATH": f"{ROOT}:{folder}",
    }
    command = [sys.executable, "-c", f"from salting import *\n{code}"]
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=check)
    assert check or done.returncode == -9, done.stderr
    return done.stdout


@pytest.mark.parametrize(("made", "place"), [("attribute", "salt of Salt"), ("global", "SUFFIX of by_global")])
def test_a_half_written_batch_that_is_replayed_with_other_values_is_told(folder: Path, made: str, place: str) -> None:
    process(folder, "x", f"run({made!r}, crash='kill')", check=False)
    told = process(folder, "y", f"run({made!r})")
    assert f"batch 2 began with other values: {place}. " in told and "rows of counts (exactly once)" in told


def test_the_same_values_and_a_whole_batch_are_told_nothing_of(folder: Path) -> None:
    process(folder, "x", "run('attribute', crash='kill')", check=False)
    assert process(folder, "x", "run('attribute')") == "[]\n"
    assert process(folder, "y", "run('attribute')") == "[]\n"


def test_an_array_of_objects_is_known_by_what_they_are_and_not_by_their_addresses(folder: Path) -> None:
    process(folder, "x", "run('objects', crash='kill')", check=False)
    assert process(folder, "x", "run('objects')") == "[]\n"


def test_a_state_that_takes_any_replay_needs_no_word(folder: Path) -> None:
    process(folder, "x", "run('attribute', 'opaque', crash='kill')", check=False)
    assert process(folder, "y", "run('attribute', 'opaque')") == "[]\n"


def test_where_exactly_once_is_asked_for_a_start_with_other_values_is_refused(folder: Path) -> None:
    asked = "conf={'topology.guarantee': 'exactly-once', 'topology.determinism.trust': '*'}"
    process(folder, "x", f"run('closure', crash='kill', {asked})", check=False)
    for _ in range(2):
        told = process(folder, "y", f"run('closure', {asked})")
        assert told.startswith("LineageError") and "start once without topology.guarantee" in told
    assert process(folder, "x", f"run('closure', {asked})") == "[]\n"
    assert process(folder, "y", f"run('closure', {asked})") == "[]\n"


@pytest.mark.spark
@pytest.mark.whole("test_a_half_written_batch_that_is_replayed_with_other_values_is_told")
def test_spark_tells_it_too(folder: Path) -> None:
    process(folder, "x", "run('attribute', crash='error', cluster=SparkCluster)")
    told = process(folder, "y", "run('attribute', cluster=SparkCluster)")
    assert "batch 2 began with other values: salt of Salt" in told


# -- what counts as a value -----------------------------------------------------------------------------------------


@dataclass
class Inner:
    level: int = 1


@dataclass
class Holder(Function):
    number: Any = 1
    inner: Inner = field(default_factory=Inner)
    password: str = "p"
    settings: Any = field(default_factory=lambda: {"zone": "x", "password": "p", "more": [{"secret": 1, "depth": 2}]})

    def execute(self, tuple: Any, collector: Any) -> None:
        collector.emit([self.number if tuple[0] < LIMIT else SECRET_TOKEN])


def given(operation: Any) -> dict[str, str]:
    topology = TridentTopology()
    stream = topology.newStream("s", FixedBatchSpout("w", 1, ("a",))).each("w", operation, "x")
    collect(stream, "out")
    return next(iter(HeldValues(topology.build().plan).digests().values()))


def test_values_are_found_within_objects_functions_and_globals() -> None:
    found = given(Holder())
    assert {"number", "inner.level", "execute.LIMIT", "settings.zone", "settings.more.0.depth"} <= set(found)
    secret = [place for place in found if "password" in place or "TOKEN" in place or "secret" in place]
    assert secret == [], "no digest of a secret is kept"


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (1, 2),
        (1, 1.0),
        ({"a": [1]}, {"a": [2]}),
        ({1, 2}, {1, 3}),
        (np.arange(3), np.arange(1, 4)),
        (np.array(["a", None], dtype=object), np.array(["b", None], dtype=object)),
        (Inner(1), Inner(2)),
        ([Inner(1)], [Inner(2)]),
        (list(range(MOST + 1)), list(range(MOST + 2))),
        (functools.partial(max, 1), functools.partial(max, 2)),
        (lambda x, a=1: a, lambda x, a=2: a),
    ],
    ids=range(11),
)
def test_another_value_is_another_digest(one: Any, other: Any) -> None:
    assert given(Holder(one)) != given(Holder(other))
    assert given(Holder(one)) == given(Holder(one))


def test_a_corrected_program_may_go_on() -> None:
    topology = TridentTopology()
    collect(topology.newStream("s", FixedBatchSpout("w", 1, ("a",))).each("w", Holder(), "x"), "out")
    now = HeldValues(topology.build().plan)
    assert now.others({"other": {"number": "0"}, "Holder": {"gone": "0"}}, now.digests()) == {}
    assert now.others({"Holder": {"number": "0"}}, now.digests()) == {"Holder": "number"}


def test_what_leads_to_itself_ends() -> None:
    holder = Holder()
    holder.number = [holder]
    assert "number" not in given(holder)
    endless: list = []
    endless.append(endless)
    assert given(Holder(endless)) == {}, "not compared"
