"""The check of a cluster before a start: one job asks every machine that has an executor what it has and reaches."""

from __future__ import annotations

import json
import logging
import pickle
import re
import threading
import time
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any

from pyspark import cloudpickle
from pyspark.sql import SparkSession

from ...checkpoints.location import local_folder
from ...config import Config
from ...engine.program import Program, compile_plan
from ...model.plan import Plan
from ...model.requirements import split_addresses
from ...model.retry import LONGEST
from ...model.secrets import hide
from ...spark import failures, network
from ...spark.internals import executor_hosts, one_row_for_each
from ...spark.jobs import with_streamed_spouts
from ...spark.launcher import is_alone, master_of
from ...spark.pickle_by_value import import_paths
from ...spark.program_pickle import pickle_program
from . import worker_report
from .diagnostics import (
    BASE,
    DRIVER,
    PACKAGES,
    Flaw,
    Need,
    Survey,
    at_home,
    between_machines,
    describe_all,
    list_paths,
    needs_in,
    refusal,
)

log = logging.getLogger("trident_py")
CONNECT_SECONDS = 2.0
WAIT_SECONDS = 60.0
LEAST_SECONDS = 10.0
SETTLED_SECONDS = 1.0
YOUNG_SECONDS = 10.0
_PYTHONS = re.compile(r"Python in worker has different version: (\S+) than that in driver: ([\d.]+)")
_NO_PYTHON = re.compile(r'Cannot run program "([^"]+)"[^\n]*?error=\d+, ([^\n]+)')

# A worker may lack trident_py, so the function must bring the module along.
cloudpickle.register_pickle_by_value(worker_report)


@dataclass(frozen=True)
class Health:
    """What a check found: the machines' reports, the driver's among them, and the findings."""

    master: str
    driver: Survey | None
    reports: tuple[Survey, ...]
    findings: tuple[Flaw, ...]

    @property
    def machines(self) -> list[Survey]:
        return [*([] if self.driver is None else [self.driver]), *self.reports]

    @property
    def can_start(self) -> bool:
        """Whether nothing is wrong but what is only worth knowing."""
        return all(finding.level == "note" for finding in self.findings)

    def lines(self) -> list[str]:
        """Return the findings as text."""
        listed = [
            f"{level}: {line}"
            for level in ("error", "away", "note")
            for line in describe_all(finding for finding in self.findings if finding.level == level)
        ]
        return listed or [f"nothing is wrong on {self.master}"]


@dataclass(frozen=True)
class Question:
    """What a machine is asked. ``program``: the pickled programs of the topology's components."""

    text: str
    program: bytes

    @classmethod
    def of(
        cls, spark: SparkSession, needs: Sequence[Need], programs: Sequence[Program], checkpoint: str | None
    ) -> Question:
        addresses = [server for need in needs for text in need.needs.addresses for server in split_addresses(text)]
        asked = {
            "paths": import_paths(spark),
            "packages": PACKAGES,
            "modules": list(dict.fromkeys([*BASE.modules, *(name for need in needs for name in need.needs.modules)])),
            "addresses": list(dict.fromkeys(addresses)),
            "files": [*list_paths(needs), *([] if checkpoint is None else [checkpoint])],
            "seconds": CONNECT_SECONDS,
        }
        sent = [pickle_program(with_streamed_spouts(program), spark) for program in programs]
        return cls(json.dumps(asked), pickle.dumps(sent))

    @property
    def digest(self) -> bytes:
        return blake2b(self.text.encode() + self.program, digest_size=16).digest()


class _Answered:
    """The machines of the last application that have answered, each with the questions without a finding."""

    def __init__(self) -> None:
        self._application: str | None = None
        self._known: set[tuple[str, bytes]] = set()
        self._lock = threading.Lock()

    def list_unanswered(self, application: str, hosts: Sequence[str], question: bytes) -> list[str]:
        with self._lock:
            if application != self._application:
                self._application, self._known = application, set()
            return [host for host in hosts if (host, question) not in self._known]

    def add(self, application: str, hosts: Sequence[str], question: bytes) -> None:
        with self._lock:
            if application == self._application:
                self._known.update((host, question) for host in hosts)


