"""An S3 for tests: one process of moto's server on loopback, killed and restarted at will.

    with S3Server() as server:
        spout = FileSpout("s3://bucket/folder", "line string", storage=server.storage)
        ...
        server.kill()       # SIGKILL: its buckets were in its memory
"""

from __future__ import annotations

import sys
import urllib.request
from importlib.util import find_spec
from pathlib import Path

from trident_py.errors import explain_missing

from .service import HOST, Service, ServiceMissing

__all__ = ["S3Server", "command"]

PROGRAM = Path(__file__).parent / "moto_s3.py"


class S3Server(Service):
    """moto's server. It holds its buckets in memory and takes any credentials; its ``options``
    are variables of its environment (``INITIAL_NO_AUTH_ACTION_COUNT=2``: from the third request on it checks them)."""

    name = "S3 (moto)"

    @property
    def endpoint(self) -> str:
        return f"http://{HOST}:{self.port}"

    @property
    def storage(self) -> dict[str, str]:
        """The settings of a client, as ``FileSpout`` takes them."""
        return {
            "endpoint_override": self.endpoint, "region": "us-east-1", "access_key": "tester",
            "secret_key": "a-secret-key",
        }  # fmt: skip

    @property
    def hadoop(self) -> dict[str, str]:
        """The settings of Hadoop's client, for ``s3a://``. Spark takes them with ``spark.hadoop.`` before each."""
        return {
            "fs.s3a.endpoint": self.endpoint, "fs.s3a.endpoint.region": "us-east-1", "fs.s3a.access.key": "tester",
            "fs.s3a.secret.key": "a-secret-key", "fs.s3a.path.style.access": "true",
            "fs.s3a.connection.ssl.enabled": "false",
        }  # fmt: skip

    def make_bucket(self, name: str) -> None:
        request = urllib.request.Request(f"{self.endpoint}/{name}", method="PUT")
        urllib.request.urlopen(request, timeout=10).close()

    def _programs(self) -> Path:
        if find_spec("moto") is None:
            raise ServiceMissing(explain_missing("the S3 of the tests", "the package moto[server]", "dev"))
        return Path(sys.executable).parent

    def _command(self) -> list[str]:
        variables = [f"{name}={value}" for name, value in self.options.items()]
        return ["env", *variables, *command(HOST, self.port)]

    def _answer(self) -> None:
        urllib.request.urlopen(f"{self.endpoint}/moto-api/data.json", timeout=2).close()

    def _no_answer(self) -> tuple[type[BaseException], ...]:
        return (OSError,)


def command(address: str, port: int) -> list[str]:
    """The command of an S3 that listens on an address."""
    return [sys.executable, "-W", "ignore", str(PROGRAM), address, str(port)]
