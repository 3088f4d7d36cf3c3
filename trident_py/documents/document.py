"""A YAML file as plain values, with line numbers, filled-in variables, and the secrets to hide."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from ..errors import DefinitionError
from ..model.secrets import HIDDEN, is_secret, redact_url, secrets_in

MOST_VALUES, MOST_LEVELS = 100_000, 100
_VARIABLE = {"type": "string", "pattern": r"\$\{"}


def open_to_variables(definition: dict[str, Any]) -> dict[str, Any]:
    """Allow a variable of the environment where another type than text is expected."""
    properties = {name: _or_variable(value) for name, value in definition.get("properties", {}).items()}
    return definition | ({"properties": properties} if properties else {})


def _or_variable(value: dict[str, Any]) -> dict[str, Any]:
    if "$ref" in value or any(choice.get("type") == "string" for choice in value.get("anyOf", [])):
        return value
    notes = {key: value[key] for key in ("title", "description", "default") if key in value}
    rest = {key: part for key, part in value.items() if key not in notes}
    if rest.get("type") in ("string", "array", "object") and "enum" not in rest:
        return value
    return notes | {"anyOf": [rest, _VARIABLE]}


_PART = re.compile(r"\$\$|\$\{(?P<inside>[^}]*)\}|\$\{")
_INSIDE = re.compile(r"(?P<name>[A-Za-z_][A-Za-z0-9_]*)(?::-(?P<default>.*))?\Z", re.DOTALL)


class Unusable(Exception):
    """A text whose variables cannot be filled in. The message says why, and contains no value."""


def expand(text: str) -> tuple[str, dict[str, str]]:
    """Fill in the variables. Returns the text, and the values that it contains now, by variable.

    Raises Unusable if a variable is not set and has no default, or has an unknown form. As in a shell,
    ``${VAR:-default}`` uses the default also if the variable is empty.
    """
    taken: dict[str, str] = {}

    def fill(part: re.Match[str]) -> str:
        return "$" if part[0] == "$$" else _value(part, taken)

    return _PART.sub(fill, text), taken


def _value(part: re.Match[str], taken: dict[str, str]) -> str:
    inside = _INSIDE.match(part["inside"] or "")
    if inside is None or "${" in (inside["default"] or ""):
        raise Unusable("write a variable as ${NAME} or ${NAME:-default}, without another inside; a dollar sign as $$")
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


Where = tuple[str | int, ...]
_OTHER_BASE = re.compile(r"[-+]?0[0-7_]+|[-+]?[0-9][0-9_]*(:[0-5]?[0-9])+")
_MAP, _SEQ = (f"tag:yaml.org,2002:{name}" for name in ("map", "seq"))


class Problem(NamedTuple):
    """A problem in the file: its line, the value's place, and a description."""

    line: int
    where: Where
    text: str


