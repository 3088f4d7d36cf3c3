"""Folders that are on no machine: in the tests' HDFS and S3."""

from __future__ import annotations

import uuid
from typing import Any, NamedTuple

from testbed.hadoop_jars import jars


class Remote(NamedTuple):
    """A folder that does not exist yet. ``settings`` are Hadoop's, for a session that reaches it; ``storage`` those of
    `LocalCluster`."""

    kind: str
    uri: str
    settings: dict[str, str]
    storage: dict[str, str]

    @property
    def of_session(self) -> dict[str, str]:
        """The settings of a new session."""
        own = {f"spark.hadoop.{key}": value for key, value in self.settings.items()}
        return own if self.kind == "hdfs" else {**own, "spark.driver.extraClassPath": f"{jars('s3')}/*"}

    @property
    def of_start(self) -> dict[str, Any]:
        """The settings of a `faults.forks.Start`."""
        return {"checkpoints": self.uri, "storage": tuple(self.storage.items())}


def folder(kind: str, server: Any) -> Remote:
    name = f"t-{uuid.uuid4().hex[:12]}"
    if kind == "hdfs":
        return Remote(kind, f"{server.url}/{name}", {}, server.storage)
    server.make_bucket(name)
    return Remote(kind, f"s3a://{name}/in it", server.hadoop, server.storage)


def for_spark(kind: str, server: Any) -> Remote:
    """Raises ServiceMissing if Hadoop's client of S3 is missing."""
    if kind == "s3":
        jars("s3")
    return folder(kind, server)
