"""The gateway's settings: the file ``events.yaml``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator, Field, ValidationError, model_validator

from ...documents import describe_errors, read
from ...documents.models import Keys, to_list
from ...errors import DefinitionError
from ...kafka.clients import Cluster
from .claims import TABLE
from .fingerprints import Fingerprint
from .stores import store_of

Seconds = Annotated[float, Field(gt=0, le=10 * 365 * 86_400)]
Count = Annotated[int, Field(ge=1, le=1_000_000_000)]
_OURS = (
    "acks", "request.required.acks", "enable.idempotence", "message.timeout.ms", "delivery.timeout.ms", "linger.ms",
    "queue.buffering.max.ms", "bootstrap.servers", "metadata.broker.list", "transactional.id",
    "delivery.report.only.error", "message.max.bytes",
)  # fmt: skip
Kind = Literal["string", "integer", "number", "boolean", "object", "array", "any"]


def _store(url: str) -> str:
    store_of(url)
    return url


def _bootstrap(value: str) -> str:
    return Cluster.of(value).bootstrap


def _librdkafka(settings: dict[str, Any]) -> dict[str, Any]:
    if reserved := [name for name in settings if name in _OURS]:
        raise DefinitionError(f"{', '.join(reserved)}: set by the gateway itself; use deliverySeconds and lingerMs")
    return settings


class GatewayKafka(Keys):
    """Where the events go."""

    bootstrap: Annotated[str, AfterValidator(_bootstrap)] = Field(description="host:port,host:port")
    topic: str = Field(pattern=r"^[A-Za-z0-9._-]{1,249}$", description="The topic; the gateway does not create it")
    deliverySeconds: Seconds = Field(10, description="How long the producer tries to deliver an event")
    lingerMs: float = Field(1, ge=0, le=1000, description="How long the producer waits for more events")
    settings: Annotated[dict[str, Any], AfterValidator(_librdkafka)] = Field(
        default={}, description="More librdkafka settings (security, compression)"
    )

    @property
    def cluster(self) -> Cluster:
        return Cluster.of(self.bootstrap, self.settings)


class FingerprintSettings(Keys):
    """What makes two events the same event."""

    fields: Annotated[list[str] | None, BeforeValidator(to_list)] = Field(None, description="Default: all fields")
    algorithm: str = Field("blake2b", description="blake2b, sha1, md5, murmur3, fnv1a or plain")
    timestamp: str | None = Field(None, description="A field to compare as an instant")
    roundSeconds: Count | None = Field(None, description="Rounds the instant down to this many seconds")
    without: Annotated[list[str], BeforeValidator(to_list)] = Field([], description="Fields to leave out")

    @model_validator(mode="after")
    def _usable(self) -> FingerprintSettings:
        self.make()
        return self

    def make(self) -> Fingerprint:
        return Fingerprint(self.fields, self.algorithm, self.timestamp, self.roundSeconds, self.without)


class EventSettings(Keys):
    """The fields of an event: name and type."""

    required: dict[str, Kind] = Field(default={})
    optional: dict[str, Kind] = Field(default={}, description="Fields that may be missing or null")
    others: Literal["allow", "refuse"] = Field("allow", description="Whether an event may have other fields")


class Limits(Keys):
    """The most that one worker accepts."""

    bodyBytes: Count = Field(1_000_000, description="Bytes in the body of a request")
    batch: Count = Field(1_000, description="Events in a request")
    allBytes: Count = Field(200_000_000, description="Bytes in all unanswered bodies")
    bodySeconds: Seconds = Field(30, description="How long a body may take to arrive; a slower one gets 408")
    idleSeconds: Seconds = Field(5, description="How long a connection may wait to send the head of a request")
    inFlight: Count = Field(10_000, description="Unanswered events; more get 503")


class BloomSettings(Keys):
    """A Bloom filter in each worker, in front of the store."""

    capacity: Count = Field(1_000_000, description="The expected fingerprints within expirySeconds")
    errorRate: float = Field(0.01, gt=0, le=0.5)


class Settings(Keys):
    """A gateway. Frozen; its repr shows no value."""

    kafka: GatewayKafka
    store: Annotated[str, AfterValidator(_store)] = Field("sqlite:///events.db", description="URL of the claim store")
    table: str = Field("trident_events", pattern=f"^{TABLE}$", description="Its table, or the prefix of its keys")
    fingerprint: FingerprintSettings = Field(default_factory=lambda: FingerprintSettings.model_validate({}))
    event: EventSettings = Field(default_factory=lambda: EventSettings.model_validate({}))
    limits: Limits = Field(default_factory=lambda: Limits.model_validate({}))
    bloom: BloomSettings | None = None
    host: str = "127.0.0.1"
    port: int = Field(8080, ge=1, le=65_535)
    workers: int = Field(1, ge=1, le=256)
    leaseSeconds: Seconds = Field(30, description="How long a claim belongs to its owner alone")
    answerSeconds: Seconds = Field(5, description="How long a request may take; then its unfinished events get 503")
    retryAfterSeconds: int = Field(1, ge=1, le=3600, description="Retry-After of a 503")
    longestResendSeconds: Seconds = Field(86_400, description="How long after the first attempt a sensor may resend")
    expirySeconds: Seconds = Field(7 * 86_400, description="How long the store keeps an event after its last change")

    @model_validator(mode="after")
    def _check_times(self) -> Settings:
        if self.expirySeconds < self.longestResendSeconds:
            raise DefinitionError(
                f"expirySeconds {self.expirySeconds:g} is shorter than longestResendSeconds "
                f"{self.longestResendSeconds:g}: an event could expire before its last resend, and be accepted again"
            )
        if self.expirySeconds <= self.leaseSeconds:
            raise DefinitionError(
                f"expirySeconds {self.expirySeconds:g} is not longer than leaseSeconds {self.leaseSeconds:g}: "
                "an event could expire while it is in flight, and be accepted again"
            )
        if self.leaseSeconds <= self.kafka.deliverySeconds:
            raise DefinitionError(
                f"leaseSeconds {self.leaseSeconds:g} is not longer than kafka.deliverySeconds "
                f"{self.kafka.deliverySeconds:g}: a claim could be taken over while its event is still in flight"
            )
        return self


def read_settings(path: str | Path) -> Settings:
    """Return the settings of a file. Opens nothing else.

    Raises DefinitionError with all problems: file, line, key, the value found and the valid ones. No error and no repr
    shows values of the environment or passwords.
    """
    document = read(path, "of the events gateway", "kafka:")
    if not isinstance(document.data, dict):
        document.add((), "the file is a mapping that begins with kafka:")
    document.stop()
    try:
        return Settings.model_validate(document.data)
    except ValidationError as error:
        describe_errors(document, (), Settings, "the gateway", error)
        document.stop()
        raise
