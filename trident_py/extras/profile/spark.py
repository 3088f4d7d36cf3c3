"""What Spark itself knows of the phases of a batch (`trident_py.engine.phases`), put together with what we measured.

Spark's own figures are those of its progress reports and of its REST interface, to the millisecond. Of the tasks of a
stage the one that ended last is taken: the others ran beside it.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from typing import Any, ClassVar, TypeVar

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming import StreamingQuery

from ...engine import phases
from ...engine.phases import IN_DRIVER, JOB, BatchPhases, Phase, Seen, Taken, TaskPhases, phase
from ...report.progress import KEPT
from ...spark.internals import jobs_of, read_planning_seconds
from ...spark.profiler import Profiler

T = TypeVar("T")

_OURS = {
    "latestOffset": "offset",
    "getBatch": "planning",
    "queryPlanning": "planning",
    "walCommit": "offset log",
    "commitOffsets": "commit log",
}


class SparkProfiler(Profiler):
    """Collects what the driver sees of the batches of one component. ``title``: how the descriptions of its jobs begin.
    """

    settings: ClassVar = {"spark.sql.streaming.numRecentProgressUpdates": "10000"}  # Spark keeps 100 reports otherwise

    def __init__(self, title: str) -> None:
        self.title = title
        self.planned: dict[int, float] = {}
        self.asked: dict[int, float] = {}
        self.batch_ids: dict[int, int] = {}
        self.query: StreamingQuery | None = None
        self._batch_id = -1

    @contextmanager
    def batch(self, query: StreamingQuery, batch_id: int) -> Iterator[None]:
        self.query, self._batch_id = query, batch_id
        phases.start(True)
        with phase("driver rest"):
            yield

    def begin(self, txid: int) -> None:
        _keep(self.batch_ids, txid, self._batch_id)

    def ran(self, txid: int, job: DataFrame) -> None:
        before = time.perf_counter()
        _keep(self.planned, txid, read_planning_seconds(job))
        _keep(self.asked, txid, time.perf_counter() - before)

    def batches(self, spark: SparkSession, seen: Sequence[Seen]) -> list[BatchPhases]:
        """Leave out replayed batches, and those of which Spark has forgotten something."""
        reports = self._reports()
        jobs = {job["description"]: job for job in jobs_of(spark, [self._job(each) for each in seen])}
        found = []
        for each in seen:
            number = self.batch_ids.get(each.txid, -1)
            job, report, inline = jobs.get(self._job(each)), reports.get(number), (IN_DRIVER, "") in each.taken.seconds
            if each.attempt or report is None or not (inline or (job and each.txid in self.planned)):
                continue
            whole, seconds = whole_batch(report, reports.get(number + 1))
            added, asked = report["durationMs"]["addBatch"] / 1000, self.asked.get(each.txid, 0.0)
            if job is None:
                _add(seconds, inline_call(added, each.taken, each.tasks))
            else:
                seconds["profile", ""] = asked
                _add(seconds, our_call(added - asked, each.taken, self.planned[each.txid], job))
                _add(seconds, in_job(job, each.tasks))
            found.append(BatchPhases.of(each.txid, whole, seconds))
        return found

    def _job(self, each: Seen) -> str:
        return f"{self.title}: txid {each.txid}, attempt {each.attempt}"

    def _reports(self) -> dict[int, Mapping[str, Any]]:
        """Return Spark's progress reports of the batches, by batch id. There are as many as Spark keeps."""
        recent = [] if self.query is None else self.query.recentProgress
        return {report["batchId"]: report for report in recent if "addBatch" in report["durationMs"]}


def whole_batch(report: Mapping[str, Any], following: Mapping[str, Any] | None) -> tuple[float, dict[Phase, float]]:
    """Return the seconds from the begin of a batch to that of the following one, and what Spark spent around our own
    call."""
    seconds: dict[Phase, float] = defaultdict(float)
    durations = {name: spent / 1000 for name, spent in report["durationMs"].items()}
    for name, ours in _OURS.items():
        seconds[ours, ""] += durations.get(name, 0.0)
    whole = durations["triggerExecution"]
    if following is not None:
        lap = (_time(following) - _time(report)).total_seconds()
        seconds["between batches", ""] = lap - whole
        whole = lap
    return whole, seconds


def _time(report: Mapping[str, Any]) -> datetime:
    return datetime.fromisoformat(report["timestamp"])


def our_call(added: float, driver: Taken, planned: float, job: Mapping[str, Any]) -> dict[Phase, float]:
    """Return what passed in the call of foreachBatch, which took ``added`` seconds: on the driver, and in its job."""
    seconds = dict(driver.seconds)
    called = seconds.pop((JOB, ""), 0.0)
    before = job["submissionTime"] / 1000 - driver.entered[JOB, ""]
    seconds["foreachBatch", ""] = added - driver.whole
    seconds["planning", ""] = planned
    seconds["job submit", ""] = before - planned
    fetched = called - before - (job["completionTime"] - job["submissionTime"]) / 1000
    seconds["receipts", ""] = seconds.get(("receipts", ""), 0.0) + fetched
    return seconds


def inline_call(added: float, driver: Taken, reported: Sequence[TaskPhases]) -> dict[Phase, float]:
    """Return what passed in the call of foreachBatch if the batch ran in this process, with no job."""
    seconds = dict(driver.seconds)
    seconds["foreachBatch", ""] = added - driver.whole
    for task in reported:
        seconds[IN_DRIVER, ""] -= task.taken.whole
        _add(seconds, task.taken.seconds)
    return seconds


def in_job(job: Mapping[str, Any], reported: Sequence[TaskPhases]) -> dict[Phase, float]:
    """Return what passed from the begin of a job to its end, along the task of each stage that ended last."""
    seconds: dict[Phase, float] = defaultdict(float)
    by_number = {task.task: task.taken for task in reported}
    at = job["submissionTime"]
    for stage in sorted((stage for stage in job["stages"] if stage.get("tasks")), key=lambda s: s["submissionTime"]):
        last = max(stage["tasks"], key=lambda task: int(task["launchTime"] + task["duration"]))
        ended = last["launchTime"] + last["duration"]
        ours = by_number.get(last["taskId"])
        launched = (last["launchTime"] - stage["submissionTime"]) / 1000
        seconds["job scheduling", ""] += (stage["submissionTime"] - at + stage["completionTime"] - ended) / 1000
        if ours is None:
            seconds["job descriptors", ""] += launched + last["duration"] / 1000
        else:
            seconds["task launch", ""] += launched
            _add(seconds, _in_task(last, ours))
        at = stage["completionTime"]
    seconds["job scheduling", ""] += (job["completionTime"] - at) / 1000
    return seconds


def _in_task(task: Mapping[str, Any], ours: Taken) -> dict[Phase, float]:
    """Return a task from its launch to its end."""
    seconds = dict(ours.seconds)
    in_java = task["taskMetrics"]["executorDeserializeTime"] / 1000
    seconds["task start", "Java"] = in_java
    seconds["task start", "Python"] = ours.began - task["launchTime"] / 1000 - in_java
    ended = (task["launchTime"] + task["duration"]) / 1000
    seconds["task end", ""] = ended - ours.began - ours.whole
    return seconds


def _keep(values: dict[int, T], number: int, value: T) -> None:
    """Keep the last batches of a long run."""
    values[number] = value
    if len(values) > KEPT:
        del values[min(values)]


def _add(seconds: dict[Phase, float], more: Mapping[Phase, float]) -> None:
    for name, spent in more.items():
        seconds[name] = seconds.get(name, 0.0) + spent
