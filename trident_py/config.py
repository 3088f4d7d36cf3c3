"""Config: Storm's configuration keys as a dict, and the check of a configuration at submission."""

from __future__ import annotations

import difflib
import logging
from collections.abc import Callable, Mapping
from typing import Any

from .errors import DefinitionError

log = logging.getLogger("trident_py")


class Config(dict[str, Any]):
    """A dict with Storm's keys. Unknown keys are kept and reach every ``prepare`` and ``makeState``.

    ``Config({"my.key": 3})`` or ``conf[Config.TOPOLOGY_MAX_SPOUT_PENDING] = 20``. ``docs/configuration.md`` lists the
    keys that have an effect. Values must be picklable, because they travel to the workers.

    Raises DefinitionError if a key is not a string. Source in Storm: org.apache.storm.Config.
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
    DRPC_HTTP_PORT = "drpc.http.port"
    DRPC_HTTP_HOST = "drpc.http.host"
    DRPC_QUEUE_SIZE = "drpc.queue.size"
    DRPC_AUTHORIZER_ACL_FILENAME = "drpc.authorizer.acl.filename"
    DRPC_WORKER_THREADS = "drpc.worker.threads"

    # Keys that Storm's setters and its scheduler use. They are kept and have no effect.
    TOPOLOGY_VERSION = "topology.version"
    TOPOLOGY_COMPONENT_RESOURCES_ONHEAP_MEMORY_MB = "topology.component.resources.onheap.memory.mb"
    TOPOLOGY_COMPONENT_RESOURCES_OFFHEAP_MEMORY_MB = "topology.component.resources.offheap.memory.mb"
    TOPOLOGY_COMPONENT_CPU_PCORE_PERCENT = "topology.component.cpu.pcore.percent"
    TOPOLOGY_WORKER_MAX_HEAP_SIZE_MB = "topology.worker.max.heap.size.mb"
    TOPOLOGY_SCHEDULER_STRATEGY = "topology.scheduler.strategy"
    TOPOLOGY_RAS_CONSTRAINTS = "topology.ras.constraints"
    TOPOLOGY_RAS_CONSTRAINT_MAX_STATE_SEARCH = "topology.ras.constraint.max.state.search"
    TOPOLOGY_ACKER_EXECUTORS = "topology.acker.executors"
    TOPOLOGY_EVENT_LOGGER_REGISTER = "topology.event.logger.register"
    TOPOLOGY_EVENTLOGGER_EXECUTORS = "topology.eventlogger.executors"
    TOPOLOGY_KRYO_REGISTER = "topology.kryo.register"
    TOPOLOGY_KRYO_DECORATORS = "topology.kryo.decorators"
    TOPOLOGY_KRYO_FACTORY = "topology.kryo.factory"
    TOPOLOGY_SKIP_MISSING_KRYO_REGISTRATIONS = "topology.skip.missing.kryo.registrations"
    TOPOLOGY_METRICS_CONSUMER_REGISTER = "topology.metrics.consumer.register"
    TOPOLOGY_STATS_SAMPLE_RATE = "topology.stats.sample.rate"
    TOPOLOGY_FALL_BACK_ON_JAVA_SERIALIZATION = "topology.fall.back.on.java.serialization"
    TOPOLOGY_CLASSPATH = "topology.classpath"
    TOPOLOGY_ENVIRONMENT = "topology.environment"
    TOPOLOGY_TICK_TUPLE_FREQ_SECS = "topology.tick.tuple.freq.secs"
    TOPOLOGY_PRIORITY = "topology.priority"

    # Keys of trident_py that Storm does not have.
    TOPOLOGY_MAX_BATCH_ATTEMPTS = "topology.max.batch.attempts"
    TOPOLOGY_TXID_BASE = "topology.txid.base"
    TOPOLOGY_TXID_KEPT = "topology.txid.kept"
    TOPOLOGY_LINEAGE_ACCEPT = "topology.lineage.accept"
    TOPOLOGY_OWNER_REPLACE = "topology.owner.replace"
    TOPOLOGY_LINEAGE_ABANDON = "topology.lineage.abandon"
    TOPOLOGY_PROBE = "topology.probe"
    TOPOLOGY_CLOCK = "topology.clock"
    TOPOLOGY_STOP_GRACE_SECS = "topology.stop.grace.secs"
    TOPOLOGY_START_WAIT_SECS = "topology.start.wait.secs"
    TOPOLOGY_GUARANTEE = "topology.guarantee"
    TOPOLOGY_CHECKPOINTS = "topology.checkpoints"
    TOPOLOGY_HOME_NETWORK = "topology.home.network"
    TOPOLOGY_HOME_PORT = "topology.home.port"
    TOPOLOGY_ERROR_VALUES = "topology.error.values"
    TOPOLOGY_DETERMINISM_CHECK = "topology.determinism.check"
    TOPOLOGY_DETERMINISM_TRUST = "topology.determinism.trust"
    TOPOLOGY_INLINE_MAX_TUPLES = "topology.inline.max.tuples"
    TOPOLOGY_INLINE_MAX_MILLIS = "topology.inline.max.millis"
    TOPOLOGY_INLINE_FOLLOW_MILLIS = "topology.inline.follow.millis"
    TOPOLOGY_COMMIT_THREADS = "topology.commit.threads"
    TOPOLOGY_POISON = "topology.poison"
    TOPOLOGY_POISON_ATTEMPTS = "topology.poison.attempts"
    TOPOLOGY_POISON_MAX_TUPLES = "topology.poison.max.tuples"
    TOPOLOGY_PROFILE = "topology.profile"
    TOPOLOGY_HTTP = "topology.http"
    TOPOLOGY_OPENTELEMETRY = "topology.opentelemetry"
    TOPOLOGY_HTTP_READY_SECONDS = "topology.http.ready.seconds"

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        for key in self:
            if not isinstance(key, str):
                raise DefinitionError(f"a configuration key must be a string, got {key!r}")

    # Storm has each setter twice, `conf.setDebug(true)` and the static `Config.setDebug(map, true)`. Here it is one
    # method; called on the class, it takes any dict first. It therefore uses nothing of ``self`` but the dict.

    def setDebug(self, isOn: bool) -> None:
        self[Config.TOPOLOGY_DEBUG] = isOn

    def setNumWorkers(self, workers: int) -> None:
        self[Config.TOPOLOGY_WORKERS] = workers

    def setMaxSpoutPending(self, pending: int) -> None:
        self[Config.TOPOLOGY_MAX_SPOUT_PENDING] = pending

    def setMaxTaskParallelism(self, parallelism: int) -> None:
        self[Config.TOPOLOGY_MAX_TASK_PARALLELISM] = parallelism

    def setMessageTimeoutSecs(self, secs: int) -> None:
        self[Config.TOPOLOGY_MESSAGE_TIMEOUT_SECS] = secs

    # -- kept and without effect (docs/configuration.md) --------------------------------------------------------

    def setNumAckers(self, executors: int) -> None:
        self[Config.TOPOLOGY_ACKER_EXECUTORS] = executors

    def setNumEventLoggers(self, executors: int) -> None:
        self[Config.TOPOLOGY_EVENTLOGGER_EXECUTORS] = executors

    def setStatsSampleRate(self, rate: float) -> None:
        self[Config.TOPOLOGY_STATS_SAMPLE_RATE] = rate

    def setClasspath(self, cp: str) -> None:
        self[Config.TOPOLOGY_CLASSPATH] = cp

    def setEnvironment(self, env: Mapping[str, Any]) -> None:
        self[Config.TOPOLOGY_ENVIRONMENT] = dict(env)

    def setTopologyVersion(self, version: str) -> None:
        self[Config.TOPOLOGY_VERSION] = version

    def setTopologyPriority(self, priority: int) -> None:
        self[Config.TOPOLOGY_PRIORITY] = priority

    def setTopologyStrategy(self, strategy: str) -> None:
        self[Config.TOPOLOGY_SCHEDULER_STRATEGY] = strategy

    def setTopologyWorkerMaxHeapSize(self, size: float) -> None:
        self[Config.TOPOLOGY_WORKER_MAX_HEAP_SIZE_MB] = size

    def setTopologyComponentWorkerConstraints(self, component1: str, component2: str) -> None:
        self.setdefault(Config.TOPOLOGY_RAS_CONSTRAINTS, []).append([component1, component2])

    def setTopologyConstraintsMaxStateSearch(self, numStates: int) -> None:
        self[Config.TOPOLOGY_RAS_CONSTRAINT_MAX_STATE_SEARCH] = numStates

    def setFallBackOnJavaSerialization(self, fallback: bool) -> None:
        self[Config.TOPOLOGY_FALL_BACK_ON_JAVA_SERIALIZATION] = fallback

    def setSkipMissingKryoRegistrations(self, skip: bool) -> None:
        self[Config.TOPOLOGY_SKIP_MISSING_KRYO_REGISTRATIONS] = skip

    def setKryoFactory(self, factory: Any) -> None:
        self[Config.TOPOLOGY_KRYO_FACTORY] = factory

    def registerDecorator(self, decorator: Any) -> None:
        self.setdefault(Config.TOPOLOGY_KRYO_DECORATORS, []).append(decorator)

    def registerSerialization(self, kind: Any, serializer: Any = None) -> None:
        """Do nothing: tuples carry any picklable value here."""
        entry = kind if serializer is None else {kind: serializer}
        self.setdefault(Config.TOPOLOGY_KRYO_REGISTER, []).append(entry)

    def registerEventLogger(self, logger: Any, arguments: Mapping[str, Any] | None = None) -> None:
        """Use ``running.addListener`` instead."""
        entry = {"class": logger, "arguments": arguments}
        self.setdefault(Config.TOPOLOGY_EVENT_LOGGER_REGISTER, []).append(entry)

    def registerMetricsConsumer(self, consumer: Any, *more: Any) -> None:
        """Note a consumer, as in Storm: ``(consumer[[, argument], parallelismHint])``. None is called: use
        ``running.addListener`` and ``progress.metrics``."""
        argument, hint = (None, *more) if len(more) == 1 else more or (None, 1)
        entry = {"class": consumer, "parallelism.hint": hint, "argument": argument}
        self.setdefault(Config.TOPOLOGY_METRICS_CONSUMER_REGISTER, []).append(entry)


def _counts(value: Any, least: int = 1) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= least


def _seconds(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and value >= 0


def _more(value: Any) -> bool:
    return _seconds(value) and value > 0


def _port(value: Any) -> bool:
    return _counts(value) and value < 65_536


def _address(value: Any) -> bool:
    host, colon, port = value.rpartition(":") if isinstance(value, str) else ("", "", value)
    if isinstance(port, str):
        port = int(port) if port.isascii() and port.isdigit() else None
    return port is not None and _counts(port, 0) and port < 65_536 and (not colon or host != "")


def _name(value: Any) -> bool:
    return isinstance(value, str) and value != ""


def _names(value: Any) -> bool:
    names = [value] if isinstance(value, str) else value
    return isinstance(names, list | tuple) and all(isinstance(name, str) and name for name in names)


# Keys that have an effect: the check of a value, and its description. None stands for the default.
CHECKED: dict[str, tuple[Callable[[Any], bool], str]] = {
    Config.TOPOLOGY_MAX_BATCH_ATTEMPTS: (_counts, "a number of attempts, at least 1"),
    Config.TOPOLOGY_MAX_TASK_PARALLELISM: (_counts, "a number of partitions, at least 1"),
    Config.TOPOLOGY_TXID_KEPT: (lambda value: _counts(value, 0), "a number of batches, or 0"),
    Config.TOPOLOGY_SPOUT_MAX_BATCH_SIZE: (_counts, "a number of tuples, at least 1"),
    Config.TOPOLOGY_START_WAIT_SECS: (_seconds, "a number of seconds, at least 0"),
    Config.TOPOLOGY_STOP_GRACE_SECS: (_seconds, "a number of seconds, at least 0"),
    Config.DRPC_REQUEST_TIMEOUT_SECS: (_more, "a number of seconds, more than 0"),
    Config.DRPC_HTTP_PORT: (lambda value: value == 0 or _port(value), "a port, 1 to 65535, or 0 for any free one"),
    Config.DRPC_HTTP_HOST: (_name, "a host name or an address"),
    Config.DRPC_QUEUE_SIZE: (_counts, "a number of requests, at least 1"),
    Config.DRPC_AUTHORIZER_ACL_FILENAME: (_name, "the name of a file"),
    Config.DRPC_WORKER_THREADS: (_counts, "a number of threads, at least 1"),
    Config.TOPOLOGY_ERROR_VALUES: (lambda value: isinstance(value, bool), "true or false"),
    Config.TOPOLOGY_HOME_NETWORK: (lambda value: isinstance(value, bool), "true or false"),
    Config.TOPOLOGY_HOME_PORT: (_port, "a port, 1 to 65535"),
    Config.TOPOLOGY_CHECKPOINTS: (lambda value: isinstance(value, str), "a folder or a URI"),
    Config.TOPOLOGY_TRIDENT_WINDOWING_INMEMORY_CACHE_LIMIT: (_counts, "a number of tuples, at least 1"),
    Config.TOPOLOGY_CLOCK: (callable, "a function without parameters that returns milliseconds since 1970"),
    Config.TOPOLOGY_PROFILE: (lambda value: isinstance(value, bool), "true or false"),
    Config.TOPOLOGY_HTTP: (_address, "[HOST:]PORT; port 0: any free one"),
    Config.TOPOLOGY_OPENTELEMETRY: (lambda value: isinstance(value, bool), "true or false"),
    Config.TOPOLOGY_HTTP_READY_SECONDS: (_more, "a number of seconds, more than 0"),
    Config.TOPOLOGY_PROBE: (lambda value: isinstance(value, bool), "true or false"),
    Config.TOPOLOGY_DETERMINISM_CHECK: (_counts, "a number n, at least 1: every n-th batch runs twice"),
    Config.TOPOLOGY_INLINE_MAX_TUPLES: (lambda value: _counts(value, 0), "a number of tuples, or 0"),
    Config.TOPOLOGY_INLINE_MAX_MILLIS: (_seconds, "a number of milliseconds, at least 0"),
    Config.TOPOLOGY_INLINE_FOLLOW_MILLIS: (_seconds, "a number of milliseconds, at least 0"),
    Config.TOPOLOGY_COMMIT_THREADS: (_counts, "a number of threads, at least 1"),
    Config.TOPOLOGY_POISON: (lambda value: value == "bisect", '"bisect", or nothing'),
    Config.TOPOLOGY_POISON_ATTEMPTS: (_counts, "a number of attempts, at least 1"),
    Config.TOPOLOGY_POISON_MAX_TUPLES: (_counts, "a number of tuples, at least 1"),
    Config.TOPOLOGY_DETERMINISM_TRUST: (_names, 'a list of modules, classes and functions, as ["shop.prices"], or "*"'),
}


def check(conf: Mapping[str, Any] | None) -> None:
    """Called on the driver when a topology is submitted. Raises DefinitionError for an invalid value.

    An unknown key under ``topology.`` only logs a warning: it may be misspelt, or user code may read it.
    """
    if conf is not None and not isinstance(conf, Mapping):
        raise DefinitionError(
            f"submitTopology's second argument must be the configuration, a dict or None; got {conf!r}"
        )
    for key, value in (conf or {}).items():
        valid, words = CHECKED.get(key, (lambda value: True, ""))
        if value is not None and not valid(value):
            raise DefinitionError(f"{key} is {value!r}; it must be {words}")
    keys = list_keys()
    for key in conf or ():
        if isinstance(key, str) and key.startswith("topology.") and key not in keys:
            close = difflib.get_close_matches(key, keys, 1, 0.8)
            hint = f". Did you mean {close[0]}?" if close else ""
            log.warning("the configuration key %s has no effect in trident_py%s", key, hint)


def list_keys() -> list[str]:
    """Return the keys that `Config` defines."""
    return [value for name, value in vars(Config).items() if name.isupper()]
