"""Trident states in Redis, in the bytes of storm-redis."""

from typing import TYPE_CHECKING

from trident_py.entry_points import answer

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
    __getattr__ = answer(__name__)
