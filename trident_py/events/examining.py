"""The first step: is it an event, which one is it, and what is written to Kafka."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from .answers import INVALID, Answer
from .canonical import canonical, digest
from .claims import MOST_BYTES
from .errors import EventError
from .reading import Sent
from .schema import Schema
from .settings import Settings


@dataclass(frozen=True, slots=True)
class Examined:
    """An event with fingerprint, hash of what a resend repeats, and its own bytes, for Kafka; or why it is refused."""

    fingerprint: str = ""
    payload: str = ""
    value: bytes = b""
    refused: Answer | None = None

    @property
    def key(self) -> tuple[str, str]:
        """What makes two events of a request the same one."""
        return self.fingerprint, self.payload


def waves(examined: Sequence[Examined]) -> list[list[Examined]]:
    """Each event once, and each fingerprint once in a wave: of two different events with one fingerprint the second is
    asked for when the store has decided about the first.
    """
    found: list[list[Examined]] = []
    turns: dict[str, int] = {}
    for each in {each.key: each for each in examined if each.refused is None}.values():
        turn = turns[each.fingerprint] = turns.get(each.fingerprint, -1) + 1
        if turn == len(found):
            found.append([])
        found[turn].append(each)
    return found


class Examiner:
    """Examines the events of a request. Plain computing; knows no store."""

    def __init__(self, settings: Settings) -> None:
        self._schema = Schema(settings.event)
        self._fingerprint = settings.fingerprint.made()
        self._differs = bool(self._fingerprint.without or self._fingerprint.timestamp)  # what a resend may change

    def examine(self, events: Sequence[Sent]) -> list[Examined]:
        """In the order of the events."""
        return [self._one(event) for event in events]

    def _one(self, sent: Sent) -> Examined:
        event = sent.value
        try:
            whole = canonical(event)
            problem = self._schema.problem(event)
            if problem is not None:
                return Examined(refused=Answer(INVALID, reason=problem))
            fingerprint = self._fingerprint.of(event)
            payload = self._fingerprint.payload(event) if self._differs else digest(whole)
        except EventError as error:
            return Examined(refused=Answer(INVALID, reason=str(error)))
        if len(fingerprint.encode()) > MOST_BYTES:
            return Examined(refused=Answer(INVALID, reason=f"its fingerprint has more than {MOST_BYTES} bytes"))
        return Examined(fingerprint, payload, sent.text)
