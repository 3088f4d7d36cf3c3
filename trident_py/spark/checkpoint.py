"""The checkpoint of a component: one folder with Spark's logs and, inside it, a folder of trident_py.

    <checkpoints>/<topology name>/<component>/          metadata, offsets, commits (Spark's)
    <checkpoints>/<topology name>/<component>/trident/  lineage and txid base, spout metadata that came with a commit

The second is inside the first, so that a checkpoint is copied, moved and deleted as one folder.
"""

from __future__ import annotations

import json
import uuid
from pathlib import Path
from urllib.parse import quote

from ..errors import LineageError, TridentError
from ..run.agreement import BASE, Standing
from ..run.deciding import DECIDED
from ..run.opening import SETTLED
from ..spouts.metadata import FileMetadataStore


class Checkpoint:
    """One component's folder. Raises TridentError if ``root`` is not a path on this machine."""

    def __init__(self, root: str, topology: str, component: str) -> None:
        if "://" in root and not root.startswith("file://"):
            raise TridentError(
                f"checkpoints={root!r} is not a local path: a checkpoint needs a folder that the driver can write, "
                "because spout metadata is stored beside Spark's logs. Give a path"
            )
        plain = root.removeprefix("file://").removeprefix("file:")
        self.folder = Path(plain).absolute() / quote(topology, safe=" ") / quote(component, safe=" ")
        self.store = FileMetadataStore(self.folder / "trident")

    @property
    def location(self) -> str:
        """The folder as a URL for Spark. Not escaped: Hadoop takes the text as it is and would keep the escapes."""
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
        """Whether Spark has recorded this batch as committed."""
        return (self.folder / "commits" / str(batch_id)).exists()

    def standing(self, topology: str) -> Standing:
        """The content of the checkpoint before this start. Raises LineageError if a part of it is missing."""
        record = self.store.get(SETTLED, 0)
        if record is None:
            if not self.is_new:
                raise LineageError(
                    f"the checkpoint {self.folder} has Spark's logs, but the file {SETTLED}.json in its folder "
                    "'trident' is missing, so the txids of its batches are unknown. Restore it from a copy, or move "
                    f'the whole checkpoint away and continue in a new one with {BASE} = "continue"'
                )
            return Standing.new(str(self.folder), topology)
        last = self.last_batch()
        batch = 0 if last is None else last + 1
        txid = record["base"] + batch
        begun = (self.folder / "offsets" / str(batch)).exists()
        decided = self.store.get(DECIDED, txid + 1) is not None
        lineage = record.get("lineage") or self._query_id()
        return Standing(str(self.folder), topology, record, lineage, txid, begun, decided)

    def _query_id(self) -> str:
        """The lineage of a checkpoint made by an older version."""
        if self.is_new:
            return uuid.uuid4().hex
        return str(json.loads((self.folder / "metadata").read_text())["id"])
