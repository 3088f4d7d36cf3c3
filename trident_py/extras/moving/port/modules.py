"""A module for each file: its classes in order, its functions, `build`, and what `main` did."""

from __future__ import annotations

import ast
import builtins
import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from . import anonymous, closures, loops
from .build import build_lines
from .classes import class_lines, class_scope, method_lines
from .declarations import Class, JavaField, World, collect, find_instantiated
from .initializers import static_lines
from .layout import WIDTH
from .names import RUNTIME, STANDARD, python_name, runtime_names, storm_names
from .overloads import name_all
from .report import PortReport
from .scope import Scope, hoisting
from .source import JavaSource, Untranslatable, read_source
from .statements import refuse

HANDLERS_OF = (anonymous, closures, loops)
"""Modules that hold handlers of nodes."""
_MORE = {"dataclass": "dataclasses", "Decimal": "decimal", "uuid": "", "datetime": ""}


@dataclass(eq=False)
class Module:
    """The Python of one file."""

    source: JavaSource
    text: str
    report: PortReport


def translate_files(paths: Iterable[Path]) -> list[Module]:
    """Translate files that belong together. Raises DefinitionError for one that is not Java."""
    world = collect([read_source(path) for path in paths])
    name_all(world)
    made = find_instantiated(world)
    for source in world.sources:
        _flatten([cls for cls in world.all() if cls.source is source and _is_flat(cls, made)], source)
    return [_translate(source, world) for source in world.sources]


def _flatten(classes: list[Class], source: JavaSource) -> None:
    """Mark the classes whose members stand in the module: those of the class of the file, and others beside them."""
    taken = source.members
    for cls in sorted(classes, key=lambda one: one.name != source.path.stem):
        names = {*cls.fields, *(method.python for method in cls.methods)}
        cls.flat = taken.isdisjoint(names)
        taken.update(names if cls.flat else ())


def _is_flat(cls: Class, made: set[str]) -> bool:
    """Tell whether a class is only a bag of static members: they stand in the module then."""
    members = any(not one.static for one in cls.fields.values()) or any(not one.static for one in cls.methods)
    return cls.outer is None and cls.kind == "class" and not members and not cls.parents and cls.name not in made


@dataclass(eq=False)
class _Parts:
    """What a module consists of, in this order."""

    early: list[str] = field(default_factory=list)
    classes: list[list[str]] = field(default_factory=list)
    late: list[str] = field(default_factory=list)
    functions: list[list[str]] = field(default_factory=list)


def _translate(source: JavaSource, world: World) -> Module:
    report = PortReport(source.name, f"{source.module}.py")
    parts = _Parts()
    own = [cls for cls in world.all() if cls.source is source]
    for cls in _in_order(own, world):
        scope = Scope(world, source, cls, report)
        if cls.flat:
            _add_flat(cls, scope, parts)
        else:
            _add_class(cls, scope, parts)
    parts.functions += build_lines(source, world, own, Scope(world, source, None, report))
    body = _join(parts)
    header = f'"""{source.path.stem}, translated from {source.name}."""'
    written = "\n".join([header, "", *import_lines(body, source, world), *body]) + "\n"
    return Module(source, _squeeze(written), report)


def _in_order(classes: list[Class], world: World) -> list[Class]:
    """Return the classes so that each one follows its parents; inner ones come before the class around them."""
    found: list[Class] = []

    def visit(cls: Class) -> None:
        for parent in list(world.lineage(cls))[1:]:
            if parent in classes and parent not in found:
                visit(parent)
        for inner in cls.inner.values():
            if inner not in found and cls not in list(world.lineage(inner))[1:]:
                visit(inner)
        if cls not in found:
            found.append(cls)

    for cls in classes:
        visit(cls)
    return found


def _add_class(cls: Class, scope: Scope, parts: _Parts) -> None:
    around = Scope(scope.world, scope.source, cls.outer, scope.report)
    with hoisting(around) as before:
        try:
            lines, late = class_lines(cls, around)
        except Untranslatable as error:
            scope.report.statements += 1
            lines, late = _refuse_class(cls, error, around), []
    parts.classes.append([*before, *lines])
    parts.late += late


def _refuse_class(cls: Class, error: Untranslatable, scope: Scope) -> list[str]:
    *java, reason = refuse(cls.node, error, scope)
    while java and not java[-1].startswith("#"):
        reason = f"{java.pop()}\n{reason}"
    return [*java, f"def {cls.python}(*arguments):", *(f"    {line}" for line in reason.split("\n"))]


def _add_flat(cls: Class, scope: Scope, parts: _Parts) -> None:
    """Put the members of a class into the module."""
    inner = class_scope(cls, scope)
    early, late = static_lines(cls, inner, _name_in_module, _name_in_module)
    parts.early += early
    parts.late += late
    for method in cls.methods:
        parts.functions.append(method_lines(method, cls, inner, function=True))


def _name_in_module(field: JavaField) -> str:
    return python_name(field.name)


def _join(parts: _Parts) -> list[str]:
    body = list(parts.early)
    for block in parts.classes:
        body += ["", "", *block]
    if parts.late:
        body += ["", "", *parts.late]
    for block in parts.functions:
        body += ["", "", *block]
    return body


def _squeeze(written: str) -> str:
    """Allow two empty lines at most."""
    written = re.sub(r"\n{4,}", "\n\n\n", written)
    return "\n".join(line.rstrip() for line in written.split("\n")).rstrip("\n") + "\n"


def import_lines(body: list[str], source: JavaSource, world: World) -> list[str]:
    """Return the imports that the lines need."""
    tree = ast.parse("\n".join(body))
    names = [node for node in ast.walk(tree) if isinstance(node, ast.Name)]
    bound = {node.id for node in names if isinstance(node.ctx, ast.Store)} | set(dir(builtins))
    bound |= {node.arg for node in ast.walk(tree) if isinstance(node, ast.arg)}
    bound |= {node.name for node in tree.body if isinstance(node, ast.ClassDef | ast.FunctionDef)}
    found: dict[str, set[str]] = {}
    for name in {node.id for node in names if isinstance(node.ctx, ast.Load)} - bound:
        module = _module_of(name, source, world)
        if module is not None:
            found.setdefault(module, set()).add(name)
    plain = [f"import {name}" for name in sorted(found.pop("", set()))]
    first = [module for module in found if module in STANDARD]
    rest = sorted(set(found) - set(first), key=lambda module: (not module.startswith(("trident_py", "states")), module))
    lines = plain + [line for module in first for line in _from(module, found[module])]
    return [*lines, *([""] if lines else []), *(line for module in rest for line in _from(module, found[module]))]


def _from(module: str, names: set[str]) -> list[str]:
    line = f"from {module} import {', '.join(sorted(names))}"
    if len(line) <= WIDTH:
        return [line]
    return [f"from {module} import (", *(f"    {name}," for name in sorted(names)), ")"]


def _module_of(name: str, source: JavaSource, world: World) -> str | None:
    named = [one for one in world.all() if one.python == name and not one.flat]
    cls = next((one for one in named if one.name != name or not one.is_hidden_from(source)), None)
    if cls is not None:
        return None if cls.source is source else cls.source.module
    if any(one.module == name for one in world.sources):
        return ""
    if name in _MORE:
        return _MORE[name]
    if name in STANDARD:
        return ""
    if name in runtime_names():
        return RUNTIME
    return storm_names().get(name)
