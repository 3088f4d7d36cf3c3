"""A TCP proxy that cuts connections on command, as a failing network does to a database client."""

from __future__ import annotations

import contextlib
import os
import select
import socket
import struct
import threading
from dataclasses import dataclass
from typing import Any, Self

from ..errors import DefinitionError

HOST = "127.0.0.1"
WHEN = ("before", "during", "lost", "after", "held")
DELIVER = "deliver"
_READ = 1 << 18
_RESET = struct.pack("ii", 1, 0)  # linger for no time: close sends RST
_IN = select.POLLIN | select.POLLHUP | select.POLLERR
_COM_QUERY = b"\x03"  # the first byte of a request to MySQL
_MORE_RESULTS = 8
_SIZES = {0xFC: 3, 0xFD: 4, 0xFE: 9}  # bytes of MySQL's numbers, by the first of them; else one


@dataclass
class _Rule:
    patterns: tuple[bytes, ...]
    when: str
    skip: int
    times: int

    def matches(self, tail: bytes, data: bytes) -> bool:
        """Return whether a pattern is in the data, or ends there."""
        both = tail + data
        return any(both.find(each, max(0, len(tail) - len(each) + 1)) >= 0 for each in self.patterns)

    @property
    def of_mysql(self) -> bool:
        return self.patterns[0][:1] == _COM_QUERY


def commit_of(url: str) -> tuple[bytes, ...]:
    """Return the bytes that a client of this database sends to commit, and in no other statement: alone, or as the
    last statement of a request.

    (``b"COMMIT"`` alone also occurs in ``SET AUTOCOMMIT = 0``, which PyMySQL sends when it connects.)
    """
    return (b"COMMIT\0",) if url.startswith("postgresql") else (_COM_QUERY + b"COMMIT", b";\nCOMMIT")


