"""Claims in Redis: one hash per fingerprint. Every call is one script, which Redis runs atomically.

Redis expires keys itself (a time to live per key). Its own persistence decides how much a crash of Redis loses: nothing
that was answered with ``appendfsync always``, up to a second of claims with ``everysec``.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from ...errors import DefinitionError, explain_missing
from ...model.secrets import hide, redact_url, secrets_in
from ..redis.server import is_passing
from ..redis.url import make_client
from .claims import PROCESSED, PRODUCED, Claim, ClaimAnswer, ClaimEntry, by_outcome, store_error

CLAIM = """
local time = redis.call('TIME'); local now = time[1] * 1000 + math.floor(time[2] / 1000)
local owner, lease, ttl, answers = ARGV[1], tonumber(ARGV[2]), ARGV[3], {}
for i, key in ipairs(KEYS) do
  local payload = ARGV[3 + i]
  local is = redis.call('HMGET', key, 'payload', 'status', 'lease')
  if not is[1] then
    redis.call('HSET', key, 'payload', payload, 'status', 'new', 'owner', owner, 'lease', now + lease,
               'created', now, 'changed', now)
    redis.call('PEXPIRE', key, ttl)
    answers[i] = {'won', payload, 'new', 0}
  elseif is[2] == 'new' and tonumber(is[3]) <= now and is[1] == payload then
    redis.call('HSET', key, 'owner', owner, 'lease', now + lease, 'changed', now)
    redis.call('PEXPIRE', key, ttl)
    answers[i] = {'taken', payload, 'new', 0}
  else
    answers[i] = {'lost', is[1], is[2], math.max(0, tonumber(is[3]) - now)}
  end
end
return answers
"""
_OWN = """
for _, key in ipairs(KEYS) do
  local is = redis.call('HMGET', key, 'status', 'owner')
  if is[1] == 'new' and is[2] == ARGV[1] then redis.call(%s) end
end
"""
RELEASE, DROP = _OWN % "'HSET', key, 'lease', 0", _OWN % "'DEL', key"
MOVE = """
local time = redis.call('TIME'); local now = time[1] * 1000 + math.floor(time[2] / 1000)
for i, key in ipairs(KEYS) do
  local status = redis.call('HGET', key, 'status')
  if status and status ~= 'processed' and status ~= ARGV[1] then
    redis.call('HSET', key, 'status', ARGV[1], 'changed', now)
    if ARGV[2] ~= '' then redis.call('HSET', key, 'outcome', ARGV[2]) end
    if ARGV[3] ~= '' then redis.call('PEXPIRE', key, ARGV[3]) end
  end
end
"""
AT_ONCE = 1_000
PATIENCE = 5.0


class RedisClaims:
    """A ClaimStore in one Redis (not a Redis Cluster: a script touches many keys). Connects at the first call.

    ``seconds``: the life of an entry after its last change; None for a store that only sets ``processed``.
    """

    threads = 2

    def __init__(self, url: str, seconds: float | None, prefix: str = "trident_events") -> None:
        try:
            import redis
        except ModuleNotFoundError:
            raise DefinitionError(explain_missing(f"the store {redact_url(url)}", "redis", "redis")) from None
        self._redis = redis
        options = {"decode_responses": True, "socket_timeout": PATIENCE, "socket_connect_timeout": 3}
        self._client: Any = make_client(url, **options)
        self._scripts = {text: self._client.register_script(text) for text in (CLAIM, RELEASE, DROP, MOVE)}
        self._shown, self._secrets, self._prefix = redact_url(url), secrets_in(url), prefix
        self._ttl = "" if seconds is None else str(int(seconds * 1000))

    def claim(
        self, claims: Sequence[Claim], owner: str, lease: float, likely: Collection[str] = ()
    ) -> list[ClaimAnswer]:
        answers: list[ClaimAnswer] = []
        for start in range(0, len(claims), AT_ONCE):
            part = claims[start : start + AT_ONCE]
            arguments: list[Any] = [owner, int(lease * 1000), self._ttl, *(claim.payload for claim in part)]
            with self._errors("claim events"):
                replies = self._scripts[CLAIM](self._keys(claim.fingerprint for claim in part), arguments)
            answers += [
                ClaimAnswer(result != "lost", payload, status, float(remaining) / 1000, taken=result == "taken")
                for result, payload, status, remaining in replies
            ]
        return answers

    def release(self, fingerprints: Sequence[str], owner: str) -> None:
        self._run(RELEASE, fingerprints, [owner])

    def drop(self, fingerprints: Sequence[str], owner: str) -> None:
        self._run(DROP, fingerprints, [owner])

    def produced(self, fingerprints: Sequence[str]) -> None:
        self._run(MOVE, fingerprints, [PRODUCED, "", self._ttl])

    def processed(self, outcomes: Sequence[tuple[str, str]]) -> None:
        for outcome, fingerprints in by_outcome(outcomes).items():
            self._run(MOVE, fingerprints, [PROCESSED, outcome, self._ttl])

    def get(self, fingerprint: str) -> ClaimEntry | None:
        with self._errors("read an event"):
            fields = self._client.hgetall(f"{self._prefix}:{fingerprint}")
        if not fields:
            return None
        lease, created, changed = (float(fields[name]) / 1000 for name in ("lease", "created", "changed"))
        payload, status, owner = fields["payload"], fields["status"], fields["owner"]
        return ClaimEntry(fingerprint, payload, status, owner, lease, created, changed, fields.get("outcome"))

    def expire(self, seconds: float) -> int:
        """Ping Redis, to notice if it is away: Redis expires keys itself."""
        with self._errors("answer"):
            self._client.ping()
        return 0

    def close(self) -> None:
        self._client.close()

    def _run(self, script: str, fingerprints: Sequence[str], arguments: list[str]) -> None:
        for start in range(0, len(fingerprints), AT_ONCE):
            with self._errors("store the status of events"):
                self._scripts[script](self._keys(fingerprints[start : start + AT_ONCE]), arguments)

    def _keys(self, fingerprints: Any) -> list[str]:
        return [f"{self._prefix}:{fingerprint}" for fingerprint in fingerprints]

    @contextmanager
    def _errors(self, doing: str) -> Iterator[None]:
        errors = self._redis.exceptions
        try:
            yield
        except (errors.RedisError, OSError, UnicodeError) as error:  # the last one: of a name that no host can have
            cause = hide(str(error), self._secrets)
            passes, check = is_passing(error, errors), "the URL, its log and the permissions of its user"
            raise store_error(self._shown, doing, cause, passes, check) from error

