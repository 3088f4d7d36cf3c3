"""The jars for tests with Hadoop's file systems: pinned in jvm/hdfs.xml and jvm/s3.xml, fetched by Maven once.

    python -m testbed.hadoop_jars           fetches those that are missing and prints their folders
    python -m testbed.hadoop_jars --there   reports by its exit code whether they exist

They have the version of Hadoop that pyspark carries, and are stored in the user's cache
(``~/.cache/trident_py/hdfs-3.5.0-...``, ``s3-3.5.0-...``), one folder for each content of a pom.
"""

from __future__ import annotations

import sys
from functools import cache
from importlib.resources import files
from pathlib import Path
from zlib import crc32

from .kafka_jars import cached, fetch
from .service import ServiceMissing

SPARK_JARS = Path(str(files("pyspark"))) / "jars"
KINDS = {"hdfs": "hadoop-client-minicluster-*.jar", "s3": "hadoop-aws-*.jar"}


@cache
def version() -> str:
    """Returns the version of Hadoop in pyspark."""
    (jar,) = SPARK_JARS.glob("hadoop-client-api-*.jar")
    return jar.stem.removeprefix("hadoop-client-api-")


def folder(kind: str) -> Path:
    """Returns the folder of the jars of ``hdfs`` (55 MB) or ``s3`` (12 MB), which may not exist yet."""
    return cached(f"{kind}-{version()}-{crc32(_pom(kind).read_bytes()):08x}")


def jars(kind: str) -> Path:
    """Returns the folder with the jars; fetches them first if they are missing. Raises ServiceMissing."""
    wanted = folder(kind)
    fetch(_pom(kind), wanted, f"-Dhadoop.version={version()}")
    if not there(kind):
        raise ServiceMissing(f"{wanted} has no {KINDS[kind]}: remove the folder, and it is fetched again")
    return wanted


def there(kind: str) -> bool:
    """Whether the folder holds the jars."""
    return any(folder(kind).glob(KINDS[kind]))


def _pom(kind: str) -> Path:
    return Path(__file__).parent / "jvm" / f"{kind}.xml"


if __name__ == "__main__":
    if "--there" in sys.argv:
        sys.exit(0 if all(map(there, KINDS)) else 1)
    try:
        for kind in KINDS:
            print(jars(kind))
    except ServiceMissing as error:
        sys.exit(f"error: {error}")
