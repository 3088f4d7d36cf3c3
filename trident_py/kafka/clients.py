"""The Kafka clients of the spout and the states: their configuration, and their errors as ours.

librdkafka's log goes to the logger ``trident_py.kafka.librdkafka``. Settings may hold secrets and are never shown.
"""

from __future__ import annotations

import contextlib
import logging
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from ..errors import DefinitionError, FailedException, StateError, TridentError
from ..secrets import hidden, is_secret
from .codes import PASSING, Meaning, is_known, meaning_of

log = logging.getLogger("trident_py.kafka")


class Once(logging.Filter):
    """Drops messages repeated within some seconds: the clients of an absent broker log the same all the time."""

    def __init__(self, seconds: float) -> None:
        super().__init__()
        self._seconds = seconds
        self._told: dict[str, float] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        text, now = re.sub(r"\d+", "", record.getMessage()), record.created
        self._told = {known: at for known, at in self._told.items() if 0 <= now - at < self._seconds}
        return self._told.setdefault(text, now) == now


librdkafka = logging.getLogger("trident_py.kafka.librdkafka")
librdkafka.addFilter(Once(30.0))
PATIENT = {"reconnect.backoff.max.ms": 1_000, "enable.sparse.connections": False}
# With sparse connections and the default back-off a new consumer asks its coordinator after 60 ms; with these, after 6.
ASKING = {
    "enable.auto.commit": False, "enable.sparse.connections": False, "retry.backoff.ms": 5, "retry.backoff.max.ms": 100,
}  # fmt: skip

AWAY = "The broker is away or busy, or its address is wrong; it is asked again"
UNKNOWN = "This library does not know the code and takes it for one that passes; it is asked again"
_REFUSED = "Check security.protocol, sasl.mechanism, sasl.username and sasl.password (or the ssl settings)"


@dataclass(frozen=True)
class Cluster:
    """A cluster's address and settings: ``bootstrap.servers``, and librdkafka's (``security.protocol``, ...).

    A plain value that can be pickled; its repr shows the addresses only.
    """

    bootstrap: str
    settings: tuple[tuple[str, str], ...] = field(default=(), repr=False)

    @classmethod
    def of(cls, bootstrap: str, settings: Mapping[str, Any] | None = None) -> Cluster:
        """Returns the cluster. Raises DefinitionError for malformed addresses or settings."""
        if not isinstance(bootstrap, str) or not re.fullmatch(r"[^\s,]+:\d+(,\s*[^\s,]+:\d+)*", bootstrap):
            raise DefinitionError(f"bootstrap names brokers as 'host:port,host:port', got {bootstrap!r}")
        for name, value in (settings or {}).items():
            if not isinstance(value, str | int | float):
                raise DefinitionError(f"the setting {name} is a text, a number or True or False, not {type(value)}")
        return cls(bootstrap, tuple(sorted((name, str(value)) for name, value in (settings or {}).items())))

    def config(self, more: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """Returns the configuration of a client."""
        return {"bootstrap.servers": self.bootstrap, **dict(self.settings), **(more or {})}

    def hidden(self, text: str) -> str:
        """Returns the text without the secrets of the settings."""
        return hidden(text, [value for name, value in self.settings if is_secret(name)])

    def admin(self, more: Mapping[str, Any] | None = None) -> Any:
        """Returns an AdminClient. Keep a reference while its futures are open: they fail with _DESTROY without it."""
        from confluent_kafka.admin import AdminClient

        own = dict(self.settings)
        patient = {name: value for name, value in PATIENT.items() if name not in own}
        return self._made(AdminClient, {**patient, **(more or {})})

    def consumer(self, more: Mapping[str, Any]) -> Any:
        from confluent_kafka import Consumer

        return self._made(Consumer, more)

    def producer(self, more: Mapping[str, Any], logger: Any = librdkafka) -> Any:
        from confluent_kafka import Producer

        return self._made(Producer, more, logger)

    def _made(self, client: Any, more: Mapping[str, Any], logger: Any = librdkafka) -> Any:
        """Makes a client. Raises DefinitionError for a setting that librdkafka does not know."""
        from confluent_kafka import KafkaException

        try:
            return client(self.config(more), logger=logger)
        except (KafkaException, ValueError) as error:
            found = kafka_error(error)
            text = self.hidden(str(error) if found is None else found.str())
            raise DefinitionError(f"Kafka at {self.bootstrap}: a client cannot be made: {text}") from None


def code_of(error: BaseException) -> str:
    """Returns the name of a Kafka error's code, such as ``_FENCED``; "" for other errors."""
    found = kafka_error(error)
    return "" if found is None else found.name()


def kafka_error(error: BaseException) -> Any:
    """Returns the KafkaError in a KafkaException, or None."""
    first = error.args[0] if error.args else None
    return first if hasattr(first, "retriable") else None  # so that the optional client need not be imported


def is_passing(error: BaseException) -> bool:
    """Whether the broker is away, starting or busy: the same call may succeed later (`trident_py.kafka.codes`)."""
    found = kafka_error(error)
    return found is not None and (found.retriable() or meaning_of(found.name()) in PASSING)


def is_fenced(error: BaseException) -> bool:
    """Whether another producer with the same transactional id has taken over, or the transaction timed out."""
    return means(error, Meaning.FENCED)


def means(error: BaseException, meaning: Meaning) -> bool:
    """Whether this is a Kafka error with a code of this meaning."""
    found = kafka_error(error)
    return found is not None and meaning_of(found.name()) is meaning


@contextlib.contextmanager
def errors(cluster: Cluster, doing: str, raised: type[TridentError] = StateError) -> Iterator[None]:
    """Turns Kafka's errors into ours: a passing one fails the batch (FailedException), others become ``raised``."""
    from confluent_kafka import KafkaException

    try:
        yield
    except KafkaException as error:
        found = kafka_error(error)
        told = str(error) if found is None else f"{found.name()}: {found.str()}"
        text = cluster.hidden(f"Kafka at {cluster.bootstrap}: could not {doing}: {told}")
        if is_passing(error):
            raise FailedException(f"{text}. {AWAY if is_known(code_of(error)) else UNKNOWN}") from error
        refused = f". {_REFUSED}" if means(error, Meaning.SHUT) else ""
        raise raised(text + refused) from error
