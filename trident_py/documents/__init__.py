"""YAML files of settings: values with their lines, variables of the environment, problems in words.

Read by `states.load` and by the events gateway: both say file, line and key of what is wrong, and show no secret.
"""

from .document import Document, Unusable, Where, expanded, read
from .problems import close, tell

__all__ = ["Document", "Unusable", "Where", "close", "expanded", "read", "tell"]
