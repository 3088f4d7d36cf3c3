"""Pydantic's validation errors in plain words: what was found, what exists, what is similar."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from typing import Any, get_args

from pydantic import BaseModel, ValidationError
from pydantic.fields import FieldInfo

from .document import Document, Where


def tell(document: Document, where: Where, settings: type[BaseModel], type_name: str, error: ValidationError) -> None:
    """Adds pydantic's errors to the document; ``type_name`` is the name of the settings in messages."""
    for each in error.errors(include_url=False, include_input=False):
        at = (*where, *each["loc"])
        if not _already(document, at):
            document.add(at, _words(document, at, settings, type_name, dict(each)))


def _already(document: Document, where: Where) -> bool:
    """Whether the value, or one that contains it, already has a problem: further ones only follow from it."""
    return any(where[: len(each.where)] == each.where for each in document.problems if len(each.where) > document.free)


def _words(document: Document, at: Where, settings: type[BaseModel], type_name: str, each: dict[str, Any]) -> str:
    kind, context = each["type"], each.get("ctx", {})
    if kind == "missing":
        needed = [name for name, field in _keys_at(settings, each["loc"][:-1]).items() if field.is_required()]
        return f"is missing; {type_name} needs: {', '.join(needed)}"
    if kind == "extra_forbidden":
        known = keys_of(settings, each["loc"][:-1])
        return f"{type_name} has no such key; it has: {', '.join(known)}{close(str(at[-1]), known)}"
    if kind == "literal_error":
        known = [part.strip(" '") for part in context["expected"].replace(" or ", ", ").split(",")]
        return f"found {document.found(at)}; there are: {', '.join(known)}{_meant(document, at, known)}"
    text = document.hide(wanted(kind, context) or each["msg"].removeprefix("Value error, "), words=True)
    return f"found {document.found(at)}: {text[:1].lower()}{text[1:]}"


_WANTED = {
    "bool": "true or false is wanted",
    "int": "a whole number is wanted",
    "float": "a number is wanted",
    "decimal": "a number is wanted",
    "string": "a text is wanted",
    "list": "a list is wanted",
    "tuple": "a list is wanted",
    "set": "a list is wanted",
    "dict": "a mapping is wanted",
    "mapping": "a mapping is wanted",
    "model": "a mapping is wanted",
    "none": "nothing is wanted",
}
_BOUNDS = {
    "greater_than_equal": ("ge", "at least {} is wanted"),
    "greater_than": ("gt", "more than {} is wanted"),
    "less_than_equal": ("le", "at most {} is wanted"),
    "less_than": ("lt", "less than {} is wanted"),
    "string_too_short": ("min_length", "a text of at least {} characters is wanted"),
    "string_too_long": ("max_length", "a text of at most {} characters is wanted"),
    "too_short": ("min_length", "at least {} of them are wanted"),
    "too_long": ("max_length", "at most {} of them are wanted"),
}


def wanted(kind: str, context: dict[str, Any]) -> str | None:
    """Returns what an error kind of pydantic asks for, in our words; None for the errors of our own validators."""
    if kind in _BOUNDS:
        name, words = _BOUNDS[kind]
        return words.format(context[name])
    if kind == "finite_number":
        return "a finite number is wanted"
    if kind == "string_pattern_mismatch":
        return f"it does not match {context['pattern']}"
    return _WANTED.get(kind.partition("_")[0]) if kind.endswith(("_type", "_parsing", "_from_float")) else None


def keys_of(settings: type[BaseModel], inside: Iterable[Any]) -> list[str]:
    """Returns the keys that exist at a place in the settings."""
    return list(_keys_at(settings, inside))


def _keys_at(settings: type[BaseModel], inside: Iterable[Any]) -> dict[str, FieldInfo]:
    """Returns the keys and fields of a mapping in the settings; none if there is no mapping."""
    fields = settings.model_fields
    for part in inside:
        fields = _keys_in(fields[part].annotation) if part in fields else {}
    return fields


def _keys_in(kind: Any) -> dict[str, FieldInfo]:
    """Returns the fields of the model in a key's type, also in ``Model | None``."""
    models = (each for each in (kind, *get_args(kind)) if isinstance(each, type) and issubclass(each, BaseModel))
    return next((model.model_fields for model in models), {})


def _meant(document: Document, at: Where, known: list[str]) -> str:
    written = document.written.get(at, "")
    return "" if "${" in written else close(written, known)


def close(word: str, known: Iterable[str]) -> str:
    """Returns `. Did you mean ...?` if one of the known words is similar, else an empty text."""
    by_lower = {each.lower(): each for each in known}
    found = difflib.get_close_matches(word.lower(), by_lower, 1)
    return f". Did you mean {by_lower[found[0]]}?" if found else ""
