"""`build`, which `trident run` calls, and the start of `main`."""

from __future__ import annotations

import re

from tree_sitter import Node

from .classes import body_scope, class_scope
from .declarations import Class, JavaMethod, World, has_main, read_declarators
from .layout import break_lines
from .scope import Scope
from .source import COMMENTS, JavaSource, Untranslatable, child, children, optional, text, walk
from .statements import indent, statement_lines

_TOPOLOGIES = ("StormTopology", "TridentTopology")
_CLUSTER = re.compile(r"LocalCluster|StormSubmitter|\.submitTopology|Thread\.sleep|Utils\.sleep|DRPCClient|\.build\(\)")


def build_lines(source: JavaSource, world: World, classes: list[Class], scope: Scope) -> list[list[str]]:
    """Return the functions and lines that stand at the end of a module."""
    blocks = []
    main = next((cls for cls in classes if has_main(cls)), None)
    builder = _builder(classes, main)
    if builder is not None:
        cls, method = builder
        if lines := _call_builder(cls, method, main, scope):
            blocks.append(lines)
    elif main is not None and (lines := _cut_from_main(main, scope)):
        blocks.append(lines)
    if main is not None:
        parameters = next(one for one in main.methods if one.name == "main").parameters
        called = scope.member_text(main, "main")
        blocks.append(['if __name__ == "__main__":', f"    {called}({'sys.argv[1:]' if parameters else ''})"])
    return blocks


def _builder(classes: list[Class], main: Class | None) -> tuple[Class, JavaMethod] | None:
    """Return the method that makes the topology; one of the class with `main`, and one named build..., come first."""
    found = [
        (cls, method)
        for cls in classes
        for method in cls.methods
        if method.static and method.returns.name in _TOPOLOGIES and method.body is not None
    ]
    found.sort(key=lambda pair: (pair[0] is not main, not pair[1].name.startswith("build"), len(pair[1].parameters)))
    return found[0] if found else None


def _call_builder(cls: Class, method: JavaMethod, main: Class | None, scope: Scope) -> list[str]:
    if cls.flat and method.python == "build":
        return []
    arguments = []
    call = _call_in_main(method, main)
    for index, parameter in enumerate(method.parameters):
        if parameter.type.name in ("LocalDRPC", "ILocalDRPC"):
            arguments.append("None")
        elif call is not None and (value := _plain(call, index)):
            arguments.append(value)
        elif call is None or index >= len(children(optional(call, "arguments"))):
            return []
        else:
            return _without_value(scope, method, call, parameter.name)
    return [
        "def build():",
        *indent(break_lines(f"return {scope.member_text(cls, method.python)}({', '.join(arguments)})")),
    ]


def _without_value(scope: Scope, method: JavaMethod, call: Node, name: str) -> list[str]:
    reason = f"{scope.source.place(call)}: give {method.name} its {name}, which main computes"
    return ["def build():", *indent(break_lines(f'raise NotImplementedError("{reason}")'))]


def _call_in_main(method: JavaMethod, main: Class | None) -> Node | None:
    body = next((one.body for one in main.methods if one.name == "main"), None) if main is not None else None
    for one in walk(body) if body is not None else ():
        if one.type == "method_invocation" and text(child(one, "name")) == method.name:
            return one
    return None


def _plain(call: Node, index: int) -> str:
    """Return an argument that is a literal."""
    arguments = children(optional(call, "arguments"))
    value = text(arguments[index]) if index < len(arguments) else ""
    literal = {"true": "True", "false": "False", "null": "None"}.get(value, value)
    return literal if re.fullmatch(r'True|False|None|-?\d+|"[^"\\]*"', literal) else ""


def _cut_from_main(main: Class, scope: Scope) -> list[str]:
    """Return `build` with those statements of `main` that define the topology."""
    method = next(one for one in main.methods if one.name == "main")
    statements = children(method.body)
    declared = _topology_name(statements)
    if declared is None:
        return []
    end = next((index for index, one in enumerate(statements) if _CLUSTER.search(text(one))), len(statements))
    needed = _slice(statements[:end], declared)
    inner = body_scope(main, class_scope(main, scope), instance=False)
    drpc = _drpc_parameter(statements[:end], needed)
    if drpc:
        drpc = inner.declare(drpc, scope.read_type(child(_declaration(statements, drpc), "type")))
    kept = scope.report.statements, list(scope.report.findings)
    lines = list(statement_lines(needed, inner))
    scope.report.statements, scope.report.findings[:] = kept
    head = f"def build({f'{drpc}=None' if drpc else ''}):"
    return [head, *indent(lines), f"    return {inner.locals[declared].python}"]


def _topology_name(statements: list[Node]) -> str | None:
    for one in statements:
        if one.type == "local_variable_declaration" and "new TridentTopology" in text(one):
            return read_declarators(one, {})[0].name
    return None


def _declaration(statements: list[Node], name: str) -> Node:
    for one in statements:
        if one.type == "local_variable_declaration" and read_declarators(one, {})[0].name == name:
            return one
    raise Untranslatable(statements[0], f"{name} is not declared in main")


def _drpc_parameter(statements: list[Node], needed: list[Node]) -> str:
    """Return the local that holds the LocalDRPC, which `build` takes as an argument."""
    for one in statements:
        if one.type == "local_variable_declaration" and "LocalDRPC" in text(child(one, "type")):
            if one in needed:
                needed.remove(one)
            return read_declarators(one, {})[0].name
    return ""


def _slice(statements: list[Node], name: str) -> list[Node]:
    """Return the statements that the topology depends on, in their order."""
    wanted, chosen, changed = {name}, [], True
    while changed:
        changed = False
        for one in statements:
            if one in chosen or one.type in COMMENTS:
                continue
            names = {text(part) for part in walk(one) if part.type == "identifier"}
            touched = _declares_or_changes(one)
            if touched & wanted:
                chosen.append(one)
                wanted |= names
                changed = True
    return [one for one in statements if one in chosen]


def _declares_or_changes(node: Node) -> set[str]:
    """Return the locals that a statement declares, assigns or calls a method of."""
    if node.type == "local_variable_declaration":
        names = {one.name for one in read_declarators(node, {})}
        return names | _receivers(node)
    return _receivers(node)


def _receivers(node: Node) -> set[str]:
    found = set()
    for one in walk(node):
        if one.type == "assignment_expression":
            found.add(text(child(one, "left")))
        elif one.type == "method_invocation":
            owner = optional(one, "object")
            while owner is not None and owner.type == "method_invocation":
                owner = optional(owner, "object")
            if owner is not None and owner.type == "identifier":
                found.add(text(owner))
    return found
