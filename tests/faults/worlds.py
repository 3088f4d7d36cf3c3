"""A store, a checkpoint and a cluster, on which what `trident_py.engine.recovery` has a row for really happens."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from trident_py import TopologyError
from trident_py.checkpoints.append_log import AppendLogStore
from trident_py.checkpoints.metadata_store import LOG
from trident_py.engine import recovery, startup
from trident_py.engine.store_position import StorePosition
from trident_py.errors import LineageError

from . import backups
from .readings import Fold, Readings
from .stores import EXACT, MAPS, Source, build, differences
from .weak import Weak

TOPOLOGY = "t"
Found = set[tuple[str, StorePosition]]


class World:
    """Starts of one topology with every state on one store. ``found``: how each state stood at each start."""

    def __init__(self, url: str, folder: Path, cluster: Callable[[str], Any], found: Found) -> None:
        self.url, self.folder, self.cluster, self.found = url, folder, cluster, found
        self.readings = Readings(12)
        self.states = EXACT
        self.checkpoints = folder / "checkpoints"
        self._dumps = self._lost = 0

    @property
    def maps(self) -> tuple[str, ...]:
        """Their values carry txids."""
        return tuple(state for state in self.states if state in MAPS)

    @property
    def others(self) -> tuple[str, ...]:
        return tuple(state for state in self.states if state not in MAPS)

    def start(
        self, last: int, conf: dict | None = None, only: Sequence[str] = (), weak: dict[str, Any] | None = None,
        name: str = TOPOLOGY, spout: type = Source, kind: type[Weak] = Weak, keep: Any = None,
    ) -> None:  # fmt: skip
        """Until batch ``last`` is over. ``weak``: what is called before each call of a state's participant. Raises
        TopologyError."""

        def wrap(state: str, factory: Any) -> Any:
            return kind(factory, weak[state]) if weak and state in weak else factory

        topology = build(self.url, self.readings, last, 1, only or self.states, wrap, spout, keep)
        with self.cluster(str(self.checkpoints)) as cluster:
            assert cluster.submitTopology(name, conf or {}, topology).awaitTermination(200)

    def refused(self, words: str, last: int, *args: Any, **more: Any) -> str:
        """The start is refused with these words, and nothing is changed by it."""
        before = backups.contents(self.url)
        with pytest.raises(TopologyError, match=words) as told:
            self.start(last, *args, **more)
        assert isinstance(told.value.__cause__, LineageError)
        assert "Nothing was changed" in str(told.value)
        assert backups.contents(self.url) == before
        return str(told.value)

    def holds(self, *batches: int, only: Sequence[str] = ()) -> None:
        """The tables are what a plain fold of these batches gives."""
        assert differences(self.url, Fold(self.readings, 0, batches), only or self.states) == []

    def dump(self) -> Path:
        self._dumps += 1
        return backups.dump(self.url, self.folder / f"dump-{self._dumps}")

    def restore(self, dumped: Path) -> None:
        backups.restore(self.url, dumped)

    def copy(self, name: str) -> Path:
        """A copy of the checkpoint."""
        return shutil.copytree(self.checkpoints, self.folder / name)

    def put_back(self, copy: Path) -> None:
        """The checkpoint is this copy from now on."""
        shutil.rmtree(self.checkpoints, ignore_errors=True)
        shutil.copytree(copy, self.checkpoints)

    def begun_under(self, seed: str) -> None:
        """The process that began the batch in the checkpoint had this hash seed; "" stands for one that Python drew."""
        for folder in self.checkpoints.glob("*/*"):
            store = AppendLogStore(folder)
            record = store.get(LOG, 0)
            record["begun"]["order"] = {"order": "another", "seed": seed}
            store.put(LOG, 0, record)
            store.close()

    def lose(self) -> Path:
        """The checkpoint is away; where to."""
        self._lost += 1
        return self.checkpoints.rename(self.folder / f"lost-{self._lost}")


def watch(monkeypatch: pytest.MonkeyPatch) -> Found:
    """What every start of this process finds from now on."""
    found: Found = set()
    relation, agree, check = recovery.Recovery.relation, startup.agree, startup.check_spouts

    def noted(case: Any, name: str) -> StorePosition:
        found.add((name, relation(case, name)))
        return relation(case, name)

    def noted_all(*args: Any) -> Any:
        agreed = agree(*args)
        found.update(agreed.relations.items())
        return agreed

    def noted_spout(*args: Any) -> None:
        try:
            check(*args)
        except LineageError:
            found.add(("", StorePosition.OTHER_SPOUT))
            raise

    monkeypatch.setattr(recovery.Recovery, "relation", noted)
    monkeypatch.setattr(startup, "agree", noted_all)
    monkeypatch.setattr(startup, "check_spouts", noted_spout)
    return found
