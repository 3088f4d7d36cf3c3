"""The clients of Redis that this process keeps."""

from __future__ import annotations

from trident_py.extras.redis import server


def close_servers() -> None:
    """Close the connections of this process."""
    with server._LOCK:
        servers = list(server._SERVERS.values())
        server._SERVERS.clear()
    for each in servers:
        each.client.close()
