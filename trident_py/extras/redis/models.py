"""The settings of the Redis states in a file."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar

from pydantic import AfterValidator, Field

from states.loading.settings import FactorySettings, FieldName, MapKind, MapSettings

from .rows import FieldMapper
from .server import check_url

Hash = Field(
    None, min_length=1, description="Hash that holds the values; default: none, each value is a string of the database"
)


class RedisSettings(FactorySettings):
    """A state in Redis."""

    url: Annotated[
        str, AfterValidator(check_url),
        Field(description="URL of the database, such as redis://localhost:6379/0 or rediss://:${PW}@redis:6379/0"),
    ]  # fmt: skip


class RedisTexts(RedisSettings):
    """A text for each key in Redis."""

    kinds: ClassVar[tuple[str, ...]] = ("upsert",)
    factory: ClassVar[str] = "trident_py.extras.redis.rows:RedisState"

    hash: str | None = Hash
    key: FieldName = Field(description="Field of the key, a text")
    value: FieldName = Field(description="Field of the value, a text or a number")
    expireIntervalSec: float = Field(
        0, ge=0, lt=1e9, description="Seconds after which a written value is forgotten, a hash as a whole; 0: never"
    )

    def arguments(self) -> dict[str, Any]:
        arguments = super().arguments()
        mapper = FieldMapper(arguments.pop("key"), arguments.pop("value"), self.hash)
        return {**arguments, "mapper": mapper}


class RedisMap(MapSettings, RedisSettings):
    """Map states in Redis, in Storm's bytes: a value for each key, updated by persistentAggregate."""

    factory: ClassVar[str] = "trident_py.extras.redis.maps.state:RedisMapState"

    kind: MapKind
    hash: str | None = Hash
    globalKey: str = Field(
        "$REDIS-MAP-STATE-GLOBAL", min_length=1, description="Name of the value of a global aggregate"
    )
    expireIntervalSec: float = Field(
        0, ge=0, lt=1e9,
        description="Seconds after which a value that is not updated is forgotten, a hash as a whole; 0: never",
    )  # fmt: skip
