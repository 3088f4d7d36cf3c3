"""A fleet of simulated sensors: they replay real weather readings over HTTP, and behave as sensors do.

A sensor sends until it sees an ACK. Here some ACKs are lost on the way, some events are sent twice at once, and some
are kept back and sent at the end.
"""

from __future__ import annotations

import asyncio
import csv
import random
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import httpx

from .weather import csv_file, hundredths

ACKS = ("accepted", "duplicate")
LOST, TWICE, LATE = 0.05, 0.05, 0.03
AT_ONCE = 20
PATIENCE = 10.0


def readings(most: int | None = None) -> list[dict[str, Any]]:
    """The real readings as events; ``most``: only so many, of all stations."""
    with csv_file().open(newline="") as file:
        rows = sorted(csv.DictReader(file), key=lambda row: (row["time_hour"], row["origin"]))[:most]
    return [
        {"origin": row["origin"], "time_hour": row["time_hour"], "temperature": _measured(row["temp"]),
         "rain": _measured(row["precip"])}
        for row in rows
    ]  # fmt: skip


def _measured(text: str) -> int | None:
    return None if text in ("", "NA") else hundredths(float(text))


@dataclass
class Fleet:
    """Sensors that share an HTTP client. ``counts`` says what they did: events sent, resent, acked as duplicates,
    answers lost, requests refused or not answered."""

    address: str
    events: list[dict[str, Any]]
    sensors: int
    rate: float
    seed: int
    counts: Counter[str] = field(default_factory=Counter)
    acked: int = 0

    async def run(self, step: Callable[[int], None]) -> None:
        """Until every event is acked. ``step`` is told how many are."""
        limits = httpx.Limits(max_connections=self.sensors * 2)
        async with httpx.AsyncClient(base_url=self.address, timeout=PATIENCE, limits=limits) as client:
            shares = [self.events[n :: self.sensors] for n in range(self.sensors)]
            async with asyncio.TaskGroup() as group:
                for number, share in enumerate(shares):
                    group.create_task(self._sensor(client, share, random.Random(self.seed * 1000 + number), step))

    async def _sensor(
        self, client: httpx.AsyncClient, share: list[dict[str, Any]], draw: random.Random, step: Callable[[int], None]
    ) -> None:
        late = [event for event in share if draw.random() < LATE]
        kept = {id(event) for event in late}
        rest = [event for event in share if id(event) not in kept] + late
        at = 0
        while at < len(rest):
            some = rest[at : at + draw.randint(1, AT_ONCE)]
            await self._until_acked(client, some, draw)
            at += len(some)
            self.acked += len(some)
            step(self.acked)
            await asyncio.sleep(len(some) * self.sensors / self.rate * draw.uniform(0.5, 1.5))

    async def _until_acked(self, client: httpx.AsyncClient, some: list[dict[str, Any]], draw: random.Random) -> None:
        """Sends again what is not acked; what is lost on the way is not acked."""
        waiting, first = some, True
        while waiting:
            self.counts["sent" if first else "resent"] += len(waiting)
            posts = [self._post(client, waiting)]
            if draw.random() < TWICE:
                self.counts["sent twice at once"] += len(waiting)
                posts.append(self._post(client, waiting))
            answers = await asyncio.gather(*posts)
            if draw.random() < LOST:
                self.counts["ACKs lost"] += len(waiting)
                answers = [None]
            waiting, first = _not_acked(waiting, answers), False
            if waiting:
                await asyncio.sleep(draw.uniform(0.1, 1.0))

    async def _post(self, client: httpx.AsyncClient, events: list[dict[str, Any]]) -> list[str] | None:
        """The status of each event; None without an answer."""
        try:
            body: Any = events[0] if len(events) == 1 else events
            answer = await client.post("/events", json=body)
            told = answer.json()
        except (httpx.HTTPError, ValueError):
            self.counts["requests without an answer"] += 1
            return None
        found = [each["status"] for each in told.get("results", [told]) if "status" in each]
        self.counts["requests refused for now"] += answer.status_code == 503
        for status in found:
            self.counts[f"answered {status}"] += 1
        return found or None


def _not_acked(events: list[dict[str, Any]], answers: list[list[str] | None]) -> list[dict[str, Any]]:
    acked = [any(found is not None and found[at] in ACKS for found in answers) for at in range(len(events))]
    return [event for event, done in zip(events, acked, strict=True) if not done]
