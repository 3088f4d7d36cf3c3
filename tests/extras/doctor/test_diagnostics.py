"""What the machines report, judged: each difference is told once, with machine, cause and next step."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from states.sql import AppendState, SqlMapState
from trident_py import TridentTopology
from trident_py.errors import DefinitionError
from trident_py.extras.doctor import worker_report
from trident_py.extras.doctor.diagnostics import (
    Flaw,
    Need,
    Survey,
    at_home,
    between_machines,
    describe_all,
    needs_in,
    refusal,
)
from trident_py.model.plan import Plan
from trident_py.model.requirements import Needs
from trident_py.operations.builtin import Count, MapGet
from trident_py.spouts import FileSpout, FixedBatchSpout
from trident_py.testing import MemoryMapState

MASTER = "spark://master:7077"
SQLITE = "sqlite:////data/c.db"
SAID: dict[str, Any] = {
    "host": "w1", "python": "3.11.7", "executable": "/env/python", "ours": "aa", "modules": {}, "files": {},
    "versions": {"trident-py": "1.0", "pyarrow": "26.0.1", "cloudpickle": "3"}, "program": ["", ""], "addresses": {},
    "clock": 1000.5,
}  # fmt: skip
DRIVER = Survey("the driver", {**SAID, "host": "d"}, (1000.0, 1001.0))


def said(host: str = "w1", **more: Any) -> Survey:
    return Survey(host, {**SAID, "host": host, **more}, (1000.0, 1001.0))


def texts(*reports: Survey, needs: Needs | None = None, driver: Survey = DRIVER) -> list[str]:
    asked = [Need("state 'counts'", needs or Needs())]
    return describe_all(between_machines(asked, driver, reports, None))


def plan_of(spout: Any, state: Any) -> Plan:
    topology = TridentTopology()
    stream = topology.newStream("lines", spout)
    stream.partitionPersist(state, list(stream.getOutputFields()))
    return topology.build().plan


def test_machines_like_the_driver_have_no_finding() -> None:
    assert between_machines([Need("x", Needs(("a",), paths=("/p",)))], DRIVER, [said("w1"), said("w2")], "/c") == []


def test_a_sqlite_state_is_refused_where_executors_are_other_machines() -> None:
    plan = plan_of(FixedBatchSpout("word string", 1, [["a"]]), AppendState(SQLITE, "words", ["word string"]))
    assert at_home(MASTER, needs_in(plan), None) == [
        Flaw("error", "", "state 'words' works on one machine only: it is the SQLite file /data/c.db, and each "
                "machine would write a file of its own. The executors of spark://master:7077 are other machines. Use a "
                "server (mysql+pymysql://, postgresql+psycopg://) or a topic, or run on one machine: --master local[*]")
    ]  # fmt: skip
    for master in ("local", "local[*]", "local[2,3]", "local-cluster[2,1,1024]"):
        assert at_home(master, needs_in(plan), None) == []


def test_a_state_that_is_only_queried_counts_too() -> None:
    topology = TridentTopology()
    state = topology.newStaticState(SqlMapState.opaque(SQLITE, "t", "word"))
    topology.newStream("s", FixedBatchSpout("word", 1, [["a"]])).stateQuery(state, "word", MapGet(), "count")
    assert [need.needs.one_machine for need in needs_in(topology.build().plan)] == [
        "it is the SQLite file /data/c.db, and each machine would write a file of its own"
    ]


def test_spouts_and_states_are_named_and_those_without_needs_left_out() -> None:
    plan = plan_of(FileSpout("/in/*.txt", "line", format="lines"), AppendState(SQLITE, "t", ["line string"]))
    assert [(need.who, need.needs.paths) for need in needs_in(plan)] == [("spout 'lines'", ("/in",)), ("state 't'", ())]
    topology = TridentTopology()
    stream = topology.newStream("s", FixedBatchSpout("word", 1, [["a"]]))
    stream.groupBy("word").persistentAggregate(MemoryMapState.Factory(), "word", Count(), "n")
    assert [need.needs for need in needs_in(topology.build().plan)] == [Needs(home=True)]


def test_relative_paths_are_refused_without_asking_anyone(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    needs = [Need("spout 'lines'", Needs(paths=("logs", "/abs")))]
    assert [finding.text for finding in at_home(MASTER, needs, "checkpoints")] == [
        "spout 'lines' needs 'logs', a relative path, which each machine looks for in another folder. Name the whole "
        f"path, such as {tmp_path}/logs, and mount it on every machine",
        "the checkpoint 'checkpoints' is a relative path of the driver's machine, so a driver started in another "
        "folder or on another machine begins anew. Name a whole path (--checkpoint, checkpoints=), best on a file "
        "system that all machines reach",
    ]
    assert texts(said(files={"logs": "No such file or directory"}), needs=Needs(paths=("logs",))) == []


def test_a_machine_without_trident_py_is_told_only_that() -> None:
    bare = said(ours="missing", program=["trident_py", "ModuleNotFoundError: No module named 'trident_py'"])
    assert texts(bare) == [
        "w1: trident_py is missing there. Install trident-py 1.0 for /env/python there, or send an environment that "
        "has it (--archives)"
    ]


@pytest.mark.parametrize(
    ("there", "version", "told"),
    [("bb", "1.0", True), ("aa", "1.1", False), ("", "1.1", True), ("", "1.0", False)],
)
def test_another_trident_py_is_known_by_its_sources_or_else_by_its_version(
    there: str, version: str, told: bool
) -> None:
    found = texts(said(ours=there, versions={**SAID["versions"], "trident-py": version}))
    assert found == ([
        f"w1: another trident_py is there: version {version}, sources {there or 'unknown'}; the driver has version "
        "1.0, sources aa. Install the same for /env/python there, or send an environment that has it (--archives)"
    ] if told else [])  # fmt: skip


@pytest.mark.parametrize(
    ("version", "found"),
    [
        ("17.0.0", [Flaw("error", "w1", "pyarrow 17.0.0 is there. Install pyarrow 26.0.1 for /env/python there, or "
                            "send an environment that has it (--archives)")]),
        ("18.0.0", [Flaw("note", "w1", "pyarrow 18.0.0 is there, and 26.0.1 on the driver: trident_py works with "
                            "both, but a function of yours may compute other values in a replay there")]),
        ("26.1.0", []), ("", []),
    ],
)  # fmt: skip
def test_an_old_pyarrow_is_refused_and_another_one_noted(version: str, found: list[Flaw]) -> None:
    assert between_machines([], DRIVER, [said(versions={**SAID["versions"], "pyarrow": version})], None) == found


def test_code_that_a_machine_cannot_load_is_told_without_secrets() -> None:
    assert texts(said(program=["shop", "ModuleNotFoundError: No module named 'shop'"])) == [
        "w1: the topology's code needs the module 'shop', which is missing there. Send it with --py-files, or "
        "install it for /env/python there"
    ]
    assert texts(said(program=["", "OSError: password=hunter2 refused"])) == [
        "w1: the topology cannot be loaded there: OSError: password=*** refused. Install what the driver has for "
        "/env/python there, or send an environment that has it (--archives)"
    ]


def test_a_missing_client_names_what_installs_it() -> None:
    reports = [said(f"w{n}", modules={"pymysql": "ModuleNotFoundError: No module named 'pymysql'"}) for n in range(8)]
    assert texts(*reports, said("w9"), needs=Needs(("pymysql",), "trident-py[mysql]")) == [
        "w0, w1, w2, w3, w4 and 3 more: state 'counts' needs pymysql, which cannot be imported there: "
        "ModuleNotFoundError: No module named 'pymysql'. Install trident-py[mysql] for /env/python there, or send an "
        "environment that has it (--archives)"
    ]


@pytest.mark.parametrize(
    ("clock", "told"),
    [(1062.0, ["61 s ahead of"]), (1061.0, []), (939.0, ["61 s behind"]), (940.0, []), (1000.5, [])],
)
def test_a_clock_is_off_only_if_no_moment_of_the_answer_explains_it(clock: float, told: list[str]) -> None:
    step = "the driver's; 60 s are allowed. Let NTP set it (chrony, systemd-timesyncd)"
    assert texts(said(clock=clock)) == [f"w1: its clock is {text} {step}" for text in told]


def addresses(*answers: str) -> dict[str, str]:
    return {f"{host} 1": answer for host, answer in zip(("a", "b"), answers, strict=False)}


def test_an_address_that_others_reach_is_told_for_the_machine_that_does_not() -> None:
    driver = Survey("the driver", {**DRIVER.said, "addresses": addresses("")}, DRIVER.between)
    lost = said("w2", addresses=addresses("no answer in 2 s"))
    assert texts(said(addresses=addresses("")), lost, needs=Needs(addresses=("a:1",)), driver=driver) == [
        "w2: state 'counts' needs a:1, which is not reached from there: no answer in 2 s; the driver reaches it. Open "
        "the way (firewall, route), or name an address that is valid there"
    ]


def test_a_store_that_nobody_reaches_is_left_to_the_wait_of_the_start() -> None:
    away = addresses("Connection refused")
    driver = Survey("the driver", {**DRIVER.said, "addresses": away}, DRIVER.between)
    needs = [Need("state 'counts'", Needs(addresses=("a:1",)))]
    assert between_machines(needs, driver, [said(addresses=away)], None) == [
        Flaw("away", "", "state 'counts' needs a:1, which no machine reaches, not even the driver (Connection "
                "refused). Start it, or correct the address")
    ]  # fmt: skip


def test_one_of_several_brokers_is_enough() -> None:
    driver = Survey("the driver", {**DRIVER.said, "addresses": addresses("", "")}, DRIVER.between)
    half = said(addresses=addresses("no answer in 2 s", ""))
    assert texts(half, needs=Needs(addresses=("a:1,b:1",)), driver=driver) == []


def test_an_address_of_the_loopback_is_explained() -> None:
    driver = Survey("the driver", {**DRIVER.said, "addresses": {"127.0.0.1 1": ""}}, DRIVER.between)
    here = said(addresses={"127.0.0.1 1": "Connection refused"})
    assert texts(here, needs=Needs(addresses=("127.0.0.1:1",)), driver=driver)[0].endswith(
        "On each machine this address means that machine: name the server instead"
    )


def test_a_checkpoint_of_the_drivers_machine_is_a_note() -> None:
    found = between_machines([], DRIVER, [said(files={"/c": "No such file or directory"})], "/c")
    assert found == [
        Flaw("note", "", "the checkpoint /c is a folder of the driver's machine, and is lost with it. A file system "
                "that all machines reach outlives them (hdfs://, s3a://)")
    ]  # fmt: skip


def test_a_machine_is_shown_with_its_own_name_too() -> None:
    report = said("w1", ours="missing")._replace(host="10.0.0.3")
    assert texts(report)[0].startswith("10.0.0.3 (w1): trident_py is missing there.")


def test_a_refusal_lists_the_errors_only() -> None:
    error = refusal(MASTER, [Flaw("note", "", "n"), Flaw("error", "w1", "e"), Flaw("error", "w2", "e")])
    assert isinstance(error, DefinitionError)
    assert str(error) == (
        "the topology cannot run on spark://master:7077: 1 problem, nothing was started\n- w1, w2: e\n"
        "Check again with: trident doctor (docs/doctor.md). topology.probe=false leaves out the checks of the machines"
    )


def reported(python: list[str], **asked: Any) -> dict[str, Any]:
    """The report of a process of its own, which gets the source of the module and nothing else of ours."""
    nothing = {"paths": [], "modules": [], "packages": ["pyarrow"], "addresses": [], "files": [], "seconds": 1.0}
    question = {**nothing, **asked}
    code = f"{Path(worker_report.__file__).read_text()}\nprint(report_of({json.dumps(json.dumps(question))}, b''))"
    done = subprocess.run([*python, "-c", code], capture_output=True, text=True, check=True)
    report: dict[str, Any] = json.loads(done.stdout)
    return report


def test_a_python_with_nothing_but_its_own_library_can_report(tmp_path: Path) -> None:
    report = reported([sys.executable, "-I", "-S"], modules=["json", "nothing"], files=["/", str(tmp_path / "no")])
    assert report["ours"] == "missing"
    assert report["versions"] == {"pyarrow": ""}
    assert report["modules"] == {"json": "", "nothing": "ModuleNotFoundError: No module named 'nothing'"}
    assert report["files"] == {"/": "", str(tmp_path / "no"): "No such file or directory"}


def test_a_name_that_no_host_can_have_is_an_answer() -> None:
    answers = reported([sys.executable], addresses=[["db..example", 3306], ["a" * 64, 3306]])["addresses"]
    assert all(why.startswith("this cannot be the name of a host: ") for why in answers.values()), answers


def test_the_sources_of_another_folder_differ(tmp_path: Path) -> None:
    for name in ("one", "other"):
        package = tmp_path / name / "trident_py"
        package.mkdir(parents=True)
        (package / "__init__.py").write_text(f"raise ImportError('{name} was imported')")
    bare = [sys.executable, "-I", "-S"]
    one, same, other = (reported(bare, paths=[str(tmp_path / name)])["ours"] for name in ("one", "one", "other"))
    assert one == same != other
    assert len(one) == 8


def test_another_package_called_states_does_not_change_the_digest_of_our_sources(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ours = worker_report._our_sources()
    (tmp_path / "states").mkdir()
    (tmp_path / "states" / "__init__.py").write_text("somebody = 'else'")
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "states")
    assert worker_report._our_sources() == ours and len(ours) == 8
