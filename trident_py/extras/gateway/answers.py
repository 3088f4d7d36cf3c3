"""The gateway's answers for an event, and their form in HTTP."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

ACCEPTED, DUPLICATE, CONFLICT, INVALID, RETRY = "accepted", "duplicate", "conflict", "invalid", "retry"
CODES = {ACCEPTED: 201, DUPLICATE: 200, CONFLICT: 409, INVALID: 422, RETRY: 503}


@dataclass(frozen=True, slots=True)
class EventAnswer:
    """The answer for one event. ``accepted`` and ``duplicate`` are ACKs: the event is in Kafka. ``conflict`` and
    ``invalid`` are final too: a resend does not help. ``retry``: the result is unknown; send it again after ``wait``
    seconds.
    """

    status: str
    fingerprint: str | None = None
    reason: str | None = None
    wait: float = 0.0

    def body(self) -> dict[str, Any]:
        named = (("status", self.status), ("fingerprint", self.fingerprint), ("reason", self.reason))
        return {name: value for name, value in named if value is not None}


def code_of(answers: Sequence[EventAnswer], single: bool) -> int:
    """Return 201, 200, 409, 422 or 503 for one event; for many 200, or 503 while any of them must be sent again."""
    if single:
        return CODES[answers[0].status]
    return 503 if any(answer.status == RETRY for answer in answers) else 200


def body_of(answers: Sequence[EventAnswer], single: bool) -> dict[str, Any]:
    if single:
        return answers[0].body()
    return {**Counter(answer.status for answer in answers), "results": [answer.body() for answer in answers]}


def wait_of(answers: Sequence[EventAnswer], least: int) -> int:
    """Return the whole seconds for Retry-After."""
    return max(least, *(math.ceil(answer.wait) for answer in answers))
