"""What every exactly-once state proves: a test file inherits `StateContract` with a one-line class per state.

A subclass says how to make the factory, what the rows of a batch are, and what a plain fold of batches gives.
Everything else, including the process that kills itself, is here and in `crashing.py`.
"""

from __future__ import annotations

import os
import pickle
import signal
import subprocess
import sys
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

import pytest
from crashing import POINTS, Plan, conf_of, main, partition_of, run_batch

from states.sql import InsertIgnoreState, RowUpdater, SqlMapState
from trident_py.errors import LineageError, StateError, ZombieError
from trident_py.operations import TridentOperationContext
from trident_py.operations.builtin import Sum
from trident_py.state import SILENT, MapCombinerAggStateUpdater, StateUpdater, persist
from trident_py.tuples import Fields, TransactionAttempt, TridentTuple

HERE = Path(__file__).parent


def in_attempt(txid: int, attempt: int) -> TridentOperationContext:
    context = TridentOperationContext(0, 1)
    context.transaction = TransactionAttempt(txid, attempt)
    return context


class StateContract:
    """The promises. `rows(txid)` are the tuples of a batch, the first field decides the partition."""

    fields: ClassVar[Fields]
    updater: ClassVar[StateUpdater]
    bad_row: ClassVar[tuple]
    bad_words: ClassVar[tuple[str, ...]]
    null_txid: ClassVar[bool] = True
    txid_keyed: ClassVar[bool] = True

    def make(self, folder: Path) -> Any:
        raise NotImplementedError

    def expected(self, batches: list[list[tuple]]) -> dict[tuple, Any]:
        raise NotImplementedError

    def found(self, factory: Any) -> dict[tuple, Any]:
        raise NotImplementedError

    def values(self, txid: int) -> list[tuple]:
        return [(f"w{n % 7}", n % 5 + txid) for n in range(txid, txid + 12)]

    # -- what the tests are made of

    def rows(self, values: list[tuple]) -> list[TridentTuple]:
        return [TridentTuple.of(self.fields, each) for each in values]

    def batch(self, factory: Any, txid: int | None, of: int = 2, conf: dict | None = None, only: Any = None) -> list:
        rows = self.rows(self.grouped(self.values(txid or 1)))
        return run_batch(factory, self.updater, rows, txid, of, conf or {}, only)

    def grouped(self, values: list[tuple]) -> list[tuple]:
        """One tuple per key, as a grouped combiner's updater gets them."""
        return values

    def driver(self, factory: Any, lineage: str = "first", **more: Any) -> tuple[Any, dict]:
        """A new driver: its participant and the conf of its partitions."""
        participant = factory.participant()
        conf = conf_of(lineage, **more)
        conf["trident.generation"] = participant.open(conf)
        return participant, conf

    @pytest.fixture
    def factory(self, tmp_path: Path) -> Any:
        return self.make(tmp_path)

    def holds(self, factory: Any, txids: range) -> None:
        assert self.found(factory) == self.expected([self.values(txid) for txid in txids])

    # -- the promises

    def test_a_replayed_batch_counts_once(self, factory: Any) -> None:
        for txid in (1, 1, 2, 3, 3, 3):
            self.batch(factory, txid)
        self.holds(factory, range(1, 4))

    def test_a_retry_repairs_a_half_done_batch(self, factory: Any) -> None:
        self.batch(factory, 1)
        self.batch(factory, 2, only={1})
        self.batch(factory, 2)
        self.holds(factory, range(1, 3))

    def test_a_commit_whose_answer_was_lost_counts_once(self, factory: Any) -> None:
        state = factory.makeState({}, None, 0, 1)
        rows = self.rows(self.grouped(self.values(1)))
        for _ in range(2):  # the first one's receipt never arrives
            persist(state, 1, self.updater, rows, SILENT)
            state = factory.makeState({}, None, 0, 1)
        self.holds(factory, range(1, 2))

    def test_another_number_of_partitions_loses_and_doubles_nothing(self, factory: Any) -> None:
        for txid, of in ((1, 2), (2, 2), (2, 3), (3, 1), (4, 5), (4, 1)):
            self.batch(factory, txid, of)
        self.holds(factory, range(1, 5))

    def test_an_empty_batch_touches_nothing(self, factory: Any) -> None:
        self.batch(factory, 1)
        before = factory.stored()
        state = factory.makeState({}, None, 0, 1)
        assert persist(state, 2, self.updater, [], SILENT) is None
        assert factory.stored() == before

    def test_a_batch_without_a_txid_is_written(self, factory: Any) -> None:
        self.batch(factory, None)
        self.holds(factory, range(1, 2))

    def test_an_older_driver_is_refused_and_nothing_written(self, factory: Any) -> None:
        _, old = self.driver(factory)
        self.batch(factory, 1, conf=old)
        _, new = self.driver(factory)
        assert new["trident.generation"] == old["trident.generation"] + 1
        before = factory.stored()
        with pytest.raises(ZombieError, match="newer one with generation"):
            self.batch(factory, 2, conf=old)
        assert factory.stored() == before
        self.batch(factory, 1, conf=new)
        self.batch(factory, 2, conf=new)
        self.holds(factory, range(1, 3))

    def test_an_older_driver_cannot_publish(self, factory: Any) -> None:
        old, conf = self.driver(factory)
        self.batch(factory, 1, conf=conf)
        self.driver(factory)
        with pytest.raises(ZombieError, match="taken over"):
            old.publish(1, 0, [])

    def test_an_older_txid_is_refused_and_nothing_written(self, factory: Any) -> None:
        participant, conf = self.driver(factory)
        for txid in (1, 2, 3):
            self.batch(factory, txid, conf=conf)
            participant.publish(txid, 0, [])
        with pytest.raises(ZombieError, match="batch 2 is behind"):
            self.batch(factory, 2, conf=conf)
        self.holds(factory, range(1, 4))
        assert participant.last_txid(conf) == 3

    def test_a_task_of_an_attempt_that_was_given_up_is_refused(self, factory: Any) -> None:
        participant, conf = self.driver(factory)
        participant.prepare(1, 0, 1)
        participant.abort(1, 0)
        participant.prepare(1, 1, 1)
        with pytest.raises(ZombieError, match="attempt 0 of batch 1 was given up"):
            self.batch(factory, 1, conf=conf | {"trident.context": in_attempt(1, 0)})
        assert factory.stored() == {}
        self.batch(factory, 1, conf=conf | {"trident.context": in_attempt(1, 1)})
        with pytest.raises(ZombieError, match="given up"):
            self.batch(factory, 1, conf=conf | {"trident.context": in_attempt(1, 0)})
        self.batch(factory, 2, conf=conf | {"trident.context": in_attempt(2, 0)})
        self.holds(factory, range(1, 3))

    def test_a_lost_checkpoint_is_told_with_the_choices(self, factory: Any) -> None:
        participant, conf = self.driver(factory)
        self.batch(factory, 1, conf=conf)  # not even published
        with pytest.raises(LineageError) as told:
            self.driver(factory, lineage="second")
        for words in ("remembers batch 1", "restore the checkpoint", "topology.txid.base", "new table"):
            assert words in str(told.value)
        with pytest.raises(LineageError, match="is 0, which is behind"):
            self.driver(factory, "second", **{"topology.txid.base": 0})
        participant.publish(1, 0, [])
        self.holds(factory, range(1, 2))

    @pytest.mark.parametrize("base", ["continue", 1, 7])
    def test_a_lost_checkpoint_goes_on_when_told(self, factory: Any, base: Any) -> None:
        _, conf = self.driver(factory)
        self.batch(factory, 1, conf=conf)
        participant, conf = self.driver(factory, "second", **{"topology.txid.base": base})
        assert participant.last_txid(conf) == 1
        self.batch(factory, 2, conf=conf)
        participant.publish(2, 0, [])
        self.driver(factory, "second")  # a restart on the second checkpoint needs no setting
        self.holds(factory, range(1, 3))

    def test_the_factory_is_a_picklable_value_without_secrets(self, tmp_path: Path) -> None:
        factory = self.make(tmp_path)
        copy = pickle.loads(pickle.dumps(factory))
        assert copy == factory == self.make(tmp_path)
        assert hash(copy) == hash(factory)
        assert factory.kind and factory.stateName
        url = f"sqlite:///{tmp_path}/a.db?password=hush&timeout=5"
        secret = replace(factory, url=url)
        assert "hush" not in repr(secret) and "a.db" in repr(secret)
        with pytest.raises(Exception) as told:
            replace(factory, url="nosuchdb://me:hush@host/x")
        assert "hush" not in str(told.value)

    def test_a_bad_row_is_named_and_nothing_of_the_batch_is_written(self, factory: Any) -> None:
        self.batch(factory, 1)
        before = factory.stored()
        rows = self.rows([*self.grouped(self.values(2)), self.bad_row])
        with pytest.raises(StateError) as told:
            persist(factory.makeState({}, None, 0, 1), 2, self.updater, rows, SILENT)
        for words in (factory.table, *self.bad_words):
            assert words in str(told.value)
        assert factory.stored() == before
        self.batch(factory, 2)
        self.holds(factory, range(1, 3))

    def test_every_state_says_what_a_replay_does(self, factory: Any) -> None:
        for each in (type(factory), type(factory.makeState({}, None, 0, 1))):
            assert any(line.strip().startswith("On replay:") for line in (each.__doc__ or "").splitlines())

    # -- with real processes

    def start(self, plan: Plan) -> subprocess.Popen:
        env = dict(os.environ, PYTHONPATH=os.pathsep.join([str(HERE.parent.parent), str(HERE)]))
        return subprocess.Popen(
            [sys.executable, "-W", "error", str(HERE / "crashing.py")],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=env,
        )  # fmt: skip

    def finish(self, plan: Plan) -> int:
        process = self.start(plan)
        _, errors = process.communicate(pickle.dumps(plan), timeout=60)
        assert process.returncode in (0, -signal.SIGKILL), errors.decode()
        return process.returncode

    def plan(self, factory: Any, folder: Path, **more: Any) -> Plan:
        batches = [self.grouped(self.values(txid)) for txid in range(1, 6)]
        return Plan(factory, self.updater, self.fields, batches, folder / "checkpoint", **more)

    @pytest.mark.slow
    @pytest.mark.parametrize("point", POINTS)
    def test_a_process_killed_at_any_point_goes_on_where_it_was(
        self, factory: Any, tmp_path: Path, point: str
    ) -> None:
        assert self.finish(self.plan(factory, tmp_path, point=point, at=3)) == -signal.SIGKILL
        main(self.plan(factory, tmp_path))  # the next driver, on the same checkpoint
        self.holds(factory, range(1, 6))

    @pytest.mark.slow
    def test_several_processes_write_their_partitions_at_once(self, factory: Any, tmp_path: Path) -> None:
        plans = [
            Plan(factory, self.updater, self.fields, [self.grouped(self.values(t)) for t in range(1, 9)],
                 tmp_path / f"c{only}", only=only, partitions=4, fenced=False)
            for only in range(4)
        ]  # fmt: skip
        processes = [self.start(plan) for plan in plans]
        for process, plan in zip(processes, plans, strict=True):
            assert process.stdin is not None
            process.stdin.write(pickle.dumps(plan))
            process.stdin.close()
            process.stdin = None
        for process in processes:
            _, errors = process.communicate(timeout=60)
            assert process.returncode == 0, errors.decode()
        self.holds(factory, range(1, 9))


class MapContract(StateContract):
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

    def found(self, factory: SqlMapState) -> dict[tuple, Any]:
        at = {"transactional": 1, "opaque": 1}[factory.kind]
        return {key: value[at] for key, value in factory.stored().items()}


class RowContract(StateContract):
    """A state of rows under a deterministic key."""

    fields = Fields("word", "n")
    updater = RowUpdater()
    bad_row = ("x", 1.5)
    bad_words = ("row 12", "word='x', n=1.5", "'n'", "bigint", "1.5", "Nothing of the batch is written")

    def values(self, txid: int) -> list[tuple]:
        return [(f"w{txid}-{n}", n) for n in range(10)] + [(f"w{max(txid - 1, 1)}-0", 0)] * 2

    def expected(self, batches: list[list[tuple]]) -> dict[tuple, Any]:
        return {(word,): (n,) for batch in batches for word, n in batch}

    def found(self, factory: InsertIgnoreState) -> dict[tuple, Any]:
        return factory.stored()


__all__ = ["MapContract", "RowContract", "StateContract", "partition_of"]
