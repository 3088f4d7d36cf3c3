"""Which Kafka broker the tests run on. Plain functions: a test's own processes may import them too."""

from __future__ import annotations

import os
from typing import Any

from testbed.kafka_broker import KafkaBroker, create_topic

VARIABLE = "KAFKA_BOOTSTRAP"


class Given:
    """A broker that KAFKA_BOOTSTRAP names, instead of one started here: it can be used, not stopped or killed."""

    def __init__(self, bootstrap: str) -> None:
        self.bootstrap = bootstrap

    def create_topic(self, name: str | None = None, partitions: int = 1, **config: Any) -> str:
        return create_topic(self.bootstrap, name, partitions, config)

    def close(self) -> None:
        """It is not ours."""


def serve() -> Any:
    """The broker named by KAFKA_BOOTSTRAP, or one started here; ``close()`` ends it. Raises ServiceMissing."""
    given = os.environ.get(VARIABLE)
    return Given(given) if given else KafkaBroker().start()
