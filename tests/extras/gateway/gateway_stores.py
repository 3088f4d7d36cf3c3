"""What the processes of the stores' tests do."""

from __future__ import annotations

import sys

from trident_py.extras.gateway.claims import Claim
from trident_py.extras.gateway.stores import store_of


def names(count: int) -> list[str]:
    return [f"event-{number:05d}" for number in range(count)]


def compete(url: str, table: str, count: int, owner: str) -> None:
    """Claims all fingerprints in small calls, in an order of its own, and prints those it has won."""
    store = store_of(url, 3600, table)
    wanted = names(count)
    cut = sum(map(ord, owner)) % count
    wanted = wanted[cut:] + wanted[:cut]
    for start in range(0, count, 50):
        part = wanted[start : start + 50]
        found = store.claim([Claim(name, "hash") for name in part], f"{owner}:{start}", 60)
        print("\n".join(name for name, known in zip(part, found, strict=True) if known.won))
    store.close()


if __name__ == "__main__":
    compete(sys.argv[1], sys.argv[2], int(sys.argv[3]), sys.argv[4])
