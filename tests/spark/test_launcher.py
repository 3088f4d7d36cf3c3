"""What a new session takes over: the settings of PYSPARK_SUBMIT_ARGS, of spark-defaults.conf, then ours."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from trident_py.spark.launcher import defaults, is_alone, is_one_machine

from .test_sessions import program

pytestmark = pytest.mark.spark
ROOT = Path(__file__).parents[2]
GIVEN = """
import os
from pathlib import Path
Path("spark-defaults.conf").write_text("spark.sql.shuffle.partitions 11\\nspark.sql.session.timeZone Asia/Tokyo\\n"
                                       "spark.driver.extraJavaOptions -Dtheirs=kept\\n")
os.environ["SPARK_CONF_DIR"] = os.getcwd()
os.environ["PYSPARK_SUBMIT_ARGS"] = "--master local[3] --conf spark.sql.session.timeZone=Asia/Seoul pyspark-shell"
from trident_py import SparkCluster

with SparkCluster() as cluster:
    conf = cluster.spark.sparkContext.getConf()
    found = {key: conf.get("spark." + key) for key in (
        "master", "app.name", "sql.shuffle.partitions", "sql.session.timeZone", "ui.enabled", "ui.showConsoleProgress",
        "driver.host")}
    assert found == {
        "master": "local[3]", "app.name": "trident_py", "sql.shuffle.partitions": "11",
        "sql.session.timeZone": "Asia/Seoul", "ui.enabled": "false", "ui.showConsoleProgress": "false",
        "driver.host": "127.0.0.1"}, found
    properties = cluster.spark.sparkContext._jvm.java.lang.System.getProperty
    assert properties("theirs") == "kept" and "trident-spark-" in properties("java.io.tmpdir")
assert "SPARK_SUBMIT_OPTS" not in os.environ or "trident-spark-" not in os.environ["SPARK_SUBMIT_OPTS"]
"""


def test_settings_given_from_outside_hold_and_ours_fill_the_gaps(tmp_path: Path) -> None:
    program(GIVEN, tmp_path)


@pytest.mark.parametrize("setting", ["spark.driver.memory=lots", "spark.cleaner.periodicGC.interval=lots"])
def test_a_setting_that_spark_refuses_ends_the_command_with_sparks_reason(tmp_path: Path, setting: str) -> None:
    """Java refuses the first as it starts, Spark the second when it makes the session."""
    command = [sys.executable, "-m", "trident_py", "run", "examples.word_count:build", "--conf", setting]
    done = subprocess.run(command, cwd=tmp_path, env=_environment(), capture_output=True, text=True)
    assert done.returncode == 1, done.stderr
    assert "Spark did not start" in done.stderr and "lots" in done.stderr and "trident run" in done.stderr
    assert "Traceback" not in done.stderr


KILLED = """#!/bin/sh
# Java. As Spark's own process it gets SIGKILL in its first {times} starts, {when}.
case "$*" in *launcher.Main*) exec {java} "$@" ;; esac
echo >> {starts}
if [ $(wc -l < {starts}) -gt {times} ]; then exec {java} "$@"; fi
if [ "{when}" = "at once" ]; then kill -9 $$; fi
exec 3<&0
{java} "$@" <&3 &
told=$_PYSPARK_DRIVER_CONN_INFO_PATH # Python reads it at once, and removes its folder
until [ -e "$told" ] || [ ! -e "${{told%/*}}" ]; do sleep 0.01; done
kill -STOP $!
sleep 0.3
kill -9 $!
kill -9 $$
"""
COUNTED = "from trident_py import SparkCluster\nwith SparkCluster() as cluster: print(cluster.spark.range(3).count())"


@pytest.mark.parametrize(
    ("when", "times"),
    [
        pytest.param("at once", 1, marks=pytest.mark.whole("test_java_killed_in_its_start_is_started_once_more")),
        ("while the session is made", 1),
        ("at once", 2),
    ],
)
def test_java_killed_in_its_start_is_started_once_more(tmp_path: Path, when: str, times: int) -> None:
    java, starts = tmp_path / "bin" / "java", tmp_path / "starts"
    java.parent.mkdir()
    java.write_text(KILLED.format(java=shutil.which("java"), when=when, times=times, starts=starts))
    java.chmod(0o755)
    environment = {**_environment(), "JAVA_HOME": str(tmp_path)}
    command = [sys.executable, "-c", COUNTED]
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert len(starts.read_text().splitlines()) == 2, done.stderr
    assert "it is started once more" in done.stderr
    if times == 1:
        assert (done.returncode, done.stdout) == (0, "3\n"), done.stderr
    else:
        assert "Spark did not start: its Java process ended at once, or was killed" in done.stderr


def _environment() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(ROOT)}


def test_a_local_cluster_is_one_machine_and_not_one_process() -> None:
    masters = ["local", "local[*]", "local[2,3]", "local-cluster[2,1,1024]", "spark://host:7077", "yarn"]
    assert [is_alone(master) for master in masters] == [True, True, True, False, False, False]
    assert [is_one_machine(master) for master in masters] == [True, True, True, True, False, False]


def test_the_guide_says_where_sparks_page_is_off(tmp_path: Path) -> None:
    off = [master for master in ("local[*]", "spark://host:7077") if "spark.ui.enabled" in defaults(master, tmp_path)]
    assert off == ["local[*]"]
    guide = (Path(__file__).parents[2] / "docs" / "porting.md").read_text()
    assert "With a `local` master the UI is off: `--conf spark.ui.enabled=true`" in guide


def test_on_a_cluster_no_setting_names_the_driver_and_an_exchange_writes_few_files(tmp_path: Path) -> None:
    assert defaults("spark://host:7077", tmp_path) == {
        "spark.app.name": "trident_py",
        "spark.sql.session.timeZone": "UTC",
        "spark.shuffle.sort.bypassMergeThreshold": "1",
    }
    assert "spark.shuffle.sort.bypassMergeThreshold" not in defaults("local[*]", tmp_path)
