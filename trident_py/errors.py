"""The errors of trident_py.

    TridentError
    ├── DefinitionError (ValueError)   a topology cannot be built; raised on the line that defines it
    ├── FailedException                fails the batch, which is replayed under the same txid
    │   └── ReportedFailedException    the same, and reports the error as an event
    ├── TopologyError                  an error ended the run: operation, txid, partition; the cause is chained
    ├── StateError                     a state could not complete an operation
    │   ├── ZombieError                an older driver or an older txid tried to write
    │   └── LineageError               store and checkpoint do not belong to the same history of txids
    ├── MissingValueError (IndexError) code read a value that was never emitted
    ├── SpoutError                     a spout could not emit or re-emit a batch
    └── DRPCExecutionException         a DRPC request failed
"""

from __future__ import annotations

import re

_ADDRESS = re.compile(r" at 0x[0-9a-fA-F]+(?=>)")


def explain_missing(what: str, package: str | None, extra: str | None = None) -> str:
    """Return the error for a package that is missing: what needs it, and the extra of pip that brings it."""
    if extra is None:
        return f"{what} needs {package}: pip install {package}"
    return f"{what} needs {package}: pip install 'trident-py[{extra}]'"


def explain_missing_extra(what: str, name: str) -> str:
    """Return the error for a part of trident-py that this installation lacks."""
    return f"{what} needs {name}, which this installation lacks: pip install --force-reinstall trident-py"


class TridentError(Exception):
    """The root of all errors of trident_py."""


class DefinitionError(TridentError, ValueError):
    """A topology cannot be built. Storm: IllegalArgumentException at definition time.

    ``node``: the number of the node that is refused, if the topology was whole before it was checked.
    """

    node: int | None = None


class FailedException(TridentError):
    """Fails the batch, which is replayed under the same txid. User code and states raise it.

    Source in Storm: org.apache.storm.topology.FailedException.
    """


class LostCommits(FailedException):
    """A store no longer has what tasks have committed of the batch that is to become complete. The batch is replayed,
    unless it is decided."""


class ReadOnlyStore(FailedException):
    """A store takes no writes for now, as in a planned failover. A run waits for it as long as a start does."""


class ReportedFailedException(FailedException):
    """A FailedException that is also reported as an event of kind "reported"."""


class TopologyError(TridentError):
    """An error ended the run. The exception of the user's own code is the ``__cause__``.

    ``operation`` names the step, ``txid`` the batch and ``partition`` the partition in which it failed; each is None
    if it does not apply. ``trace`` is the traceback of the cause as text, without frames of trident_py: on Spark the
    cause was raised in another process, so it carries only notes with the user's lines.
    """

    def __init__(
        self,
        message: str,
        operation: str | None = None,
        txid: int | None = None,
        partition: int | None = None,
        trace: str = "",
    ) -> None:
        super().__init__(message)
        self.operation = operation
        self.txid = txid
        self.partition = partition
        self.trace = trace

    def __reduce__(self) -> tuple:
        return type(self), (self.args[0], self.operation, self.txid, self.partition, self.trace)


class StateError(TridentError):
    """A state could not complete an operation. The message names state, row or key, cause and next step."""


class ZombieError(StateError):
    """The store refused a write of an older driver (generation) or of an older txid. Nothing was written."""


class LineageError(StateError):
    """Store and checkpoint do not belong to the same history of txids. The start is refused; nothing is written.

    - The checkpoint is new and the store remembers batches: the checkpoint was lost, moved or replaced.
    - Values carry txids ahead of the checkpoint, and no ledger says whose: the topology or the state was renamed.
    - Another checkpoint has written the store.
    - The store is behind the checkpoint, or no longer knows the state.
    - The store is ahead: it has a batch that this checkpoint has not begun or decided.
    - The store has part of a batch that was begun under another hash seed, or with other values of its functions.
    - The checkpoint holds the position of a spout of another class, or one of its files is missing.
    - The checkpoint was imported from Storm, and a state was not.

    The message lists the options as you must type them. docs/reliability.md, "Checkpoint and store", has the table.
    ``momentary``: a driver that goes on meanwhile looks the same, so only who owns the checkpoint can tell.
    ``finding``: the message without the options; "" if there are none.
    """

    momentary = False
    finding = ""


class MissingValueError(TridentError, IndexError):
    """Code read a value that was never emitted: the tuple has fewer values than fields.

    Raised on the read, so user code can catch it. Storm: IndexOutOfBoundsException.
    """


class SpoutError(TridentError):
    """A spout could not emit a batch, or could not re-emit it unchanged."""


class DRPCExecutionException(TridentError):
    """A DRPC request failed; the message names the cause. It is not tried again.

    ``type``, as in Storm: "FAILED_REQUEST" (the function raised an exception, or there is no such function),
    "SERVER_SHUTDOWN" (its topology has ended), "SERVER_TIMEOUT", "INTERNAL_ERROR"; and "SERVER_BUSY" (a server has too
    many requests already: send it again).
    """

    def __init__(self, message: str, type: str = "FAILED_REQUEST") -> None:
        super().__init__(message)
        self.type = type

    def get_type(self) -> str:
        return self.type

    def get_msg(self) -> str:
        return str(self)

    def __reduce__(self) -> tuple:
        return DRPCExecutionException, (self.args[0], self.type)


def omit_addresses(text: str) -> str:
    """Return a text without the places of objects in memory: a replay in another process must show the same."""
    return _ADDRESS.sub("", text)


def show(value: object) -> str:
    """Return a user's value for an error; its class may fail at it, and Python does at numbers of over 4300 digits."""
    try:
        return omit_addresses(repr(value))
    except Exception as error:
        unknown = f"its text is unknown, as __repr__ raised {type(error).__name__}"
        known = f"a number of {value.bit_length():,} bits" if isinstance(value, int) else unknown
        return f"<{type(value).__name__}: {known}>"
