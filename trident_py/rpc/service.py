"""The home service: objects live in the user's driver process, and workers call them.

Memory states and the planners of batches live in the driver process. There, ``store`` returns the object itself; in a
worker, a proxy whose method calls travel over a socket.

A call is executed at most once. A client that lost its connection repeats the call with the same number, waits if it is
still running, and gets the kept reply; see `Calls`. An exception is raised in the caller. Arguments and results must be
picklable. Nothing is unpickled before the other end has proved that it has the key (`trident_py.rpc.transport`).

The loopback address serves the driver's machine. Workers on other machines call only what really lives in the
driver, such as memory states, and only if the user allows it (`trident_py.spark.network`).
"""

from __future__ import annotations

import contextlib
import itertools
import os
import pickle
import secrets
import socket
import threading
import time
import uuid
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass, field
from multiprocessing.connection import Listener
from typing import Any, TypeVar

from ..engine.phases import phase
from ..errors import TridentError
from ..model.context import RunContext, with_context
from ..model.pickling import dumps
from ..model.user_traceback import blame, describe_error, note
from .transport import Channel

GRACE = 60.0


@dataclass(eq=False)
class _Caller:
    """A client: the number of its last call, the reply, its connections, and when the last one ended."""

    number: int = 0
    reply: Future[bytes] | None = None
    connections: int = 0
    left: float = 0.0


class Calls:
    """The calls of all clients of a service. Each is executed once, however often the client repeats it.

    A reply is kept until the client has received it, makes its next call, or has been gone for ``grace`` seconds. A
    client that comes back later is rejected, because it is then unknown whether its last call was executed.
    """

    def __init__(self, grace: float = GRACE) -> None:
        self._grace = grace
        self._lock = threading.Lock()
        self._callers: dict[str, _Caller] = {}

    def __len__(self) -> int:
        return len(self._callers)

    def join(self, client: str, again: bool) -> bool:
        """Add a connection of this client. Returns False if it comes back (``again``) but was already forgotten."""
        with self._lock:
            past = time.monotonic() - self._grace
            self._callers = {n: c for n, c in self._callers.items() if c.connections or c.left > past}
            if again and client not in self._callers:
                return False
            self._callers.setdefault(client, _Caller()).connections += 1
            return True

    def leave(self, client: str) -> None:
        """Called when a connection of this client has ended."""
        with self._lock:
            caller = self._callers[client]
            caller.connections -= 1
            caller.left = time.monotonic()

    def got(self, client: str) -> None:
        """Called when the client has received its last reply."""
        with self._lock:
            self._callers[client].reply = None

    def once(self, client: str, number: int, work: Callable[[], bytes]) -> bytes | None:
        """Return the reply to a call; None if the client has already received it.

        This thread executes the call, unless another thread executes or has executed it. ``work`` must not raise.
        """
        with self._lock:
            caller = self._callers[client]
            new = number > caller.number
            if new:
                caller.number, caller.reply = number, Future()
            reply = caller.reply if number == caller.number else None
        if new and reply is not None:
            reply.set_result(work())
        return None if reply is None else reply.result()


T = TypeVar("T")

LARGE = 4_096
STRANGERS = 16
TRIES = 3


class HomeError(TridentError):
    """The driver process could not answer a call: it has ended, or the run is over."""


@dataclass(frozen=True)
class HomeAddress:
    """The address of a home service. Picklable. Its repr, and therefore every log, omits the key."""

    host: str
    port: int
    key: bytes = field(repr=False)


