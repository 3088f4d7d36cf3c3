"""The names of files: hidden ones, which tell whose they are, and final ones, which follow from txid and partition."""

from __future__ import annotations

import re
from typing import NamedTuple

from .ledger import STAGING, Record

_STAGED = re.compile(r"(\d{12})-(\d+)-(\d+)-(\d+)-(\d{5})-[0-9a-f]{16}-(\d+)\..+")


class Staged(NamedTuple):
    """What a hidden name tells."""

    txid: int
    epoch: int
    generation: int
    attempt: int
    partition: int
    number: int


def staged_name(
    txid: int, epoch: int, generation: int, attempt: int, partition: int, token: str, number: int, suffix: str
) -> str:
    return f"{STAGING}/{txid:012d}-{epoch}-{generation}-{attempt}-{partition:05d}-{token}-{number}{suffix}"


def parsed(name: str) -> Staged | None:
    """What the hidden name of a task's file tells; None for another name."""
    match = _STAGED.fullmatch(name.rpartition("/")[2])
    return None if match is None else Staged(*map(int, match.groups()))


def final_name(record: Record, txid: int, partition: int, number: int, suffix: str) -> str:
    """``part-<txid>-<partition>``; from the second file of a partition on with its number. Where the txids of a folder
    were begun anew, with the epoch: no name comes twice."""
    again = f"-{number:03d}" if number else ""
    epoch = f"-e{record.epoch}" if record.epoch else ""
    return f"part-{txid:010d}-{partition:05d}{again}{epoch}{suffix}"