class CuttingProxy:
    """Forwards connections from a free loopback ``port`` to a server, and cuts them on command.

    Lives in the process that made it, on threads; clients may be other processes. ``close()`` (or the ``with`` block)
    ends it with all connections. It finds patterns in plain connections only, not in TLS. A ``listener`` of your own
    takes the place of the free port; ``close()`` closes it.
    """

    def __init__(self, target_host: str, target_port: int, listener: socket.socket | None = None) -> None:
        self.target = (target_host, target_port)
        self.refuse = False
        """If set, new connections are reset at once."""
        self.cuts = 0
        """The number of connections cut so far."""
        self.requests = 0
        """The number of requests so far: whatever a client sends between two answers counts as one."""
        self._lines: set[_Line] = set()
        self._rules: list[_Rule] = []
        self._changed = threading.Condition()
        self._listener = listener or socket.create_server((HOST, 0))
        self.port: int = self._listener.getsockname()[1]
        self._wake = _Wake()
        self._thread = threading.Thread(target=self._accept, name=f"proxy-{self.port}", daemon=True)
        self._thread.start()

    def through(self, url: str) -> str:
        """Return an SQLAlchemy URL with this proxy's host and port."""
        from sqlalchemy import make_url

        return make_url(url).set(host=HOST, port=self.port).render_as_string(hide_password=False)

    def cut(self) -> int:
        """Reset all connections now, on both sides. Returns their number."""
        with self._changed:
            lines = list(self._lines)
        return sum(line.cut() for line in lines)

    def cut_on(
        self, pattern: bytes | tuple[bytes, ...], when: str = "before", times: int = 1, skip: int = 0
    ) -> None:
        """Cut the connection whose client sends exactly these bytes, or one of several such; see `commit_of`.

        ``before``: the server never gets them. ``during``: the server gets them and the client is cut at once, while
        the server may still be working. ``lost``: the server has answered, and the answer is dropped. ``after``: the
        answer is delivered, then the connection is closed. ``held``: the client is cut at once, and the server gets the
        bytes only after `deliver` or `deliver_on`. The first ``skip`` messages with the bytes pass, the next ``times``
        are cut.
        """
        if when not in WHEN:
            raise DefinitionError(f"when={when!r}: it is one of {', '.join(WHEN)}")
        with self._changed:
            self._rules.append(_Rule(pattern if isinstance(pattern, tuple) else (pattern,), when, skip, times))

    def deliver(self, seconds: float = 30) -> int:
        """Send the held messages to the server and wait for its answers. Returns their number."""
        with self._changed:
            lines = [line for line in self._lines if line.held]
        return sum(line.deliver(seconds) for line in lines)

    @property
    def held(self) -> int:
        """The number of held messages."""
        with self._changed:
            return sum(1 for line in self._lines if line.held)

    def deliver_on(self, pattern: bytes) -> None:
        """Deliver once, when a client sends these bytes; the server gets them after it has answered."""
        with self._changed:
            self._rules.append(_Rule((pattern,), DELIVER, 0, 1))

    def wait(self, cuts: int = 1, seconds: float = 30) -> bool:
        """Wait until ``cuts`` connections were cut in total; returns False after ``seconds``."""
        with self._changed:
            return self._changed.wait_for(lambda: self.cuts >= cuts, seconds)

    def close(self) -> None:
        """End the proxy and reset its connections. These do not count as cuts."""
        self._wake.up()
        self._thread.join()
        self._listener.close()
        with self._changed:
            lines = list(self._lines)
        for line in lines:
            line.end()
        self._wake.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _accept(self) -> None:
        while self._wake.or_ready(self._listener, select.POLLIN):
            try:
                client, _ = self._listener.accept()
            except OSError:
                continue  # the client has given up
            try:
                if self.refuse:
                    raise ConnectionRefusedError
                server = socket.create_connection(self.target, timeout=10)
            except OSError:
                _reset(client)
                continue
            line = _Line(self, client, server)
            with self._changed:
                self._lines.add(line)
            line.start()

    def _rule(self, tail: bytes, data: bytes) -> _Rule | None:
        """Return the rule that the client's data (after the tail of earlier data) matches; uses it up."""
        with self._changed:
            for rule in self._rules:
                if not rule.matches(tail, data):
                    continue
                rule.skip -= 1
                if rule.skip >= 0:
                    continue
                rule.times -= 1
                if rule.times <= 0:
                    self._rules.remove(rule)
                return rule
        return None

    def _was_asked(self) -> None:
        with self._changed:
            self.requests += 1

    def _was_cut(self) -> None:
        with self._changed:
            self.cuts += 1
            self._changed.notify_all()

    def _tail(self, sent: bytes) -> bytes:
        """Return the end of the data, which may be the beginning of a pattern."""
        with self._changed:
            longest = max((len(each) for rule in self._rules for each in rule.patterns), default=1)
        return sent[len(sent) - longest + 1 :] if len(sent) >= longest else sent

    def _forget(self, line: _Line) -> None:
        with self._changed:
            self._lines.discard(line)


