"""Translates Spark's errors to errors of trident_py that name the root cause in a line or two."""

from __future__ import annotations

import re

from pyspark.sql import SparkSession

from ..checkpoints.metadata_store import other_driver_error
from ..errors import FailedException, LineageError, TridentError
from .internals import java_answers, java_causes
from .storage import is_of_storage, storage_error

_NEVER_CAME = (
    "Python worker failed to connect back",
    "Timed out while waiting for the Python worker to connect back",
    "failed to launch worker",
)
_LOST = (
    *_NEVER_CAME,
    "Python worker exited unexpectedly",
    "ExecutorLostFailure",
    "FetchFailed",
    "EXECUTOR_LOST",
    "indeterminate output",
)
_TWO_DRIVERS = (
    "CONCURRENT_STREAM_LOG_UPDATE",
    "Multiple streaming queries are concurrently using",
    "Multiple streaming jobs detected",
    "should be empty on batch 0",
    "CONCURRENT_QUERY",
    "another query with same id is already active",
)
_CANCELLED = ("cancelled", "InterruptedException", "interrupted", "SparkContext was shut down")
_JAVA_GONE = (
    "Connection refused",
    "Error while sending or receiving",
    "Answer from Java side is empty",
    "Error while obtaining a new communication channel",
)
_MISSING = (
    "What a topology imports must be on every executor: installed there, sent as an environment (--archives), or, your "
    "own modules, by --py-files; see docs/deployment.md"
)
# what an executor lacks, and what to do about it
_ADVICE = {
    "No module named": _MISSING,
    "cannot import name": _MISSING,
    "PACKAGE_NOT_INSTALLED": _MISSING,
    "UNSUPPORTED_PACKAGE_VERSION": _MISSING,
    "PYTHON_VERSION_MISMATCH": "Set PYSPARK_PYTHON to a Python of the driver's version, as the executors find it",
    "Cannot run program": "PYSPARK_PYTHON names the Python of the executors, and must be a program that they find",
}
_TEXT = 20_000


def chain_of(error: BaseException) -> list[str]:
    """Return the texts of an error and of its causes, including Java's, from the outside in."""
    return [text[:_TEXT] for text in [str(error), *java_causes(error)]]


def is_lost_task(texts: list[str]) -> bool:
    """Return whether a worker process or an executor died. No user code raised, so the batch can be replayed."""
    return any(mark in text for text in texts for mark in _LOST)


def is_second_driver(texts: list[str]) -> bool:
    """Return whether another query uses the checkpoint, in this session or elsewhere."""
    return any(mark in text for text in texts for mark in _TWO_DRIVERS)


def is_cancelled(texts: list[str]) -> bool:
    """Return whether the job was cancelled: the query or the session was stopped."""
    return any(mark in text for text in texts for mark in _CANCELLED)


def worker_loss_failure(texts: list[str], python: str) -> FailedException:
    """Return the failure that replays a batch whose worker died. ``python``: the one that Spark starts."""
    return FailedException(f"a worker process died: {innermost(texts)}{_which(texts, python)}")


def _which(texts: list[str], python: str) -> str:
    """Name the process: one that starts and does not come back may be another Python than the user's."""
    if not any(mark in text for text in texts for mark in _NEVER_CAME):
        return ""
    return (
        f" (Spark starts Python as {python!r}; if that one lacks pyspark, pyarrow or trident_py, set PYSPARK_PYTHON or "
        "spark.pyspark.python)"
    )


def find_gone(spark: SparkSession, error: BaseException) -> TridentError | None:
    """Return what an error means if Spark's Java process has ended: whoever asked it first says only that nobody
    answered. None if it answers, or if the error is one of ours."""
    return None if isinstance(error, TridentError) or java_answers(spark) else _java_is_gone()


def _java_is_gone() -> TridentError:
    return TridentError(
        "Spark's Java process is gone: it was killed, or ran out of memory (spark.driver.memory). No data of the "
        "running batch is lost: start the topology again, and it continues where it stopped"
    )


def translate(texts: list[str], checkpoint: str) -> TridentError:
    """Return Spark's error as an error of trident_py that names the cause and the next step."""
    text = " ".join(texts)
    if is_second_driver(texts):
        return other_driver_error(f" {checkpoint}; this one has stopped")
    if "STREAMING_CHECKPOINT_MISSING_METADATA_FILE" in text:
        return LineageError(
            f"the checkpoint {checkpoint} has batches but no file 'metadata', so their lineage is unknown. "
            "Restore that file from a copy, or move the whole checkpoint away and start a new lineage"
        )
    if is_of_storage(texts) and "://" in checkpoint:
        return storage_error(texts, checkpoint)
    if len(texts) == 1 and any(mark in text for mark in _JAVA_GONE):  # else Java told the causes
        return _java_is_gone()
    reason = innermost(texts)
    if advice := next((advice for mark, advice in _ADVICE.items() if mark in reason), ""):
        return TridentError(f"Spark failed: {reason}. {advice}")
    return TridentError(f"Spark failed: {reason}")


def innermost(texts: list[str]) -> str:
    """Return the innermost message: the last line of a Python traceback, else the first line of the root cause."""
    for text in reversed(texts):
        _, heading, trace = text.rpartition("Traceback (most recent call last):")
        if heading:
            lines = [line for line in re.split(r"\n\s*at |\n\n|\n\s*SQLSTATE", trace)[0].splitlines() if line.strip()]
            return lines[-1].strip()[:500] if lines else text[:500]
    root = next((text for text in reversed(texts) if text.strip()), "")
    return root.strip().splitlines()[0][:500] if root.strip() else "no reason was given"
