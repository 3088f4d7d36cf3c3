"""The components of a topology, or of a checkpoint's folder alone, with their logs."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from urllib.parse import quote, unquote

from ...checkpoints.append_log import JOURNAL, AppendLogStore, read_journal
from ...checkpoints.batch_log import BatchLog
from ...checkpoints.hash_seed import own_order
from ...checkpoints.location import local_folder, open_log, read_log
from ...checkpoints.uri_folder import find_folder, open_folder
from ...cli.run import RunCommand
from ...cli.spark_options import SparkOptions
from ...cli.targets import leaving_no_trace
from ...engine.program import Program, compile_plan
from ...errors import DefinitionError
from ...filesystems.uris import Storage
from ...model.context import with_context
from ...topology.topology import check_submission
from ...topology.user_modules import NotFound


@dataclass(frozen=True)
class Component:
    """One component. ``read``: returns its log as it is now, to be read alone; ``open``: the log, to be written.
    ``program``: None if only the checkpoint is known, and no state. ``root``: what ``checkpoints=`` names."""

    topology: str
    name: str
    read: Callable[[], BatchLog]
    open: Callable[[], BatchLog]
    program: Program | None = None
    root: str = ""

    @property
    def shown(self) -> str:
        return f"{self.topology}/{self.name}"


def components_of(
    target: str | None, checkpoint: str | None, name: str | None, settings: tuple[str, ...], new: bool = False
) -> list[Component]:
    """Return the components that the arguments of a command name. Leaves no trace of the user's modules. ``new``: the
    checkpoint need not be there yet."""
    if target is not None and (found := components_in(Path(target))):
        return found
    if target is not None and (Path(target).is_dir() or ("/" in target and not Path(target).exists())):
        raise DefinitionError(f"{target} is no folder with a checkpoint: name that, a topology file or MODULE:build")
    no_spark = SparkOptions(None, (), None, None, None)
    command = RunCommand(target, True, checkpoint, False, False, name, settings, False, no_spark)
    command.check()
    try:
        with leaving_no_trace():
            topology, loaded, conf = command.load()
    except NotFound as error:
        nor = "" if target is None or ":" in target else f"; nor is there a folder {target} with a checkpoint"
        raise NotFound(f"{error}{nor}") from None
    if checkpoint is not None and not new:
        _check_folder(checkpoint, loaded.storage or "", topology)
    check_submission(topology, conf, loaded.topology)
    run = f"{topology}-{uuid.uuid4().hex[:12]}"
    context = with_context(conf, topology=topology, run=run, home=None)
    root = loaded.storage or str(Path("checkpoints").absolute())
    return [component_of(root, program) for program in compile_plan(loaded.topology.plan, context)]


def _check_folder(typed: str, root: str, topology: str) -> None:
    """Raise DefinitionError if there is no checkpoint of the topology in a local folder."""
    local = local_folder(root)
    if local is None:
        return
    folder = Path(local).absolute()
    if not folder.is_dir():
        raise DefinitionError(f"--checkpoint {typed}: there is no folder {folder}. Name that of `trident run`")
    if not (folder / quote(topology, safe=" ")).is_dir():
        others = ", ".join(sorted({each.topology for each in components_in(folder)}))
        has = f"it has those of: {others}" if others else "nor any other"
        raise DefinitionError(f"--checkpoint {typed}: {folder} holds no checkpoint of topology {topology!r}, {has}")


def component_of(root: str, program: Program, storage: Storage | None = None) -> Component:
    """Return a component whose checkpoint is below ``root``. ``storage``: as of `trident_py.LocalCluster`."""
    topology = program.conf["topology.name"]
    place = root, topology, program.component, own_order
    read = partial(read_log, *place, partial(find_folder, storage=storage or {}))
    opened = partial(open_log, *place, partial(open_folder, storage=storage or {}))
    return Component(topology, program.component, read, opened, program, root)


def components_in(folder: Path) -> list[Component]:
    """Return the components of which a checkpoint is in a local folder: that of one, of a topology, or of several."""
    journals = [journal for depth in ("", "*/", "*/*/") for journal in sorted(folder.glob(f"{depth}{JOURNAL}"))
                if journal.is_file()]  # fmt: skip
    return [_of_folder(journal.parent.absolute()) for journal in journals]


def _of_folder(place: Path) -> Component:
    topology = unquote(place.parent.name)

    def read() -> BatchLog:
        return BatchLog(read_journal(place), str(place), topology, own_order)

    def open_to_write() -> BatchLog:
        return BatchLog(AppendLogStore(place), str(place), topology, own_order)

    return Component(topology, unquote(place.name), read, open_to_write)