class HomeService:
    """Lets workers call objects of this process. Made and closed in the driver process; its threads are daemons.

    After ``register``, workers can call the object's public methods through ``Proxy``. Calls of several workers run at
    the same time, each in its own thread, so an object must do its own locking. All services of a process serve the
    same objects. ``reached_at``: the host name that workers use, if it is another. Raises OSError if this machine does
    not have the address, or the port is taken.
    """

    def __init__(self, host: str = "127.0.0.1", port: int = 0, reached_at: str = "") -> None:
        self._lock = threading.RLock()
        self._calls = Calls()
        self._connections: set[Channel] = set()
        self._strangers: dict[Channel, None] = {}  # not authenticated yet, the oldest first
        self._listener = Listener((host, port), backlog=64)
        self._closed = False
        self._bound = str(self._listener.address[0]), int(self._listener.address[1])
        self.address = HomeAddress(reached_at or self._bound[0], self._bound[1], secrets.token_bytes(32))
        _SERVICES[self.address] = self
        self._thread = threading.Thread(target=self._accept, name=f"trident-home-{self.address.port}", daemon=True)
        self._thread.start()

    def register(self, key: str, target: Any) -> None:
        """Make ``target`` callable under this key. Replaces an earlier object."""
        with _OBJECTS_LOCK:
            _OBJECTS[key] = target

    def close(self) -> None:
        """Stop listening and end all connections and threads. Running calls fail in their worker."""
        with self._lock:
            if self._closed:
                return
            self._closed = True
            open_connections = [*self._connections, *self._strangers]
        _SERVICES.pop(self.address, None)
        for channel in open_connections:
            channel.shut()
        _wake(self._bound)
        self._thread.join(5)
        self._listener.close()

    def __enter__(self) -> HomeService:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def _accept(self) -> None:
        while not self._closed:
            try:
                channel = Channel(self._listener.accept(), self.address.key)
            except OSError:
                continue
            if self._closed:
                channel.close()
                return
            self._admit(channel)
            serve = threading.Thread(target=self._serve, args=(channel,), name="trident-home-call", daemon=True)
            serve.start()

    def _admit(self, channel: Channel) -> None:
        """Admit a connection. Closes the oldest of too many unauthenticated ones: a worker authenticates at once."""
        with self._lock:
            self._strangers[channel] = None
            oldest = next(iter(self._strangers)) if len(self._strangers) > STRANGERS else None
            if oldest is not None:
                del self._strangers[oldest]
        if oldest is not None:
            oldest.shut()

    def _serve(self, channel: Channel) -> None:
        try:
            client = self._authenticate(channel)
            if client is not None:
                try:
                    self._talk(channel, client)
                finally:
                    self._calls.leave(client)
        except (EOFError, OSError, UnicodeDecodeError):
            pass  # the worker ended, or the client is no worker of ours, or this service was closed
        finally:
            with self._lock:
                self._connections.discard(channel)
                self._strangers.pop(channel, None)
                channel.close()

    def _authenticate(self, channel: Channel) -> str | None:
        """Authenticate a connection and return its client; None if the client came back too late."""
        greeting = channel.accept_greeting()
        with self._lock:
            self._strangers.pop(channel, None)
            self._connections.add(channel)
        client, again = greeting[1:], greeting[0] == "+"
        joined = self._calls.join(client, again)
        try:
            channel.answer(b"+" if joined else b"-")
        except OSError:
            if joined:
                self._calls.leave(client)
            raise
        return client if joined else None

    def _talk(self, channel: Channel, client: str) -> None:
        while not self._closed:
            request = channel.recv()
            if request:
                channel.send(self._answer(client, request))
            else:
                self._calls.got(client)

    def _answer(self, client: str, request: bytes) -> bytes:
        number, key, method, arguments = pickle.loads(request)  # noqa: S301  the other end has proved that it has the key

        def work() -> bytes:
            try:
                return dumps((True, self._call(key, method, arguments)))
            except BaseException as error:
                note(error, blame(error, values=False))  # tracebacks do not travel
                return _dump_error(error)

        reply = self._calls.once(client, number, work)
        if reply is None:
            return _dump_error(HomeError("a call was repeated after its reply had arrived; it was not executed again"))
        return reply

    def _call(self, key: str, method: str, arguments: bytes) -> Any:
        positional, named = pickle.loads(arguments)  # noqa: S301  the other end has proved that it has the key
        if method == "":
            _ensure(key, positional[0])
            return None
        with _OBJECTS_LOCK:
            if key not in _OBJECTS:
                raise HomeError(f"the home service has no object {key!r}; its run has ended")
            target = _OBJECTS[key]
        if method.startswith("_"):
            raise HomeError(f"{method!r} of {key!r} is not public")
        return getattr(target, method)(*positional, **named)  # the far end of a `Proxy`: the call names the method


class Proxy:
    """A worker's proxy of an object in the driver process. Every public method is a call. Picklable.

    A call raises the exception of the method, or HomeError if the driver process has ended.
    """

    def __init__(self, address: HomeAddress, key: str) -> None:
        self._address = address
        self._key = key

    def __getattr__(self, method: str) -> Callable[..., Any]:
        if method.startswith("_"):
            raise AttributeError(method)
        address, key = self._address, self._key

        def call(*positional: Any, **named: Any) -> Any:
            with phase("home call", method):
                return _ask(address, key, method, dumps((positional, named)))

        return call

    def __reduce__(self) -> tuple:
        return Proxy, (self._address, self._key)

    def __repr__(self) -> str:
        return f"Proxy({self._key!r} at {self._address})"


