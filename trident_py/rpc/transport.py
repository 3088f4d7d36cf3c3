"""Authenticated messages between two processes that share a key, over a TCP connection.

Each end proves that it knows the key before the other reads more than a greeting. After that every message carries its
number and a code over both (HMAC-SHA256 under a key of this connection), so a message that was changed, repeated, left
out or added by anybody else ends the connection. Messages are not encrypted.
"""

from __future__ import annotations

import hmac
import os
import secrets
import socket
import struct
from contextlib import suppress
from multiprocessing.connection import Connection

HANDSHAKE_SECONDS = 10
LIMIT = 1 << 30  # bytes of a message
LOST_SECONDS = 60
_CODE = 32
_GREETING = 100


class ChannelError(ConnectionError):
    """The other end does not know the key, or a message is not what it sent."""


class Channel:
    """One end of a connection. `recv` and `send` may each be used by one thread at a time.

    Raises ChannelError, EOFError or OSError if the connection has ended or is not authentic.
    """

    def __init__(self, connection: Connection, key: bytes) -> None:
        self._connection = connection
        self._key = key
        self._sent = self._received = 0
        self._sending = self._receiving = b""
        self._tune()

    @classmethod
    def to(cls, host: str, port: int, key: bytes) -> Channel:
        """Return a new connection to a listener, before the handshake. Waits for the host at most the time of a
        handshake."""
        with socket.create_connection((host, port), timeout=HANDSHAKE_SECONDS) as connected:
            connected.settimeout(None)
            return cls(Connection(connected.detach()), key)

    def greet(self, greeting: str) -> bytes:
        """Return the client's part of the handshake. Returns the server's answer, one byte."""
        self._limit_reading(HANDSHAKE_SECONDS)
        theirs, ours = self._connection.recv_bytes(_CODE), secrets.token_bytes(_CODE)
        text = greeting.encode()
        self._connection.send_bytes(ours + self._code(self._key, b"client", theirs, ours, text) + text)
        reply = self._connection.recv_bytes(_CODE + 1)
        self._compare(reply[:_CODE], self._code(self._key, b"server", theirs, ours, reply[_CODE:]))
        self._begin(theirs, ours, b"from client", b"from server")
        return reply[_CODE:]

    def accept_greeting(self) -> str:
        """Return the server's part, first half: the client's greeting, once the client has proved that it knows the
        key."""
        self._limit_reading(HANDSHAKE_SECONDS)
        self._ours = secrets.token_bytes(_CODE)
        self._connection.send_bytes(self._ours)
        message = self._connection.recv_bytes(2 * _CODE + _GREETING)
        self._theirs, code, text = message[:_CODE], message[_CODE : 2 * _CODE], message[2 * _CODE :]
        self._compare(code, self._code(self._key, b"client", self._ours, self._theirs, text))
        return text.decode()

    def answer(self, answer: bytes) -> None:
        """Send the server's part, second half: its own proof, and one byte."""
        self._connection.send_bytes(self._code(self._key, b"server", self._ours, self._theirs, answer) + answer)
        self._begin(self._ours, self._theirs, b"from server", b"from client")

    def _begin(self, server: bytes, client: bytes, sending: bytes, receiving: bytes) -> None:
        self._sending = self._code(self._key, sending, server, client)
        self._receiving = self._code(self._key, receiving, server, client)
        self._limit_reading(0)

    def send(self, message: bytes) -> None:
        self._sent += 1
        self._connection.send_bytes(self._code(self._sending, struct.pack("!q", self._sent), message) + message)

    def recv(self) -> bytes:
        self._received += 1
        received = memoryview(self._connection.recv_bytes(LIMIT))
        code, message = received[:_CODE], bytes(received[_CODE:])
        self._compare(code, self._code(self._receiving, struct.pack("!q", self._received), message))
        return message

    @staticmethod
    def _code(key: bytes, *parts: bytes) -> bytes:
        code = hmac.new(key, digestmod="sha256")
        for part in parts:
            code.update(part)
        return code.digest()

    @staticmethod
    def _compare(code: bytes | memoryview, expected: bytes) -> None:
        if not hmac.compare_digest(code, expected):
            raise ChannelError("the other end does not know the key, or a message was changed on its way")

    def _limit_reading(self, seconds: int) -> None:
        """Limit how long a read may wait. 0: no limit."""
        with self._socket() as duplicate:
            duplicate.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, struct.pack("ll", seconds, 0))

    def _tune(self) -> None:
        """Send at once: Nagle's algorithm would delay a message above 16 KiB by 40 ms, since its header is sent alone.
        Finds out within a minute that the other machine is gone; the time of a call itself has no limit."""
        with self._socket() as duplicate:
            duplicate.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            duplicate.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
            with suppress(AttributeError, OSError):  # Linux has these, others have some
                duplicate.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, 10)
                duplicate.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, 10)
                duplicate.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPCNT, 5)
                duplicate.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, LOST_SECONDS * 1000)

    def _socket(self) -> socket.socket:
        return socket.socket(fileno=os.dup(self._connection.fileno()))

    def shut(self) -> None:
        """End a connection that another thread may be reading. Closing alone would leave that thread waiting."""
        with suppress(OSError), self._socket() as duplicate:  # its own thread may have closed it
            duplicate.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        self._connection.close()
