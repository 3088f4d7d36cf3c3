"""What kind of checkpoint a component's folder is: of a LocalCluster, of Spark, or new. It is one of them at a time.

`LocalCluster` makes the file ``journal``. A folder that has it is local, whatever else is in it, so that one rename or
one deletion changes the kind of a checkpoint.
"""

from __future__ import annotations

from pathlib import Path
from urllib.parse import quote

from ..errors import LineageError
from ..spouts.journal import JOURNAL

LOCAL, SPARK, NEW = "local", "spark", "new"
SPARKS = ("metadata", "offsets", "commits", "trident")
"""What a checkpoint of Spark has: its own logs, and the folder of ours."""
CLUSTERS = {LOCAL: "LocalCluster (--local)", SPARK: "Spark"}


def inside(topology: str, component: str) -> str:
    """Where a component's checkpoint is in the folder of all: the same on both clusters."""
    return f"{quote(topology, safe=' ')}/{quote(component, safe=' ')}"


def kind_of(folder: Path) -> str:
    """The kind of one component's checkpoint."""
    if (folder / JOURNAL).exists():
        return LOCAL
    return SPARK if any((folder / name).exists() for name in SPARKS) else NEW


def other_kind(folder: object, found: str) -> LineageError:
    """The error for a start on the other cluster's checkpoint. ``folder``: of the component."""
    wanted = SPARK if found == LOCAL else LOCAL
    topology = str(folder).rpartition("/")[0]
    return LineageError(
        f"the checkpoint {folder} was written by a run on {CLUSTERS[found]}, and this one is on {CLUSTERS[wanted]}. To "
        f"go on with it here: `trident checkpoint convert {topology} --to {wanted}`. Nothing was changed"
    )


def require_kind(folder: Path, wanted: str) -> None:
    """Raises LineageError if the folder is a checkpoint of the other cluster."""
    found = kind_of(folder)
    if found not in (wanted, NEW):
        raise other_kind(folder, found)
