"""The gateway's steps in order: examine, claim (many at once), produce, store the status, answer. HTTP is in `app`."""

from __future__ import annotations

import asyncio
import itertools
import logging
import os
import socket
import time
import uuid
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any, Generic, Protocol, TypeVar

from ...errors import FailedException, TridentError
from .answers import ACCEPTED, CONFLICT, DUPLICATE, INVALID, RETRY, EventAnswer
from .bloom import RotatingBloom
from .claims import NEW, Claim, ClaimAnswer, ClaimStore
from .event_reader import Sent
from .examination import Examined, Examiner, waves
from .metrics import Metrics
from .producer import TOO_LARGE, Message
from .settings import Settings

Item = TypeVar("Item")
Answered = TypeVar("Answered")
Request = tuple[Sequence[Item], "asyncio.Future[Sequence[Answered]]"]


class Grouped(Generic[Item, Answered]):
    """Calls ``call`` with the items of many requests at once, in a thread. Each request gets its own answers.

    ``call`` gets a list of items and returns as many answers. At most ``lanes`` calls run at once, each with at most
    ``most`` items. An item is sent at once if a lane is free: nothing waits for a timer. An exception goes to all
    requests of the call.
    """

    def __init__(
        self, call: Callable[[list[Item]], Sequence[Answered]], threads: Executor, lanes: int, most: int
    ) -> None:
        self._call, self._threads, self._most = call, threads, most
        self._free = lanes
        self._waiting: deque[Request[Item, Answered]] = deque()
        self._running: set[asyncio.Task[None]] = set()

    def add(self, items: Sequence[Item]) -> asyncio.Future[Sequence[Answered]]:
        """Return a future of the answers, in the order of the items. Called on the event loop."""
        answers: asyncio.Future[Sequence[Answered]] = asyncio.get_running_loop().create_future()
        self._waiting.append((items, answers))
        if self._free:
            self._free -= 1
            task = asyncio.create_task(self._work())
            self._running.add(task)
            task.add_done_callback(self._running.discard)
        return answers

    async def _work(self) -> None:
        try:
            while self._waiting:
                group = self._next()
                together = [item for items, _ in group for item in items]
                try:
                    answers = await asyncio.get_running_loop().run_in_executor(self._threads, self._call, together)
                except Exception as error:
                    for _, future in group:
                        if not future.done():
                            future.set_exception(error)
                else:
                    self._hand_out(group, answers)
        finally:
            self._free += 1

    def _next(self) -> list[Request[Item, Answered]]:
        group = [self._waiting.popleft()]
        size = len(group[0][0])
        while self._waiting and size + len(self._waiting[0][0]) <= self._most:
            group.append(self._waiting.popleft())
            size += len(group[-1][0])
        return group

    def _hand_out(self, group: Sequence[Request[Item, Answered]], answers: Sequence[Answered]) -> None:
        start = 0
        for items, future in group:
            if not future.done():
                future.set_result(answers[start : start + len(items)])
            start += len(items)


log = logging.getLogger("trident_py.events")

Claimed = tuple[Examined, str]  # an event that this request must produce, and the owner of its claim
AGAIN = 0.2
SHOWN = 10


class Sink(Protocol):
    """The interface to Kafka, which `KafkaSink` implements."""

    away: str | None

    def send(self, messages: Sequence[Message]) -> asyncio.Future[list[str | None]]: ...
    def problem(self, patience: float) -> str | None: ...
    def close(self, patience: float) -> None: ...


@dataclass(slots=True)
class _Batch:
    """The events of one request, and the answers so far."""

    examined: list[Examined]
    answers: dict[tuple[str, str], EventAnswer] = field(default_factory=dict)

    def all(self) -> list[EventAnswer]:
        """Return an answer per event. A second copy of an accepted event in the same request is a duplicate."""
        answers, keys = [], set()
        for event in self.examined:
            answer = event.refused or self.answers[event.key]
            if event.refused is None and event.key in keys and answer.status == ACCEPTED:
                answer = EventAnswer(DUPLICATE, event.fingerprint)
            keys.add(event.key)
            answers.append(answer)
        return answers


