"""Kills a process before the n-th call with which a checkpoint asks something of the disk, or of its store."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from trident_py.checkpoints import append_log


class Calls:
    """The calls that are left."""

    def __init__(self, left: int) -> None:
        self.left = left

    def counted(self, call: Any) -> Any:
        def instead(*args: Any, **named: Any) -> Any:
            self.left -= 1
            if self.left == 0:
                os.kill(os.getpid(), signal.SIGKILL)
            return call(*args, **named)

        return instead


def kill_before(number: int, least_size: int) -> None:
    """Called in a process of its own. Half of a line reaches the file in a first call, the rest in later ones.
    ``least_size``: a longer journal is made anew."""
    calls = Calls(number)
    append_log.LEAST_SIZE = least_size
    counted = {name: calls.counted(getattr(os, name)) for name in ("fdatasync", "fsync", "ftruncate")}
    counted["write"] = calls.counted(lambda file, data: os.write(file, data[: max(64, len(data) // 2)]))
    append_log.os = SimpleNamespace(**{**vars(os), **counted})  # type: ignore[attr-defined]
    replace = Path.replace
    renamed = calls.counted(replace)
    Path.replace = lambda file, target: (  # type: ignore[method-assign, assignment, misc]
        renamed if append_log.JOURNAL in file.name else replace)(file, target)  # fmt: skip


def kill_before_request(number: int) -> None:
    """Called in a process of its own. Requests of boto3 and of fsspec count; those that pyarrow makes only read."""
    from urllib3.connectionpool import HTTPConnectionPool

    HTTPConnectionPool.urlopen = Calls(number).counted(HTTPConnectionPool.urlopen)  # type: ignore[method-assign]
