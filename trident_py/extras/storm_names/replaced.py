"""Names that old code imports from Storm and its connectors, which are not here, and what takes their place."""

from __future__ import annotations

_ROWS = "`states.sql.InsertIgnoreState`, `AppendState` or `BatchState`, with `states.RowUpdater`"
_HBASE = "`states.sql.SqlMapState`, or a `State` of your own: there is no state over HBase or Cassandra"

TABLE = {
    "OpaqueTridentKafkaSpout KafkaTridentSpoutOpaque": '`trident_py.kafka.KafkaSpout(..., kind="opaque")`',
    "TransactionalTridentKafkaSpout KafkaTridentSpoutTransactional": (
        '`trident_py.kafka.KafkaSpout(..., kind="transactional")`'
    ),
    "TridentKafkaConfig KafkaTridentSpoutConfig KafkaSpoutConfig KafkaConfig": (
        "the arguments of `trident_py.kafka.KafkaSpout(bootstrap, topics)`"
    ),
    "ZkHosts StaticHosts BrokerHosts": 'the brokers: `trident_py.kafka.KafkaSpout("broker:9092", topics)`',
    "StringScheme RawScheme SchemeAsMultiScheme KeyValueSchemeAsMultiScheme MultiScheme Scheme": (
        '`value="string"`, `value="bytes"`, `Json(...)` or `Avro(...)` of `trident_py.kafka.KafkaSpout`'
    ),
    "TridentKafkaStateFactory TridentKafkaState TridentKafkaStateUpdater TridentKafkaUpdater": (
        "`states.kafka.TopicState`, or `TransactionalTopicState` for exactly once, with `states.RowUpdater`"
    ),
    "DefaultTopicSelector KafkaTopicSelector TridentTupleToKafkaMapper": (
        "`topicSelector=` and `mapper=` of `states.kafka.TopicState`"
    ),
    "HdfsState HdfsStateFactory HdfsUpdater SequenceFileOptions HdfsFileOptions": (
        "`states.files.FileState` with `states.RowUpdater`"
    ),
    "FileSizeRotationPolicy TimedRotationPolicy NoRotationPolicy FileRotationPolicy DefaultFileNameFormat": (
        "`rotate=` of `states.files.FileState`; it names its files itself"
    ),
    "JdbcState JdbcStateFactory JdbcUpdater": _ROWS,
    "JdbcQuery JdbcLookupMapper SimpleJdbcLookupMapper": "`states.sql.SqlQuery`",
    "SimpleJdbcMapper JdbcMapper": "`columns=` of the states in `states.sql`; a tuple's fields name the columns",
    "ConnectionProvider HikariCPConnectionProvider": "the URL, the first argument of the states in `states.sql`",
    "HBaseState HBaseStateFactory HBaseUpdater HBaseMapState CassandraState CassandraMapState": _HBASE,
    "HBaseWindowsStoreFactory": "`states.sql.SqlWindowsStoreFactory`",
    "RedisClusterState RedisClusterMapState": "`states.redis.RedisState`, `RedisMapState`: a single server",
    "JedisPoolConfig JedisClusterConfig": "the URL, the first argument of the states in `states.redis`",
    "BaseWindowedBolt": "`trident_py.windowing.Duration`",
    "TimeUnit": "`trident_py.windowing.Duration.seconds(5)`, `.milliseconds(500)`, `.minutes(1)` ...",
    "Utils": "`running.awaitTermination(seconds)` in place of `Utils.sleep(...)`; elsewhere `time.sleep`",
    "StormTopology": "what `TridentTopology.build()` returns; nothing is imported for it",
    "TopologyContext WorkerTopologyContext": "the `context` that `open` and `prepare` get; nothing is imported for it",
    "BaseRichSpout": "`trident_py.spouts.IRichSpout`",
    "BaseRichBolt BaseBasicBolt TopologyBuilder": "functions and `TridentTopology`: there are no bolts",
}
"""The names of each row, and what takes their place. docs/porting.md has the same rows."""

_REPLACEMENTS = {name: instead for names, instead in TABLE.items() for name in names.split()}


def describe(module: str, name: str) -> str | None:
    """Return what takes the place of a name that ported code asks a module for; None: it is no name of Storm's."""
    if name not in _REPLACEMENTS:
        return None
    return f"Storm's {name} is not in {module}. In its place: {_REPLACEMENTS[name]}"
