"""Messages between two processes: authentic, whole and in order, or none."""

from __future__ import annotations

import os
import socket
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from multiprocessing.connection import Connection, Listener
from typing import Any

import pytest

from trident_py.rpc import transport as channels
from trident_py.rpc.transport import Channel, ChannelError

KEY = b"k" * 32
Change = Callable[[int, bytes], list[bytes]]


class Server:
    """Accepts one connection, shakes hands, and sends back every message that it gets."""

    def __init__(self, key: bytes = KEY) -> None:
        self.listener = Listener(("127.0.0.1", 0))
        self.key = key
        self.received: list[Any] = []
        self.thread = threading.Thread(target=self._serve, daemon=True)
        self.thread.start()

    def _serve(self) -> None:
        channel = Channel(self.listener.accept(), self.key)
        try:
            self.received.append(channel.accept_greeting())
            channel.answer(b"+")
            while True:
                self.received.append(channel.recv())
                channel.send(self.received[-1])
        except (EOFError, OSError) as error:
            self.received.append(type(error))
        finally:
            channel.close()

    def close(self) -> None:
        self.thread.join(10)
        self.listener.close()


class Between:
    """A stranger between client and server: passes frames on, those of the client as ``change(number, frame)`` says."""

    def __init__(self, server: Any, change: Change) -> None:
        self.listener = Listener(("127.0.0.1", 0))
        self.server = server
        self.change = change
        self.threads = ThreadPoolExecutor(2)
        self.threads.submit(self._pass)

    def _pass(self) -> None:
        client = self.listener.accept()
        with socket.create_connection(self.server) as connected:
            server = Connection(connected.detach())
        self.threads.submit(self._back, server, client)
        with suppress(EOFError, OSError):
            for number in range(100):
                for frame in self.change(number, client.recv_bytes()):
                    server.send_bytes(frame)
        server.close()

    def _back(self, server: Connection, client: Connection) -> None:
        with suppress(EOFError, OSError):
            while True:
                client.send_bytes(server.recv_bytes())
        with socket.socket(fileno=os.dup(client.fileno())) as duplicate:
            duplicate.shutdown(socket.SHUT_RDWR)


@pytest.fixture
def server() -> Iterator[Server]:
    running = Server()
    yield running
    running.close()


def connected(address: Any, key: bytes = KEY) -> Channel:
    channel = Channel.to(*address, key)
    assert channel.greet("+me") == b"+"
    return channel


def test_messages_come_back_as_they_were_sent(server: Server) -> None:
    channel = connected(server.listener.address)
    messages = [b"", b"a", bytes(range(256)) * 10_000]
    for message in messages:
        channel.send(message)
        assert channel.recv() == message
    channel.close()
    server.close()
    assert server.received == ["+me", *messages, EOFError]


def test_two_ends_with_other_keys_read_nothing_of_each_other(server: Server) -> None:
    channel = Channel.to(*server.listener.address, b"guess")
    with pytest.raises((EOFError, OSError)):
        channel.greet("+me")
    server.close()
    assert server.received == [ChannelError]


def test_a_server_without_the_key_is_refused_by_the_client() -> None:
    """It cannot copy the client's proof: the proofs of both ends differ."""
    listener = Listener(("127.0.0.1", 0))

    def pretend() -> None:
        connection = listener.accept()
        connection.send_bytes(bytes(32))
        connection.send_bytes(connection.recv_bytes()[32:64] + b"+")

    thread = threading.Thread(target=pretend, daemon=True)
    thread.start()
    channel = Channel.to(*listener.address, KEY)
    with pytest.raises(ChannelError, match="does not know the key"):
        channel.greet("+me")
    thread.join(10)
    listener.close()


def flipped(frame: bytes) -> bytes:
    return frame[:-1] + bytes([frame[-1] ^ 1])


CHANGES: dict[str, Change] = {
    "the greeting": lambda number, frame: [flipped(frame)] if number == 0 else [frame],
    "a message": lambda number, frame: [flipped(frame)] if number == 1 else [frame],
    "its code": lambda number, frame: [bytes(32) + frame[32:]] if number == 1 else [frame],
    "one that is sent twice": lambda number, frame: [frame, frame] if number == 1 else [frame],
    "one that is left out": lambda number, frame: [] if number == 1 else [frame],
    "one that is added": lambda number, frame: [frame, b"more"] if number == 0 else [frame],
}


@pytest.mark.parametrize("change", CHANGES)
def test_whatever_a_stranger_changes_ends_the_connection(server: Server, change: str) -> None:
    between = Between(server.listener.address, CHANGES[change])
    channel = Channel.to(*between.listener.address, KEY)
    with suppress(EOFError, OSError):
        channel.greet("+me")
        for message in (b"one", b"two"):
            channel.send(message)
    server.close()
    channel.close()
    assert server.received[-1] is ChannelError
    assert server.received[:-1] in ([], ["+me"], ["+me", b"one"])
    assert not (change in ("a message", "its code", "one that is left out") and b"one" in server.received)


def test_a_message_above_the_limit_is_not_read(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    channel = connected(server.listener.address)
    monkeypatch.setattr(channels, "LIMIT", 1000)
    channel.send(b"x")  # the server is waiting with the old limit
    assert channel.recv() == b"x"
    with suppress(OSError):
        channel.send(bytes(2000))
    server.close()
    assert server.received == ["+me", b"x", OSError]
    channel.close()


def test_one_that_says_nothing_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(channels, "HANDSHAKE_SECONDS", 1)
    server = Server()
    with socket.create_connection(server.listener.address):
        server.close()
    assert server.received == [BlockingIOError]


def test_a_client_leaves_a_server_that_says_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(channels, "HANDSHAKE_SECONDS", 1)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        channel = Channel.to(*silent.getsockname(), KEY)
        with pytest.raises(BlockingIOError):
            channel.greet("+me")
        channel.close()
