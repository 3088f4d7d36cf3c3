"""The events gateway (docs/events.md): the public names of the extra ``gateway``."""

from ..entry_points import names_of

__getattr__ = names_of(__name__, "gateway")
