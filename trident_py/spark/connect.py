"""Spark Connect: what a topology needs of Spark that a Connect session does not have, and what to use instead."""

from __future__ import annotations

import os
from typing import Any

from pyspark.sql.utils import is_remote

from ..errors import TridentError

REMOTE = "SPARK_REMOTE"
LACKS = """A topology needs, and Spark Connect lacks:
  - foreachBatch in this process: Connect runs it in the server, where the run's spouts and listeners are not
  - local properties of a job (SparkContext.setLocalProperty): they carry txid and attempt to the tasks
  - the running query's offset log, in its Java process: our log keeps what each txid has read of Spark's sources
  - the environment of Python workers: all of them need one hash seed"""
INSTEAD = """Use a classic session: spark-submit --master URL app.py, trident run MODULE:build --master URL, or
SparkSession.builder.master(URL).getOrCreate(), in a process that can reach the cluster; see docs/deployment.md"""


def refuse_session(spark: Any) -> None:
    """Raise TridentError for a session of Spark Connect."""
    if type(spark).__module__.startswith("pyspark.sql.connect"):
        raise TridentError(f"this session is one of Spark Connect, on which no topology can run. {LACKS}\n{INSTEAD}")


def refuse_environment() -> None:
    """Raise TridentError if a new session of this process would be one of Spark Connect."""
    if REMOTE in os.environ:
        reason = f"{REMOTE}={os.environ[REMOTE].partition(';')[0]} asks for one"  # its parameters may hold a token
    elif is_remote():
        reason = "this process uses Spark Connect, or only pyspark-client is installed"
    else:
        return
    raise TridentError(
        f"no session was given, and a new one would be one of Spark Connect: {reason}. {LACKS}\n{INSTEAD}"
        + (f"; unset {REMOTE} first" if REMOTE in os.environ else "")
    )
