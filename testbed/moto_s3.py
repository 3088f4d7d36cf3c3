"""The process of ``S3Server``: ``python moto_s3.py ADDRESS PORT``. moto, whose conditional writes are one step.

moto looks whether a name exists and writes it after, and its requests have threads: of several ``PUT`` with
``If-None-Match: *`` on one new name, two can succeed. S3 lets one succeed.
"""

from __future__ import annotations

import sys
from threading import Lock
from typing import Any

from moto.moto_server.werkzeug_app import DomainDispatcherApplication, MotoRequestHandler, create_backend_app
from werkzeug.serving import run_simple

CONDITIONS = {"HTTP_IF_MATCH", "HTTP_IF_NONE_MATCH"}
READS = {"GET", "HEAD"}


class Application(DomainDispatcherApplication):
    """One conditional write after the other."""

    def __init__(self) -> None:
        super().__init__(create_backend_app)
        self._one = Lock()

    def __call__(self, environ: dict[str, Any], start_response: Any) -> Any:
        if environ["REQUEST_METHOD"] in READS or not CONDITIONS & environ.keys():
            return super().__call__(environ, start_response)
        with self._one:
            return list(super().__call__(environ, start_response))


if __name__ == "__main__":
    run_simple(sys.argv[1], int(sys.argv[2]), Application(), threaded=True, request_handler=MotoRequestHandler)
