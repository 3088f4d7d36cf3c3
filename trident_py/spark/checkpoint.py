"""What is kept of a component between runs, in one folder: Spark's logs, and ours in a folder inside.

    <checkpoints>/<topology name>/<component>/          metadata, offsets, commits (Spark's)
    <checkpoints>/<topology name>/<component>/trident/  the txid base, spout metadata that came with a commit

Ours is inside so that a checkpoint is copied, moved and deleted as one.
"""

from __future__ import annotations

import shutil
from pathlib import Path
from urllib.parse import quote

from ..errors import TridentError
from ..patience import Patience
from ..program import Program
from ..spouts.metadata import FileMetadataStore
from ..transactions import txid_base


class Checkpoint:
    """One component's folder. Raises TridentError for a place that is not a folder of this machine."""

    def __init__(self, root: str, topology: str, component: str) -> None:
        if "://" in root and not root.startswith("file://"):
            raise TridentError(
                f"checkpoints={root!r}: a checkpoint is in a folder that the driver can write; "
                "spout metadata is kept beside Spark's logs. Give a path"
            )
        plain = root.removeprefix("file://").removeprefix("file:")
        self.folder = Path(plain).absolute() / quote(topology, safe=" ") / quote(component, safe=" ")
        self.store = FileMetadataStore(self.folder / "trident")

    @property
    def location(self) -> str:
        """The folder as Spark is told: Hadoop takes it as it stands, and would keep the escapes of a URI."""
        return f"file://{self.folder}"

    @property
    def is_new(self) -> bool:
        """Whether no query was ever started here."""
        return not (self.folder / "metadata").exists()

    def last_batch(self) -> int | None:
        """The highest batch id that Spark has committed here."""
        ids = [int(file.name) for file in self.folder.glob("commits/*") if file.name.isdigit()]
        return max(ids, default=None)

    def is_committed(self, batch_id: int) -> bool:
        """Whether Spark has noted this batch as committed."""
        return (self.folder / "commits" / str(batch_id)).exists()

    def base(self, program: Program, patience: Patience) -> int:
        """The txid before the first batch of this checkpoint; settled once, when the checkpoint is new."""
        saved = self.store.get("component", 0)
        if saved is None:
            saved = {"base": txid_base(program, patience)}
            self.store.put("component", 0, saved)
        return int(saved["base"])

    def drop(self) -> None:
        """For a checkpoint that this start has made and a state has refused: nobody will ever go on from it, and
        its txid base and first offsets would stand in the way of whatever is chosen next."""
        shutil.rmtree(self.folder)
