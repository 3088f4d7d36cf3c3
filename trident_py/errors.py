"""The errors of trident_py.

    TridentError
    ├── DefinitionError (ValueError)   a topology that cannot be built; raised on the line that defines it
    ├── FailedException                fail the batch and replay it under the same txid
    │   └── ReportedFailedException    the same, and the error is reported as an event
    ├── TopologyError                  a run that ended: operation, txid, partition; the cause is chained
    ├── StateError                     a state could not do what was asked
    │   ├── ZombieError                an older driver, or an older txid, tried to write
    │   └── LineageError               the store remembers txids that this checkpoint does not know
    ├── MissingValueError (IndexError) a value was read that was never emitted
    ├── SpoutError                     a spout could not emit or re-emit a batch
    └── DRPCExecutionException         a DRPC request failed
"""

from __future__ import annotations


class TridentError(Exception):
    """The root of all errors of trident_py."""


class DefinitionError(TridentError, ValueError):
    """A topology that cannot be built. Storm: IllegalArgumentException at definition time."""


class FailedException(TridentError):
    """Raised by user code or a state: fail this batch and replay it under the same txid.

    Source in Storm: org.apache.storm.topology.FailedException.
    """


class ReportedFailedException(FailedException):
    """A FailedException that is also reported as an event of kind "reported"."""


class TopologyError(TridentError):
    """A run ended by an error. The exception of the user's own code is the ``__cause__``.

    ``operation`` names the step, ``txid`` the batch, ``partition`` the task it happened in; each is None
    where it does not apply. ``trace`` is the traceback of the cause as text, without frames of trident_py: on Spark it
    was raised in another process, and the cause has only notes with the user's lines.
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
    """A state could not do what was asked; names the state, the row or key, the cause and the next step."""


class ZombieError(StateError):
    """A write of an older driver (generation) or of an older txid was refused. Nothing was written."""


class LineageError(StateError):
    """The store remembers txids that this checkpoint does not know: the checkpoint was lost or replaced."""


class MissingValueError(TridentError, IndexError):
    """A value was read that was never emitted: its tuple got fewer values than there are fields.

    Raised where the value is read, so user code can catch it. Storm: IndexOutOfBoundsException.
    """


class SpoutError(TridentError):
    """A spout could not emit a batch, or could not emit it again unchanged."""


class DRPCExecutionException(TridentError):
    """A DRPC request failed."""
