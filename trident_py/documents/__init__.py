"""Settings in YAML: values with their line numbers, environment variables, and problems in plain words."""

from .document import Document, Where, format_path, open_to_variables, read, stop
from .problems import close, describe_errors

__all__ = ["Document", "Where", "close", "describe_errors", "format_path", "open_to_variables", "read", "stop"]
