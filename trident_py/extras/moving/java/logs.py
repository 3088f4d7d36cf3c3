"""Loggers of slf4j: messages with ``{}``."""

from __future__ import annotations

import logging
from typing import Any

from .objects import to_text

__all__ = ["log_debug", "log_error", "log_info", "log_trace", "log_warning"]


def _log(logger: logging.Logger, level: int, message: Any, *arguments: Any) -> None:
    text, left = to_text(message), list(arguments)
    if len(left) == 1 and isinstance(left[0], list):
        left = list(left[0])
    parts = text.split("{}")
    filled = parts[0]
    for part in parts[1:]:
        filled += (to_text(left.pop(0)) if left else "{}") + part
    error = left[0] if left and isinstance(left[0], BaseException) else None
    logger.log(level, "%s", filled, exc_info=error)


def log_trace(logger: logging.Logger, message: Any, *arguments: Any) -> None:
    _log(logger, 5, message, *arguments)


def log_debug(logger: logging.Logger, message: Any, *arguments: Any) -> None:
    _log(logger, logging.DEBUG, message, *arguments)


def log_info(logger: logging.Logger, message: Any, *arguments: Any) -> None:
    _log(logger, logging.INFO, message, *arguments)


def log_warning(logger: logging.Logger, message: Any, *arguments: Any) -> None:
    _log(logger, logging.WARNING, message, *arguments)


def log_error(logger: logging.Logger, message: Any, *arguments: Any) -> None:
    _log(logger, logging.ERROR, message, *arguments)
