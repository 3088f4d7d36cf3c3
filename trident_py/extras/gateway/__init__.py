"""The events gateway: an HTTP service in front of Kafka that takes every event once.

    python -m trident_py events serve --config events.yaml

`ProcessedState` reports from a topology to the gateway which events are processed. `Fingerprint` says which events are
the same. `read_settings` and `application_of` serve programs that mount the service themselves.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .app import application_of
    from .bloom import BloomFilter
    from .canonical import EventError
    from .fingerprints import Fingerprint
    from .processed import ProcessedState, ProcessedUpdater
    from .settings import Settings, read_settings
    from .stores import store_of

__all__ = [
    "BloomFilter",
    "EventError",
    "Fingerprint",
    "ProcessedState",
    "ProcessedUpdater",
    "Settings",
    "application_of",
    "read_settings",
    "store_of",
]

_HOMES = {
    "BloomFilter": ".bloom",
    "EventError": ".canonical",
    "Fingerprint": ".fingerprints",
    "ProcessedState": ".processed",
    "ProcessedUpdater": ".processed",
    "Settings": ".settings",
    "application_of": ".app",
    "read_settings": ".settings",
    "store_of": ".stores",
}


def __getattr__(name: str) -> Any:
    """Load names on first use: an executor needs no web server, the command line no database."""
    if name in _HOMES:
        return getattr(import_module(_HOMES[name], __name__), name)  # no probe: every name of the table exists
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
