"""Trident states in Redis, in the bytes of storm-redis."""

from .maps.state import RedisMapState
from .maps.texts import DefaultKeyFactory, KeyFactory

__all__ = ["DefaultKeyFactory", "KeyFactory", "RedisMapState"]
