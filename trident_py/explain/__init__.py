"""Topologies explained: as text, and as a picture."""

from .drawing import FORMS, explained

__all__ = ["FORMS", "explained"]