@dataclass
class Document:
    """The values of a file; for each its line and its text in the file.

    ``free``: how many leading parts of a place are names that the user chose. They do not mark a value as a secret.
    ``secrets``: by the place of a value, its parts that no message may show, with what stands for each.
    """

    file: str
    free: int = 0
    data: Any = None
    lines: dict[Where, int] = field(default_factory=dict)
    written: dict[Where, str] = field(default_factory=dict)
    secrets: dict[Where, dict[str, str]] = field(default_factory=dict, repr=False)
    problems: list[Problem] = field(default_factory=list)

    def line(self, where: Where) -> int:
        """Return the line of a value, or of the nearest value that would contain it."""
        while where and where not in self.lines:
            where = where[:-1]
        return self.lines.get(where, 1)

    def add(self, where: Where, text: str, line: int | None = None) -> None:
        self.problems.append(Problem(line or self.line(where), where, text))

    def quote(self, where: Where) -> str:
        """Return the file's own text at this place: variables by name, passwords hidden."""
        if where[-1:] == (0,) and where[:-1] in self.written:
            where = where[:-1]  # one text, read as a list of one
        if where not in self.written:
            items = [at for at in self.written if at[:-1] == where and isinstance(at[-1], int)]
            return f"[{', '.join(map(self.quote, items))}]" if items else "a list or mapping"
        if any(isinstance(part, str) and is_secret(part) for part in where[self.free :]):
            return HIDDEN
        return repr(redact_url(self.written[where]))

    def hide(self, text: str, words: bool = False, where: Where = ()) -> str:
        """Return another program's text without values of the environment and without passwords.

        ``words``: also hides single words of those values, which an error message may quote alone. ``where``: the place
        of all values that the program has got; secrets from elsewhere stay, as they may be parts of other words.
        """
        known = self._secrets_at(where)
        secrets = dict(known)
        for secret, name in known.items() if words else ():
            secrets |= {word: name for word in re.findall(r"\w{3,}", secret) if word not in secrets}
        for secret in sorted(secrets, key=len, reverse=True):
            pattern = rf"(?<!\w){re.escape(secret)}(?!\w)" if len(secret) < 4 else re.escape(secret)
            text = re.sub(pattern, secrets[secret].replace("\\", r"\\"), text)
        return text

    def _secrets_at(self, where: Where) -> dict[str, str]:
        """Return the secrets of the values at this place and inside it; a variable's name goes before stars."""
        secrets: dict[str, str] = {}
        for place, found in self.secrets.items():
            if place[: len(where)] == where:
                secrets |= {form: told for form, told in found.items() if told != HIDDEN or form not in secrets}
        return secrets

    def stop(self) -> None:
        """Raise DefinitionError with all problems, in the order of their lines, if there are any."""
        stop([self])

    def wrong(self, where: Where) -> bool:
        """Return whether this value, or one inside it, has a problem."""
        return any(problem.where[: len(where)] == where for problem in self.problems)


def stop(documents: Sequence[Document]) -> None:
    """Raise one DefinitionError with the problems of all these files, if there are any."""
    lines = [
        f"{document.file}:{line}: {f'{format_path(where)}: ' if where else ''}{text}"
        for document in documents
        for line, where, text in sorted(document.problems)
    ]
    if len(lines) > 1:
        files = " and ".join(document.file for document in documents if document.problems)
        lines.insert(0, f"{len(lines)} errors in {files}")
    if lines:
        raise DefinitionError("\n  ".join(lines))


def format_path(where: Where) -> str:
    """Return the place as a person writes it: ``states.rows.columns[1]``."""
    return "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in where).lstrip(".")


def read(path: str | Path, purpose: str, begins: str, free: int = 0) -> Document:
    """Return the values of a file. Raises DefinitionError if it cannot be read or is not YAML.

    The errors state the file's ``purpose`` and how it ``begins``.
    """
    document = Document(str(path), free)
    node = _compose(document, _text(path, purpose))
    if node is None:
        document.add((), f"the file is empty; it begins with {begins}")
        document.stop()
    loader = yaml.SafeLoader("")
    try:
        _find_duplicates(document, node, (), set())
        document.data = _Values(document, loader).of(node, ())
    except _TooLarge as error:
        document.problems = [Problem(1, (), str(error))]
        document.stop()
    finally:
        loader.dispose()
    return document


def _text(path: str | Path, purpose: str) -> str:
    try:
        return Path(path).read_text(encoding="utf-8-sig")
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) else "its name has a NUL byte"
        why = "it is not UTF-8 text" if isinstance(error, UnicodeDecodeError) else why
        raise DefinitionError(f"{path}: cannot be read: {why}. It is the YAML file {purpose}") from None


_TOO_DEEP = f"the file is nested more than {MOST_LEVELS} levels deep; write it flatter"
_TOO_MANY = f"the file has more than {MOST_VALUES:,} values, an alias counted each time; keep data in a file of its own"


def _compose(document: Document, text: str) -> Any:
    try:
        return yaml.compose(text, Loader=yaml.SafeLoader)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        cause = " ".join(part for part in (error.context, error.problem) if part)
        line = 1 if mark is None else mark.line + 1
        inside = "${" in "".join(text.splitlines()[line - 1 : line])
        hint = '. Inside { } and [ ], put a variable in quotes: "${VAR}"' if inside else ""
        document.add((), f"this is not YAML: {cause}{hint}", line)
    except yaml.reader.ReaderError as error:  # has a position instead of a line
        before = text[: error.position] if isinstance(error.position, int) else ""
        document.add((), f"this is not YAML: {error.reason}", before.count("\n") + 1)
    except ValueError as error:  # an escaped character beyond Unicode
        document.add((), f"this is not YAML: {error}")
    except RecursionError:
        document.add((), _TOO_DEEP)
    document.stop()
    return None


