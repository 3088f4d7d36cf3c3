"""DRPC: requests that a topology answers in the driver, beside its batches."""

from __future__ import annotations

from .local_drpc import LocalDRPC, default_drpc

__all__ = ["LocalDRPC", "default_drpc"]
