"""Settings in YAML: values with their line numbers, environment variables, and problems in plain words.

Used by `states.load` and by the events gateway. Both name file, line and key of each problem, and show no secret.
"""

from .document import Document, Where, read
from .problems import close, describe_errors

__all__ = ["Document", "Where", "close", "describe_errors", "read"]
