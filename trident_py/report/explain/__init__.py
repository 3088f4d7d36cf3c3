"""Topologies render: as text, and as a picture."""

from .diagrams import FORMS, render

__all__ = ["FORMS", "render"]