def _find_duplicates(document: Document, node: Any, where: Where, visited: set[int]) -> None:
    """Report repeated keys. Runs before the values are constructed, where the last of two equal keys wins."""
    if id(node) in visited or isinstance(node, yaml.ScalarNode):
        return
    visited.add(id(node))
    if isinstance(node, yaml.SequenceNode):
        for index, item in enumerate(node.value):
            _find_duplicates(document, item, (*where, index), visited)
        return
    first: dict[str, int] = {}
    for key, value in node.value:
        name, line = str(key.value), key.start_mark.line + 1
        if name in first:
            document.add((*where, name), f"this name is repeated; it is in line {first[name]} too", line)
        first.setdefault(name, line)
        _find_duplicates(document, value, (*where, name), visited)


class _TooLarge(Exception):
    """A file with more values or levels than anyone writes, such as one of aliases of aliases."""


class _Values:
    """Turns YAML nodes into plain values."""

    def __init__(self, document: Document, loader: yaml.SafeLoader) -> None:
        self.document = document
        self.loader = loader
        self.above: list[int] = []
        self.count = 0

    def of(self, node: Any, where: Where) -> Any:
        self.count += 1
        if self.count > MOST_VALUES or len(self.above) > MOST_LEVELS:
            raise _TooLarge(_TOO_MANY if self.count > MOST_VALUES else _TOO_DEEP)
        self.document.lines.setdefault(where, node.start_mark.line + 1)
        if isinstance(node, yaml.ScalarNode):
            return self.scalar(node, where)
        if id(node) in self.above or node.tag not in (_MAP, _SEQ):
            problem = "contains itself" if id(node) in self.above else f"has the unknown tag {node.tag}"
            self.document.add(where, f"this {problem}")
            return None
        self.above.append(id(node))
        try:
            if isinstance(node, yaml.SequenceNode):
                return [self.of(item, (*where, index)) for index, item in enumerate(node.value)]
            return dict(self.pairs(node, where))
        finally:
            self.above.pop()

    def pairs(self, node: yaml.MappingNode, where: Where) -> Iterator[tuple[str, Any]]:
        try:
            self.loader.flatten_mapping(node)  # `<<: *shared`
        except yaml.constructor.ConstructorError as error:
            self.document.add(where, str(error.problem))
            return
        last = {str(key.value): (key, value) for key, value in node.value}  # after merged keys
        for name, (key, value) in last.items():
            if not isinstance(key, yaml.ScalarNode) or key.tag != "tag:yaml.org,2002:str":
                text = key.value if isinstance(key, yaml.ScalarNode) else "a list or mapping"
                self.document.add(where, f"a name is a string, found {text}; quote it", key.start_mark.line + 1)
                continue
            self.document.lines[(*where, name)] = key.start_mark.line + 1
            yield name, self.of(value, (*where, name))

    def scalar(self, node: yaml.ScalarNode, where: Where) -> Any:
        self.document.written[where] = node.value
        try:
            value = self.loader.construct_object(node)
            if isinstance(value, int) and _OTHER_BASE.fullmatch(node.value):
                raise Unusable("YAML reads this as a number in base 8 or 60; put it in quotes, or write it in base 10")
            return self.fill(value, where) if isinstance(value, str) else value
        except Unusable as error:
            self.document.add(where, str(error))
        except yaml.constructor.ConstructorError as error:
            self.document.add(where, f"this value {error.problem or error.context}")
        except (ValueError, LookupError, AttributeError):  # what PyYAML's constructors raise for a text of another kind
            kind = node.tag.rpartition(":")[2]
            self.document.add(where, f"found {self.document.quote(where)}, which is not a valid {kind}")
        return None

    def fill(self, text: str, where: Where) -> str:
        value, taken = expand(text)
        secrets = dict.fromkeys(secrets_in(value), HIDDEN)
        self.document.secrets[where] = secrets | {secret: f"${{{name}}}" for name, secret in taken.items() if secret}
        return value
