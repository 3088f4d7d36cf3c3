"""What tests need and a machine may lack: a server, or root for hosts of their own."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

import brokers
import databases
import pytest

from testbed.service import ServiceMissing

HOSTS = "hosts of their own"
# In place of what is missing; the others are not named from outside.
_GIVEN = {"kafka": brokers.VARIABLE, **{kind: databases.variable(kind) for kind in (*databases.OWN, "redis")}}

missing: dict[str, str] = {}
"""What was missing in this run, a line for each."""


@contextmanager
def needed(what: str) -> Iterator[None]:
    """For a start. If what is started is missing, there is no test, loudly; where a run must be complete, it fails.

    `make check` starts nothing: who asks there lacks the marker ``servers``.
    """
    if "TRIDENT_CHECK" in os.environ:
        pytest.fail(f"a test of `make check` needs {what}: mark it as one with servers", pytrace=False)
    try:
        yield
    except ServiceMissing as error:
        other = f"; or name a server: {_GIVEN[what]}" if what in _GIVEN else ""
        missing[what] = f"NOT TESTED on {what}: {error}{other}"
        if os.environ.get("CI") == "true":
            pytest.fail(missing[what], pytrace=False)
        pytest.skip(missing[what])
