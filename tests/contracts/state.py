"""What every exactly-once state proves, on every database: a test file inherits a class of here per state.

A subclass says how to make the factory at a URL, what the rows of a batch are, and what a plain fold of batches
gives. Everything else, including the process that kills itself, is here and in `crashing.py`.
"""

from __future__ import annotations

import pickle
import random
import signal
from collections import Counter
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

import pytest

from contracts.crashing import IN_LEDGER, POINTS, Driver, Plan, Worker, in_child, main, run_tasks
from contracts.in_place import UPDATERS, run_batches
from contracts.losing import TellsWhatTheStoreLost
from contracts.taking import ComparesWhatWasTaken
from states.sql import RowUpdater
from states.sql.table import TablePlace
from trident_py.engine.store_position import CheckpointState
from trident_py.errors import FailedException, LineageError, StateError, ZombieError
from trident_py.model.context import with_context
from trident_py.operations.builtin import Sum
from trident_py.state import MapCombinerAggStateUpdater, StateUpdater
from trident_py.tuples import Fields, TridentTuple


@pytest.mark.one_of_each
class StateContract(ComparesWhatWasTaken, TellsWhatTheStoreLost):
    """The promises of all states. `values(txid)` are the tuples of a batch, the first decides the partition."""

    fields: ClassVar[Fields]
    updater: ClassVar[StateUpdater]
    bad_row: ClassVar[tuple]
    bad_words: ClassVar[tuple[str, ...]]
    tells_size: ClassVar[bool] = True
    inside: ClassVar[tuple[type, str]] = IN_LEDGER
    """The method at whose end a driver dies "inside publish". Others publish with one request: they die behind it."""

    def make(self, url: str) -> Any:
        raise NotImplementedError

    def expected(self, batches: list[list[tuple]]) -> dict[tuple, Any]:
        raise NotImplementedError

    def found(self, factory: Any) -> dict[tuple, Any]:
        return factory.stored()

    def values(self, txid: int) -> list[tuple]:
        return [(f"w{n % 7}", n % 5 + txid) for n in range(txid, txid + 12)]

    def place(self, factory: Any) -> str:
        """The place of the rows, as errors name it."""
        return str(factory.table)

    # -- what the tests are made of

    def rows(self, txid: int, *more: tuple) -> list[TridentTuple]:
        return [TridentTuple.of(self.fields, each) for each in [*self.grouped(self.values(txid)), *more]]

    def grouped(self, values: list[tuple]) -> list[tuple]:
        """One tuple per key, as a grouped combiner's updater gets them."""
        return values

    def driver(self, factory: Any, lineage: str = "first", **more: Any) -> Driver:
        return Driver(factory, self.updater, lineage, **more)

    def batch(self, driver: Driver, txid: int, of: int = 2, attempt: int = 0) -> None:
        driver.batch(self.rows(txid), txid, of, attempt)

    @pytest.fixture
    def factory(self, database: str) -> Any:
        return self.make(database)

    def holds(self, factory: Any, txids: range) -> None:
        assert self.found(factory) == self.expected([self.values(txid) for txid in txids])

    # -- the promises

    def test_a_replayed_batch_counts_once(self, factory: Any) -> None:
        driver = self.driver(factory)
        for txid, attempt in ((1, 0), (1, 1), (2, 0), (3, 0), (3, 1), (3, 2)):
            self.batch(driver, txid, attempt=attempt)
        self.holds(factory, range(1, 4))

    def test_a_batch_replayed_before_it_was_complete_counts_once(self, factory: Any) -> None:
        driver = self.driver(factory)
        for attempt in range(3):
            driver.run(self.rows(1), 1, attempt=attempt)
        self.batch(driver, 1, attempt=3)
        self.batch(driver, 2)
        self.holds(factory, range(1, 3))

    def test_a_retry_repairs_a_half_done_batch(self, factory: Any) -> None:
        driver = self.driver(factory)
        self.batch(driver, 1)
        driver.run(self.rows(2), 2, only={1})
        driver.participant.abort(2, 0)
        self.batch(driver, 2, attempt=1)
        self.holds(factory, range(1, 3))

    def test_a_task_that_runs_twice_counts_once(self, factory: Any) -> None:
        """The first one's answer was lost, or Spark started the task a second time."""
        driver = self.driver(factory)
        driver.run(self.rows(1), 1)
        driver.publish(1, 0, driver.tasks(self.rows(1), 1))
        with suppress(ZombieError):  # and once more when all is over; some stores refuse it
            driver.tasks(self.rows(1), 1)
        self.batch(driver, 2)
        self.holds(factory, range(1, 3))

    def test_another_number_of_partitions_loses_and_doubles_nothing(self, factory: Any) -> None:
        driver = self.driver(factory)
        for txid, of, whole in ((1, 2, True), (2, 2, False), (2, 3, True), (3, 1, True), (4, 5, False), (4, 1, True)):
            receipts = driver.run(self.rows(txid), txid, of)
            if whole:
                driver.publish(txid, 0, receipts)
        self.holds(factory, range(1, 5))

    def test_an_empty_batch_touches_nothing(self, factory: Any) -> None:
        driver = self.driver(factory)
        self.batch(driver, 1)
        before = factory.stored()
        driver.batch([], 2)
        assert factory.stored() == before
        self.batch(driver, 3)
        found = driver.participant.remembered(driver.conf)
        assert (found.written, found.generation, found.owner) == (3, 1, "contract/s")
        assert factory.participant().remembered(with_context(driver.conf, reads_only=True)) == found

    def test_an_older_driver_is_refused_and_nothing_written(self, factory: Any) -> None:
        old = self.driver(factory)
        self.batch(old, 1)
        new = self.driver(factory)
        assert new.generation == old.generation + 1
        before = factory.stored()
        for run in (old.run, old.tasks):
            with pytest.raises(ZombieError, match="newer one with generation"):
                run(self.rows(2), 2)
        assert factory.stored() == before
        self.batch(new, 1)
        self.batch(new, 2)
        self.holds(factory, range(1, 3))

    def test_an_older_driver_cannot_publish(self, factory: Any) -> None:
        old = self.driver(factory)
        receipts = old.run(self.rows(1), 1)
        self.driver(factory)
        before = factory.stored()
        with pytest.raises(ZombieError, match="taken over"):
            old.publish(1, 0, receipts)
        assert factory.stored() == before

    def test_an_older_txid_is_refused_and_nothing_written(self, factory: Any) -> None:
        driver = self.driver(factory)
        for txid in (1, 2, 3):
            self.batch(driver, txid)
        for run in (driver.run, driver.tasks):
            with pytest.raises(ZombieError, match="batch 2 is behind"):
                run(self.rows(2), 2)
        self.holds(factory, range(1, 4))
        assert driver.participant.remembered(driver.conf).written == 3

    def test_a_task_of_an_attempt_that_was_given_up_is_refused(self, factory: Any) -> None:
        driver = self.driver(factory)
        driver.participant.prepare(1, 0, 2)
        driver.participant.abort(1, 0)
        driver.participant.prepare(1, 1, 2)
        with pytest.raises(ZombieError, match="attempt 0 of batch 1 was given up"):
            driver.tasks(self.rows(1), 1)
        assert factory.stored() == {}
        receipts = driver.tasks(self.rows(1), 1, attempt=1)
        with pytest.raises(ZombieError, match="given up"):
            driver.tasks(self.rows(1), 1)
        driver.publish(1, 1, receipts)
        self.batch(driver, 2)
        self.holds(factory, range(1, 3))

    def test_a_lost_checkpoint_is_told_with_the_choices(self, factory: Any) -> None:
        driver = self.driver(factory)
        receipts = driver.run(self.rows(1), 1)  # not even published
        with pytest.raises(LineageError) as told:
            self.driver(factory, lineage="second")
        for words in ("remembers batch 1", "restore the checkpoint", "topology.txid.base", "new table"):
            assert words in str(told.value)
        with pytest.raises(LineageError, match="is 0, which is before that batch"):
            self.driver(factory, "second", **{"topology.txid.base": 0})
        driver.publish(1, 0, receipts)
        self.holds(factory, range(1, 2))

    @pytest.mark.parametrize("base", [1, 7])
    def test_a_lost_checkpoint_goes_on_when_told(self, factory: Any, base: Any) -> None:
        self.batch(self.driver(factory), 1)
        driver = self.driver(factory, "second", **{"topology.txid.base": base})
        assert driver.participant.remembered(driver.conf).written == 1
        txid = 8 if base == 7 else 2
        self.batch(driver, txid)
        self.driver(factory, "second")  # a restart on the second checkpoint needs no setting
        assert self.found(factory) == self.expected([self.values(1), self.values(txid)])

    def on_server(self, factory: Any, url: str) -> Any:
        """The factory of the same state at another URL, of a server."""
        return replace(factory, url=url)

    def test_the_factory_is_a_picklable_value_without_secrets(self, factory: Any, database: str) -> None:
        copy = pickle.loads(pickle.dumps(factory))
        assert copy == factory == self.make(database)
        assert hash(copy) == hash(factory)
        assert factory.kind and factory.stateName
        for url in ("postgresql+psycopg://place/x?user=me&password=hush", "mysql+pymysql://me:hush@place/x"):
            secret = repr(self.on_server(factory, url))
            assert "hush" not in secret and "place" in secret
        with pytest.raises(Exception) as told:
            replace(factory, url="nosuchdb://me:hush@host/x")
        assert "hush" not in str(told.value)

    def test_a_bad_row_is_named_and_nothing_of_the_batch_is_written(self, factory: Any) -> None:
        driver = self.driver(factory)
        self.batch(driver, 1)
        before = factory.stored()
        with pytest.raises(StateError) as told:
            driver.run(self.rows(2, self.bad_row), 2, of=1)
        for words in (self.place(factory), *self.bad_words):
            assert words in str(told.value)
        assert factory.stored() == before
        self.batch(driver, 2, attempt=1)
        self.holds(factory, range(1, 3))

    def test_every_state_says_what_a_replay_does(self, factory: Any) -> None:
        for each in (type(factory), type(factory.makeState({}, None, 0, 1))):
            assert any(line.strip().startswith("On replay:") for line in (each.__doc__ or "").splitlines())

    # -- where checkpoint and store do not agree (`trident_py.engine.recovery`)

    def erase(self, factory: Any) -> None:
        """Lets the store forget the state, as if it had been deleted or replaced."""
        with TablePlace(factory.url, factory.table).store().writing() as connection:
            for table in ("trident_fence", "trident_part"):
                connection.execute(f"DELETE FROM {table}")

    def on(self, factory: Any, committed: int, lineage: str = "first", states: Any = None, **more: Any) -> Driver:
        """A driver on a checkpoint that has committed so many batches, and had these states."""
        named = {name: more.pop(name) for name in ("begun", "decided") if name in more}
        more |= {"trident.run": more.pop("run")} if "run" in more else {}
        joined = {"s": ["", 0, 0]} if states is None else states
        record = {"base": 0, "topology": more.pop("wrote", "contract"), "states": joined}
        standing = CheckpointState("checkpoint", "contract", record, lineage, committed, **named)
        return self.driver(factory, lineage, standing=standing, **more)

    def refused(self, factory: Any, words: str, *args: Any, **more: Any) -> str:
        """The start is refused, again and again, and nothing has changed."""
        participant = factory.participant()
        conf = {"topology.name": "contract", "trident.state.name": "s", "trident.lineage": "first"}
        before = self.found(factory), participant.remembered(conf)
        for _ in range(2):
            with pytest.raises(LineageError, match=words) as told:
                self.on(factory, *args, **more)
        assert (self.found(factory), factory.participant().remembered(conf)) == before
        return str(told.value)

    def batches(self, factory: Any, last: int) -> Driver:
        driver = self.driver(factory)
        for txid in range(1, last + 1):
            self.batch(driver, txid)
        return driver

    def test_a_store_behind_its_checkpoint_is_refused_until_told(self, factory: Any) -> None:
        self.batches(factory, 3)
        said = self.refused(factory, "has the batches up to 3, .* has committed batch 5", 5)
        assert "conf[\"topology.lineage.accept\"] = 's@3:5'" in said and "restored from a backup" in said
        self.refused(factory, "up to 3", 5, **{"topology.lineage.accept": "s@2:5"})
        self.batch(self.on(factory, 5, **{"topology.lineage.accept": "s@3:5"}), 6)
        self.on(factory, 6)  # from now on without the setting
        self.refused(factory, "up to 6", 7, **{"topology.lineage.accept": "s@3:5"})
        assert self.found(factory) == self.expected([self.values(txid) for txid in (1, 2, 3, 6)])

    @pytest.mark.parametrize(("committed", "begun"), [(1, True), (1, False), (2, False)])
    def test_an_older_checkpoint_is_refused_also_by_one_batch(self, factory: Any, committed: int, begun: bool) -> None:
        self.batches(factory, 3)
        said = self.refused(factory, f"has batch 3; .* has committed batch {committed}", committed, begun=begun)
        assert "restore the newest checkpoint" in said and "topology.txid.base" in said

    def test_the_one_batch_between_the_two_is_replayed(self, factory: Any) -> None:
        self.batches(factory, 3)
        driver = self.on(factory, 2, begun=True, decided=True)
        for txid in (3, 4):
            self.batch(driver, txid)
        self.holds(factory, range(1, 5))

    def test_a_store_that_has_forgotten_the_state_is_refused_until_told(self, factory: Any) -> None:
        self.batches(factory, 3)
        self.erase(factory)
        said = self.refused(factory, "knows nothing of this state", 3)
        assert "conf[\"topology.lineage.accept\"] = 's@0:3'" in said
        self.refused(factory, "written by topology 'before'", 3, wrote="before")
        self.batch(self.on(factory, 3, **{"topology.lineage.accept": "s@0:3"}), 4)
        self.on(factory, 4)

    def test_a_store_that_another_checkpoint_has_written_is_refused(self, factory: Any) -> None:
        self.batches(factory, 3)
        said = self.refused(factory, r"under another checkpoint \(lineage 'first'\) up to batch 3", 3, "second")
        assert "another topology name" in said

    def test_a_state_added_to_a_running_topology_begins_where_it_is(self, factory: Any) -> None:
        self.batch(self.on(factory, 56, states={}), 57)
        self.on(factory, 57)
        self.on(factory, 56, begun=True, decided=True)
        assert self.found(factory) == self.expected([self.values(57)])

    def test_a_state_removed_and_added_again_is_refused(self, factory: Any) -> None:
        self.batches(factory, 3)
        self.refused(factory, "the state was not in the topology for a while", 5, states={})
        self.on(factory, 3, states={})  # nothing happened meanwhile

    def test_a_batch_without_tuples_is_no_batch_that_is_missing(self, factory: Any) -> None:
        driver = self.batches(factory, 2)
        driver.batch([], 3)
        driver.batch([], 4)
        self.batch(self.on(factory, 4), 5)
        assert self.found(factory) == self.expected([self.values(txid) for txid in (1, 2, 5)])

    def test_a_start_that_went_no_further_has_changed_nothing(self, factory: Any) -> None:
        """It had been told to go on under another checkpoint, and died before its first batch."""
        self.batches(factory, 3)
        self.driver(factory, "second", **{"topology.txid.base": 3})
        self.driver(factory, "third", **{"topology.txid.base": 3})
        self.batch(self.on(factory, 3), 4)
        self.holds(factory, range(1, 5))

    def test_the_store_tells_how_many_bytes_the_state_takes(self, factory: Any) -> None:
        self.batch(self.driver(factory), 1)
        size = factory.participant().measure_size()
        assert size > 0 if self.tells_size else size is None

    # -- with real processes

    def plan(self, factory: Any, folder: Path, **more: Any) -> Plan:
        batches = [self.grouped(self.values(txid)) for txid in range(1, 6)]
        return Plan(factory, self.updater, self.fields, batches, folder / "checkpoint", inside=self.inside, **more)

    def goes_on(self, factory: Any, folder: Path, point: str) -> None:
        """A driver dies there in batch 3; the next one, on the same checkpoint, does all that is left."""
        ended = in_child(partial(main, self.plan(factory, folder, point=point, at=3)))
        assert ended == signal.SIGKILL, f"it ended with signal {ended}"
        main(self.plan(factory, folder))
        self.holds(factory, range(1, 6))

    @pytest.mark.parametrize("point", POINTS)
    def test_a_driver_killed_at_any_point_goes_on_where_it_was(
        self, factory: Any, tmp_path: Path, point: str
    ) -> None:
        self.goes_on(factory, tmp_path, point)

    def test_several_workers_write_their_partitions_at_once(self, factory: Any) -> None:
        """One driver; each partition in a process of its own, and partition 3 in two of them (speculation)."""
        driver = self.driver(factory)
        workers = [Worker(driver, self.fields) for _ in range(5)]
        try:
            for txid in range(1, 6):
                driver.participant.prepare(txid, 0, 4)
                for worker, only in zip(workers, [0, 1, 2, 3, 3], strict=True):
                    worker.tell(self.grouped(self.values(txid)), txid, 4, only)
                receipts = [worker.receipts() for worker in workers]
                driver.publish(txid, 0, [receipt for each in receipts[:4] for receipt in each])
        finally:
            for worker in reversed(workers):
                worker.close()
        self.holds(factory, range(1, 6))


