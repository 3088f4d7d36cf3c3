"""A value of a file with its place: where a problem with it is reported."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from ...documents import Document, Where, describe_errors, dotted

_OBJECT = {"className", "ref"}
ModelT = TypeVar("ModelT", bound=BaseModel)


class Told(Exception):
    """A value cannot be used, and its problem is in the document already."""


@dataclass(frozen=True)
class Located:
    """A value of a document, which may be missing."""

    document: Document
    where: Where
    value: Any

    def at(self, *parts: str | int) -> Located:
        """Return the place inside this one. Its value is None if there is none."""
        value = self.value
        for part in parts:
            inside = isinstance(value, dict) and part in value
            inside = inside or (isinstance(value, list) and isinstance(part, int) and part < len(value))
            value = value[part] if inside else None
        return Located(self.document, (*self.where, *parts), value)

    def under(self, part: str) -> Located:
        """Return this place as a mapping whose one key ``part`` has the value that stands here."""
        size = len(self.where)
        both: list[dict[Where, Any]] = [self.document.lines, self.document.written]
        for known in both:
            inside = [where for where in known if where[:size] == self.where]
            for where in inside:
                known[(*self.where, part, *where[size:])] = known[where]
        return Located(self.document, self.where, {part: self.value})

    def items(self) -> list[Located]:
        """Return the places inside a list or a mapping."""
        parts = self.value if isinstance(self.value, dict) else range(len(self.value))
        return [self.at(part) for part in parts]

    @property
    def is_object(self) -> bool:
        """Whether an object stands here: its import path, or a mapping with ``className`` or ``ref``."""
        return isinstance(self.value, str) or (isinstance(self.value, dict) and bool(_OBJECT & set(self.value)))

    @property
    def found(self) -> str:
        """The value as the file has it, without secrets."""
        return self.document.quote(self.where)

    @property
    def named(self) -> str:
        """The file, the line and the place, for messages about another place."""
        return f"{dotted(self.where)} in {self.document.file}:{self.document.line(self.where)}"

    def tell(self, text: str) -> None:
        """Add a problem, unless this value has one."""
        if not self.document.wrong(self.where):
            self.document.add(self.where, text)

    def refuse(self, text: str) -> Told:
        """Add a problem; raise the result."""
        self.tell(text)
        return Told(text)

    def read(self, model: type[ModelT], name: str, value: Any = None) -> ModelT:
        """Return the mapping as a model; ``name`` in messages. Raises Told."""
        given = self.value if value is None else value
        settings, error = _validate(model, given)
        if error is not None:
            describe_errors(self.document, self.where, model, name, error)
        if settings is None:
            raise Told(name)
        return settings


def _validate(model: type[ModelT], value: Any) -> tuple[ModelT | None, ValidationError | None]:
    """Return the error instead of raising it: an exception that is raised while it is handled would keep the values of
    the file."""
    try:
        return model.model_validate(value), None
    except ValidationError as error:
        return None, error
