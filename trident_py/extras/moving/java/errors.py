"""Java's exceptions that Python has no own class for. Each derives from the one that a port by hand would catch."""

from __future__ import annotations

from ....errors import FailedException, TridentError

__all__ = [
    "DateTimeParseError", "IllegalStateError", "JSONError", "JsonProcessingError", "NoSuchElementError",
    "NumberFormatError", "ParseError", "RuntimeErrors",
]  # fmt: skip

RuntimeErrors = (
    RuntimeError, ArithmeticError, LookupError, TypeError, ValueError, AttributeError, FailedException, TridentError,
)  # fmt: skip
"""What ``catch (RuntimeException e)`` catches."""


class NumberFormatError(ValueError): ...


class DateTimeParseError(ValueError): ...


class ParseError(Exception):
    """A text that is no date or no JSON. It is no ValueError, since Java's is no RuntimeException."""


class IllegalStateError(RuntimeError): ...


class JSONError(RuntimeError): ...


class NoSuchElementError(LookupError): ...


class JsonProcessingError(OSError): ...