def store(conf: dict, key: str, make: Callable[[], T]) -> T:
    """Return the driver process's object for this run and key. ``make`` creates it if it does not exist.

    Returns the object itself in the driver process, a proxy in a worker. ``conf`` holds the run and the address of the
    service; no address means that this process is the home.
    """
    context = RunContext.of(conf)
    address: HomeAddress | None = context.home
    full = f"{context.run}/{key}"
    if address is None or address in _SERVICES:
        return _ensure(full, make)
    if (os.getpid(), address, full) not in _ENSURED:
        _ask(address, full, "", dumps(((make,), {})))
        _ENSURED.add((os.getpid(), address, full))
    return Proxy(address, full)  # type: ignore[return-value]


def of_any_run(conf: dict) -> dict:
    """Return a conf for `store` without the run. Objects stored with it live until the driver process ends."""
    return with_context({}, home=RunContext.of(conf).home)


def forget(run: str) -> None:
    """Drop the objects of a run in this process. Called when the run has ended."""
    with _OBJECTS_LOCK:
        for key in [key for key in _OBJECTS if key.startswith(f"{run}/")]:
            del _OBJECTS[key]


def _ensure(key: str, make: Callable[[], T]) -> T:
    with _OBJECTS_LOCK:
        if key not in _OBJECTS:
            _OBJECTS[key] = make()
        target: T = _OBJECTS[key]
        return target


_SERVICES: dict[HomeAddress, HomeService] = {}
_OBJECTS: dict[str, Any] = {}
_OBJECTS_LOCK = threading.RLock()
_ENSURED: set[tuple[int, HomeAddress, str]] = set()
_THREAD = threading.local()
_NUMBERS = itertools.count(1)


class _Link:
    """One thread's connection to one home."""

    def __init__(self, address: HomeAddress) -> None:
        self.client = uuid.uuid4().hex
        self.address = address
        self.pid = os.getpid()
        self.channel = _connect(address, self.client, again=False)

    def exchange(self, request: bytes) -> bytes:
        try:
            reply = self._ask(request)
        except (EOFError, OSError):
            self.channel.close()
            self.channel = _connect(self.address, self.client, again=True)
            reply = self._ask(request)
        if len(reply) > LARGE:
            with contextlib.suppress(OSError):  # on an error the reply is kept for a while
                self.channel.send(b"")
        return reply

    def _ask(self, request: bytes) -> bytes:
        self.channel.send(request)
        return self.channel.recv()


def _ask(address: HomeAddress, key: str, method: str, arguments: bytes) -> Any:
    links: dict[HomeAddress, _Link] = _THREAD.__dict__.setdefault("links", {})
    try:
        link = links.get(address)
        if link is None or link.pid != os.getpid():
            link = links[address] = _Link(address)
        reply = link.exchange(pickle.dumps((next(_NUMBERS), key, method, arguments)))
    except HomeError:
        links.pop(address, None)  # the next call comes from a new client
        raise
    except (EOFError, OSError) as error:
        links.pop(address, None)
        raise HomeError(
            f"the driver process does not answer at {address.host}:{address.port} ({error!r}); it has ended, "
            "or this task belongs to a run that has ended"
        ) from error
    done, value = pickle.loads(reply)  # noqa: S301  the other end has proved that it has the key
    if not done:
        raise value
    return value


def _connect(address: HomeAddress, client: str, again: bool) -> Channel:
    """Return an authenticated connection. Tries several times, since strangers may displace it before it is
    authenticated."""
    for left in reversed(range(TRIES)):  # counted and without a pause, so not `patience.again_for`
        try:
            channel = _open_channel(address, f"{'+' if again else '-'}{client}")
        except (EOFError, ConnectionError):
            if left == 0:
                raise
        else:
            return channel
    raise AssertionError("unreachable")


def _open_channel(address: HomeAddress, greeting: str) -> Channel:
    channel = Channel.to(address.host, address.port, address.key)
    try:
        if channel.greet(greeting) == b"+":
            return channel
    except BaseException:
        channel.close()
        raise
    channel.close()
    raise HomeError(
        "a call was interrupted, and whether it was executed is unknown: this process was disconnected for too long"
    )


def _wake(address: tuple[str, int]) -> None:
    """Make ``accept`` return, by connecting; nothing else does."""
    with contextlib.suppress(OSError):  # it has ended already
        socket.create_connection(address, timeout=1).close()


def _dump_error(error: BaseException) -> bytes:
    """Pickle an exception. One that cannot be pickled is replaced by a HomeError with its text."""
    try:
        reply = dumps((False, error))
        pickle.loads(reply)  # noqa: S301  what this process has just pickled
        return reply
    except Exception:
        return dumps((False, HomeError(f"{describe_error(error)} (an exception that cannot be pickled)")))