class Gateway:
    """The gateway of one worker. Made and called on the event loop; calls the store in threads."""

    def __init__(self, settings: Settings, store: ClaimStore, sink: Sink, metrics: Metrics) -> None:
        self.settings, self.store, self.sink, self.metrics = settings, store, sink, metrics
        self.threads = ThreadPoolExecutor(2 * store.threads + 2, "trident-events-store")
        self._examiner = Examiner(settings)
        self._owner = f"{socket.gethostname()[:50]}:{os.getpid()}:{uuid.uuid4().hex[:8]}"
        self._calls = itertools.count(1)
        bloom = settings.bloom
        self._bloom = None if bloom is None else RotatingBloom(bloom.capacity, bloom.errorRate, settings.expirySeconds)
        self._claims = Grouped(self._claim, self.threads, store.threads, 1000)
        self._produced: Grouped[str, None] = Grouped(self._store_produced, self.threads, store.threads, 2000)
        self._in_flight = 0
        self._tasks: set[asyncio.Task[None]] = set()

    async def take(self, events: Sequence[Sent]) -> list[EventAnswer]:
        """Return an answer per event within ``answerSeconds``. Unfinished events are completed in the background."""
        began = time.perf_counter()
        batch = _Batch(self._examiner.examine(events))
        if distinct := waves(batch.examined):
            await self._within_time(batch, distinct)
        answers = batch.all()
        self._report(answers)
        self.metrics.took("request", time.perf_counter() - began)
        return answers

    async def _within_time(self, batch: _Batch, waves: list[list[Examined]]) -> None:
        count = sum(map(len, waves))
        reason = self._busy(count)
        if reason is None:
            self._in_flight += count
            task = asyncio.create_task(self._run(batch, waves))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
            await asyncio.wait([task], timeout=self.settings.answerSeconds)
            reason = "the result is not known yet"
        for event in itertools.chain(*waves):
            batch.answers.setdefault(event.key, EventAnswer(RETRY, event.fingerprint, reason))

    def _busy(self, more: int) -> str | None:
        """Return why no work may start now, or None."""
        if self.sink.away is not None:
            return f"Kafka is unavailable ({self.sink.away})"
        most = self.settings.limits.inFlight
        if self._in_flight + more > most and self._in_flight:
            return f"{self._in_flight} events are in flight, of at most {most}"
        return None

    async def _run(self, batch: _Batch, waves: list[list[Examined]]) -> None:
        count = sum(map(len, waves))
        try:
            for wave in waves:
                claims = await self._claim_all(batch, wave)
                delivered = await self._send(batch, claims) if claims else []
                if delivered:
                    await self._record_produced([event.fingerprint for event in delivered])
                    batch.answers |= {event.key: EventAnswer(ACCEPTED, event.fingerprint) for event in delivered}
        except Exception as error:
            expected = isinstance(error, TridentError)
            log.error("%d events were not finished: %s", count, error, exc_info=None if expected else error)
            self.metrics.count_failure("store" if expected else "internal")
            away = isinstance(error, FailedException)
            reason = "the claim store is unavailable" if away else "an error in the gateway; its log has the cause"
            for event in itertools.chain(*waves):
                batch.answers.setdefault(event.key, EventAnswer(RETRY, event.fingerprint, reason))
        finally:
            self._in_flight -= count

    async def _claim_all(self, batch: _Batch, wave: list[Examined]) -> list[Claimed]:
        """Return the events that this request must produce."""
        began = time.perf_counter()
        answers = await self._claims.add([Claim(event.fingerprint, event.payload) for event in wave])
        self.metrics.took("claim", time.perf_counter() - began)
        claimed = []
        for event, (answer, owner) in zip(wave, answers, strict=True):
            if answer.won:
                claimed.append((event, owner))
            else:
                batch.answers[event.key] = _answer_lost(event, answer, self.settings.answerSeconds)
        self.metrics.count_taken_over(sum(answer.taken for answer, _ in answers))
        if time.perf_counter() - began < self.settings.leaseSeconds - self.settings.kafka.deliverySeconds:
            return claimed
        await self._give_back(claimed, self.store.release)  # the lease may end before Kafka's confirmation
        return []

    def _claim(self, claims: list[Claim]) -> list[tuple[ClaimAnswer, str]]:
        """Send the claims of many requests in one call, each fingerprint once. Runs in a thread."""
        first = {claim.fingerprint: claim for claim in reversed(claims)}
        owner = f"{self._owner}:{next(self._calls)}"
        likely = {key for key in first if key in self._bloom} if self._bloom is not None else set()
        lease = self.settings.leaseSeconds
        stored = dict(zip(first, self.store.claim(list(first.values()), owner, lease, likely), strict=True))
        if self._bloom is not None:
            self._bloom.add_many(list(first))
        answers = []
        for claim in claims:
            answers.append((stored[claim.fingerprint], owner))
            if stored[claim.fingerprint].won:  # later claims in this call wait for the first
                stored[claim.fingerprint] = ClaimAnswer(False, stored[claim.fingerprint].payload, NEW, 1.0)
        return answers

    async def _send(self, batch: _Batch, claimed: list[Claimed]) -> list[Examined]:
        """Return the events that Kafka has confirmed."""
        began = time.perf_counter()
        messages = [Message(event.fingerprint, event.value, event.payload) for event, _ in claimed]
        codes = await self.sink.send(messages)
        self.metrics.took("kafka", time.perf_counter() - began)
        failed = {event.fingerprint: code for (event, _), code in zip(claimed, codes, strict=True) if code is not None}
        if failed:
            log.error("Kafka did not confirm %d events: %s", len(failed), ", ".join(sorted(set(failed.values()))))
            self.metrics.count_failure("kafka", len(failed))
            lost = [(event, owner) for event, owner in claimed if event.fingerprint in failed]
            batch.answers |= {event.key: _refuse(event, failed[event.fingerprint]) for event, _ in lost}
            too_large = [claim for claim in lost if failed[claim[0].fingerprint] in TOO_LARGE]
            await self._give_back([claim for claim in lost if claim not in too_large], self.store.release)
            await self._give_back(too_large, self.store.drop)  # a smaller event may have this fingerprint
        return [event for event, _ in claimed if event.fingerprint not in failed]

    async def _give_back(self, lost: list[Claimed], call: Callable[[Sequence[str], str], None]) -> None:
        """End the claims of events that Kafka has not confirmed, so that a resend need not wait for the lease."""
        for owner in {owner for _, owner in lost}:
            fingerprints = [event.fingerprint for event, holder in lost if holder == owner]
            try:
                await self._in_thread(call, fingerprints, owner)
            except TridentError as error:
                log.warning("%d claims remain until their lease ends: %s", len(fingerprints), error)

    async def _record_produced(self, fingerprints: list[str]) -> None:
        """Store the status, and repeat this while the claims are ours."""
        began = time.perf_counter()
        while True:  # `patience.again_for` would block the event loop
            try:
                await self._produced.add(fingerprints)
                break
            except FailedException as error:
                if time.perf_counter() - began > self.settings.leaseSeconds:
                    raise
                log.warning("the status of %d events could not be stored, trying again: %s", len(fingerprints), error)
                await asyncio.sleep(AGAIN)
        self.metrics.took("status", time.perf_counter() - began)

    def _store_produced(self, fingerprints: list[str]) -> list[None]:
        self.store.produced(fingerprints)
        return [None] * len(fingerprints)

    async def _in_thread(self, call: Callable[..., Any], *arguments: Any) -> Any:
        return await asyncio.get_running_loop().run_in_executor(self.threads, call, *arguments)

    def _report(self, answers: Sequence[EventAnswer]) -> None:
        """Count the answers and log resends and conflicts."""
        self.metrics.count_answers(answers)
        for status, level in ((DUPLICATE, logging.INFO), (CONFLICT, logging.WARNING)):
            if names := [str(answer.fingerprint) for answer in answers if answer.status == status]:
                log.log(level, "%s (%d): %s", status, len(names), ", ".join(names[:SHOWN]))

    async def get(self, fingerprint: str) -> Any:
        """Return the store's entry, or None. Raises FailedException while the store is away."""
        return await self._in_thread(self.store.get, fingerprint)

    async def expire(self) -> int:
        """Delete expired events; returns how many."""
        return int(await self._in_thread(self.store.expire, self.settings.expirySeconds))

    async def close(self) -> None:
        """Finish the running requests, for at most Kafka's delivery time, and close sink and store."""
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=self.settings.kafka.deliverySeconds)
        await self._in_thread(self.sink.close, self.settings.kafka.deliverySeconds)
        self.threads.shutdown(wait=True)
        self.store.close()


def _answer_lost(event: Examined, claim: ClaimAnswer, patience: float) -> EventAnswer:
    """Return the answer for an event that this request does not produce."""
    if claim.payload != event.payload:
        reason = "another event already has this fingerprint; add a field to the fingerprint in which the two differ"
        return EventAnswer(CONFLICT, event.fingerprint, reason)
    if claim.status == NEW:
        wait = min(claim.lease, patience)
        return EventAnswer(RETRY, event.fingerprint, "another request is producing it now", wait=wait)
    return EventAnswer(DUPLICATE, event.fingerprint)


def _refuse(event: Examined, code: str) -> EventAnswer:
    if code in TOO_LARGE:
        return EventAnswer(INVALID, event.fingerprint, f"an event of {len(event.value)} bytes is too large for Kafka")
    return EventAnswer(RETRY, event.fingerprint, f"Kafka did not confirm it ({code})")