class KeyedContract(StateContract):
    """What states under keys promise besides: the keys tell a replay, with a driver or without one."""

    def test_without_a_driver_the_keys_tell_a_replay(self, factory: Any) -> None:
        for txid, of in ((1, 2), (1, 2), (2, 2), (2, 3), (3, 1), (4, 5), (4, 1)):
            run_tasks(factory, self.updater, self.rows(txid), txid, of, {})
        self.holds(factory, range(1, 5))

    def test_commits_of_an_earlier_attempt_do_not_stand_for_those_of_a_later_one(self, factory: Any) -> None:
        """A replica takes over that has those of the first attempt only; another tuple may be in the second."""
        driver = self.batches(factory, 1)
        driver.run(self.rows(2), 2)
        restore = self.backup(factory)
        driver.participant.abort(2, 0)
        receipts = driver.run(self.rows(2), 2, attempt=1)
        restore()
        with pytest.raises((FailedException, StateError)):
            driver.publish(2, 1, receipts)
        self.batch(driver, 2, attempt=2)
        self.batch(driver, 3)
        self.holds(factory, range(1, 4))

    def test_commits_of_an_older_driver_do_not_stand_for_those_of_a_newer_one(self, factory: Any) -> None:
        """A replica takes over that has those of the older one only; other tuples may be in the newer one's batch."""
        self.batches(factory, 1).run(self.rows(2), 2)
        driver = self.driver(factory)
        driver.participant.prepare(2, 0, 2)
        restore = self.backup(factory)
        receipts = driver.tasks(self.rows(2), 2)
        restore()
        with pytest.raises((FailedException, StateError)):
            driver.publish(2, 0, receipts)
        self.batch(driver, 2, attempt=1)
        self.batch(driver, 3)
        self.holds(factory, range(1, 4))

    def test_a_batch_without_a_txid_is_written(self, factory: Any) -> None:
        run_tasks(factory, self.updater, self.rows(1), None, 2, {})
        self.holds(factory, range(1, 2))


