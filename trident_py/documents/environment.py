"""Variables of the environment in text: ``${VAR}``, ``${VAR:-default}``, and ``$$`` for a dollar sign."""

from __future__ import annotations

import os
import re
from typing import NamedTuple

_PART = re.compile(r"\$\$|\$\{(?P<inside>[^}]*)\}|\$\{")
_INSIDE = re.compile(r"(?P<name>[A-Za-z_][A-Za-z0-9_]*)(?::-(?P<default>.*))?\Z", re.DOTALL)


class Unusable(Exception):
    """A text that cannot be expanded. The message says why, and holds no value."""


class Expanded(NamedTuple):
    """A text with its variables filled in, and the variables whose values it took."""

    text: str
    taken: dict[str, str]


def expanded(text: str) -> Expanded:
    """Fills in the variables. Raises Unusable: one is not set and has no default, or the form is unknown.

    As in a shell, ``${VAR:-default}`` takes the default also for a variable that is empty.
    """
    taken: dict[str, str] = {}

    def fill(part: re.Match[str]) -> str:
        return "$" if part[0] == "$$" else _value(part, taken)

    return Expanded(_PART.sub(fill, text), taken)


def _value(part: re.Match[str], taken: dict[str, str]) -> str:
    inside = _INSIDE.match(part["inside"] or "")
    if inside is None or "${" in (inside["default"] or ""):
        raise Unusable("a variable is ${NAME} or ${NAME:-default}, without another in it; a dollar sign alone is $$")
    name, default = inside["name"], inside["default"]
    value = os.environ.get(name)
    if value is None and default is None:
        raise Unusable(
            f"the environment variable {name} is not set; set it, or give it a default: ${{{name}:-default}}"
        )
    if default is not None and not value:
        return str(default)
    taken[name] = str(value)
    return str(value)
