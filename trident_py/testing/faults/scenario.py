"""A story of one run, told step by step: feed, run, crash here, replay with other content, expect."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Self

from ...errors import DefinitionError
from .disturbances import forget
from .driver_process import CHECKPOINTS, NAME, Build, Outcome, Readings, Run
from .drivers import KILLED, Drivers, was_hit
from .feed import Feed
from .kill_point import HIT, AnyPoint, KillPoint, Point
from .locations import StorePlace, empty_store, scratch
from .trials import compare, plain_value


class Story:
    """A topology, a store and a checkpoint, through several starts. Every call returns the story.

        with Story(build, fields="word string") as story:
            story.feed([("a",), ("b",)]).run()
            story.feed([("a",)]).crash_at("committed", "counts").run()
            story.run().expect("counts", {("a",): 2, ("b",): 1})

    ``build``, ``fields``, ``kind``, ``store``, ``readings``, ``conf`` and ``cluster`` are as for `everywhere`.
    """

    def __init__(
        self,
        build: Build | str,
        fields: Any = None,
        *,
        kind: str = "transactional",
        store: StorePlace = "sqlite",
        readings: Readings | None = None,
        conf: Mapping[str, Any] | None = None,
        cluster: str = "local",
    ) -> None:
        self._closing = ExitStack()
        self._folder = Path(self._closing.enter_context(scratch("trident-story-")))
        try:
            self._store = self._closing.enter_context(empty_store(store, self._folder))
            drivers = Drivers(self._folder / "drivers", build, readings or {})
            self._drivers = self._closing.enter_context(drivers)
        except BaseException:
            self._closing.close()
            raise
        self._fields, self._kind, self._cluster, self._conf = fields, kind, cluster, tuple((conf or {}).items())
        self._batches: list[list[Any]] = []
        self._point: tuple[str, str | None, int | None, int | None, str] | None = None
        self._starts = 0
        self._outcome: Outcome | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End all processes, and remove store and checkpoint."""
        self._closing.close()

    def feed(self, *batches: Sequence[Any]) -> Self:
        """Feed batches of rows to the next run: tuples, or dicts."""
        self._batches += map(list, batches)
        return self

    def crash_at(
        self, step: str, state: str | None = None, *, partition: int | None = None, txid: int | None = None
    ) -> Self:
        """Kill the next run at this step (`trident_py.testing.faults.STEPS`), by default in the first
        partition that comes to it, in the last batch that is fed. ``state``: a state, or for `emit` a spout."""
        return self._at(step, state, partition, txid, "kill")

    def fail_at(
        self, step: str, state: str | None = None, *, partition: int | None = None, txid: int | None = None
    ) -> Self:
        """Fail at a point: FailedException is raised there, and the same run replays the batch."""
        return self._at(step, state, partition, txid, "fail")

    def _at(self, step: str, name: str | None, partition: int | None, txid: int | None, action: str) -> Self:
        Point(step)  # checks the name
        self._point = (step, name, partition, txid, action)
        return self

    def replay_with(self, rows: Sequence[Any]) -> Self:
        """Return the last batch that was fed has these rows in the next run, as an opaque spout's may."""
        if self._kind != "opaque":
            raise DefinitionError("a transactional spout replays the same batch; give the story kind='opaque'")
        if not self._batches:
            raise DefinitionError("replay_with: nothing is fed yet")
        self._batches[-1] = list(rows)
        return self

    def lose_last_commit(self) -> Self:
        """Let the checkpoint lose its last committed batch: the next run replays it."""
        forget(self._folder / CHECKPOINTS / NAME)
        return self

    def run(self) -> Self:
        """Start the topology. Returns when it has ended, or died where it was to crash.

        Raises AssertionError if it did not come to that point, or if it failed.
        """
        (self._folder / HIT).unlink(missing_ok=True)
        self._starts += 1
        wire, self._point = self._wire(), None
        feed = Feed.of(self._batches, self._fields, self._kind)
        run = Run(str(self._folder), self._store, feed, wire, self._starts, self._cluster, self._conf)
        driving = self._drivers.run(run, warm=True)
        self._outcome = driving.outcome
        if wire.point is not None and not was_hit(self._folder):
            raise AssertionError(f"start {self._starts} did not come to {wire.point}{self._error()}")
        if wire.point is not None and wire.action == "kill":
            assert driving.wait() == KILLED
        elif self._outcome is None or self._outcome.error:
            raise AssertionError(f"start {self._starts} failed{self._error()}")
        return self

    def _error(self) -> str:
        if self._outcome is None:
            return ": its process died"
        return f": {self._outcome.error}" if self._outcome.error else ""

    def _wire(self) -> KillPoint:
        if self._point is None:
            return KillPoint(str(self._folder))
        step, name, partition, txid, action = self._point
        point = AnyPoint(step, name, partition, len(self._batches) if txid is None else txid)
        return KillPoint(str(self._folder), point=point, action=action)

    def contents(self, state: str) -> Any:
        """Return what the state, or the reading, held at the end of the last run."""
        if self._outcome is None or state not in self._outcome.contents:
            held = [] if self._outcome is None else sorted(self._outcome.contents)
            raise DefinitionError(f"nothing is known of {state!r}; the last run has ended with {held}")
        return self._outcome.contents[state]

    def expect(self, state: str, content: Any) -> Self:
        """Raise AssertionError unless the state holds this: key tuple -> value, without txids."""
        held = self.contents(state)
        plain = {key: plain_value(value) for key, value in held.items()} if isinstance(held, Mapping) else held
        if (found := compare(state, content, plain)) is not None:
            raise AssertionError(str(found))
        return self
