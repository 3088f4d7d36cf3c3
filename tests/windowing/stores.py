"""A WindowsStore as a user brings it: a dict, with nothing atomic but one put."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from trident_py.windowing import Entry, WindowsStore, WindowsStoreFactory

_STORES: dict[int, dict[str, Any]] = {}


class DictStore(WindowsStore):
    def __init__(self, values: dict[str, Any]) -> None:
        self.values = values

    def get(self, key: str | Sequence[str]) -> Any:
        return self.values.get(key) if isinstance(key, str) else [self.values.get(one) for one in key]

    def getAllKeys(self) -> list[str]:
        return list(self.values)

    def put(self, key: str, value: Any) -> None:
        self.values[key] = value

    def putAll(self, entries: Sequence[Entry]) -> None:
        for key, value in entries:
            self.put(key, value)

    def remove(self, key: str) -> None:
        self.values.pop(key, None)

    def removeAll(self, keys: Sequence[str]) -> None:
        for key in keys:
            self.remove(key)


@dataclass(frozen=True)
class DictStoreFactory(WindowsStoreFactory):
    """Every factory has a dict of its own in this process."""

    number: int = field(default_factory=lambda: len(_STORES), kw_only=True)

    def create(self, topoConf: dict) -> DictStore:
        return DictStore(_STORES.setdefault(self.number, {}))
