"""DRPC: requests that a topology answers in the driver, beside its batches."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..entry_points import answer, names_of
from .local_drpc import LocalDRPC, default_drpc

__all__ = ["DRPCClient", "LocalDRPC", "default_drpc"]


if TYPE_CHECKING:
    from ..extras.drpc_server.client import DRPCClient
else:
    __getattr__ = answer(__name__, {"DRPCClient": names_of(__name__, "drpc_client")})
