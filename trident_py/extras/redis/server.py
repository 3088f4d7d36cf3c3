"""The Redis servers of this process: one client per URL, safe across a fork, and what their errors mean for a batch."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeVar

from ...errors import DefinitionError, FailedException, ReadOnlyStore, StateError, explain_missing
from ...model import secrets
from ...model.retry import again_for
from .url import SCHEMES, is_redis_url, make_client, read_redis_url

T = TypeVar("T")
ANSWER = 30.0
CONNECT = 5.0
SETTLES = 10.0
AT_ONCE = 5_000
# Errors that pass: the server is away, starts, changes roles, or is busy with another client's script.
_PASSING = ("LOADING", "TRYAGAIN", "READONLY", "MASTERDOWN", "CLUSTERDOWN", "BUSY", "NOREPLICAS", "UNBLOCKED")
_ADVICE = {
    "NOAUTH": "Check the user and the password in the URL",
    "WRONGPASS": "Check the user and the password in the URL",
    "NOPERM": "Allow this user EVAL, EVALSHA, SCRIPT, INFO, SCAN, DEL, EXISTS, PEXPIRE, PERSIST and the commands of "
              "hashes and strings, on the state's keys and on trident:*",
    "WRONGTYPE": "A key of the state holds another type of Redis: give the state another hash or database",
    "OOM": "Redis has reached maxmemory: raise it, and leave maxmemory-policy at noeviction",
    "MISCONF": "Redis cannot write its snapshot: its log says why",
    "MOVED": "Redis Cluster is not supported: use one Redis with its replicas",
    "CROSSSLOT": "Redis Cluster is not supported: use one Redis with its replicas",
}  # fmt: skip


def check_url(url: str) -> str:
    """Return the URL. Raises DefinitionError, whose text has no secrets of the URL, if it is not one of Redis."""
    if not isinstance(url, str) or not is_redis_url(url):
        schemes = ", ".join(SCHEMES)
        raise DefinitionError(f"not a URL of Redis; its scheme must be {schemes}. An example: redis://host:6379/0")
    read_redis_url(url)
    return url


class RedisDatabase:
    """One database of one Redis, in this process. Threads may share it. Connects at the first command."""

    def __init__(self, url: str) -> None:
        try:
            import redis
            from redis.backoff import NoBackoff
            from redis.retry import Retry
        except ModuleNotFoundError:
            what = f"the state at {secrets.redact_url(url)}"
            raise DefinitionError(explain_missing(what, "redis", "redis")) from None
        self.shown = secrets.redact_url(url)
        self._secrets = secrets.secrets_in(url)
        self._redis = redis
        once_more = Retry(NoBackoff(), 1)  # the server may have closed an idle connection
        self.client: Any = make_client(
            url, socket_timeout=ANSWER, socket_connect_timeout=CONNECT, retry=once_more
        )
        self._first: Any = make_client(
            url, socket_timeout=CONNECT, socket_connect_timeout=CONNECT, retry=Retry(NoBackoff(), 0)
        )
        self._scripts: dict[str, Any] = {}

    def run(self, text: str, keys: Sequence[str], arguments: Sequence[Any], doing: str) -> Any:
        """Run a Lua script, which Redis runs atomically. Raises FailedException if the outcome is unknown."""
        script = self._scripts.setdefault(text, self.client.register_script(text))
        return self.ask(lambda client: script(keys, arguments), doing)

    def run_until_answered(self, text: str, keys: Sequence[str], arguments: Sequence[Any], doing: str) -> Any:
        """Run a script that changes nothing when it runs again: repeats it while its outcome is unknown."""

        def passes(error: Exception) -> bool:
            return isinstance(error, FailedException)

        return again_for(SETTLES, 0.1, passes, lambda: self.run(text, keys, arguments, doing))

    def ask(self, work: Callable[[Any], T], doing: str) -> T:
        """Call ``work`` with the client and translate its errors."""
        with self.errors(doing):
            if self._first is not None:
                self._await_first_answer(self._first)
            return work(self.client)

    def _await_first_answer(self, client: Any) -> None:
        """Called before the first command. A server that accepts connections and says nothing, as one without TLS to a
        client with it, is noticed as soon as one that accepts none."""
        try:
            client.info("server")
        finally:
            client.close()
        self._first = None

    @contextlib.contextmanager
    def errors(self, doing: str) -> Iterator[None]:
        """An unavailable server raises FailedException, any other error StateError with advice."""
        errors = self._redis.exceptions
        try:
            yield
        except (errors.RedisError, OSError) as error:
            cause = secrets.hide(str(error), self._secrets)
            code = code_of(error)
            text = f"{self.shown}: could not {doing}: {type(error).__name__}: {cause}"
            if is_passing(error, errors):
                kind = ReadOnlyStore if code == "READONLY" else FailedException
                silent = self._first is not None and self.shown.startswith("rediss:")
                hint = ", or speaks no TLS" if silent else ""
                raise kind(f"{text}. The server is gone, or cannot do this now{hint}") from error
            raise StateError(f"{text}. {_ADVICE[code]}" if code in _ADVICE else text) from error


_CODES = {
    "AuthenticationError": "WRONGPASS", "NoPermissionError": "NOPERM", "OutOfMemoryError": "OOM",
    "ReadOnlyError": "READONLY", "BusyLoadingError": "LOADING", "TryAgainError": "TRYAGAIN", "MovedError": "MOVED",
    "AskError": "MOVED", "ClusterDownError": "CLUSTERDOWN", "MasterDownError": "MASTERDOWN",
    "ClusterCrossSlotError": "CROSSSLOT", "AuthenticationWrongNumberOfArgsError": "WRONGPASS",
}  # fmt: skip


def is_passing(error: BaseException, errors: Any) -> bool:
    """Return whether the server is away, or cannot do this now. ``errors``: redis-py's module of exceptions."""
    lost = isinstance(error, errors.ConnectionError | errors.TimeoutError | OSError)
    return code_of(error) in _PASSING or (lost and not isinstance(error, errors.AuthenticationError))


def code_of(error: BaseException) -> str:
    """Return the code that Redis puts before its message; redis-py removes it from the errors that it has classes
    for."""
    if type(error).__name__ in _CODES:
        return _CODES[type(error).__name__]
    if "user executing the script can't run" in str(error):
        return "NOPERM"
    words = str(error).split()
    return words[0] if words and words[0].isupper() else ""


_SERVERS: dict[str, RedisDatabase] = {}
_LOCK = threading.Lock()


def server_of(url: str) -> RedisDatabase:
    """Return this process's client for the URL. After a fork redis-py opens connections of the child's own."""
    with _LOCK:
        return _SERVERS.setdefault(url, _SERVERS.get(url) or RedisDatabase(url))