class MapContract(KeyedContract):
    """A map state that sums per word."""

    fields = Fields("word", "n")
    updater = MapCombinerAggStateUpdater(Sum(), "word", "n")
    bad_row = ("good", True)
    bad_words = ("row 7", "word='good'", "'count'", "bigint", "True", "Nothing of the batch is written")

    def grouped(self, values: list[tuple]) -> list[tuple]:
        sums: Counter = Counter()
        for word, n in values:
            sums[word] += n
        return sorted(sums.items())

    def expected(self, batches: list[list[tuple]]) -> dict[tuple, Any]:
        sums: Counter = Counter()
        for word, n in [row for batch in batches for row in batch]:
            sums[(word,)] += n
        return dict(sums)

    def found(self, factory: Any) -> dict[tuple, Any]:
        at = {"transactional": 1, "opaque": 1}[factory.kind]
        return {key: value[at] for key, value in factory.stored().items()}

    def listing(self, factory: Any) -> Any:
        """The same state for values that can change: its value is JSON."""
        return replace(factory, value=Fields("value json"))

    @pytest.mark.parametrize("updaters", UPDATERS)
    def test_whoever_changes_a_value_in_place_changes_nothing_stored(self, factory: Any, updaters: Any) -> None:
        state = self.listing(factory).makeState({}, None, 0, 1)
        run_batches(state, factory.kind, updaters, random.Random(7))


