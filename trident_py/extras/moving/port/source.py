"""Java sources: the syntax tree, its texts and its comments."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

import tree_sitter_java
from tree_sitter import Language, Node, Parser

from ....errors import DefinitionError
from .names import NESTED, storm_names

COMMENTS = ("line_comment", "block_comment")
AMBIGUOUS = {
    "Function": "JFunction", "Consumer": "JConsumer", "Stream": "JStream", "JSONObject": "OrgJSONObject",
    "JSONArray": "OrgJSONArray", "Duration": "JDuration", "Collector": "JCollector", "Optional": "Optional",
    "Options": "RedisOptions",
    "OptionalInt": "Optional", "OptionalDouble": "Optional", "OptionalLong": "Optional", "Counter": "Counter",
}  # fmt: skip
PACKAGES = {
    "JFunction": ("java.util.function",), "JConsumer": ("java.util.function",), "JStream": ("java.util.stream",),
    "OrgJSONObject": ("org.json",), "OrgJSONArray": ("org.json",), "JDuration": ("java.time",),
    "JCollector": ("java.util.stream",), "Optional": ("java.util",), "Counter": ("com.codahale.metrics",),
    "RedisOptions": ("org.apache.storm.redis.trident.state",),
}  # fmt: skip
STORM_PACKAGES = ("org.apache.storm.", "storm.trident.", "backtype.storm.", "storm.kafka.", "com.codahale.metrics.")
_JAVA = Language(tree_sitter_java.language())


class Untranslatable(Exception):
    """A piece of Java that has no certain counterpart. ``section``: the page and section of the guide for it."""

    def __init__(self, node: Node, reason: str, section: str = "") -> None:
        super().__init__(reason)
        self.node, self.reason, self.section = node, reason, section


@dataclass(eq=False)
class JavaSource:
    """A parsed file. ``imports``: what the simple name of an imported class means; ``wildcards``: packages and
    classes; ``given``: the full names of the classes of all files; ``members``: of classes that became the module."""

    path: Path
    root: Node
    imports: dict[str, str] = field(default_factory=dict)
    wildcards: list[str] = field(default_factory=list)
    statics: dict[str, str] = field(default_factory=dict)
    package: str = ""

    given: set[str] = field(default_factory=set)
    members: set[str] = field(default_factory=set)

    @cached_property
    def aliases(self) -> dict[str, str]:
        """The names that mean something else than Storm's class of that name, by what is imported."""
        found = {
            name: alias
            for name, alias in AMBIGUOUS.items()
            if any(self._imports(f"{package}.{name}") for package in PACKAGES[alias])
        }
        for name, full in self.imports.items():
            given = any(f"{full}.".startswith(f"{one}.") for one in self.given)
            foreign = name in storm_names() and not full.startswith(STORM_PACKAGES)
            if foreign and name not in found and not given:
                found[name] = full
            if full.startswith((*STORM_PACKAGES, "java.")) and full.split(".")[-2][:1].isupper():
                nested = ".".join(full.split(".")[-2:])
                found[name] = NESTED.get(nested, nested)
        return found

    def _imports(self, full: str) -> bool:
        name = full.rpartition(".")[2]
        return self.imports.get(name) == full or (
            name not in self.imports and full.rpartition(".")[0] in self.wildcards
        )

    def imports_storms(self, name: str) -> bool:
        """Tell whether a name of Storm's may come from all the classes of a package."""
        return name in storm_names() and any(f"{one}.".startswith(STORM_PACKAGES) for one in self.wildcards)

    @property
    def name(self) -> str:
        return self.path.name

    @property
    def module(self) -> str:
        """The name of the Python module: ``WordCount.java`` becomes ``word_count``."""
        words = re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", self.path.stem)
        return re.sub(r"\W", "_", words).lower()

    def place(self, node: Node) -> str:
        return f"{self.name}:{node.start_point[0] + 1}"


def read_source(path: Path) -> JavaSource:
    """Parse a file. Raises DefinitionError if it is not Java."""
    root = parse(path.read_bytes())
    source = JavaSource(path, root)
    if error := _first_error(root):
        raise DefinitionError(f"{source.place(error)} is not Java: {text(error)[:60]!r}; does the file compile?")
    for node in root.named_children:
        if node.type == "import_declaration":
            _add_import(source, node)
        elif node.type == "package_declaration":
            source.package = f"{text(children(node)[-1])}."
    return source


def _first_error(node: Node) -> Node | None:
    if node.is_error or node.is_missing:
        return node
    return next((found for child in node.children if child.has_error and (found := _first_error(child))), None)


def _add_import(source: JavaSource, node: Node) -> None:
    name = text(next(child for child in node.named_children if child.type in ("scoped_identifier", "identifier")))
    static = any(child.type == "static" for child in node.children)
    if any(child.type == "asterisk" for child in node.named_children):
        source.wildcards.append(name)
    elif static:
        owner, _, member = name.rpartition(".")
        source.statics[member] = owner
    else:
        source.imports[name.rpartition(".")[2]] = name


def parse(data: bytes) -> Node:
    """Return the root of the syntax tree."""
    return Parser(_JAVA).parse(data).root_node


def text(node: Node | None) -> str:
    return node.text.decode() if node is not None and node.text is not None else ""


def child(node: Node, name: str) -> Node:
    """Return the child in the field ``name``, which the grammar requires."""
    found = node.child_by_field_name(name)
    if found is None:
        raise Untranslatable(node, f"{node.type} without {name}")
    return found


def optional(node: Node, name: str) -> Node | None:
    return node.child_by_field_name(name)


def children(node: Node | None) -> list[Node]:
    """Return the named children without comments."""
    return [] if node is None else [one for one in node.named_children if one.type not in COMMENTS]


def get_changed(node: Node) -> Node | None:
    """Return the target of an assignment or of a counting operator."""
    if node.type == "assignment_expression":
        return child(node, "left")
    return children(node)[0] if node.type == "update_expression" else None


def modifiers(node: Node) -> set[str]:
    """Return the modifiers of a declaration, without annotations."""
    return {one.type for part in node.children if part.type == "modifiers" for one in part.children}


def walk(node: Node) -> Iterator[Node]:
    yield node
    for one in node.children:
        yield from walk(one)


def comment_lines(node: Node) -> list[str]:
    """Return the text of a comment, without its marks."""
    raw = text(node)
    if raw.startswith("//"):
        return [raw.lstrip("/").strip()]
    lines = [re.sub(r"^\s*\*+/?|^\s*/\*+", "", line).rstrip("*/ ").strip() for line in raw.splitlines()]
    lines = [re.sub(r"\{@\w+ ([^}]*)\}", r"\1", re.sub(r"</?[a-z]+/?>", "", line)) for line in lines]
    return [line for line in lines if line]


def is_beside(comment: Node, statement: Node | None) -> bool:
    """Return whether a comment ends the only line of a statement."""
    if statement is None or comment.type not in COMMENTS or statement.type in (*COMMENTS, ";"):
        return False
    return comment.start_point[0] == statement.end_point[0] == statement.start_point[0]