_answered = _Answered()


def check_cluster(spark: SparkSession, plan: Plan, conf: Mapping[str, Any], checkpoint: str | None) -> None:
    """Check a submission before anything is started.

    Raises DefinitionError with all findings. Notes and stores that answer nobody are logged as warnings.
    """
    health = examine(spark, plan, conf, checkpoint)
    for text in describe_all(finding for finding in health.findings if finding.level != "error"):
        log.warning("%s", text)
    if any(finding.level == "error" for finding in health.findings):
        raise refusal(health.master, health.findings)


def examine(
    spark: SparkSession, plan: Plan, conf: Mapping[str, Any], checkpoint: str | None, again: bool = False
) -> Health:
    """Return the findings, from the driver's point of view and, unless ``topology.probe`` is false, from the machines'.

    ``again``: asks also those machines that have answered the same question in this session.
    """
    master = master_of(spark)
    needs = needs_in(plan)
    folder = None if checkpoint is None else local_folder(checkpoint)
    found = [] if is_alone(master) else at_home(master, needs, folder)
    if why := network.refusal(spark, plan, conf):
        found.append(Flaw("error", "", why))
    if conf.get(Config.TOPOLOGY_PROBE) is False:
        return Health(master, None, (), tuple(found))
    question = Question.of(spark, needs, compile_plan(plan, dict(conf)), folder)
    wait = conf.get(Config.TOPOLOGY_START_WAIT_SECS)
    patience = WAIT_SECONDS if wait is None else max(float(wait), LEAST_SECONDS)
    driver, reports, failed = _ask(spark, question, patience, again)
    found += failed
    if driver is not None:
        found += between_machines(needs, driver, [driver] if is_alone(master) else reports, folder)
    if not any(finding.level == "error" for finding in found):
        hosts = [report.host for report in reports]
        _answered.add(spark.sparkContext.applicationId, hosts, question.digest)
    return Health(master, driver, tuple(reports), tuple(found))


def _ask(
    spark: SparkSession, question: Question, wait: float, again: bool
) -> tuple[Survey | None, list[Survey], list[Flaw]]:
    """Return the driver's report, those of the machines that had to be asked, and what kept them from answering. No
    driver's report: there was nobody to ask."""
    deadline = time.monotonic() + wait
    try:
        hosts = _hosts(spark, deadline)
        asked = hosts if again else _answered.list_unanswered(spark.sparkContext.applicationId, hosts, question.digest)
        if not asked and not again:
            return None, [], []
        job = _Job(spark, lambda: _reports(spark, question, asked))
        driver = _own(question, everything=again)
        return driver, *job.result(deadline)
    except TimeoutError:
        text = f"no executor has answered in {wait:g} s: the application has none, or all are busy; the topology waits"
        return None, [], [Flaw("away", "", text)]
    except Exception as error:
        why = hide(failures.innermost(failures.chain_of(error)))
        return None, [], [Flaw("error", "", f"Spark cannot run a job: {why}. Try it with pyspark alone")]


def _hosts(spark: SparkSession, deadline: float) -> list[str]:
    """Return the machines with executors; waits for the first one, and in a young session until no more come."""
    if is_alone(master_of(spark)):
        return []
    if not executor_hosts(spark):
        _Job(spark, lambda: spark.range(1, numPartitions=1).count()).result(deadline)  # dynamic allocation needs a job
    hosts, since = executor_hosts(spark), time.monotonic()
    while _is_young(spark) and time.monotonic() - since < SETTLED_SECONDS:
        time.sleep(0.05)
        now = executor_hosts(spark)
        if now != hosts:
            hosts, since = now, time.monotonic()
    return hosts


