"""The public names of the gateway, under the module in which they have been."""

from ..entry_points import names_of

__getattr__ = names_of(__name__, "gateway", "claims")
