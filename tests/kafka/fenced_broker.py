"""A broker that tells of no broker at times, not even of itself: one that starts, or whose heartbeats the controller
has missed, as on a busy machine."""

from __future__ import annotations

import socketserver
import struct
import threading
from collections.abc import Collection, Iterator
from contextlib import contextmanager, suppress

METADATA, API_VERSIONS = 3, 18
UNSUPPORTED_VERSION = 35
KNOWN = {METADATA: 1, API_VERSIONS: 0}
"""The requests that it knows, with the highest version of each."""


class FencedBroker(socketserver.ThreadingTCPServer):
    """Tells of no broker in its answers to the ``fenced`` requests for metadata, counted from 1."""

    daemon_threads = True

    def __init__(self, fenced: Collection[int]) -> None:
        super().__init__(("127.0.0.1", 0), _Connection)
        self.asked, self.fenced = 0, fenced

    @property
    def bootstrap(self) -> str:
        return f"127.0.0.1:{self.server_address[1]}"

    def answer(self, key: int, version: int) -> bytes:
        if key == API_VERSIONS:
            ranges = b"".join(struct.pack(">hhh", each, 0, most) for each, most in KNOWN.items())
            return struct.pack(">hi", UNSUPPORTED_VERSION if version > KNOWN[key] else 0, len(KNOWN)) + ranges
        self.asked += 1
        host = b"127.0.0.1"
        itself = struct.pack(f">ih{len(host)}sih", 1, len(host), host, self.server_address[1], -1)
        brokers = struct.pack(">i", 0) if self.asked in self.fenced else struct.pack(">i", 1) + itself
        return brokers + struct.pack(">ii", 1, 0)  # the controller; no topics


class _Connection(socketserver.StreamRequestHandler):
    def handle(self) -> None:
        assert isinstance(self.server, FencedBroker)
        with suppress(ConnectionError):
            while len(size := self.rfile.read(4)) == 4:
                request = self.rfile.read(*struct.unpack(">i", size))
                key, version, number = struct.unpack(">hhi", request[:8])
                answer = struct.pack(">i", number) + self.server.answer(key, version)
                self.wfile.write(struct.pack(">i", len(answer)) + answer)


@contextmanager
def fenced_broker(fenced: Collection[int]) -> Iterator[FencedBroker]:
    with FencedBroker(fenced) as broker:
        threading.Thread(target=broker.serve_forever, daemon=True).start()
        yield broker
        broker.shutdown()
