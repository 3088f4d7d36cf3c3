"""What a process has open: each thing of a run is closed, and the first error is the one that is raised."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import contextmanager
from typing import Protocol

from .user_traceback import describe_error

log = logging.getLogger("trident_py")

STDERR = 2


class Closable(Protocol):
    def close(self) -> object: ...


def close_all(closers: Iterable[Callable[[], object]], error: BaseException | None = None) -> None:
    """Call each, whatever the others raise. Then raises the first error: ``error``, with which the work before ended,
    if there is one. The others are logged."""
    for close in closers:
        try:
            close()
        except BaseException as failed:
            if error is None:
                error = failed
            else:
                log.warning("after %s, an error in closing: %s", type(error).__name__, describe_error(failed))
    if error is not None:
        raise error


def fill_standard_streams() -> None:
    """Open those of the standard streams that are closed, as a service's may be, on the null device. The next file,
    such as a checkpoint's, would have the number of one, and get what C libraries print."""
    while (number := os.open(os.devnull, os.O_RDWR)) <= STDERR:
        os.set_inheritable(number, True)
    os.close(number)


@contextmanager
def closing_if_failed(opened: Collection[Closable]) -> Iterator[None]:
    """Closes what was opened by then if the block fails."""
    try:
        yield
    except BaseException as error:
        close_all([each.close for each in opened], error)
