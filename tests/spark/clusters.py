"""Standalone clusters on hosts of their own, for tests: applications on the driver's host, and what executors wrote."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from needed import HOSTS, needed

from testbed.spark_hosts import SparkHosts

from .folder import written

TESTS = str(Path(__file__).parents[1])
FOLDER = "/tmp/app"
JOBS = {"spark.trident.inline.max.tuples": "0"}
"""Settings with which every batch is a job, however small."""


@contextmanager
def started(**options: Any) -> Iterator[SparkHosts]:
    """Hosts for the tests of a module. They need root."""
    with needed(HOSTS):
        hosts = SparkHosts(**{**options, "settings": JOBS | options.get("settings", {})})
    with hosts:
        yield hosts


def files(hosts: SparkHosts, **texts: str) -> None:
    """Files of an application on the driver's host, by name without ``.py``; older ones and what was written go."""
    for host in (hosts.driver, *hosts.workers):
        subprocess.run(["rm", "-rf", host.path(FOLDER), host.path("/tmp/out")], check=True)
        host.path("/tmp/out").mkdir()
    hosts.driver.path(FOLDER).mkdir()
    for name, text in texts.items():
        hosts.driver.path(f"{FOLDER}/{name}.py").write_text(text)


def finished(process: subprocess.Popen[bytes], seconds: float = 240) -> tuple[int, str]:
    """The exit code and what was printed."""
    output, _ = process.communicate(timeout=seconds)
    return process.returncode, output.decode()


def rows(hosts: SparkHosts) -> list[Any]:
    """The values that executors wrote to /tmp/out, on any host, each once."""
    batches = [batch for host in hosts.workers for batch in written(host.path("/tmp/out")).values()]
    return sorted({row[0] for batch in batches for row in batch})
