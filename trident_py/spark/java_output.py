"""The output of Java and its processes: passed on to the user's terminal, without a line that says nothing to the
user."""

from __future__ import annotations

import os
import re
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress

# Spark always asks for this module, for its machine learning, and Java has no option that keeps it quiet about that.
_NOISE = re.compile(rb"^WARNING: Using incubator modules: jdk\.incubator\.vector\r?\n", re.M)
_CHUNK = 65_536
_LAST_WORDS_SECONDS = 2.0


@contextmanager
def pass_on() -> Iterator[int]:
    """A file that Java gets as its stderr; who starts Java closes it then. At the end of the block, waits until what
    was printed is shown."""
    source, file = os.pipe()
    # Without a stderr of its own, this process may have opened any file as number 2.
    target = os.open(os.devnull, os.O_WRONLY) if sys.__stderr__ is None else os.dup(2)
    copying = threading.Thread(target=_copy, args=(source, target), name="trident-java-output", daemon=True)
    copying.start()
    try:
        yield file
    finally:
        copying.join(_LAST_WORDS_SECONDS)


def _copy(source: int, target: int) -> None:
    """Copy until the last process that has the other end has ended, even if nobody reads the copy any more."""
    with open(source, "rb", buffering=0) as printed, open(target, "wb", buffering=0) as shown:
        while chunk := printed.read(_CHUNK):
            with suppress(OSError):
                shown.write(_NOISE.sub(b"", chunk))
