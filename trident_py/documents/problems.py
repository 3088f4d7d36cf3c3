"""Pydantic's validation errors in plain words: what was found, what exists, what is similar."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from typing import Any, get_args

from pydantic import BaseModel, ValidationError
from pydantic.fields import FieldInfo

from .document import Document, Where


def describe_errors(
    document: Document, where: Where, settings: type[BaseModel], type_name: str, error: ValidationError
) -> None:
    """Add pydantic's errors to the document; ``type_name`` is the name of the settings in messages."""
    for detail in error.errors(include_url=False, include_input=False):
        loc = detail["loc"]
        is_there = detail["type"] == "missing" or (*where, *loc) in document.lines
        if not is_there and loc and isinstance(loc[-1], str):
            loc = loc[:-1]  # the name of a type, of several that the value may have
        at = (*where, *loc)
        if not _already(document, at):
            document.add(at, _words(document, at, settings, type_name, {**detail, "loc": loc}))


def _already(document: Document, where: Where) -> bool:
    """Return whether the value, or one that contains it, already has a problem: further ones only follow from it."""
    places = [problem.where for problem in document.problems if len(problem.where) > document.free]
    return any(where[: len(place)] == place for place in places)


def _words(document: Document, at: Where, settings: type[BaseModel], type_name: str, detail: dict[str, Any]) -> str:
    kind, context = detail["type"], detail.get("ctx", {})
    if kind == "missing":
        required = [name for name, field in _keys_at(settings, detail["loc"][:-1]).items() if field.is_required()]
        return f"is missing; {type_name} needs: {', '.join(required)}"
    if kind == "extra_forbidden":
        keys = _keys_at(settings, detail["loc"][:-1])
        return f"{type_name} has no such key; it has: {', '.join(keys)}{close(str(at[-1]), keys)}"
    if kind == "literal_error":
        choices = [part.strip(" '") for part in context["expected"].replace(" or ", ", ").split(",")]
        written = document.written.get(at, "")
        meant = "" if "${" in written else close(written, choices)
        return f"found {document.quote(at)}; there are: {', '.join(choices)}{meant}"
    own = at[: len(at) - len(detail["loc"])]
    told = describe_wanted(kind, context) or detail["msg"].removeprefix("Value error, ")
    text = document.hide(told, words=True, where=own)
    return f"found {document.quote(at)}: {text[:1].lower()}{text[1:]}"


_WANTED = {
    "bool": "expected true or false",
    "int": "expected an integer",
    "float": "expected a number",
    "decimal": "expected a number",
    "string": "expected a string",
    "list": "expected a list",
    "tuple": "expected a list",
    "set": "expected a list",
    "dict": "expected a mapping",
    "mapping": "expected a mapping",
    "model": "expected a mapping",
    "none": "expected null",
}
_BOUNDS = {
    "greater_than_equal": ("ge", "expected at least {}"),
    "greater_than": ("gt", "expected more than {}"),
    "less_than_equal": ("le", "expected at most {}"),
    "less_than": ("lt", "expected less than {}"),
    "string_too_short": ("min_length", "expected a string of at least {} characters"),
    "string_too_long": ("max_length", "expected a string of at most {} characters"),
    "too_short": ("min_length", "expected at least {} items"),
    "too_long": ("max_length", "expected at most {} items"),
}


def describe_wanted(kind: str, context: dict[str, Any]) -> str | None:
    """Return what an error kind of pydantic asks for, in our words; None for the errors of our own validators."""
    if kind in _BOUNDS:
        name, words = _BOUNDS[kind]
        return words.format(context[name])
    if kind == "finite_number":
        return "expected a finite number"
    if kind == "string_pattern_mismatch":
        return f"it does not match {context['pattern']}"
    return _WANTED.get(kind.partition("_")[0]) if kind.endswith(("_type", "_parsing", "_from_float")) else None



def _keys_at(settings: type[BaseModel], inside: Iterable[Any]) -> dict[str, FieldInfo]:
    """Return the keys and fields of a mapping in the settings; none if there is no mapping."""
    fields = settings.model_fields
    for part in inside:
        fields = _keys_in(fields[part].annotation) if part in fields else {}
    return fields


def _keys_in(kind: Any) -> dict[str, FieldInfo]:
    """Return the fields of the model in a key's type, also in ``Model | None``."""
    models = (part for part in (kind, *get_args(kind)) if isinstance(part, type) and issubclass(part, BaseModel))
    return next((model.model_fields for model in models), {})


def close(word: str, words: Iterable[str]) -> str:
    """Return `. Did you mean ...?` if one of the words is similar, else an empty text."""
    by_lower = {candidate.lower(): candidate for candidate in words}
    matches = difflib.get_close_matches(word.lower(), by_lower, 1)
    return f". Did you mean {by_lower[matches[0]]}?" if matches else ""
