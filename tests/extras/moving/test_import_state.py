"""`trident import state`: every form of Storm's values, from every source, into our maps; killed, and repeated."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from click.testing import CliRunner
from faults.forks import fork

from states.redis import RedisMapState
from states.sql import SqlMapState
from trident_py.cli import trident
from trident_py.errors import DefinitionError, StateError
from trident_py.extras.moving import state_import
from trident_py.extras.moving.checkpoint import Moved
from trident_py.extras.moving.sources import DumpSource, RedisSource, ValueSource
from trident_py.extras.moving.state_import import Result, import_values, rebase_in_place
from trident_py.extras.moving.storm_values import Rebase
from trident_py.extras.moving.table_source import TableSource
from trident_py.state import OpaqueValue, StateType, TransactionalValue
from trident_py.tuples import Fields

OPAQUE, TRANSACTIONAL, PLAIN = StateType.OPAQUE, StateType.TRANSACTIONAL, StateType.NON_TRANSACTIONAL
QUIET, UNDER_WAY = Moved(7, 7), Moved(7, 7, under_way=True)
REPEATED = Moved(7, 7, under_way=True, repeats=True)


def dump(file: Path, rows: dict[Any, Any]) -> Path:
    file.write_text("".join(json.dumps({"key": key, "value": value}) + "\n" for key, value in rows.items()))
    return file


def state_of(folder: Path, kind: StateType = OPAQUE) -> SqlMapState:
    return SqlMapState(f"sqlite:///{folder}/c.db", "c", Fields("word string"), Fields("count bigint"), kind)


def take(source: ValueSource, target: Any, moved: Moved = QUIET, split: str | None = None) -> Result:
    return import_values(source, target.open_values(), moved, split, False, lambda keys: None)


def test_a_value_of_the_batch_under_way_is_the_one_before_it() -> None:
    rebase = Rebase(OPAQUE, OPAQUE, UNDER_WAY)
    values = [OpaqueValue(6, 3, 2), OpaqueValue(8, 5, 4), OpaqueValue(8, 1, None), OpaqueValue(None, 9, 8)]
    keys, stored = rebase([("a",), ("b",), ("new",), ("outside",)], values)
    assert keys == [("a",), ("b",), ("outside",)]
    assert stored == [OpaqueValue(6, 3, 2), OpaqueValue(7, 4, 4), OpaqueValue(7, 9, 8)]
    again = Rebase(OPAQUE, OPAQUE, UNDER_WAY)
    assert again(keys, stored) == (keys, stored), "twice is the same as once"


def test_a_repeated_batch_keeps_its_transactional_values() -> None:
    rebase = Rebase(TRANSACTIONAL, TRANSACTIONAL, REPEATED)
    keys = [("a",), ("b",)]
    values = [TransactionalValue(6, 3), TransactionalValue(8, 5)]
    assert rebase(keys, values) == (keys, values)
    assert rebase.tally.kept == 1


@pytest.mark.parametrize(
    ("source", "target", "moved", "value", "text"),
    [
        (TRANSACTIONAL, TRANSACTIONAL, UNDER_WAY, TransactionalValue(8, 5), "its spout was opaque. Start Storm again"),
        (TRANSACTIONAL, OPAQUE, REPEATED, TransactionalValue(8, 5), "our state must be transactional"),
        (OPAQUE, OPAQUE, UNDER_WAY, OpaqueValue(9, 5, 4), "has txid 9, and the checkpoint was imported at txid 7"),
    ],
)
def test_what_cannot_be_decided_is_refused(source: Any, target: Any, moved: Any, value: Any, text: str) -> None:
    with pytest.raises(StateError, match=text):
        Rebase(source, target, moved)([("a",)], [value])


def test_a_plain_value_does_not_say_whether_it_has_the_batch_under_way() -> None:
    with pytest.raises(DefinitionError, match=r"Choose: \(1\) start Storm again.*\(2\).*--accept-under-way"):
        Rebase(PLAIN, OPAQUE, UNDER_WAY)
    assert Rebase(PLAIN, OPAQUE, UNDER_WAY, accept=True)([("a",)], [5]) == ([("a",)], [OpaqueValue(7, 5, None)])
    assert Rebase(PLAIN, TRANSACTIONAL, QUIET)([("a",)], [5]) == ([("a",)], [TransactionalValue(7, 5)])


FORMS: dict[StateType, dict[str, Any]] = {
    PLAIN: {"a": 3, "b": 4}, TRANSACTIONAL: {"a": [6, 3], "b": [7, 4]}, OPAQUE: {"a": [6, 3, 2], "b": [7, 4, None]},
}  # fmt: skip


@pytest.mark.parametrize("target", list(StateType), ids=lambda kind: f"into {kind.value}")
@pytest.mark.parametrize("source", list(StateType), ids=lambda kind: kind.value)
def test_every_form_goes_into_every_kind(source: StateType, target: StateType, tmp_path: Path) -> None:
    state = state_of(tmp_path, target)
    done = take(DumpSource(dump(tmp_path / "d", FORMS[source]), source), state)
    done.check("c")
    assert {key[0]: value if target is PLAIN else value[1] for key, value in state.stored().items()} == {"a": 3, "b": 4}


def test_types_are_declared_and_keys_are_split(tmp_path: Path) -> None:
    state = SqlMapState.opaque(f"sqlite:///{tmp_path}/c.db", "c", key=["user bigint", "day string"], value="sum double")
    source = DumpSource(dump(tmp_path / "d", {"7|mon": [3, 1.5, None], "12|tue": [3, 2.0, 1.0]}), OPAQUE)
    take(source, state, QUIET, "|").check("c")
    assert state.stored() == {(7, "mon"): OpaqueValue(3, 1.5, None), (12, "tue"): OpaqueValue(3, 2.0, 1.0)}
    with pytest.raises(StateError, match="has 1 fields, and our state has 2"):
        take(source, state)


TYPED_KEYS = {
    "tinyint": ("7", 7), "byte": ("-7", -7), "smallint": ("7", 7), "short": ("7", 7), "int": ("7", 7),
    "integer": ("7", 7), "bigint": ("7", 7), "long": ("7", 7), "float": ("0.5", 0.5), "real": ("0.5", 0.5),
    "double": ("1.5E3", 1500.0),
    "decimal(9,2)": ("1.5", Decimal("1.5")), "numeric(9,2)": ("7", Decimal(7)), "boolean": ("true", True),
    "bool": ("false", False), "date": ("2026-11-26", date(2026, 11, 26)), "string": ("7", "7"),
    "timestamp": ("2026-11-26 10:00:00.5", datetime(2026, 11, 26, 10, 0, 0, 500_000)),
}  # fmt: skip
NO_KEYS = {
    "int": ("05", "1_0", " 7", "+7", "x", "", "7.0"), "date": ("20261126", "26.11.2026"), "boolean": ("True", "1"),
    "double": ("1_0", " 1.0", "x"), "decimal(9,2)": ("1_0", " 1", "x"), "timestamp": ("now",),
}  # fmt: skip


@pytest.mark.parametrize("ddl", TYPED_KEYS)
def test_a_text_is_a_key_of_each_type(ddl: str, tmp_path: Path) -> None:
    text, key = TYPED_KEYS[ddl]
    state = SqlMapState.opaque(f"sqlite:///{tmp_path}/c.db", "c", key=f"k {ddl}", value="count bigint")
    take(DumpSource(dump(tmp_path / "d", {text: [3, 1, None]}), OPAQUE), state).check("c")
    assert state.stored() == {(key,): OpaqueValue(3, 1, None)}


@pytest.mark.parametrize(("ddl", "text"), [(ddl, text) for ddl, texts in NO_KEYS.items() for text in texts])
def test_a_text_that_is_no_key_of_the_type_is_refused(ddl: str, text: str, tmp_path: Path) -> None:
    state = SqlMapState.opaque(f"sqlite:///{tmp_path}/c.db", "c", key=f"k {ddl}", value="count bigint")
    with pytest.raises(StateError, match="a key does not fit the declared types"):
        take(DumpSource(dump(tmp_path / "d", {text: [3, 1, None]}), OPAQUE), state)
    assert state.stored() == {}


@pytest.mark.parametrize(("ddl", "texts"), [("double", ["1", "1.0"]), ("decimal(9,2)", ["1.5", "1.50"])])
def test_two_keys_of_storm_that_are_one_here_are_counted(ddl: str, texts: list[str], tmp_path: Path) -> None:
    state = SqlMapState.opaque(f"sqlite:///{tmp_path}/c.db", "c", key=f"k {ddl}", value="count bigint")
    done = take(DumpSource(dump(tmp_path / "d", {text: [3, n, None] for n, text in enumerate(texts)}), OPAQUE), state)
    with pytest.raises(StateError, match=r"c holds 1 keys, and Storm's state 2: .*two of Storm's are one key here"):
        done.check("c")


@pytest.mark.parametrize("kind", list(StateType))
def test_numbers_go_into_decimals_as_they_are_written(kind: StateType, tmp_path: Path) -> None:
    url, form = f"sqlite:///{tmp_path}/c.db", {PLAIN: "%s", TRANSACTIONAL: "[3, %s]", OPAQUE: "[3, %s, %s]"}[kind]
    exact, long = "12.35", "12345678901234567890.12"
    state = SqlMapState(url, "c", Fields("word string"), Fields("sum decimal(30,2)"), kind)
    texts = [form.replace("%s", number) for number in (exact, long, "10")]
    (tmp_path / "d").write_text("".join(f'{{"key": "{n}", "value": {text}}}\n' for n, text in enumerate(texts)))
    take(DumpSource(tmp_path / "d", kind), state).check("c")
    found = [value if kind is PLAIN else value[1] for _, value in sorted(state.stored().items())]
    assert found == [Decimal(exact), Decimal(long), Decimal(10)]
    rows = SqlMapState(url, "rows", Fields("word string"), Fields("sum decimal(30,2)", "mean double"), kind)
    text = form.replace("%s", f"[{long}, 0.1]")
    (tmp_path / "d").write_text(json.dumps({"key": "a", "text": text}) + "\n")
    take(DumpSource(tmp_path / "d", kind), rows).check("rows")
    (found,) = (value if kind is PLAIN else value[1] for value in rows.stored().values())
    assert tuple(found) == (Decimal(long), 0.1) and list(map(type, found)) == [Decimal, float]


def test_a_key_is_cut_into_as_many_fields_as_the_state_has(tmp_path: Path) -> None:
    for table, types in {"c": ["a string", "b string"], "d": ["a string", "b int"]}.items():
        state = SqlMapState.opaque(f"sqlite:///{tmp_path}/c.db", table, key=types, value="count bigint")
        source = DumpSource(dump(tmp_path / "d", {"x:1": [3, 1, None], "x:1:2": [3, 1, None]}), OPAQUE)
        with pytest.raises(StateError, match=r"key \['x', '1', '2'\] has 3 fields, and our state has 2 \(a, b\)"):
            take(source, state, QUIET, ":")
        (tmp_path / "d").write_text('{"key": 7, "value": [3, 1, null]}\n')
        with pytest.raises(StateError, match=r"key \[7\] cannot be cut at ':'"):
            take(source, state, QUIET, ":")


def test_a_global_aggregate_has_its_key_here(tmp_path: Path) -> None:
    state = SqlMapState.opaque(f"sqlite:///{tmp_path}/c.db", "c")
    source = DumpSource(dump(tmp_path / "d", {"$REDIS-MAP-STATE-GLOBAL": [3, 12, 11]}), OPAQUE)
    take(source, state).check("c")
    assert state.stored() == {("$GLOBAL$",): OpaqueValue(3, 12, 11)}


@pytest.mark.parametrize("text", [False, True], ids=["columns", "Storm's text"])
def test_a_table_is_read_in_parts(text: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(state_import, "SIZE", 100)
    url = f"sqlite:///{tmp_path}/storm.db"
    engine = sa.create_engine(url)
    rows = [(f"w{n}", n % 9 + 1, n, n - 1) for n in range(1050)]
    with engine.begin() as connection:
        if text:
            connection.execute(sa.text("CREATE TABLE t (word text, value blob)"))
            every = [{"w": word, "v": json.dumps(rest).encode()} for word, *rest in rows]
            connection.execute(sa.text("INSERT INTO t VALUES (:w, :v)"), every)
        else:
            connection.execute(sa.text("CREATE TABLE t (word text, txid int, value int, before int)"))
            every = [{"w": w, "t": t, "v": v, "p": p} for w, t, v, p in rows]
            connection.execute(sa.text("INSERT INTO t VALUES (:w, :t, :v, :p)"), every)
    engine.dispose()
    more = {} if text else {"txid": "txid", "previous": ("before",)}
    source = TableSource(url, "t", OPAQUE, ("word",), ("value",), **more)
    state = state_of(tmp_path)
    done = take(source, state, Moved(8, 8, True))
    done.check("c")
    ahead = sum(1 for row in rows if row[1] == 9)
    assert (done.keys, done.count, done.tally.previous, done.source) == (1050, 1050, ahead, done.target)
    assert state.stored() == {
        (w,): OpaqueValue(t, v, p) if t < 9 else OpaqueValue(8, p, p) for w, t, v, p in rows
    }  # fmt: skip


def test_another_form_than_the_kind_is_refused(tmp_path: Path) -> None:
    state = state_of(tmp_path)
    source = DumpSource(dump(tmp_path / "d", {"a": [3, 1]}), OPAQUE)
    with pytest.raises(StateError, match=r"key \['a'\]: \[3, 1\] is not \[currTxid, curr, prev\]"):
        take(source, state)
    (tmp_path / "d").write_text('{"key": "a"}\n')
    with pytest.raises(StateError, match="line 1: expected"):
        take(source, state)


def test_what_is_not_of_the_import_is_counted(tmp_path: Path) -> None:
    state = state_of(tmp_path)
    state.open_values().put([("stranger",)], [OpaqueValue(1, 1, None)])
    source = DumpSource(dump(tmp_path / "d", FORMS[OPAQUE]), OPAQUE)
    done = take(source, state)
    with pytest.raises(StateError, match="c holds 3 keys, and Storm's state 2"):
        done.check("c")


def _die_at_the_third(folder: Path) -> None:
    parts: list[int] = []

    def tell(keys: int) -> None:
        parts.append(keys)
        if len(parts) == 3:
            os.kill(os.getpid(), 9)

    state_import.SIZE = 100
    import_values(DumpSource(folder / "d", OPAQUE), state_of(folder).open_values(), UNDER_WAY, None, False, tell)


def test_killed_in_the_middle_and_repeated(tmp_path: Path) -> None:
    rows = {f"w{n}": [n % 8 + 1, n, n - 1] for n in range(1000)}
    dump(tmp_path / "d", rows)
    process = fork(_die_at_the_third, tmp_path)
    process.start()
    process.join()
    assert process.exitcode == -9
    assert len(state_of(tmp_path).stored()) == 400, "a part is written while the one before is compared"
    done = take(DumpSource(tmp_path / "d", OPAQUE), state_of(tmp_path), UNDER_WAY)
    done.check("c")
    assert state_of(tmp_path).stored() == {
        (w,): OpaqueValue(t, v, p) if t < 8 else OpaqueValue(7, p, p) for w, (t, v, p) in rows.items()
    }


@pytest.mark.servers
@pytest.mark.parametrize("hash_", [None, "words"], ids=["strings", "hash"])
def test_redis_into_a_table_and_in_place(hash_: str | None, redis: str, tmp_path: Path) -> None:
    import redis as client

    server, prefix = client.from_url(redis), f"{tmp_path.name}:"
    name = None if hash_ is None else f"{prefix}words"
    rows = {f"{prefix}a": "[7,3,2]", f"{prefix}b": "[8,5,4]", f"{prefix}new": "[8,1,null]"}
    server.mset(rows) if name is None else server.hset(name, mapping=rows)
    source = RedisSource(redis, name, OPAQUE, f"{prefix}*")
    wanted = {(f"{prefix}a",): OpaqueValue(7, 3, 2), (f"{prefix}b",): OpaqueValue(7, 4, 4)}
    done = take(source, state_of(tmp_path), UNDER_WAY)
    done.check("c")
    assert (state_of(tmp_path).stored(), done.tally.absent) == (wanted, 1)
    target = RedisMapState.opaque(redis, f"{prefix}target")
    take(source, target, UNDER_WAY).check("target")
    assert target.stored() == wanted
    for _ in range(2):
        rebase_in_place(source, UNDER_WAY, False, lambda keys: None).check("in place")
        assert {key: value for part in source.read(10) for key, value in zip(*part, strict=True)} == wanted


@pytest.mark.servers
def test_a_value_that_is_changed_in_place_keeps_all_digits(redis: str, tmp_path: Path) -> None:
    import redis as client

    server, name = client.from_url(redis), tmp_path.name
    server.hset(name, "a", '[8,5,{"sum": 12345678901234567.89}]')
    rebase_in_place(RedisSource(redis, name, OPAQUE), UNDER_WAY, False, lambda keys: None).check("in place")
    assert server.hget(name, "a").count(b"12345678901234567.89") == 2


@pytest.mark.servers
def test_a_value_that_expires_still_does_after_it_was_changed_in_place(redis: str, tmp_path: Path) -> None:
    import redis as client

    server, prefix = client.from_url(redis), f"{tmp_path.name}:"
    server.set(f"{prefix}a", "[8,5,4]", ex=1000)
    source = RedisSource(redis, None, OPAQUE, f"{prefix}*")
    rebase_in_place(source, UNDER_WAY, False, lambda keys: None).check("in place")
    assert json.loads(server.get(f"{prefix}a")) == [7, 4, 4]
    assert 0 < server.ttl(f"{prefix}a") <= 1000


@pytest.mark.servers
def test_a_name_in_redis_that_is_no_text_is_refused(redis: str, tmp_path: Path) -> None:
    import redis as client

    client.from_url(redis).hset(tmp_path.name, mapping={b"\xff": "[3,1,null]"})
    source = RedisSource(redis, tmp_path.name, OPAQUE)
    for take_over in (lambda: take(source, state_of(tmp_path)), lambda: rebase_in_place(source, QUIET, False, print)):
        with pytest.raises(StateError, match=r"name b'\\xff' is not UTF-8"):
            take_over()


class Joined:
    """Makes one name of all fields of a key."""

    def build(self, key: Any) -> str:
        return "|".join(map(str, key))


@pytest.mark.servers
def test_a_key_in_redis_is_a_name_that_the_state_makes(redis: str, tmp_path: Path) -> None:
    rows = [{"key": ["alice", "mon"], "value": [3, 1, None]}, {"key": ["alice", "tue"], "value": [3, 2, None]}]
    (tmp_path / "d").write_text("".join(json.dumps(row) + "\n" for row in rows))
    source, target = DumpSource(tmp_path / "d", OPAQUE), RedisMapState.opaque(redis, f"{tmp_path.name}:days")
    with pytest.raises(StateError, match=r"key \['alice', 'mon'\] has 2 fields, .* Give the state a keyFactory"):
        take(source, target)
    assert target.stored() == {}
    made = replace(target, keyFactory=Joined())
    take(source, made).check("days")
    assert made.stored() == {("alice|mon",): OpaqueValue(3, 1, None), ("alice|tue",): OpaqueValue(3, 2, None)}
    for wrong, text in {"trident:x": "are those of the ledger", 7: "the default KeyFactory takes a text"}.items():
        (tmp_path / "d").write_text(json.dumps({"key": wrong, "value": [3, 1, None]}) + "\n")
        with pytest.raises(StateError, match=text):
            take(source, RedisMapState.opaque(redis))


def test_the_command_names_what_is_missing(tmp_path: Path) -> None:
    dump(tmp_path / "d", FORMS[OPAQUE])
    common = ["import", "state", "--kind", "opaque", "--checkpoint", str(tmp_path)]
    for more, text in {
        ("--from", "redis://h/0", "--table", "t", "--in-place"): "--table does not go with --from redis",
        ("--from", f"{tmp_path}/d"): "name the state with --into FILE:STATE, or say --in-place, which says where",
        ("--from", f"{tmp_path}/d", "--into", "s.yaml:c", "--in-place"): "or say --in-place, and not both",
        ("--from", "redis://h/0", "--in-place"): "has 0 checkpoints that `trident import offsets` has made",
    }.items():
        refused = CliRunner().invoke(trident, [*common, *more])
        assert (refused.exit_code, text in refused.output) == (2, True), refused.output


def test_different_keys_are_counted_as_such() -> None:
    digest = state_import.Digest()
    digest.note([(-1,), (-2,), (-1,), ("-1",)])
    assert digest.keys == 3
