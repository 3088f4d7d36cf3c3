"""DRPC: requests that a topology answers in the driver, beside its batches."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..model.replaced import answer
from .local_drpc import LocalDRPC, default_drpc

if TYPE_CHECKING:
    from .client import DRPCClient

__all__ = ["DRPCClient", "LocalDRPC", "default_drpc"]

if not TYPE_CHECKING:
    __getattr__ = answer(__name__, {"DRPCClient": "client"})
