"""Kafka, Redis, windows: Storm's builders become the arguments of our spouts and states."""

from __future__ import annotations

from collections.abc import Callable

from tree_sitter import Node

from .code import Code
from .java_types import INT, STRING, Type
from .scope import Scope
from .source import Untranslatable, children, optional, text, walk
from .wanted import LambdaShape

KAFKA, TYPE = "KafkaTridentSpoutConfig.Builder", "RedisDataTypeDescription"
_SETTINGS = {"max.partition.fetch.bytes", "fetch.min.bytes", "session.timeout.ms", "heartbeat.interval.ms"}
_NEAREST = {"max.poll.records": "limits each partition's batch: maxRecordsPerBatch of KafkaSpout limits the whole one"}
_DESERIALIZERS = {"key.deserializer": "key", "value.deserializer": "value"}
_KINDS = ("transactional", "opaque", "nonTransactional")
Arguments = Callable[..., list[Code]]


def connector(
    kind: str, name: str, node: Node, scope: Scope, translate_arguments: Arguments, this: Code | None = None
) -> Code | None:
    """Translate a call of a connector's class, or return None if it is none."""
    handler = _CLASSES.get(kind.removesuffix(".Builder")) or _CLASSES.get(kind)
    if handler is None:
        return _refuse_or_none(kind, name, node)
    record = LambdaShape([Type("ConsumerRecord", (STRING, STRING))])
    wanted = [record] if name == "setRecordTranslator" else []
    arguments = translate_arguments(children(optional(node, "arguments")), wanted=wanted)
    if name in ("builder", "new") and len(arguments) == 2 and arguments[1].type.name == "Pattern":
        bootstrap, pattern = (code.text for code in arguments)
        return Code(f"dict(bootstrap={bootstrap}, pattern={pattern}.pattern)", Type(KAFKA), True)
    if kind == "RedisMapState" and len(arguments) == 2:
        arguments[1] = _redis_arguments(node, arguments[1])
    given = [code.text for code in arguments]
    if (kind, name) == ("RedisState.Factory", "new"):
        given += _redis_hash(node, scope)
    return handler(kind, name, node, given, this)


def _refuse_or_none(kind: str, name: str, node: Node) -> Code | None:
    for word, (reason, section) in _REFUSED.items():
        if kind.startswith(word):
            raise Untranslatable(node, f"{kind}: {reason}", section)
    return None


_CLUSTER = "a state in Redis is on one server, which may have replicas, on no Redis Cluster"
_REFUSED = {
    "ZkHosts": ("it names ZooKeeper, and KafkaSpout wants the brokers", "kafka.md#coming-from-storm"),
    "TridentKafkaConfig": ("of storm-kafka 0.x: KafkaSpout takes the brokers and topics", "kafka.md#coming-from-storm"),
    "JedisClusterConfig": (_CLUSTER, "differences.md#by-decision"),
    "RedisClusterState": (_CLUSTER, "differences.md#by-decision"),
    "RedisClusterMapState": (_CLUSTER, "differences.md#by-decision"),
    "HdfsState.SequenceFileOptions": ("write a RecordFormat for FileState", "file_states.md#from-hdfsstate"),
    "SequenceFileOptions": ("write a RecordFormat for FileState", "file_states.md#from-hdfsstate"),
    "MoveFileAction": ("a file is final when it is visible", "file_states.md#from-hdfsstate"),
    "TimedRotationPolicy": ("each batch begins new files", "file_states.md#from-hdfsstate"),
}


def _keyword(text: str, name: str, value: str) -> str:
    """Add an argument to a call; settings stay the last one."""
    head, settings = (text[:-1], "") if ", settings={" not in text else text[:-1].split(", settings={")
    return f"{head}, {name}={value}{f', settings={{{settings}' if settings else ''})"


def _kafka_config(kind: str, name: str, node: Node, given: list[str], this: Code | None) -> Code | None:
    builder = Type(KAFKA)
    if name in ("builder", "new") and this is None and len(given) > 1:
        topics = given[1] if len(given) == 2 else f"[{', '.join(given[1:])}]"
        return Code(f"dict(bootstrap={given[0]}, topics={topics})", builder, True)
    if this is None or not this.text.startswith("dict("):
        raise Untranslatable(node, f"{name} of a Kafka builder that is not one chain", "kafka.md#coming-from-storm")
    if name == "build":
        text = this.text if "translator=" in this.text else _keyword(this.text, "fields", _ALL_FIELDS)
        for part in ("key", "value"):
            text = text if f", {part}=" in text else _keyword(text, part, '"string"')
        return Code(text, Type("KafkaTridentSpoutConfig"), True)
    if name == "setRecordTranslator" and len(given) == 2:
        return Code(_keyword(_keyword(this.text, "translator", given[0]), "fields", given[1]), builder, True)
    if name == "setFirstPollOffsetStrategy":
        return Code(_keyword(this.text, "firstPollOffsetStrategy", given[0]), builder, True)
    if name == "setProp" and len(given) == 2:
        return Code(_property(this.text, given, node), builder, True)
    raise Untranslatable(node, f"{name}() of the Kafka builder has no counterpart", "kafka.md#coming-from-storm")


_ALL_FIELDS = 'Fields("topic", "partition", "offset", "key", "value")'


