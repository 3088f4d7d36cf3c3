"""Passes Ethernet frames between two network cards, each some time later. Run by path, on the switch of a `Network`.

``python delay_line.py CARD CARD MILLISECONDS SHARE``. A share of the frames comes twice, and a share comes after frames
that were sent later. Most kernels have ``tc netem`` for this; not all.
"""

from __future__ import annotations

import contextlib
import heapq
import itertools
import random
import select
import socket
import sys
import time

SOL_PACKET = 263
PACKET_VNET_HDR = 15  # frames come with what the card would still have to do: checksums, segments
PACKET_IGNORE_OUTGOING = 23
ALL = 0x0003
FRAME = 1 << 17


def card(name: str) -> socket.socket:
    frames = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)
    frames.setsockopt(SOL_PACKET, PACKET_VNET_HDR, 1)
    frames.setsockopt(SOL_PACKET, PACKET_IGNORE_OUTGOING, 1)
    frames.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 24)
    frames.bind((name, ALL))
    frames.setblocking(False)
    return frames


def pass_on(cards: dict[socket.socket, socket.socket], delay: float, share: float) -> None:
    """Sends what one card receives through the other, ``delay`` seconds later: in order, but for the ``share``. Does
    not return."""
    waiting: list[tuple[float, int, socket.socket, bytes]] = []
    draw, numbers = random.Random(1), itertools.count()
    while True:
        left = max(0.0, waiting[0][0] - time.monotonic()) if waiting else None
        for source in select.select(list(cards), [], [], left)[0]:
            with contextlib.suppress(OSError):  # a card that was down for a moment
                frame = source.recv(FRAME)
                for _ in range(2 if draw.random() < share else 1):
                    late = 2 * delay if draw.random() < share else delay
                    heapq.heappush(waiting, (time.monotonic() + late, next(numbers), cards[source], frame))
        while waiting and waiting[0][0] <= time.monotonic():
            _, _, target, frame = heapq.heappop(waiting)
            with contextlib.suppress(OSError):  # a full queue or a card that is down loses frames, as networks do
                target.send(frame)


if __name__ == "__main__":
    one, other = card(sys.argv[1]), card(sys.argv[2])
    print("ready", flush=True)
    pass_on({one: other, other: one}, int(sys.argv[3]) / 1000, float(sys.argv[4]))
