"""The events gateway: an HTTP service in front of Kafka that takes every event once.

    python -m trident_py events serve --config events.yaml

`ProcessedState` reports from a topology to the gateway which events are processed. `Fingerprint` says which events are
the same. `read_settings` and `application_of` serve programs that mount the service themselves.
"""

from ...entry_points import answer

# Loaded on first use: an executor needs no web server, the command line no database.
__getattr__ = answer(
    __name__,
    {
        "BloomFilter": "bloom",
        "EventError": "canonical",
        "Fingerprint": "fingerprints",
        "ProcessedState": "processed",
        "ProcessedUpdater": "processed",
        "Settings": "settings",
        "application_of": "app",
        "read_settings": "settings",
        "store_of": "stores",
    },
)
