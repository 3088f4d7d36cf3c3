"""The gateway's steps in order: examine, claim, produce, store the status, answer. HTTP is in `app`."""

from __future__ import annotations

import asyncio
import itertools
import logging
import os
import socket
import time
import uuid
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any, Protocol

from ..errors import FailedException, TridentError
from .answers import ACCEPTED, CONFLICT, DUPLICATE, INVALID, RETRY, Answer
from .bloom import RotatingBloom
from .claims import NEW, Claim, ClaimAnswer, ClaimStore
from .examining import Examined, Examiner, waves
from .grouping import Grouped
from .metrics import Metrics
from .producing import TOO_LARGE, Message
from .reading import Sent
from .settings import Settings

log = logging.getLogger("trident_py.events")

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
    answers: dict[tuple[str, str], Answer] = field(default_factory=dict)

    def all(self) -> list[Answer]:
        """Returns an answer per event. A second copy of an accepted event in the same request is a duplicate."""
        found, seen = [], set()
        for each in self.examined:
            answer = each.refused or self.answers[each.key]
            if each.refused is None and each.key in seen and answer.status == ACCEPTED:
                answer = Answer(DUPLICATE, each.fingerprint)
            seen.add(each.key)
            found.append(answer)
        return found


class Gateway:
    """The gateway of one worker. Made and called on the event loop; calls the store in threads."""

    def __init__(self, settings: Settings, store: ClaimStore, sink: Sink, metrics: Metrics) -> None:
        self.settings, self.store, self.sink, self.metrics = settings, store, sink, metrics
        self.threads = ThreadPoolExecutor(2 * store.threads + 2, "trident-events-store")
        self._examiner = Examiner(settings)
        self._owner = f"{socket.gethostname()[:50]}:{os.getpid()}:{uuid.uuid4().hex[:8]}"
        self._calls = itertools.count(1)
        bloom = settings.bloom
        filters = RotatingBloom(bloom.capacity, bloom.errorRate, settings.expirySeconds) if bloom is not None else None
        self._bloom = filters
        self._claims = Grouped(self._claim, self.threads, store.threads, 1000)
        self._produced: Grouped[str, None] = Grouped(self._keep, self.threads, store.threads, 2000)
        self._in_flight = 0
        self._tasks: set[asyncio.Task[None]] = set()

    async def take(self, events: Sequence[Sent]) -> list[Answer]:
        """Returns an answer per event within ``answerSeconds``. Unfinished events are completed in the background."""
        began = time.perf_counter()
        batch = _Batch(self._examiner.examine(events))
        if wanted := waves(batch.examined):
            await self._within_time(batch, wanted)
        answers = batch.all()
        self._tell(answers)
        self.metrics.took("request", time.perf_counter() - began)
        return answers

    async def _within_time(self, batch: _Batch, wanted: list[list[Examined]]) -> None:
        count = sum(map(len, wanted))
        busy = self._busy(count)
        if busy is None:
            self._in_flight += count
            task = asyncio.create_task(self._run(batch, wanted))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
            await asyncio.wait([task], timeout=self.settings.answerSeconds)
            busy = "it is not known yet whether Kafka has it"
        for each in itertools.chain(*wanted):
            batch.answers.setdefault(each.key, Answer(RETRY, each.fingerprint, busy))

    def _busy(self, more: int) -> str | None:
        """Returns why no work may start now, or None."""
        if self.sink.away is not None:
            return f"Kafka is away ({self.sink.away})"
        most = self.settings.limits.inFlight
        if self._in_flight + more > most and self._in_flight:
            return f"{self._in_flight} events are on the way, of at most {most}"
        return None

    async def _run(self, batch: _Batch, wanted: list[list[Examined]]) -> None:
        count = sum(map(len, wanted))
        try:
            for wave in wanted:
                mine = await self._claimed(batch, wave)
                delivered = await self._sent(batch, mine) if mine else []
                if delivered and await self._known_as_produced([each.fingerprint for each in delivered]):
                    batch.answers |= {each.key: Answer(ACCEPTED, each.fingerprint) for each in delivered}
        except Exception as error:
            expected = isinstance(error, TridentError)
            log.error("%d events were not finished: %s", count, error, exc_info=None if expected else error)
            self.metrics.failed("store" if expected else "internal")
            reason = "the store of the claims is away" if isinstance(error, FailedException) else "an error, see log"
            for each in itertools.chain(*wanted):
                batch.answers.setdefault(each.key, Answer(RETRY, each.fingerprint, reason))
        finally:
            self._in_flight -= count

    async def _claimed(self, batch: _Batch, wanted: list[Examined]) -> list[tuple[Examined, str]]:
        """Returns the events that this request must produce, each with the owner of its claim."""
        began = time.perf_counter()
        found = await self._claims.add([Claim(each.fingerprint, each.payload) for each in wanted])
        self.metrics.took("claim", time.perf_counter() - began)
        mine = []
        for each, (known, owner) in zip(wanted, found, strict=True):
            if known.mine:
                mine.append((each, owner))
            else:
                batch.answers[each.key] = _judged(each, known, self.settings.answerSeconds)
        self.metrics.taken_over(sum(known.taken for known, _ in found))
        if time.perf_counter() - began < self.settings.leaseSeconds - self.settings.kafka.deliverySeconds:
            return mine
        await self._give_back(mine)  # the lease may end before Kafka's confirmation
        return []

    def _claim(self, claims: list[Claim]) -> list[tuple[ClaimAnswer, str]]:
        """Sends the claims of many requests in one call, each fingerprint once. Runs in a thread."""
        first = {claim.fingerprint: claim for claim in reversed(claims)}
        owner = f"{self._owner}:{next(self._calls)}"
        seen = {key for key in first if key in self._bloom} if self._bloom is not None else set()
        lease = self.settings.leaseSeconds
        known = dict(zip(first, self.store.claim(list(first.values()), owner, lease, seen), strict=True))
        if self._bloom is not None:
            self._bloom.add_many(list(first))
        answers = []
        for claim in claims:
            answers.append((known[claim.fingerprint], owner))
            if known[claim.fingerprint].mine:  # later claims in this call wait for the first
                known[claim.fingerprint] = ClaimAnswer(False, known[claim.fingerprint].payload, NEW, 1.0)
        return answers

    async def _sent(self, batch: _Batch, mine: list[tuple[Examined, str]]) -> list[Examined]:
        """Returns the events that Kafka has confirmed."""
        began = time.perf_counter()
        codes = await self.sink.send([Message(each.fingerprint, each.value, each.payload) for each, _ in mine])
        self.metrics.took("kafka", time.perf_counter() - began)
        failed = {each.fingerprint: code for (each, _), code in zip(mine, codes, strict=True) if code is not None}
        if failed:
            told = ", ".join(sorted(set(failed.values())))
            log.error("Kafka did not confirm %d events: %s", len(failed), told)
            self.metrics.failed("kafka", len(failed))
            lost = [(each, owner) for each, owner in mine if each.fingerprint in failed]
            batch.answers |= {each.key: _refused(each, failed[each.fingerprint]) for each, _ in lost}
            too_large = [(each, owner) for each, owner in lost if failed[each.fingerprint] in TOO_LARGE]
            await self._give_back([each for each in lost if each not in too_large])
            await self._give_back(too_large, self.store.drop)  # a smaller event may have this fingerprint
        return [each for each, _ in mine if each.fingerprint not in failed]

    async def _give_back(self, lost: list[tuple[Examined, str]], how: Callable[..., None] | None = None) -> None:
        """Releases the claims of events that Kafka has not confirmed, so that a resend need not wait for the lease."""
        for owner in {owner for _, owner in lost}:
            fingerprints = [each.fingerprint for each, by in lost if by == owner]
            try:
                await self._in_thread(how or self.store.release, fingerprints, owner)
            except TridentError as error:
                log.warning("%d claims stay until their lease ends: %s", len(fingerprints), error)

    async def _known_as_produced(self, fingerprints: list[str]) -> bool:
        """Stores the status, and repeats this while the claims are ours."""
        began = time.perf_counter()
        while True:  # `patience.again_for` would block the event loop
            try:
                await self._produced.add(fingerprints)
            except FailedException as error:
                if time.perf_counter() - began > self.settings.leaseSeconds:
                    raise
                log.warning("the status of %d events is kept later: %s", len(fingerprints), error)
                await asyncio.sleep(AGAIN)
            else:
                self.metrics.took("status", time.perf_counter() - began)
                return True

    def _keep(self, fingerprints: list[str]) -> list[None]:
        self.store.produced(fingerprints)
        return [None] * len(fingerprints)

    async def _in_thread(self, call: Callable[..., Any], *arguments: Any) -> Any:
        return await asyncio.get_running_loop().run_in_executor(self.threads, call, *arguments)

    def _tell(self, answers: Sequence[Answer]) -> None:
        """Counts the answers; logs resends and conflicts."""
        self.metrics.answered(answers)
        for status, level in ((DUPLICATE, logging.INFO), (CONFLICT, logging.WARNING)):
            found = [answer.fingerprint for answer in answers if answer.status == status]
            if found:
                log.log(level, "%s (%d): %s", status, len(found), ", ".join(map(str, found[:SHOWN])))

    async def get(self, fingerprint: str) -> Any:
        """Returns the store's entry, or None. Raises FailedException while the store is away."""
        return await self._in_thread(self.store.get, fingerprint)

    async def expire(self) -> int:
        """Deletes expired events; returns how many."""
        return int(await self._in_thread(self.store.expire, self.settings.expirySeconds))

    async def close(self) -> None:
        """Finishes the running requests, for at most Kafka's delivery time, and closes sink and store."""
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=self.settings.kafka.deliverySeconds)
        await self._in_thread(self.sink.close, self.settings.kafka.deliverySeconds)
        self.threads.shutdown(wait=True)
        self.store.close()


def _judged(each: Examined, known: ClaimAnswer, patience: float) -> Answer:
    """Returns the answer for an event that this request does not produce."""
    if known.payload != each.payload:
        reason = "another event with this fingerprint came before; choose the fingerprint's fields so that they differ"
        return Answer(CONFLICT, each.fingerprint, reason)
    if known.status == NEW:
        return Answer(RETRY, each.fingerprint, "another request is producing it now", wait=min(known.lease, patience))
    return Answer(DUPLICATE, each.fingerprint)


def _refused(each: Examined, code: str) -> Answer:
    if code in TOO_LARGE:
        return Answer(INVALID, each.fingerprint, f"Kafka takes no event of {len(each.value)} bytes")
    return Answer(RETRY, each.fingerprint, f"Kafka did not confirm it ({code})")
