"""Storm's hints for its resource-aware scheduler: accepted, kept, and without effect, because Spark places tasks."""

from __future__ import annotations

from typing import Any, Self

from ..config import Config


class ResourceDeclarer:
    """What takes hints: streams, states and a DefaultResourceDeclarer."""

    def setCPULoad(self, *load: Any) -> Self:
        """Accept for ported code and ignore: Spark places tasks itself."""
        return self

    def setMemoryLoad(self, *load: Any) -> Self:
        """Accept for ported code and ignore: Spark places tasks itself."""
        return self

    def addSharedMemory(self, *request: Any) -> Self:
        """Accept for ported code and ignore: Spark's workers share no memory."""
        return self


class ITridentResource:
    """What tells its hints."""

    def getResources(self) -> dict[str, float]:
        raise NotImplementedError

    def getSharedMemory(self) -> set[Any]:
        raise NotImplementedError


class DefaultResourceDeclarer(ResourceDeclarer, ITridentResource):
    """Hints for `TridentTopology.setResourceDefaults`. It tells them, and nothing acts on them."""

    def __init__(self) -> None:
        self._resources: dict[str, float] = {}
        self._shared: set[Any] = set()

    def setCPULoad(self, amount: float) -> Self:
        self._resources[Config.TOPOLOGY_COMPONENT_CPU_PCORE_PERCENT] = float(amount)
        return self

    def setMemoryLoad(self, onHeap: float, offHeap: float | None = None) -> Self:
        """Set it in megabytes."""
        self._resources[Config.TOPOLOGY_COMPONENT_RESOURCES_ONHEAP_MEMORY_MB] = float(onHeap)
        if offHeap is not None:
            self._resources[Config.TOPOLOGY_COMPONENT_RESOURCES_OFFHEAP_MEMORY_MB] = float(offHeap)
        return self

    def addSharedMemory(self, request: Any) -> Self:
        self._shared.add(request)
        return self

    def getResources(self) -> dict[str, float]:
        return dict(self._resources)

    def getSharedMemory(self) -> set[Any]:
        return set(self._shared)
