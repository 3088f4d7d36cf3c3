"""The states in Redis. `states.redis` has these names."""

from .maps.state import DefaultKeyFactory, KeyFactory, RedisMapState
from .rows import (
    FieldMapper,
    RedisDataType,
    RedisDataTypeDescription,
    RedisLookupMapper,
    RedisState,
    RedisStateQuerier,
    RedisStateUpdater,
    RedisStoreMapper,
)
