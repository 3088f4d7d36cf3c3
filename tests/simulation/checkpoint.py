"""The simulated checkpoint: the rules of `trident_py.checkpoints.append_log`, without a file."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import lru_cache
from typing import Any

from trident_py.checkpoints.metadata_store import LOG, SharedMetadataStore, ownership_error, to_json

from .world import World


class SimulatedCheckpoint(SharedMetadataStore):
    """One driver's view of the world's log: a write after another driver's is refused."""

    def __init__(self, world: World) -> None:
        super().__init__()
        self.world = world
        self._version = -1

    def is_newest(self) -> bool:
        return self._version == self.world.log.version

    def put(self, path: str, txid: int, value: Any) -> None:
        self._put(path, txid, to_json(value, path), True)

    def note(self, path: str, txid: int, value: Any) -> None:
        self._put(path, txid, to_json(value, path), False)

    def remove(self, path: str, txid: int) -> None:
        if txid in self._read(path):
            self._put(path, txid, None, True)

    def seize(self, path: str, change: Callable[[dict[int, Any]], tuple[int, Any]]) -> None:
        def act() -> None:
            self._catch_up()
            txid, value = change(self._entries.get(path, {}))
            self._append(path, txid, to_json(value, path), True)

        self.world.ask("log", f"seize {path}", act)

    def reread(self, path: str) -> None:
        self.world.ask("log read", "reread", self._catch_up)

    def newest(self, path: str) -> Any:
        return _last(_parse(self.world.log.content).get(path, {}))

    def known(self, path: str) -> Any:
        """Return what this driver has read or written last."""
        return _last(self._entries.get(path, {}))

    def settle(self) -> None:
        def act() -> None:
            if self.is_newest():
                self.world.log.durable = self.world.log.content

        self.world.ask("log", "settle", act)

    def close(self) -> None:
        self.settle()

    def _put(self, path: str, txid: int, text: str | None, durable: bool) -> None:
        self._read(path)

        def act() -> None:
            if self._differs(path):
                raise ownership_error("checkpoint", self.newest(LOG))
            self._append(path, txid, text, durable)

        self.world.ask("log", f"log {path} {txid}", act)

    def _append(self, path: str, txid: int, text: str | None, durable: bool) -> None:
        content = {**self.world.log.content, (path, txid): text}
        if text is None:
            del content[path, txid]
            self._entries[path].pop(txid, None)
        else:
            self._entries[path] = self._entries.get(path, {}) | {txid: json.loads(text)}
        self.world.log.change(content, durable)
        self._version = self.world.log.version

    def _read(self, path: str) -> dict[int, Any]:
        if self._version < 0:
            self.world.ask("log read", "read", self._catch_up)
        return self._entries.get(path, {})

    def _all(self) -> list[str]:
        self._read("")
        return list(self._entries)

    def _differs(self, path: str) -> bool:
        return not self.world.look("log read", self.is_newest())

    def _catch_up(self) -> None:
        if not self.is_newest():
            self._entries = _parse(self.world.log.content)
            self._version = self.world.log.version


_loads = lru_cache(10_000)(json.loads)  # the store gives copies away


def _last(entries: dict[int, Any]) -> Any:
    return entries[max(entries)] if entries else None


def _parse(content: Any) -> dict[str, dict[int, Any]]:
    found: dict[str, dict[int, Any]] = {}
    for (path, txid), text in content.items():
        found.setdefault(path, {})[txid] = _loads(text)
    return found