def _property(text: str, given: list[str], node: Node) -> str:
    key = given[0].strip('"')
    if key == "group.id":
        return _keyword(text, "groupId", given[1])
    if key in _DESERIALIZERS:
        kind = "string" if "String" in given[1] else "bytes" if "ByteArray" in given[1] else ""
        if kind:
            return _keyword(text, _DESERIALIZERS[key], f'"{kind}"')
    if key not in _SETTINGS:
        reason = _NEAREST.get(key, "has no certain counterpart")
        raise Untranslatable(node, f"the Kafka setting {key} {reason}", "kafka.md#coming-from-storm")
    pair = f"{given[0]}: {given[1]}"
    return f"{text[:-2]}, {pair}}})" if text.endswith("})") else f"{text[:-1]}, settings={{{pair}}})"


def _kafka_spout(kind: str, name: str, node: Node, given: list[str], this: Code | None) -> Code | None:
    if name != "new" or len(given) != 1:
        return None
    guarantee = "opaque" if "Opaque" in kind else "transactional"
    return Code(f'KafkaSpout(**{given[0]}, kind="{guarantee}")', Type("ITridentDataSource"), True)


def _redis_pool(kind: str, name: str, node: Node, given: list[str], this: Code | None) -> Code | None:
    builder = Type("JedisPoolConfig.Builder")
    if name == "new" and not given:
        return Code("redis_url()", builder, True)
    if this is None:
        return None
    arguments = {"setHost": "host", "setPort": "port", "setPassword": "password", "setDatabase": "database"}
    if name == "build":
        return Code(this.text, Type("JedisPoolConfig"), True)
    if name == "setTimeout":
        return this
    if name not in arguments or not this.text.startswith("redis_url("):
        raise Untranslatable(node, f"{name}() of JedisPoolConfig has no counterpart", "porting.md#states")
    before = "" if this.text.endswith("()") else ", "
    return Code(f"{this.text[:-1]}{before}{arguments[name]}={given[0]})", builder, True)


def _redis_state(kind: str, name: str, node: Node, given: list[str], this: Code | None) -> Code | None:
    return Code(f"RedisState.Factory({', '.join(given)})", Type("StateFactory"), True) if name == "new" else None


def _redis_hash(node: Node, scope: Scope) -> list[str]:
    """Return the hash that the mappers of the given files describe: in Storm each mapper says it, here the state."""
    described = (one for source in scope.world.sources for one in walk(source.root) if _is_description(one))
    found = {text(children(optional(one, "arguments"))[-1]) for one in described}
    if len(found) > 1:
        raise Untranslatable(node, f"mappers for {' and '.join(sorted(found))}: a state is one", "porting.md#states")
    return [one for one in found if one.startswith('"')]


def _is_description(node: Node) -> bool:
    return node.type == "object_creation_expression" and text(optional(node, "type")) == TYPE


def _redis_arguments(node: Node, code: Code) -> Code:
    """Return what Storm gives a map behind its pool: a description, Options, or a KeyFactory."""
    form = _REDIS_ARGUMENTS.get(code.type.name, "keyFactory={}")
    if code.type.name in ("Object", "null") or children(optional(node, "arguments"))[1].type == "lambda_expression":
        raise Untranslatable(node, "the second argument of a RedisMapState has no certain type", "porting.md#states")
    return code._replace(text=form.format(code.text))


_REDIS_ARGUMENTS = {TYPE: "{}.additionalKey", "RedisOptions": "**{}.arguments()"}
FIELDS = {
    ("RedisOptions", "localCacheSize"): INT, ("RedisOptions", "expireIntervalSec"): INT,
    ("RedisOptions", "globalKey"): STRING, ("RedisOptions", "keyFactory"): Type("KeyFactory"),
    ("RedisOptions", "dataTypeDescription"): Type(TYPE),
}  # fmt: skip
"""The public fields of the connectors' classes."""


def _redis_map(kind: str, name: str, node: Node, given: list[str], this: Code | None) -> Code | None:
    if name not in _KINDS or not 1 <= len(given) <= 2:
        raise Untranslatable(node, f"{name}() of RedisMapState", "porting.md#states")
    return Code(f"RedisMapState.{name}({', '.join(given)})", Type("StateFactory"), True)


def _redis_type(kind: str, name: str, node: Node, given: list[str], this: Code | None) -> Code | None:
    if kind != TYPE or name != "new":
        return None
    return Code(f"RedisDataTypeDescription({', '.join(given)})", Type(TYPE), True)


def _duration(kind: str, name: str, node: Node, given: list[str], this: Code | None) -> Code | None:
    if name != "new" or len(given) != 2:
        return None
    return Code(f"Duration({given[0]} * {given[1]})", Type("Duration"), True)


_CLASSES: dict[str, Callable[..., Code | None]] = {
    "KafkaTridentSpoutConfig": _kafka_config,
    "KafkaTridentSpoutOpaque": _kafka_spout,
    "KafkaTridentSpoutTransactional": _kafka_spout,
    "JedisPoolConfig": _redis_pool,
    "RedisMapState": _redis_map,
    "RedisState.Factory": _redis_state,
    TYPE: _redis_type,
    "Duration": _duration,
}
