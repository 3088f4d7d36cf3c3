"""What a driver of a campaign needs, imported and used once: topologies with each spout, over two stores."""

from __future__ import annotations

import gc
import tempfile
from pathlib import Path

from states.sql.store import close_stores

from . import preloaded
from .drawn import BISECT, SPOUTS, Drawn, DrawnStart, promised
from .forks import drive
from .held import HELD
from .inputs import write


class _Nobody:
    def send(self, event: tuple) -> None: ...


def _once(folder: Path, store: str, spout: str, states: tuple[str, ...]) -> None:
    drawn = Drawn(store, spout, states, 2, True, store == "sqlite" and spout in ("transactional", "coordinated"))
    url = f"sqlite:///{folder}/{spout}.db" if store == "sqlite" else f"{folder}/{spout}"
    start = DrawnStart(url, folder, 2, checkpoints=f"{store}-{spout}", conf=BISECT if drawn.poison else (), drawn=drawn)
    write(start.input, folder, url)
    drive(start, _Nobody())


with tempfile.TemporaryDirectory() as name:
    for used in (spout for spout in SPOUTS if promised("sqlite", spout, "rows")):
        _once(Path(name), "sqlite", used, ("rows", "window", "keyed", "opaque"))
    _once(Path(name), "files", "transactional", tuple(HELD["files"]))
    close_stores()
gc.collect()
gc.freeze()

__all__ = ["preloaded"]
