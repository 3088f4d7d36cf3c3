"""A fleet of simulated sensors: they replay real weather readings over HTTP, and behave as sensors do.

A sensor sends until it sees an ACK. Here some ACKs are lost, some events are sent twice at once, and some are held back
and sent at the end.
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
    """Returns the real readings as events, or the first ``most`` of them, of all stations."""
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
    """Sensors that share an HTTP client. ``counts``: events sent, resent and acknowledged as duplicates, answers lost,
    requests refused or not answered."""

    address: str
    events: list[dict[str, Any]]
    sensors: int
    rate: float
    seed: int
    counts: Counter[str] = field(default_factory=Counter)
    acked: int = 0

    async def run(self, step: Callable[[int], None]) -> None:
        """Sends until every event is acknowledged. ``step`` gets their number so far."""
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
        held_back = {id(event) for event in late}
        ordered = [event for event in share if id(event) not in held_back] + late
        at = 0
        while at < len(ordered):
            batch = ordered[at : at + draw.randint(1, AT_ONCE)]
            await self._until_acked(client, batch, draw)
            at += len(batch)
            self.acked += len(batch)
            step(self.acked)
            await asyncio.sleep(len(batch) * self.sensors / self.rate * draw.uniform(0.5, 1.5))

    async def _until_acked(self, client: httpx.AsyncClient, batch: list[dict[str, Any]], draw: random.Random) -> None:
        """Sends the events until each is acknowledged. A lost answer acknowledges nothing."""
        waiting, first = batch, True
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
        """Returns the status of each event; None without an answer."""
        try:
            body: Any = events[0] if len(events) == 1 else events
            answer = await client.post("/events", json=body)
            reply = answer.json()
        except (httpx.HTTPError, ValueError):
            self.counts["requests without an answer"] += 1
            return None
        statuses = [result["status"] for result in reply.get("results", [reply]) if "status" in result]
        self.counts["requests refused for now"] += answer.status_code == 503
        for status in statuses:
            self.counts[f"answered {status}"] += 1
        return statuses or None


def _not_acked(events: list[dict[str, Any]], answers: list[list[str] | None]) -> list[dict[str, Any]]:
    acked = [any(statuses is not None and statuses[at] in ACKS for statuses in answers) for at in range(len(events))]
    return [event for event, is_acked in zip(events, acked, strict=True) if not is_acked]
