"""Trident states in Redis, in the bytes of storm-redis: the public names of the extra ``redis``."""

from typing import TYPE_CHECKING

from trident_py.entry_points import answer, names_of

if TYPE_CHECKING:
    from trident_py.extras.redis.public_names import (
        DefaultKeyFactory,
        FieldMapper,
        KeyFactory,
        RedisDataType,
        RedisDataTypeDescription,
        RedisLookupMapper,
        RedisMapState,
        RedisState,
        RedisStateQuerier,
        RedisStateUpdater,
        RedisStoreMapper,
    )

__all__ = [
    "DefaultKeyFactory",
    "FieldMapper",
    "KeyFactory",
    "RedisDataType",
    "RedisDataTypeDescription",
    "RedisLookupMapper",
    "RedisMapState",
    "RedisState",
    "RedisStateQuerier",
    "RedisStateUpdater",
    "RedisStoreMapper",
]

if not TYPE_CHECKING:
    __getattr__ = answer(__name__, dict.fromkeys(__all__, names_of(__name__, "redis")))
