"""The Kafka clients of the spout and the states: their configuration, and their errors as ours.

librdkafka's log goes to the logger ``trident_py.kafka.librdkafka``. Settings may hold secrets and are never shown.
"""

from __future__ import annotations

import contextlib
import logging
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from importlib.util import find_spec
from typing import Any

from ..errors import DefinitionError, FailedException, StateError, TridentError, explain_missing
from ..model.requirements import Needs
from ..model.secrets import hide, is_secret
from . import confluent
from .error_codes import PASSING, Meaning, find_meaning, is_known

log = logging.getLogger("trident_py.kafka")


class Once(logging.Filter):
    """Drops messages repeated within some seconds: the clients of an absent broker log the same all the time."""

    def __init__(self, seconds: float) -> None:
        super().__init__()
        self._seconds = seconds
        self._logged: dict[str, float] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        text, now = re.sub(r"\d+", "", record.getMessage()), record.created
        self._logged = {line: at for line, at in self._logged.items() if 0 <= now - at < self._seconds}
        return self._logged.setdefault(text, now) == now


librdkafka = logging.getLogger("trident_py.kafka.librdkafka")
librdkafka.addFilter(Once(30.0))
PATIENT = {"reconnect.backoff.max.ms": 1_000, "enable.sparse.connections": False}
# With sparse connections and the default back-off a new consumer asks its coordinator after 60 ms; with these, after 6.
ASKING = {
    "enable.auto.commit": False, "enable.sparse.connections": False, "retry.backoff.ms": 5, "retry.backoff.max.ms": 100,
}  # fmt: skip

AWAY = "The broker is unreachable or busy, or its address is wrong; this will be retried"
UNKNOWN = "This library does not know the code and treats it as temporary; this will be retried"
_ALL_FENCED = "All brokers are currently fenced"  # its code is that of a wrong number of replicas
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
        """Return the cluster. Raises DefinitionError for malformed addresses or settings, and without the client."""
        if find_spec("confluent_kafka") is None:
            raise DefinitionError(explain_missing("Kafka", "the client confluent_kafka", "kafka"))
        if not isinstance(bootstrap, str) or not re.fullmatch(r"[^\s,]+:\d+(,\s*[^\s,]+:\d+)*", bootstrap):
            raise DefinitionError(f"bootstrap must list brokers as 'host:port,host:port', got {bootstrap!r}")
        for name, value in (settings or {}).items():
            if not isinstance(value, str | int | float):
                kind = type(value).__name__
                raise DefinitionError(f"the setting {name} must be a string, a number or a boolean, not {kind}")
        return cls(bootstrap, tuple(sorted((name, str(value)) for name, value in (settings or {}).items())))

    @property
    def needs(self) -> Needs:
        """What each machine needs that runs a client: one of the named brokers must answer."""
        return Needs(("confluent_kafka",), "trident-py[kafka]", (re.sub(r"\w+://", "", self.bootstrap),))

    def config(
        self, more: Mapping[str, Any] | None = None, defaults: Mapping[str, Any] | None = None
    ) -> dict[str, Any]:  # fmt: skip
        """Return the configuration of a client. The user's settings override ``defaults``, and ``more`` overrides
        them."""
        return {"bootstrap.servers": self.bootstrap, **(defaults or {}), **dict(self.settings), **(more or {})}

    def hide_secrets(self, text: str) -> str:
        """Return the text without the secrets of the settings."""
        return hide(text, [value for name, value in self.settings if is_secret(name)])

    def admin(self, more: Mapping[str, Any] | None = None) -> Any:
        """Return an AdminClient. Keep a reference while its futures are open: they fail with _DESTROY without it."""
        return self._connect(confluent.AdminClient, self.config(more, PATIENT))

    def consumer(self, more: Mapping[str, Any], defaults: Mapping[str, Any] | None = None) -> Any:
        return self._connect(confluent.Consumer, self.config(more, defaults))

    def producer(self, more: Mapping[str, Any], logger: Any = librdkafka) -> Any:
        return self._connect(confluent.Producer, self.config(more), logger)

    def _connect(self, client: Any, config: Mapping[str, Any], logger: Any = librdkafka) -> Any:
        """Create a client. Raises DefinitionError for a setting that librdkafka does not know."""
        try:
            return client(config, logger=logger)
        except (confluent.KafkaException, ValueError) as error:
            kafka = kafka_error(error)
            text = self.hide_secrets(str(error) if kafka is None else kafka.str())
            raise DefinitionError(f"Kafka at {self.bootstrap}: cannot create a client: {text}") from None


def kafka_error(error: Any) -> Any:
    """Return the KafkaError in a KafkaException, or the KafkaError itself; None for anything else. So do all functions
    below take either."""
    kafka = error.args[0] if isinstance(error, BaseException) and error.args else error
    return kafka if isinstance(kafka, confluent.KafkaError) else None


def code_of(error: Any) -> str:
    """Return the name of a Kafka error's code, such as ``_FENCED``; "" for anything else."""
    kafka = kafka_error(error)
    return "" if kafka is None else kafka.name()


def describe_error(error: Any) -> str:
    """Return the code and the text of a Kafka error; the text of any other error."""
    kafka = kafka_error(error)
    return str(error) if kafka is None else f"{kafka.name()}: {kafka.str()}"


def is_passing(error: Any) -> bool:
    """Return whether the same call may succeed later: the broker is away, starting or busy. See `error_codes`."""
    kafka = kafka_error(error)
    return kafka is not None and (
        kafka.retriable() or find_meaning(kafka.name()) in PASSING or _ALL_FENCED in str(kafka.str())
    )


def is_fenced(error: Any) -> bool:
    """Return whether another producer with the same transactional id has taken over, or the transaction timed out."""
    return means(error, Meaning.FENCED)


def means(error: Any, meaning: Meaning) -> bool:
    """Return whether this is a Kafka error with a code of this meaning."""
    kafka = kafka_error(error)
    return kafka is not None and find_meaning(kafka.name()) is meaning


@contextlib.contextmanager
def errors(cluster: Cluster, doing: str, raised: type[TridentError] = StateError) -> Iterator[None]:
    """Turns Kafka's errors into ours: a passing one fails the batch (FailedException), others become ``raised``."""
    try:
        yield
    except confluent.KafkaException as error:
        text = cluster.hide_secrets(f"Kafka at {cluster.bootstrap}: could not {doing}: {describe_error(error)}")
        if is_passing(error):
            raise FailedException(f"{text}. {AWAY if is_known(code_of(error)) else UNKNOWN}") from error
        refused = f". {_REFUSED}" if means(error, Meaning.SHUT) else ""
        raise raised(text + refused) from error
