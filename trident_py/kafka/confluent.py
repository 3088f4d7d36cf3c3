"""The names of confluent_kafka, which is imported when one is first used: who has no Kafka need not install it."""

from __future__ import annotations

from typing import Any


def __getattr__(name: str) -> Any:
    if name.startswith("__"):  # asked of every module
        raise AttributeError(name)
    import confluent_kafka
    from confluent_kafka import admin

    return vars(confluent_kafka)[name] if name in vars(confluent_kafka) else vars(admin)[name]