class RowContract(KeyedContract):
    """A state of rows under a deterministic key."""

    fields = Fields("word", "n")
    updater = RowUpdater()
    bad_row = ("x", 1.5)
    bad_words = ("row 12", "word='x', n=1.5", "'n'", "bigint", "1.5", "Nothing of the batch is written")

    def values(self, txid: int) -> list[tuple]:
        return [(f"w{txid}-{n}", n) for n in range(10)] + [(f"w{max(txid - 1, 1)}-0", 0)] * 2

    def expected(self, batches: list[list[tuple]]) -> dict[tuple, Any]:
        return {(word,): (n,) for batch in batches for word, n in batch}


class PlainContract(StateContract):
    """A state of rows without a key: equal rows stay as many as they were."""

    fields = Fields("word", "n")
    updater = RowUpdater()
    bad_row = ("x", 1.5)
    bad_words = ("row 13", "word='x', n=1.5", "'n'", "bigint", "1.5", "Nothing of the batch is written")

    def values(self, txid: int) -> list[tuple]:
        return [(f"w{n % 5}", n % 3) for n in range(txid, txid + 13)]

    def expected(self, batches: list[list[tuple]]) -> dict[tuple, Any]:
        return dict(Counter(row for batch in batches for row in batch))


class AppendContract(PlainContract):
    """A state of rows without a key that tells a replay by the number of its partition."""

    def coming(self, factory: Any, way: str) -> Driver:
        return self.driver(factory, **{"trident.way": f"digest-of-{way} {way}"})

    def test_rows_that_come_another_way_are_not_mixed_with_those_of_a_half_written_batch(self, factory: Any) -> None:
        self.batch(self.coming(factory, "shuffle"), 1)
        self.coming(factory, "shuffle").run(self.rows(2), 2, only={0})
        before = factory.stored()
        with pytest.raises(StateError) as told:
            self.batch(self.coming(factory, "batchGlobal"), 2)
        for words in ("batch 2", "came by [shuffle] then, and by [batchGlobal] now", "groupings and parallelismHints"):
            assert words in str(told.value)
        assert factory.stored() == before
        with pytest.raises(StateError, match="an unrecorded way"):
            self.batch(self.driver(factory), 2)
        self.batch(self.coming(factory, "shuffle"), 2)
        self.batch(self.coming(factory, "batchGlobal"), 3)
        self.holds(factory, range(1, 4))

    def test_a_batch_that_is_whole_or_not_begun_may_be_replayed_another_way(self, factory: Any) -> None:
        self.coming(factory, "shuffle").run(self.rows(1), 1)
        self.batch(self.coming(factory, "global_"), 1)
        self.coming(factory, "shuffle").run(self.rows(2), 2, only=())
        self.batch(self.coming(factory, "batchGlobal"), 2)
        self.holds(factory, range(1, 3))


__all__ = ["AppendContract", "KeyedContract", "MapContract", "PlainContract", "RowContract", "StateContract"]
