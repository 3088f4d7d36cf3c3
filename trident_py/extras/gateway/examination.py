"""The first step: checks an event, computes its fingerprint and prepares its bytes for Kafka."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pydantic_core import SchemaValidator, ValidationError
from pydantic_core import core_schema as core

from ...documents.problems import close
from .answers import INVALID, EventAnswer
from .canonical import EventError, canonical, digest
from .claims import MOST_BYTES
from .event_reader import Sent
from .settings import EventSettings, Settings

_KINDS: dict[str, Any] = {
    "string": core.str_schema(strict=True),
    "integer": core.int_schema(strict=True),
    "number": core.float_schema(strict=True),  # an integer is a number too; true is not
    "boolean": core.bool_schema(strict=True),
    "object": core.dict_schema(strict=True),
    "array": core.list_schema(strict=True),
    "any": core.any_schema(),
}
_EXPECTED = {
    "string": "a string", "integer": "an integer", "number": "a number", "boolean": "true or false",
    "object": "an object", "array": "an array",
}  # fmt: skip
SHOWN = 5


class Schema:
    """Checks the fields of one event."""

    def __init__(self, settings: EventSettings) -> None:
        self._settings = settings
        required = {name: core.typed_dict_field(_KINDS[kind]) for name, kind in settings.required.items()}
        optional = {
            name: core.typed_dict_field(core.nullable_schema(_KINDS[kind]), required=False)
            for name, kind in settings.optional.items()
        }
        others: Any = "allow" if settings.others == "allow" else "forbid"
        self._validator = SchemaValidator(core.typed_dict_schema({**optional, **required}, extra_behavior=others))

    def problem(self, event: Any) -> str | None:
        """Return the problem of an event, or None."""
        if not isinstance(event, Mapping):
            return f"an event is a JSON object, found {_json_name(event)}"
        try:
            self._validator.validate_python(event)
        except ValidationError as error:
            errors = error.errors(include_url=False, include_input=False, include_context=False)
            problems = [self._describe(str(detail["loc"][0]), detail["type"], event) for detail in errors[:SHOWN]]
            more = [f"and {len(errors) - SHOWN} more"] if len(errors) > SHOWN else []
            return "; ".join([*problems, *more])
        return None

    def _describe(self, field: str, kind: str, event: Mapping[str, Any]) -> str:
        """Describe the problem of a field and the expected type. Never shows the value: answers are logged."""
        required, optional = self._settings.required, self._settings.optional
        if kind == "missing":
            return f"{field}: is missing; an event needs: {', '.join(required)}"
        if kind == "extra_forbidden":
            fields = [*required, *optional]
            return f"{field}: an event has no such field; it has: {', '.join(fields)}{close(field, fields)}"
        expected = _EXPECTED[{**required, **optional}[field]] + ("" if field in required else " or null")
        return f"{field}: found {_json_name(event[field])}; expected {expected}"


def _json_name(value: Any) -> str:
    kinds = {str: "a string", bool: "true or false", Mapping: "an object", list: "an array", type(None): "null"}
    return next((name for kind, name in kinds.items() if isinstance(value, kind)), "a number")


@dataclass(frozen=True, slots=True)
class Examined:
    """An event's fingerprint, the hash of its payload, and its own bytes for Kafka; or the reason why it is refused."""

    fingerprint: str = ""
    payload: str = ""
    value: bytes = b""
    refused: EventAnswer | None = None

    @property
    def key(self) -> tuple[str, str]:
        """Equal for two events of a request that are the same."""
        return self.fingerprint, self.payload


def waves(examined: Sequence[Examined]) -> list[list[Examined]]:
    """Return each event once, in waves with each fingerprint at most once: of two different events with one
    fingerprint, the second is claimed after the store has decided about the first.
    """
    groups: list[list[Examined]] = []
    turns: dict[str, int] = {}
    for event in {event.key: event for event in examined if event.refused is None}.values():
        turn = turns[event.fingerprint] = turns.get(event.fingerprint, -1) + 1
        if turn == len(groups):
            groups.append([])
        groups[turn].append(event)
    return groups


class Examiner:
    """Examines the events of a request. Computes only; uses no store."""

    def __init__(self, settings: Settings) -> None:
        self._schema = Schema(settings.event)
        self._fingerprint = settings.fingerprint.make()
        self._differs = bool(self._fingerprint.without or self._fingerprint.timestamp)  # parts that a resend may change

    def examine(self, events: Sequence[Sent]) -> list[Examined]:
        """Return the results in the order of the events."""
        return [self._examine(event) for event in events]

    def _examine(self, sent: Sent) -> Examined:
        event = sent.value
        try:
            encoded = canonical(event)
            problem = self._schema.problem(event)
            if problem is not None:
                return Examined(refused=EventAnswer(INVALID, reason=problem))
            fingerprint = self._fingerprint.of(event)
            payload = self._fingerprint.payload(event) if self._differs else digest(encoded)
        except EventError as error:
            return Examined(refused=EventAnswer(INVALID, reason=str(error)))
        if len(fingerprint.encode()) > MOST_BYTES:
            reason = f"the fingerprint is longer than {MOST_BYTES} bytes; use a hash such as blake2b"
            return Examined(refused=EventAnswer(INVALID, reason=reason))
        return Examined(fingerprint, payload, sent.text)
