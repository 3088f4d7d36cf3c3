"""What pydantic objects to, in words: what was found, what exists, what is close."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from typing import Any

from pydantic import BaseModel, ValidationError

from .document import Document, Where


def tell(document: Document, where: Where, settings: type[BaseModel], type_name: str, error: ValidationError) -> None:
    """Adds pydantic's objections to a state's settings to the document."""
    for each in error.errors(include_url=False, include_input=False):
        at = (*where, *each["loc"])
        if not _already(document, at):
            document.add(at, _words(document, at, settings, type_name, dict(each)))


def _already(document: Document, where: Where) -> bool:
    """Whether the value, or one that it lies in, has a problem already: what follows from it is noise."""
    return any(where[: len(each.where)] == each.where for each in document.problems if len(each.where) > 2)


def _words(document: Document, at: Where, settings: type[BaseModel], type_name: str, each: dict[str, Any]) -> str:
    kind, context = each["type"], each.get("ctx", {})
    if kind == "missing":
        needed = [name for name, field in settings.model_fields.items() if field.is_required()]
        return f"is missing; {type_name} needs: {', '.join(needed)}"
    if kind == "extra_forbidden":
        known = keys_of(settings, each["loc"][:-1])
        return f"{type_name} has no such key; it has: {', '.join(known)}{close(str(at[-1]), known)}"
    if kind == "literal_error":
        known = [part.strip(" '") for part in context["expected"].replace(" or ", ", ").split(",")]
        return f"found {document.found(at)}; there are: {', '.join(known)}{_meant(document, at, known)}"
    text = document.hide(each["msg"].removeprefix("Value error, "), words=True)
    return f"found {document.found(at)}: {text[:1].lower()}{text[1:]}"


def keys_of(settings: type[BaseModel], inside: Iterable[Any]) -> list[str]:
    """The keys that exist at a place within the settings."""
    model: Any = settings
    for part in inside:
        model = model.model_fields[part].annotation
    return list(model.model_fields)


def _meant(document: Document, at: Where, known: list[str]) -> str:
    written = document.written.get(at, "")
    return "" if "${" in written else close(written, known)


def close(word: str, known: Iterable[str]) -> str:
    """`. Did you mean ...?` if one of the known words is close, else nothing."""
    by_lower = {each.lower(): each for each in known}
    found = difflib.get_close_matches(word.lower(), by_lower, 1)
    return f". Did you mean {by_lower[found[0]]}?" if found else ""
