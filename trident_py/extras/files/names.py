"""The names of files: hidden ones, which tell whose they are, and final ones, which follow from txid and partition."""

from __future__ import annotations

import re
from typing import NamedTuple

from ...filesystems.base import is_number
from .folder import HIDDEN
from .ledger import STAGING

FILES, BATCHES, MANIFEST = "files", "batches", "manifest"
VISIBLE = (FILES, BATCHES, MANIFEST)
_STAGED = re.compile(r"(\d{12,})-(\d+)-(\d+)-(\d+)-(\d{5,})-[0-9a-f]{16}-(\d+)(?:\D.*)?")
_FINAL = re.compile(r"(?:_part=|part-)(\d{10,})-(\d{5,})(?:-(\d{3,}))?(?:-e(\d+))?(?:\D.*)?")
_MERGED = re.compile(r"_parts=\d{10,}-\d{10,}-[0-9a-f]{16}.*")


class StagedName(NamedTuple):
    """What a hidden name tells."""

    txid: int
    epoch: int
    generation: int
    attempt: int
    partition: int
    number: int


def format_staged_name(
    txid: int, epoch: int, generation: int, attempt: int, partition: int, token: str, number: int, suffix: str
) -> str:
    return f"{STAGING}/{txid:012d}-{epoch}-{generation}-{attempt}-{partition:05d}-{token}-{number}{suffix}"


def parse_staged_name(name: str) -> StagedName | None:
    """Return what the hidden name of a task's file tells; None for another name."""
    match = _STAGED.fullmatch(name.rpartition("/")[2])
    return None if match is None else StagedName(*map(int, match.groups()))


def file_name(visible: str, epoch: int, txid: int, partition: int, number: int, suffix: str) -> str:
    """Return ``part-<txid>-<partition>``; from the second file of a partition on with its number. Where the txids of a
    folder were begun anew, with the epoch: no name comes twice.

    Readers by the manifest alone get ``_part=...``: pandas and Arrow take a name with an underscore for hidden, Spark
    does not if there is a ``=`` in it.
    """
    again = f"-{number:03d}" if number else ""
    begun = f"-e{epoch}" if epoch else ""
    prefix = "_part=" if visible == MANIFEST else "part-"
    return f"{prefix}{txid:010d}-{partition:05d}{again}{begun}{suffix}"


def folder_of(visible: str, txid: int) -> str:
    """Return the folder of a batch's files, with a slash; "" for the state's own."""
    return f"txid={txid}/" if visible == BATCHES else ""


def format_waiting_folder(txid: int) -> str:
    """Return where the files of a batch wait until their folder is renamed."""
    return f"{HIDDEN}/waiting/{txid}"


def format_merged_name(first: int, last: int, token: str, suffix: str) -> str:
    """Return a file that compaction makes of those of these batches."""
    return f"_parts={first:010d}-{last:010d}-{token}{suffix}"


def is_merged(name: str) -> bool:
    return _MERGED.fullmatch(name) is not None


def batch_of(name: str) -> tuple[int, int] | None:
    """Epoch and txid of a file by its final name; None for another name."""
    match = _FINAL.fullmatch(name.rpartition("/")[2])
    return None if match is None else (int(match[4] or 0), int(match[1]))


def find_txid(name: str) -> int | None:
    """Return the txid of a file or of a batch's folder by its final name; None for another name."""
    batch = batch_of(name)
    if batch is not None:
        return batch[1]
    folder, _, number = name.partition("=")
    return int(number) if folder == "txid" and is_number(number) else None
