"""The errors of Hadoop's file systems in words: what is wrong with the place of a checkpoint, and what to do."""

from __future__ import annotations

from urllib.parse import urlsplit

from ..checkpoints.uri_folder import NO_ANSWER
from ..errors import TridentError

_PACKAGES = {
    "s3a": "org.apache.hadoop:hadoop-aws:{hadoop}",
    "abfs": "org.apache.hadoop:hadoop-azure:{hadoop}",
    "abfss": "org.apache.hadoop:hadoop-azure:{hadoop}",
    "gs": "com.google.cloud.bigdataoss:gcs-connector:VERSION",
}
_NO_JAR = ("No FileSystem for scheme", "No AbstractFileSystem", "ClassNotFoundException", "NoClassDefFoundError")
_CASES = (
    (
        ("UnknownStoreException", "NoSuchBucket", "The specified bucket does not exist"),
        "the bucket does not exist",
        "Make it, or correct the name",
    ),
    (
        ("AccessControlException", "AccessDeniedException", "Permission denied", "InvalidAccessKeyId",
         "NoAuthWithAWSException", "SignatureDoesNotMatch"),
        "access is denied",
        "Give the driver's account the right to read, write and delete there, or name credentials in Spark's settings "
        "(spark.hadoop.fs...)",
    ),
    (
        ("SafeModeException", "in safe mode"),
        "the namenode is in safe mode, as after a start",
        "Wait until it has left it (hdfs dfsadmin -safemode wait), and start again",
    ),
    (
        ("UnknownHostException",),
        "its host name is unknown here",
        "Correct the address, or the names that this machine knows",
    ),
    (
        ("ConnectException", "ConnectTimeoutException", "NoRouteToHostException", "SocketTimeoutException",
         "Connection refused", "ConnectionClosedException", "EOFException", "Unable to execute HTTP",
         "could only be written to 0 of the 1"),
        *NO_ANSWER,
    ),
)  # fmt: skip
_OF_STORAGE = ("org.apache.hadoop.", "software.amazon.awssdk", "Call From ")


def is_of_storage(texts: list[str]) -> bool:
    """Return whether an error comes from a file system of Hadoop."""
    return any(mark in text for text in texts for mark in _OF_STORAGE)


def storage_error(texts: list[str], where: str, hadoop: str = "VERSION") -> TridentError:
    """Return the error of a checkpoint at ``where``. ``texts`` are those of the error and its causes, from the outside
    in."""
    text, scheme = " ".join(texts), urlsplit(where).scheme
    reason = _reason(texts)
    if any(mark in text for mark in _NO_JAR):
        return TridentError(f"the checkpoint {where}: {_no_jar(scheme, hadoop)} ({reason})")
    for marks, cause, step in _CASES:
        if any(mark in text for mark in marks):
            return TridentError(f"the checkpoint {where}: {cause} ({reason}). {step}")
    return TridentError(f"the checkpoint {where} cannot be used: {reason}")


def _no_jar(scheme: str, hadoop: str) -> str:
    if scheme == "s3":
        return "Spark has no file system for s3://. Write s3a://"
    package = _PACKAGES.get(scheme)
    if package is None:
        return f"Spark has no file system for {scheme}://. Correct the address, or add the jar that has one (--jars)"
    add = package.format(hadoop=hadoop)
    return f"Spark has no jar for {scheme}://. Start it with --packages {add} (spark.jars.packages)"


def _reason(texts: list[str]) -> str:
    """Return the root cause, in a line."""
    root = next((text for text in reversed(texts) if text.strip()), "no reason was given")
    return root.strip().splitlines()[0][:300]