def _is_young(spark: SparkSession) -> bool:
    return time.time() - spark.sparkContext.startTime / 1000 < YOUNG_SECONDS


class _Job:
    """A job of Spark in a thread of its own, so that it can be given up."""

    def __init__(self, spark: SparkSession, work: Callable[[], Any]) -> None:
        self._context, self._work = spark.sparkContext, work
        self._group = f"trident-probe-{uuid.uuid4().hex[:8]}"
        self._done: Future[Any] = Future()
        threading.Thread(target=self._run, name=self._group, daemon=True).start()

    def _run(self) -> None:
        try:
            self._context.setJobGroup(self._group, "trident_py: probe of the machines", interruptOnCancel=True)
            self._done.set_result(self._work())
        except BaseException as error:
            self._done.set_exception(error)

    def result(self, deadline: float) -> Any:
        """Raise TimeoutError at the deadline; the job is then cancelled."""
        try:
            return self._done.result(min(max(0.1, deadline - time.monotonic()), LONGEST))
        except TimeoutError:
            self._context.cancelJobGroup(self._group)
            raise


def _reports(spark: SparkSession, question: Question, hosts: Sequence[str]) -> tuple[list[Survey], list[Flaw]]:
    """Return the report of each machine, and why others have none. One task that fails ends the job, and Spark does not
    say where it was: then each machine is asked by a job of its own."""
    try:
        return _by_one_job(spark, question, hosts) if hosts else [], []
    except Exception as error:
        if len(hosts) == 1:
            return [], [_explain_failure(failures.chain_of(error), hosts[0])]
    answers = [_reports(spark, question, [host]) for host in hosts]
    return [report for one, _ in answers for report in one], [finding for _, found in answers for finding in found]


def _by_one_job(spark: SparkSession, question: Question, hosts: Sequence[str]) -> list[Survey]:
    """Return the reports, by one task on each machine."""
    text, program = question.text, question.program
    report_of = worker_report.report_of

    def answers(names: Iterable[str]) -> Iterator[tuple[str, str]]:
        for name in names:
            yield name, report_of(text, program)

    before = time.time()
    said = one_row_for_each(spark, hosts).mapPartitions(answers).collect()
    between = (before, time.time())
    reports = [Survey(host, json.loads(report), between) for host, report in said]
    if len({report.said["host"] for report in reports}) < len(hosts):
        log.warning("the probe did not reach all of the machines %s: their executors were busy", ", ".join(hosts))
    return reports


def _own(question: Question, everything: bool) -> Survey:
    """Return the driver's report. At a start it imports nothing: what it lacks has ended the topology's definition."""
    before, asked = time.time(), json.loads(question.text) | {"paths": []} | ({} if everything else {"modules": []})
    said = json.loads(worker_report.report_of(json.dumps(asked)))
    return Survey(DRIVER, said, (before, time.time()))


def _explain_failure(texts: list[str], host: str) -> Flaw:
    """Explain a job that failed on one machine. A lost executor says nothing of the topology: Spark replaces it."""
    text = " ".join(texts)
    if match := _PYTHONS.search(text):
        cause = f"Python {match[1]} runs there, and {match[2]} in the driver: Spark needs the same minor version"
        step = "Install it there, or send an environment (--archives) and set spark.pyspark.python"
        return Flaw("error", host, f"{cause}. {step}")
    if match := _NO_PYTHON.search(text):
        cause = f"the Python {match[1]} cannot be started there: {match[2].strip()}"
        return Flaw("error", host, f"{cause}. Install it, or set spark.pyspark.python to one that is there")
    why = hide(failures.innermost(texts))
    if failures.is_lost_task(texts):
        return Flaw("note", host, f"it was lost while it was asked, and is not checked: {why}")
    return Flaw("error", host, f"Spark cannot run Python there: {why.rstrip('.')}. Try it with pyspark alone")
