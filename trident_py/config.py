"""Config: Storm's configuration keys, as a dict."""

from __future__ import annotations

from typing import Any

from .errors import DefinitionError


class Config(dict[str, Any]):
    """A dict with Storm's keys; unknown keys are kept and reach every ``prepare`` and ``makeState``.

    ``Config({"my.key": 3})`` or ``conf[Config.TOPOLOGY_MAX_SPOUT_PENDING] = 20``.
    Which keys act, and how, is in ``docs/configuration.md``. Values must be picklable: they travel.

    Raises DefinitionError: a key that is not a string. Source in Storm: org.apache.storm.Config.
    """

    TOPOLOGY_NAME = "topology.name"
    TOPOLOGY_WORKERS = "topology.workers"
    TOPOLOGY_DEBUG = "topology.debug"
    TOPOLOGY_MAX_SPOUT_PENDING = "topology.max.spout.pending"
    TOPOLOGY_MAX_TASK_PARALLELISM = "topology.max.task.parallelism"
    TOPOLOGY_MESSAGE_TIMEOUT_SECS = "topology.message.timeout.secs"
    TOPOLOGY_SPOUT_MAX_BATCH_SIZE = "topology.spout.max.batch.size"
    TOPOLOGY_TRIDENT_BATCH_EMIT_INTERVAL_MILLIS = "topology.trident.batch.emit.interval.millis"
    TOPOLOGY_TRIDENT_WINDOWING_INMEMORY_CACHE_LIMIT = "topology.trident.windowing.cache.tuple.limit"
    TRANSACTIONAL_ZOOKEEPER_ROOT = "transactional.zookeeper.root"
    TRANSACTIONAL_ZOOKEEPER_SERVERS = "transactional.zookeeper.servers"
    TRANSACTIONAL_ZOOKEEPER_PORT = "transactional.zookeeper.port"
    DRPC_REQUEST_TIMEOUT_SECS = "drpc.request.timeout.secs"

    # Ours: Storm has no such keys.
    TOPOLOGY_MAX_BATCH_ATTEMPTS = "topology.max.batch.attempts"
    TOPOLOGY_TXID_BASE = "topology.txid.base"
    TOPOLOGY_LINEAGE_ABANDON = "topology.lineage.abandon"
    TOPOLOGY_STOP_GRACE_SECS = "topology.stop.grace.secs"
    TOPOLOGY_START_WAIT_SECS = "topology.start.wait.secs"
    TOPOLOGY_GUARANTEE = "topology.guarantee"
    TOPOLOGY_ERROR_VALUES = "topology.error.values"

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        for key in self:
            if not isinstance(key, str):
                raise DefinitionError(f"a configuration key is a string, got {key!r}")

    def setDebug(self, isOn: bool) -> None:
        self[self.TOPOLOGY_DEBUG] = isOn

    def setNumWorkers(self, workers: int) -> None:
        self[self.TOPOLOGY_WORKERS] = workers

    def setMaxSpoutPending(self, pending: int) -> None:
        self[self.TOPOLOGY_MAX_SPOUT_PENDING] = pending

    def setMaxTaskParallelism(self, parallelism: int) -> None:
        self[self.TOPOLOGY_MAX_TASK_PARALLELISM] = parallelism

    def setMessageTimeoutSecs(self, secs: int) -> None:
        self[self.TOPOLOGY_MESSAGE_TIMEOUT_SECS] = secs
