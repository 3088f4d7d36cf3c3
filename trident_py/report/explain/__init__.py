"""Topologies render: as text, and as a picture."""

from .text import FORMS, render

__all__ = ["FORMS", "render"]
