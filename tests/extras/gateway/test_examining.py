"""Which events are the same one, and which contradict each other."""

from __future__ import annotations

import json
from typing import Any

from test_gateway_settings import settings

from trident_py.extras.gateway.event_reader import events_of
from trident_py.extras.gateway.examination import Examined, Examiner


def examined(examiner: Examiner, events: list[dict[str, Any]]) -> list[Examined]:
    return examiner.examine(events_of(json.dumps(events).encode())[0])


def test_a_resend_with_a_new_time_within_the_rounding_is_no_conflict() -> None:
    examiner = Examiner(settings(fingerprint={"fields": ["s"], "timestamp": "t", "roundSeconds": 60}))
    first, again, other, later = examined(examiner, [
        {"s": 1, "v": 7, "t": "2013-11-03T06:00:00Z"}, {"s": 1, "v": 7, "t": "2013-11-03T07:00:10+01:00"},
        {"s": 1, "v": 8, "t": "2013-11-03T06:00:20Z"}, {"s": 1, "v": 7, "t": "2013-11-03T06:01:00Z"},
    ])  # fmt: skip
    assert first.key == again.key
    assert (other.fingerprint, other.payload != first.payload) == (first.fingerprint, True)
    assert later.fingerprint != first.fingerprint


def test_an_instant_written_in_another_zone_is_no_conflict() -> None:
    examiner = Examiner(settings(fingerprint={"timestamp": "t"}))
    first, again = examined(examiner, [{"t": "2013-11-03T06:00:00Z"}, {"t": "2013-11-03T07:00:00+01:00"}])
    assert first.key == again.key
