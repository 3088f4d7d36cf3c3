"""The command line: what it prints, where, and how it ends."""

from __future__ import annotations

import json
import os
import re
import shlex
import signal
import subprocess
import sys
import time
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

import pytest

import trident_py
from states.sql import AppendState
from trident_py import Config, LocalCluster, TridentTopology
from trident_py.cli.display import ProgressLine, Terminated, _format_txids, follow, now
from trident_py.cli.failures import run_guarded
from trident_py.cli.run import settings_of
from trident_py.cli.spark_options import SparkOptions
from trident_py.extras.event_lines import lines
from trident_py.extras.event_lines.lines import EventLines
from trident_py.model.user_traceback import is_users
from trident_py.report.guarantees import Guarantees
from trident_py.report.progress import Event, Progress
from trident_py.testing import FixedBatchSpout

ROOT = Path(__file__).parent.parent
SEEDED = {"PYTHONHASHSEED": "0"}
"""Without it a local run starts itself again, which takes twice as long; tests/test_set_order.py shows it."""

GOOD = """
import time

from trident_py import FailedException, Fields, TridentTopology
from trident_py.operations.builtin import Count
from trident_py.testing import FixedBatchSpout, MemoryMapState

def build():
    topology = TridentTopology()
    spout = FixedBatchSpout(Fields("word"), 2, ("a",), ("b",), ("a",))
    words = topology.newStream("words", spout)
    words.groupBy("word").persistentAggregate(MemoryMapState.Factory(), Count(), "count")
    return topology

def failing():
    topology = TridentTopology()
    words = topology.newStream("words", FixedBatchSpout(Fields("word"), 2, ("a",), ("b",)))
    words.each("word", boom, "other")
    return topology

def boom(word):
    raise ValueError(f"cannot read {word!r}")

def noisy():
    tried = []

    def speak(word):
        print("printed", word, end="" if word == "c" else "\\n")
        if word == "b" and not tried:
            tried.append(word)
            raise FailedException("a reason that is longer than a line of a terminal is wide, and that stays one line")
        if word == "c":
            raise ValueError("the end")
        return [word]

    topology = TridentTopology()
    words = topology.newStream("words", FixedBatchSpout(Fields("word"), 1, ("a",), ("b",), ("c",)))
    words.each("word", speak, "other")
    return topology

def printing():
    import os

    def prints(word):
        for number in (1, 2):
            os.write(number, b"a line of a C library\\n")
        return True

    topology = TridentTopology()
    words = topology.newStream("words", FixedBatchSpout(Fields("word"), 2, ("a",), ("b",), ("a",)))
    words.filter("word", prints).groupBy("word").persistentAggregate(MemoryMapState.Factory(), Count(), "count")
    return topology

def submitted():
    import sys
    from trident_py import LocalCluster

    with LocalCluster(sys.argv[1]) as cluster:
        cluster.submitTopology("good", {}, printing().build()).awaitTermination(30)

def hanging():
    topology = TridentTopology()
    words = topology.newStream("words", FixedBatchSpout(Fields("word"), 1, ("a",), ("b",)))
    def hang(word):
        if word == "b":
            open("hangs", "w").close()
            time.sleep(600)

    words.each("word", hang, "other")
    return topology

def leaving():
    topology = TridentTopology()
    words = topology.newStream("words", FixedBatchSpout(Fields("word"), 2, ("a",), ("b",)))
    words.each("word", leave, "other")
    return topology

def leave(word):
    import sys
    sys.exit("bad configuration")

def another_checkpoint():
    # The counts were written by another run, whose checkpoint is gone.
    from states.sql import SqlMapState
    from trident_py import LocalCluster

    def topology():
        topology = TridentTopology()
        words = topology.newStream("words", FixedBatchSpout(Fields("word"), 2, ("a",), ("b",)))
        state = SqlMapState.opaque("sqlite:///counts.db", "counts", key="word string")
        words.groupBy("word").persistentAggregate(state, Count(), "count")
        return topology

    with LocalCluster() as cluster:
        cluster.submitTopology("good", {}, topology().build()).awaitTermination(30)
    return topology()

def wrong():
    return TridentTopology().newStream("words", FixedBatchSpout(Fields("word"), 2, ("a",))).project("wrod")

def nothing():
    return None

def endless():
    topology = TridentTopology()
    spout = FixedBatchSpout(Fields("word"), 2, ("a",), ("b",))
    spout.setCycle(True)
    topology.newStream("words", spout).groupBy("word").persistentAggregate(MemoryMapState.Factory(), Count(), "count")
    return topology
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "good.py").write_text(GOOD)
    (tmp_path / "broken.py").write_text("import no_such_package\n\ndef build(): ...\n")
    return tmp_path


def trident(folder: Path, *arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-W", "error", "-m", "trident_py", *arguments]
    environment = {"PYTHONPATH": str(ROOT), "PATH": "/usr/bin:/bin", **SEEDED, **variables}
    return subprocess.run(
        command,
        cwd=folder,
        capture_output=True,
        text=True,
        env=environment,
        stdin=subprocess.DEVNULL,
        timeout=60,
    )


def test_the_version_is_that_of_the_package(folder: Path) -> None:
    assert trident(folder, "--version").stdout == f"trident {trident_py.__version__}\n"
    assert trident_py.__version__ == version("trident-py")


def test_a_local_run_ends_with_exit_code_0_and_an_empty_stdout(folder: Path) -> None:
    done = trident(folder, "run", "good:build", "--local")
    assert (done.returncode, done.stdout) == (0, ""), done.stderr


def test_json_gives_one_event_per_line_on_stdout(folder: Path) -> None:
    started = datetime.now(UTC).replace(microsecond=0)
    done = trident(folder, "run", "good:build", "--local", "--json")
    events = [json.loads(line) for line in done.stdout.splitlines()]
    assert [e["txid"] for e in events if e["event"] == "committed"] == [1, 2]
    assert events[-1]["event"] == "ended"
    assert done.stderr == ""
    times = [datetime.fromisoformat(event["time"]) for event in events]
    assert times == sorted(times) and started <= times[0] and times[-1] <= datetime.now(UTC)
    assert {event["topology"] for event in events} == {"good"}


def test_events_are_in_a_file_and_the_log_is_json(folder: Path) -> None:
    more = ("--events", "events.jsonl", "--log-format", "json", "--set", "topology.no.such.key=1")
    done = trident(folder, "run", "good:build", "--local", "--json", *more)
    kept = (folder / "events.jsonl").read_text().splitlines()
    assert kept == done.stdout.splitlines() and done.returncode == 0, done.stderr
    told = [json.loads(line) for line in done.stderr.splitlines()]
    assert all(each["topology"] == "good" and each["host"] and each["time"] for each in told)
    assert [each["txid"] for each in told if each["event"] == "committed"] == [1, 2]
    (record,) = [each for each in told if each["event"] == "log"]
    assert (record["level"], record["logger"]) == ("WARNING", "trident_py") and "no.such.key" in record["message"]
    again = trident(folder, "run", "good:build", "--local", "--events", "no/such/folder")
    assert again.returncode == 2 and f"--events {folder}/no/such/folder: the events" in again.stderr


def test_a_full_file_of_events_becomes_an_older_one_and_five_are_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lines, "FILE_BYTES", 1000)
    file = tmp_path / "events.jsonl"
    with EventLines(False, str(file), False) as events:
        events.begin("good", Guarantees())
        for txid in range(1, 101):
            events.event(now(), Event("committed", txid, 0, ""), None)
        files = [*(tmp_path / f"events.jsonl.{number}" for number in range(5, 0, -1)), file]
        assert sorted(tmp_path.iterdir()) == sorted(files)
        assert [800 < each.stat().st_size <= 1000 for each in files[:-1]] == [True] * 5
        kept = [json.loads(line)["txid"] for each in files for line in each.read_text().splitlines()]
        assert kept == list(range(kept[0], 101)) and 30 < len(kept) < 60
        for txid in (kept[0], 100):  # the page of a run reads all of them
            assert [each["txid"] for each in lines.past("good", None, txid) or []] == [txid]
        assert lines.past("good", None, kept[0] - 1) == []


def test_an_event_that_a_kill_has_cut_ends_where_the_next_run_begins(tmp_path: Path) -> None:
    file = tmp_path / "events.jsonl"
    file.write_text('{"event": "comm')
    for _ in range(2):
        with lines.file_of_events(file) as write:
            write('{"event": "started"}')
    assert file.read_text() == '{"event": "comm\n{"event": "started"}\n{"event": "started"}\n'


def test_with_a_json_log_every_line_is_json(folder: Path) -> None:
    done = trident(folder, "run", "good:noisy", "--local", "--log-format", "json", "--http", "0")
    told = [json.loads(line) for line in [*done.stdout.splitlines(), *done.stderr.splitlines()]]
    assert done.returncode == 1 and all(each["topology"] == "good" and each["host"] for each in told)
    assert [each["message"] for each in told if each["event"] == "stdout"] == [f"printed {word}" for word in "abbc"]
    assert [each["txid"] for each in told if each["event"] == "replay"] == [2]
    assert not [each for each in told if each["event"] == "log" and "replaying" in each["message"]]
    page, failure = [each["message"] for each in told if each["event"] == "stderr"]
    assert page.startswith("page at http://127.0.0.1:") and failure.startswith("ValueError: the end\n")


def test_a_replay_is_told_once_and_in_one_line(folder: Path) -> None:
    told = trident(folder, "run", "good:noisy", "--local").stderr
    (line,) = [line for line in told.splitlines() if "a reason" in line]
    assert line.startswith("replay: txid 2, attempt 0: ") and "and that stays one line (at " in line


def test_an_event_with_a_reason_is_printed_and_only_a_commit_is_the_progress(capsys: pytest.CaptureFixture) -> None:
    kinds = set(re.findall(r'"([a-z-]+)"', (Event.__doc__ or "").partition("``kind``")[2])) - {"in the driver"}
    assert {"started", "committed", "failed", "ended", "replay"} < kinds
    for kind in sorted(kinds):
        line = ProgressLine("counting")
        with line:
            line.event(datetime.now(UTC), Event(kind, 7, 1, "why"), Progress("words", txid=7))
        *printed, last = capsys.readouterr().err.splitlines()
        assert printed == ([] if kind in _TOLD_ELSEWHERE else [f"{kind}: txid 7, attempt 1: why"])
        assert last.startswith("counting: txid 7, ") == (kind == "committed"), last


# In the progress line itself, or by the command, at the end.
_TOLD_ELSEWHERE = {"started", "committed", "failed", "ended"}


def test_explain_shows_the_nodes_and_the_guarantee(folder: Path) -> None:
    done = trident(folder, "explain", "good:build")
    assert done.returncode == 0, done.stderr
    assert "FixedBatchSpout" in done.stdout
    assert "exactly once" in done.stdout


def test_build_is_the_default_function(folder: Path) -> None:
    assert trident(folder, "explain", "good").returncode == 0


def test_a_failing_function_shows_the_users_exception_first_and_no_traceback(folder: Path) -> None:
    done = trident(folder, "run", "good:failing", "--local")
    assert done.returncode == 1
    lines = [line for line in done.stderr.splitlines() if line.strip()]
    assert lines[0] == "ValueError: cannot read 'a'"
    assert "txid 1" in done.stderr
    assert "Traceback" not in done.stderr
    where = f"{folder / 'good.py'}:{1 + GOOD[: GOOD.index('cannot read')].count(chr(10))} in boom"
    assert lines[1:3] == [f"  at {where}: raise ValueError(f\"cannot read {{word!r}}\")", "  with word='a'"]


def test_traceback_shows_the_users_frames_and_none_of_ours(folder: Path) -> None:
    told = trident(folder, "run", "good:failing", "--local", "--traceback").stderr
    assert "Traceback (most recent call last)" in told and "in boom" in told
    assert f"{ROOT / 'trident_py'}/" not in told


def test_json_events_tell_the_users_line_and_values(folder: Path) -> None:
    done = trident(folder, "run", "good:failing", "--local", "--json")
    failed = [event for event in map(json.loads, done.stdout.splitlines()) if event["event"] == "failed"]
    assert "good.py:" in failed[0]["reason"] and "with word='a'" in failed[0]["reason"]
    assert failed[0]["partition"] == 0


def test_leaving_the_process_in_a_function_is_a_failure(folder: Path) -> None:
    done = trident(folder, "run", "good:leaving", "--local")
    assert done.returncode == 1
    assert done.stderr.startswith("SystemExit: bad configuration") or "\nSystemExit: bad configuration" in done.stderr


def test_a_definition_error_names_the_fields_that_exist_and_the_users_line(folder: Path) -> None:
    done = trident(folder, "explain", "good:wrong")
    assert done.returncode == 2
    assert "wrod" in done.stderr
    assert "word" in done.stderr
    assert f"good.py:{1 + GOOD[: GOOD.index('wrod')].count(chr(10))} in wrong: " in done.stderr


def test_an_error_out_of_a_state_of_ours_points_to_no_line_of_ours(folder: Path) -> None:
    done = trident(folder, "run", "good:another_checkpoint", "--local")
    assert done.returncode == 1
    assert "LineageError: state 'counts' of topology 'good'" in done.stderr
    assert "\n  at " not in done.stderr


def test_ours_is_what_stands_in_our_two_packages(tmp_path: Path) -> None:
    ours = [ROOT / "trident_py" / "tuples.py", ROOT / "states" / "sql" / "ledger.py"]
    theirs = [tmp_path / "states" / "ledger.py", ROOT / "statesmen.py", ROOT / "examples" / "weather.py"]
    assert [is_users(str(file)) for file in [*ours, *theirs]] == [False, False, True, True, True]


@pytest.mark.parametrize(
    ("target", "told"),
    [
        ("god:build", "in this folder there are: broken, good"),
        ("good:bild", "it has: another_checkpoint, boom, build, endless, failing, hanging, leave, leaving, noisy, "),
        ("good:nothing", "returned NoneType"),
        ("broken:build", "no_such_package"),
    ],
)
def test_what_cannot_be_loaded_ends_with_2_and_says_what_exists(folder: Path, target: str, told: str) -> None:
    done = trident(folder, "run", target, "--local")
    assert (done.returncode, done.stdout) == (2, "")
    assert told in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("where", ["--local", pytest.param("--available-now", marks=pytest.mark.spark)])
@pytest.mark.parametrize(("sent", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 0)], ids=["ctrl-c", "sigterm"])
def test_a_signal_ends_a_run_after_its_batch_and_without_a_traceback(
    folder: Path, where: str, sent: signal.Signals, code: int
) -> None:
    command = [sys.executable, "-W", "error", "-m", "trident_py", "run", "good:endless", where, "--json"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT), **SEEDED}
    with subprocess.Popen(
        command, cwd=folder, env=environment, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        # also where this process runs in the background, and so ignores SIGINT
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    ) as running:  # fmt: skip
        assert running.stdout is not None
        while '"committed"' not in running.stdout.readline():
            assert running.poll() is None
        running.send_signal(sent)
        _, told = running.communicate(timeout=60)
    assert running.returncode == code, told
    assert "stopped; last committed txid: " in told
    # Spark's own process of the source may print one when Spark closes its socket first
    tracebacks = told.split("Traceback (most recent call last)")[1:]
    assert [each for each in tracebacks if "pyspark/sql/streaming/python_streaming_source_runner.py" not in each] == []
    assert "\tat " not in told, "a Java stack trace"


def test_a_second_signal_ends_a_run_whose_batch_hangs_and_says_so(folder: Path) -> None:
    command = [sys.executable, "-m", "trident_py", "run", "good:hanging", "--local", "--log-format", "json"]
    with subprocess.Popen(
        command, cwd=folder, env={**os.environ, "PYTHONPATH": str(ROOT), **SEEDED}, text=True, stderr=subprocess.PIPE
    ) as running:
        while not (folder / "hangs").exists():
            assert running.poll() is None
            time.sleep(0.02)
        running.send_signal(signal.SIGTERM)
        with pytest.raises(subprocess.TimeoutExpired):
            running.wait(1)
        running.send_signal(signal.SIGTERM)
        _, told = running.communicate(timeout=60)
    assert running.returncode == 143, told
    said = "ended in the middle of a batch, which the next start repeats; last committed txid: 1"
    lines = list(map(json.loads, told.splitlines()))
    assert [line["message"] for line in lines if "message" in line] == [said]


def test_the_last_txid_is_that_of_each_component() -> None:
    assert [_format_txids(txids) for txids in ({"a": 7}, {"a": None}, {"a": 7, "b": None})] == [
        "7", "none", "7 of a, none of b"
    ]  # fmt: skip


def test_local_runs_do_not_load_pyspark(folder: Path) -> None:
    code = "import sys; sys.argv = ['trident', 'run', 'good:build', '--local']\n"
    code += "from trident_py.cli import trident\n"
    code += "try:\n    trident()\nexcept SystemExit as end:\n    assert end.code == 0\n"
    code += "assert 'pyspark' not in sys.modules"
    environment = {"PYTHONPATH": str(ROOT), "PATH": "/usr/bin:/bin"}
    subprocess.run([sys.executable, "-c", code], cwd=folder, env=environment, check=True, capture_output=True)


def test_every_configuration_key_is_in_the_documentation() -> None:
    keys = [value for name, value in vars(Config).items() if name.isupper()]
    page = (ROOT / "docs" / "configuration.md").read_text()
    told = [key for key in keys if f"`{key}`" in page or ("zookeeper" in key and "`transactional.zookeeper.*`" in page)]
    assert [key for key in keys if key not in told and key != Config.TOPOLOGY_NAME] == []


def test_settings_are_json_or_text() -> None:
    assert settings_of(("a=1", "b=true", "c=some text", 'd="1"')) == {"a": 1, "b": True, "c": "some text", "d": "1"}


def test_a_local_run_keeps_the_checkpoint_that_it_is_given(folder: Path) -> None:
    first = trident(folder, "run", "good:build", "--local", "--checkpoint", "kept", "--json")
    again = trident(folder, "run", "good:build", "--local", "--checkpoint", "kept", "--json")
    assert [each.stdout.count('"committed"') for each in (first, again)] == [2, 0], again.stderr
    assert (folder / "kept").is_dir()


def test_an_option_that_would_do_nothing_is_refused(folder: Path) -> None:
    done = trident(folder, "run", "good:build", "--local", "--available-now")
    assert done.returncode == 2 and "--available-now is for Spark" in done.stderr
    done = trident(folder, "run", "good:build", "--local", "--master", "local[2]")
    assert done.returncode == 2 and "--local runs without Spark" in done.stderr


@pytest.mark.parametrize("setting", ["spark.executor.memory", "topology.guarantee=exactly-once", "password=hidden"])
def test_a_setting_that_is_none_of_sparks_is_refused_before_spark_starts(folder: Path, setting: str) -> None:
    done = trident(folder, "run", "good:build", "--conf", setting)
    assert done.returncode == 2 and "expected spark.KEY=VALUE" in done.stderr and "hidden" not in done.stderr
    assert setting.partition("=")[0] in done.stderr and "--set" in done.stderr


def test_options_of_spark_follow_those_of_the_environment_and_precede_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYSPARK_SUBMIT_ARGS", "--conf spark.a=1 pyspark-shell")
    monkeypatch.setattr(sys, "path", [*sys.path])
    spark = SparkOptions("local[3]", ("spark.b=two words", "spark.b=3"), "/x/mine.py,/y/more.zip", "e.tgz#e", "p.conf")
    spark.apply("the name")
    named = ["--conf", "spark.app.name=the name", "--conf", "spark.a=1"]
    options = ["--master", "local[3]", "--py-files", "/x/mine.py,/y/more.zip", "--archives", "e.tgz#e"]
    settings = ["--properties-file", "p.conf", "--conf", "spark.b=two words", "--conf", "spark.b=3", "pyspark-shell"]
    assert shlex.split(os.environ["PYSPARK_SUBMIT_ARGS"]) == [*named, *options, *settings]
    assert sys.path[-2:] == ["/x", "/y/more.zip"]


def test_options_of_spark_are_refused_where_spark_submit_started_spark(folder: Path) -> None:
    environment = {**os.environ, "PYSPARK_GATEWAY_PORT": "1", "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-m", "trident_py", "run", "good:build", "--master", "yarn"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, env=environment)
    assert done.returncode == 2 and "spark-submit has started Spark already" in done.stderr


def test_a_signal_that_comes_while_something_is_shown_stops_the_run_after_its_batch() -> None:
    class Interrupted:
        def event(self, time: datetime, event: Event, progress: Progress | None) -> None:
            if event.kind == "committed" and not running.stopping.is_set():
                raise Terminated

    topology = TridentTopology()
    topology.newStream("in", FixedBatchSpout("word", 1, ("a",)).setCycle(True)).peek(lambda word: None)
    with LocalCluster() as cluster:
        running = cluster.submitTopology("shown", {}, topology.build())
        assert follow(running, [Interrupted()]) == 0
        assert not running.isActive and running.exception is None


def test_a_reason_in_an_event_has_no_secret(capsys: pytest.CaptureFixture[str]) -> None:
    lines = EventLines(True, None, False)
    with lines:
        lines.event(datetime.now(UTC), Event("replay", 1, 0, "cannot reach mysql://me:s3cret@db/x"), None)
    shown = capsys.readouterr().out
    assert "replay" in shown and "s3cret" not in shown


def test_an_event_is_json_whatever_a_metric_holds(capsys: pytest.CaptureFixture[str]) -> None:
    progress = Progress("a")
    progress.metrics = {"m": {"0": float("nan"), "1": {("a", 1): 2}, "2": [float("inf"), 1.5]}}
    with EventLines(True, None, False) as lines:
        lines.event(datetime.now(UTC), Event("committed", 1, 0, ""), progress)
    told = json.loads(capsys.readouterr().out, parse_constant=pytest.fail)
    assert told["metrics"] == {"m": {"0": None, "1": {"('a', 1)": 2}, "2": [None, 1.5]}}


def test_the_events_of_failures_name_their_partition(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    topology = TridentTopology()
    words = topology.newStream("words", FixedBatchSpout("word string", 2, ("a",), ("0",)))
    words.partition(lambda word: 1).each("word", lambda word: [1 / int(word, 16)], "part").parallelismHint(2)
    words.deadLetters().partitionPersist(AppendState(f"sqlite:///{tmp_path}/letters.db", "letters"))
    with EventLines(True, None, False) as lines, LocalCluster() as cluster:
        follow(cluster.submitTopology("failing", {"topology.poison": "bisect"}, topology.build()), [lines])
    told = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert {each["event"]: each["partition"] for each in told if "partition" in each} == {"replay": 1, "poison": 1}


# -- whose error it is ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("unbuffered", ["1", ""], ids=["while it prints", "at its end"])
def test_a_reader_that_has_gone_ends_a_command_without_a_word(folder: Path, unbuffered: str) -> None:
    read, write = os.pipe()
    os.close(read)
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONUNBUFFERED": unbuffered}
    command = [sys.executable, "-m", "trident_py", "explain", "good:build"]
    done = subprocess.run(
        command, cwd=folder, env=environment, stdout=write, stderr=subprocess.PIPE, text=True, check=False
    )
    os.close(write)
    assert (done.returncode, done.stderr) == (1, "")


@pytest.mark.parametrize("command", [("-m", "trident_py", "run", "good:printing", "--local", "--checkpoint", "kept"),
                                     ("-c", "import good; good.submitted()", "kept")],
                         ids=["command", "program"])  # fmt: skip
@pytest.mark.parametrize("closed", ["2>&-", ">&-", "<&- >&- 2>&-"])
def test_what_is_printed_where_streams_are_closed_is_in_no_file_of_ours(
    folder: Path, closed: str, command: tuple[str, ...]
) -> None:
    """The first file that a process opens has the number of a stream that is closed, and was the checkpoint."""
    environment = {"PYTHONPATH": str(ROOT), "PATH": "/usr/bin:/bin", **SEEDED}
    for _ in range(2):
        started = ["sh", "-c", f'exec "$@" {closed}', "sh", sys.executable, *command]
        assert subprocess.run(started, cwd=folder, env=environment, capture_output=True, timeout=60).returncode == 0
    told = trident(folder, "run", "good:build", "--name", "good", "--local", "--checkpoint", "kept")
    assert "good: there was no new batch after txid 2" in told.stderr


def test_only_what_fails_in_the_module_is_said_to_be_of_the_module(folder: Path) -> None:
    (folder / "raising.py").write_text("def build():\n    raise OSError(32, 'Broken pipe')\n")
    for command in ("explain", "run"):
        done = trident(folder, command, "raising")
        assert done.returncode == 2 and "raising.py:2 in build" in done.stderr
        assert done.stderr.endswith("error: the module or its build function failed\n")


@pytest.mark.parametrize("full", [False, True])
def test_any_other_error_is_a_defect_and_has_its_traceback(full: bool, capsys: pytest.CaptureFixture[str]) -> None:
    def body() -> int:
        raise ZeroDivisionError("nobody expects this")

    assert run_guarded(body, full) == 1
    told = capsys.readouterr().err
    assert "in body\n    raise ZeroDivisionError" in told and "ZeroDivisionError: nobody expects this\nerror: " in told
    assert "a defect of trident_py" in told and "module" not in told


def test_a_file_that_cannot_be_written_is_named_and_is_no_defect(folder: Path) -> None:
    done = trident(folder, "run", "good", "--local", "--events", "no/such/folder/events.jsonl")
    assert done.returncode in (1, 2) and "no/such/folder" in done.stderr
    assert "defect" not in done.stderr and "module" not in done.stderr and "Traceback" not in done.stderr
