"""Secrets: the project's only list of secret names, and functions that hide secrets in texts and URLs."""

from __future__ import annotations

import re
from collections.abc import Iterable
from urllib.parse import unquote

HIDDEN = "***"
_NAMES = re.compile(
    r"pass|pwd|secret|token|cred|delegation|jaas|oauthbearer\.config|(api|private|access|account|ssl|sas)[._-]?key|\.key|\.pem",
    re.IGNORECASE,
)
# Also of a mistyped URL: without ://, or with something else for the @, so that the password stands for a port.
_OF_URL = re.compile(
    r"(?P<before>://[^:@]*:|\A(?!.*://)[^:@\s]*:)(?P<secret>.*)@"
    r"|(?P<host>://[^:@/\s\[]*:)(?!\$\{|\d*(?:[/?#,\s'\"}]|\Z))(?P<port>[^/?@\s]+)",
    re.DOTALL,
)
_OF_TEXT = re.compile(r"(?P<before>://[^:/@\s?#]*:)(?P<secret>\S*)@")
_PARAMETER = re.compile(r"(?P<before>[?&](?P<name>[^=&?\s]*)=)(?P<secret>[^&\s]*)")
_WORD = re.compile(r"(?<![\w.-])(?P<before>(?P<name>[\w.-]+)\s*=\s*)(?P<secret>'[^']*'|\"[^\"]*\"|[^\s,;&)\"']+)")


def is_secret(name: str) -> bool:
    """Return whether a setting, a parameter or a field of this name is secret, so must not appear in an error or a
    log."""
    return _NAMES.search(name) is not None


def redact_url(url: str) -> str:
    """Return a URL for messages and logs: its password and its secret parameters are hidden, however they are
    encoded."""
    return _PARAMETER.sub(_hide_parameter, _OF_URL.sub(_hide_user, url))


def hide(text: str, secrets: Iterable[str] = ()) -> str:
    """Return a text from elsewhere, such as a database driver's message, with its secrets hidden: passwords in URLs,
    named secrets (``password=...``) and these ``secrets``."""
    for secret in sorted(filter(None, secrets), key=len, reverse=True):
        text = text.replace(secret, HIDDEN)
    return _WORD.sub(_hide_word, _PARAMETER.sub(_hide_parameter, _OF_TEXT.sub(rf"\g<before>{HIDDEN}@", text)))


def secrets_in(url: str) -> list[str]:
    """Return the secrets of a URL: as they are written there, and decoded."""
    secrets = [match["secret"] or match["port"] for match in _OF_URL.finditer(url)]
    secrets += [match["secret"] for match in _OF_TEXT.finditer(url)]
    secrets += [match["secret"] for match in _PARAMETER.finditer(url) if _is_secret_parameter(match["name"])]
    return list(dict.fromkeys(form for secret in filter(None, secrets) for form in (secret, unquote(secret))))


def _is_secret_parameter(name: str) -> bool:
    """Return whether a URL parameter is secret. Unlike in fields and settings, any name with "key" is."""
    return is_secret(unquote(name)) or "key" in unquote(name).lower()


def _hide_user(match: re.Match[str]) -> str:
    return f"{match['before']}{HIDDEN}@" if match["host"] is None else f"{match['host']}{HIDDEN}"


def _hide_parameter(match: re.Match[str]) -> str:
    return f"{match['before']}{HIDDEN}" if _is_secret_parameter(match["name"]) else match[0]


def _hide_word(match: re.Match[str]) -> str:
    return f"{match['before']}{HIDDEN}" if is_secret(match["name"]) else match[0]
