"""What a command runs: the topology of a topology file, or the one that `MODULE:build` returns."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from ..config import Config
from ..entry_points import find, load
from ..model.secrets import hide
from ..topology import Topology, TridentTopology
from ..topology.user_modules import NotFound, find_module, functions_of, naming_the_module

target_argument = click.argument("target", metavar="[FILE | MODULE:build]", required=False)
"""Without it, a command takes the trident.yml of this folder or of the nearest one above it."""

name_option = click.option(
    "--name", metavar="NAME", help="Name of the topology; default: the one in the file, or the module's."
)
settings_option = click.option(
    "--set", "settings", metavar="KEY=VALUE", multiple=True, help="Set a configuration key to JSON or text."
)
traceback_option = click.option("--traceback", "full", is_flag=True, help="Show the traceback of your own code.")
Decorator = Callable[[Callable[..., Any]], Callable[..., Any]]


def add_options(*options: Decorator) -> Decorator:
    """Return what adds these options to a click command, which shows them in this order."""

    def add(command: Callable[..., Any]) -> Callable[..., Any]:
        for option in reversed(options):
            command = option(command)
        return command

    return add


@dataclass(frozen=True)
class Target:
    """What the argument of a command names. `draft` is None for a module."""

    text: str
    draft: Any

    @classmethod
    def of(cls, text: str | None) -> Target:
        """Find the file, and say on stderr which it took. Raises NotFound, and DefinitionError for a file that is no
        YAML."""
        if text is not None and not is_file(text):
            return cls(text, None)
        files = topology_files()
        file = files.find_file(Path.cwd()) if text is None else Path(text)
        if file is None:
            where = f"in {Path.cwd()} or a folder above it"
            advice = "name a file or MODULE:build, or make a project: trident init NAME"
            raise NotFound(f"no {' or '.join(files.NAMES)} {where}; {advice}")
        if text is None:
            print(f"topology of {file}", file=sys.stderr, flush=True)
        return cls(str(file), files.Draft(file))

    @property
    def name(self) -> str:
        if self.draft is not None:
            return self.draft.name
        return self.text.partition(":")[0].rsplit(".", 1)[-1]

    def spark(self) -> dict[str, str]:
        """Return Spark's settings of the file."""
        return {} if self.draft is None else self.draft.spark()

    def load(self) -> Chosen:
        """Return the topology. A file's folder becomes the current one, because relative paths in it begin there.
        Raises NotFound, DefinitionError and ModuleFailed."""
        here = str(Path.cwd())
        if here not in sys.path:
            sys.path.insert(0, here)
        with naming_the_module():
            if self.draft is None:
                return Chosen(topology_of(self.text), Config(), None, hide)
            defined = self.draft.build()
            os.chdir(defined.file.parent)
            return Chosen(defined.build(), defined.configuration, defined.storage, defined.hide)


@dataclass(frozen=True)
class Chosen:
    """A topology, and what its file says of the run: conf and checkpoint."""

    topology: Topology
    conf: Config
    storage: str | None
    hide: Any


@contextmanager
def leaving_no_trace() -> Iterator[None]:
    """Inside, imports write no bytecode beside the user's modules."""
    before, sys.dont_write_bytecode = sys.dont_write_bytecode, True
    try:
        yield
    finally:
        sys.dont_write_bytecode = before


def topology_files() -> Any:
    """Return the extra that reads topology files. Raises DefinitionError without it."""
    return load("a topology file", "topology_files")


def is_file(text: str) -> bool:
    return text.endswith((".yml", ".yaml")) or Path(text).is_file()


def is_states_file(text: str | None) -> bool:
    """Return whether the argument of a command is a file that defines states, and no topology."""
    files = find("topology_files")
    return text is not None and is_file(text) and (files is None or not files.is_topology(text))


def topology_of(target: str) -> Topology:
    """Return the topology that `MODULE:build` returns. Raises NotFound; exceptions of the module pass through."""
    module_name, _, function = target.partition(":")
    build = getattr(find_module(module_name), function or "build", None)  # the user's module, by the user's name
    if not callable(build):
        raise NotFound(f"module {module_name} has no function {function or 'build'!r}; {functions_of(module_name)}")
    topology = build()
    if isinstance(topology, TridentTopology):
        return topology.build()
    if isinstance(topology, Topology):
        return topology
    raise NotFound(f"{target} returned {type(topology).__name__}; it must return a TridentTopology, or its build()")
