"""Topologies explained: as text, and as a picture."""

from .diagrams import FORMS, explained

__all__ = ["FORMS", "explained"]
