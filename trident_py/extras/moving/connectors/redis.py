"""storm-redis' Options, for translated topologies: fields that become the arguments of a `RedisMapState`."""

from __future__ import annotations

from typing import Any

from states.redis import KeyFactory, RedisDataTypeDescription

__all__ = ["RedisOptions"]


class RedisOptions:
    """What is set after it is made, as in Storm. Each batch reads Redis here: the size of a cache says nothing."""

    localCacheSize = 1000
    globalKey: str | None = None
    keyFactory: KeyFactory | None = None
    dataTypeDescription: RedisDataTypeDescription | None = None
    expireIntervalSec = 0

    def arguments(self) -> dict[str, Any]:
        described = self.dataTypeDescription
        given = {
            "hash": described and described.additionalKey, "globalKey": self.globalKey, "keyFactory": self.keyFactory,
            "expireIntervalSec": self.expireIntervalSec or None,
        }  # fmt: skip
        return {name: value for name, value in given.items() if value is not None}
