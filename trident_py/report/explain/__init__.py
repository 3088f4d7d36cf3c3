"""Topologies render: as text, and as a picture."""

from .sketch import FORMS, render

__all__ = ["FORMS", "render"]