class _Line:
    """One connection with a thread per direction. The first thread to end it joins the other and closes both sides."""

    def __init__(self, proxy: CuttingProxy, client: socket.socket, server: socket.socket) -> None:
        self.proxy = proxy
        self.client = client
        self.server = server
        self.ending: _Rule | None = None
        self.mute = False
        self.held = b""
        self.waits = False
        """Whether the client has sent something since the last answer."""
        self._answered = threading.Event()
        self._wake = _Wake()
        self._ended = threading.Lock()
        self._started = threading.Event()
        for end in (client, server):
            end.setblocking(False)
            end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._threads = [threading.Thread(target=run, daemon=True) for run in (self._up, self._down)]

    def start(self) -> None:
        for thread in self._threads:
            thread.start()
        self._started.set()

    def cut(self, orderly: bool = False) -> bool:
        """End the connection, once, and count it as cut."""
        return self.end(orderly, count=not self.mute)

    def end(self, orderly: bool = False, count: bool = False) -> bool:
        """Close both sides: by RST, or in order for the client. False if another thread is closing them."""
        if not self._ended.acquire(blocking=False):
            return False
        self._started.wait()
        self._wake.up()
        for thread in self._threads:
            if thread is not threading.current_thread():
                thread.join()
        if count:
            self.proxy._was_cut()  # before the client notices
        self.client.close() if orderly else _reset(self.client)
        _reset(self.server)
        self._wake.close()
        self.proxy._forget(self)
        return True

    def _up(self) -> None:
        """Forward client to server, and look for the patterns."""
        tail = b""
        while data := self._read(self.client):
            self._ask()
            rule = self.proxy._rule(tail, data)
            when = None if rule is None else rule.when
            tail = self.proxy._tail(tail + data)
            if when == "before":
                self.cut()
                return
            if when == "during":
                self._leave(data)
                return
            if when == "held":
                self.ending = rule
                self._hold(data)
                return
            if when == DELIVER:
                self.proxy.deliver()
                rule = None
            self.ending = rule or self.ending
            if not self._send(self.server, data):
                break
        self._client_is_done()

    def _ask(self) -> None:
        """Note what the client has sent: the first after an answer is a new request."""
        if not self.waits:
            self.waits = True
            self.proxy._was_asked()

    def _down(self) -> None:
        """Forward server to client."""
        answer = b""
        while data := self._read(self.server):
            self.waits = False
            ending = self.ending  # for the data that the client sent before this answer
            answer += data if ending is not None else b""
            is_whole = ending is not None and not (ending.of_mysql and _goes_on(answer))
            when = "" if ending is None else ending.when
            if self.mute:
                if ending is None or is_whole:
                    self._answered.set()
            elif when != "lost" and not self._send(self.client, data):
                break
            elif is_whole:
                self.cut(orderly=when == "after")
                return
        if not self.mute:
            self.end(orderly=True)

    def _leave(self, data: bytes) -> None:
        """Reset the client; the server gets the bytes and can read them to their end."""
        self.mute = True
        self._send(self.server, data)
        self._client_is_done()
        self.proxy._was_cut()
        _reset(self.client)
        self._threads[1].join()
        self.end()

    def _hold(self, data: bytes) -> None:
        """Reset the client; the server notices nothing and does not get the held bytes yet."""
        self.mute, self.held = True, data
        self.proxy._was_cut()
        _reset(self.client)

    def deliver(self, seconds: float) -> bool:
        """Send the held bytes to the server and drop its answer. False if it does not answer in time."""
        data, self.held = self.held, b""
        answered = self._send(self.server, data) and self._answered.wait(seconds)
        self.end()
        return answered

    def _client_is_done(self) -> None:
        """Tell the server that the client has closed, after the client's data."""
        with contextlib.suppress(OSError):
            self.server.shutdown(socket.SHUT_WR)

    def _read(self, end: socket.socket) -> bytes:
        """Return the next bytes, none if the connection is over."""
        with contextlib.suppress(OSError):
            if self._wake.or_ready(end, _IN):
                return end.recv(_READ)
        return b""

    def _send(self, end: socket.socket, data: bytes) -> bool:
        view = memoryview(data)
        with contextlib.suppress(OSError, ValueError):  # ValueError: closed by another thread
            while view and self._wake.or_ready(end, select.POLLOUT):
                view = view[end.send(view) :]
        return not view


def _goes_on(answer: bytes) -> bool:
    """Return whether MySQL has more to say to a request: its last OK packet tells whether another statement follows."""
    at = last = 0
    while at < len(answer):
        last, at = at + 4, at + 4 + int.from_bytes(answer[at : at + 3], "little")
    if at > len(answer) or answer[last:at][:1] != b"\0":
        return at > len(answer)
    for _ in ("the rows", "the last number"):
        last += _SIZES.get(answer[last + 1], 1)
    return bool(answer[last + 1] & _MORE_RESULTS)


class _Wake:
    """Wakes waiting threads, for good."""

    def __init__(self) -> None:
        self._read, self._write = os.pipe()

    def up(self) -> None:
        os.write(self._write, b"x")

    def or_ready(self, end: socket.socket, events: int) -> bool:
        """Wait for the socket; returns False if woken instead."""
        poll = select.poll()
        poll.register(self._read, select.POLLIN)
        poll.register(end, events)
        return all(fd != self._read for fd, _ in poll.poll())

    def close(self) -> None:
        os.close(self._read)
        os.close(self._write)


def _reset(end: Any) -> None:
    with contextlib.suppress(OSError):
        end.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
    end.close()
