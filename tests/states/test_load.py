"""`states.load`: states by name, in a file. What it makes, what it refuses and with which words, what it hides."""

from __future__ import annotations

import inspect
import json
import re
import subprocess
import sys
from importlib.metadata import EntryPoint
from pathlib import Path
from pkgutil import resolve_name
from typing import Any
from urllib.parse import quote

import jsonschema
import pytest

import states
from states.loading import StateSettings, find_types
from states.loading.kafka_models import CompactedTopic, Topic, TransactionalTopic
from states.loading.models import Append, Batch, InsertIgnore, Sequenced, SqlMap, Window
from states.sql import InsertIgnoreState, SqlMapState
from trident_py.errors import DefinitionError
from trident_py.extras.files.models import FileSettings
from trident_py.extras.redis.models import RedisMap, RedisTexts

OURS = {
    "append": Append, "batch": Batch, "insert-ignore": InsertIgnore, "sequence": Sequenced, "sql-map": SqlMap,
    "window": Window,
}  # fmt: skip
KAFKA = {"compacted-topic": CompactedTopic, "topic": Topic, "transactional-topic": TransactionalTopic}
REDIS = {"redis": RedisTexts, "redis-map": RedisMap}
FILES = {"file": FileSettings}
MAP = "{type: sql-map, kind: opaque, url: 'sqlite:///c.db', table: t"


def written(folder: Path, text: str) -> Path:
    path = folder / "states.yaml"
    path.write_text(text)
    return path


def refused(folder: Path, text: str) -> str:
    with pytest.raises(DefinitionError) as caught:
        states.load(written(folder, text))
    assert caught.value.__cause__ is None and caught.value.__context__ is None  # pydantic's holds the values
    return str(caught.value)


def test_a_file_makes_the_factories_that_code_would_make(tmp_path: Path) -> None:
    path = written(
        tmp_path,
        """
states:
  counts:
    type: sql-map
    kind: opaque
    url: sqlite:////tmp/counts.db
    table: counts
    key: [word string, day date]
    value: count bigint
  total: {type: sql-map, kind: non-transactional, url: "sqlite:////tmp/counts.db", table: total}
  latest: {type: sql-map, kind: transactional, url: "sqlite:////tmp/c.db", table: l, key: k, value: [a int, b string]}
  rows:
    type: insert-ignore
    url: sqlite:////tmp/rows.db
    table: readings
    key: id string
    columns: [id string, celsius double]
""",
    )
    assert states.load(path) == {
        "counts": SqlMapState.opaque("sqlite:////tmp/counts.db", "counts", ["word string", "day date"], "count bigint"),
        "total": SqlMapState.nonTransactional("sqlite:////tmp/counts.db", "total"),
        "latest": SqlMapState.transactional("sqlite:////tmp/c.db", "l", "k", ["a int", "b string"]),
        "rows": InsertIgnoreState(
            "sqlite:////tmp/rows.db", "readings", "id string", ["id string", "celsius double"]
        ),
    }  # fmt: skip


def test_a_relative_sqlite_path_is_of_the_current_folder_as_in_code(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "conf").mkdir()
    monkeypatch.chdir(tmp_path)
    made = states.load(written(tmp_path / "conf", f"states:\n  c: {MAP}}}"))
    assert made["c"] == SqlMapState.opaque(f"sqlite:///{tmp_path}/c.db", "t")


@pytest.mark.parametrize("name", OURS)
def test_the_settings_of_a_type_fit_its_factory(name: str) -> None:
    """Every key of a type is an argument of the factory: a renamed one would fail at the user's."""
    model: Any = OURS[name]
    target = resolve_name(model.factory)
    signature = inspect.signature(target.opaque if model is SqlMap else target)
    named = {"kind"} if model is SqlMap else set()  # the name of the constructor
    assert set(model.model_fields) - named <= set(signature.parameters)
    assert model is SqlMap or target.kind in model.kinds


@pytest.mark.parametrize(
    ("name", "settings"),
    [
        ("append", "columns: [id string], onBadRow: dead-letter"),
        ("batch", "columns: [id string], key: id string"),
        ("sequence", "sender: device string, sequence: n, columns: [device string, n bigint], onGap: report"),
        ("insert-ignore", "key: id string, onConflict: report, onBadRow: dead-letter"),
    ],
)
def test_every_type_makes_its_state(name: str, settings: str, tmp_path: Path) -> None:
    text = f"states:\n  a: {{type: {name}, url: 'sqlite:///r.db', table: r, {settings}}}"
    made = states.load(written(tmp_path, text))
    assert type(made["a"]) is resolve_name(OURS[name].factory)


# -- the environment


def test_variables_stand_anywhere_in_values(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FOLDER", "/tmp/a: b")  # not YAML again: the value is text, whatever it holds
    monkeypatch.setenv("FIRST", "3")
    monkeypatch.setenv("EMPTY", "")
    monkeypatch.delenv("TABLE", raising=False)
    path = written(
        tmp_path,
        """
states:
  c:
    type: sql-map
    kind: ${EMPTY:-opaque}
    url: sqlite:///${FOLDER}/$$x.db
    table: ${TABLE:-counts}${EMPTY}
    key: ["${KEY:-word} string"]
  r: {type: sequence, url: "sqlite:///r.db", table: r, sender: who string, sequence: n bigint, first: "${FIRST}"}
""",
    )
    expected = SqlMapState.opaque("sqlite:////tmp/a: b/$x.db", "counts", ["word string"])
    loaded = states.load(path)
    assert loaded["c"] == expected and loaded["r"].first == 3


OLDER = {
    "options: {value: n int}": "value: n int",
    "key: a string, options: {value: n int}": "key: a string, value: n int",
    "options: {}": "value: count bigint",
}


@pytest.mark.parametrize("older", OLDER)
def test_what_stood_in_options_may_still_stand_there(older: str, tmp_path: Path) -> None:
    made = [states.load(written(tmp_path, f"states:\n  c: {MAP}, {text}}}")) for text in (older, OLDER[older])]
    assert made[0] == made[1]


def test_a_key_beside_and_in_options_is_refused(tmp_path: Path) -> None:
    for text in ("value: n int, options: {value: m int}", "options: {vale: n int}"):
        assert "no such key; it has: url, table, " in refused(tmp_path, f"states:\n  c: {MAP}, {text}}}")


def test_a_missing_variable_is_named_with_its_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NOT_THERE", raising=False)
    text = "states:\n  c:\n    type: sql-map\n    kind: opaque\n    table: t\n    url: ${NOT_THERE}\n"
    error = refused(tmp_path, text)
    assert error == (
        f"{tmp_path}/states.yaml:6: states.c.url: the environment variable NOT_THERE is not set; "
        "set it, or give it a default: ${NOT_THERE:-default}"
    )


@pytest.mark.parametrize("text", ["${}", "${A B}", "${A:=x}", "${A", "${A:-${B}}"])
def test_a_variable_of_another_form_is_refused_not_guessed(text: str, tmp_path: Path) -> None:
    assert "a variable as ${NAME} or ${NAME:-default}" in refused(tmp_path, f"states:\n  c: {MAP}, key: '{text}'}}")


# -- secrets


def test_no_secret_is_in_a_repr(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PASSWORD", "hush+hush")
    url = "mysql+pymysql://me:${PASSWORD}@db.example:3306/app"
    path = written(tmp_path, f"states:\n  c: {{type: sql-map, kind: opaque, url: '{url}', table: t, key: k string}}")
    assert "hush" not in repr(states.load(path))
    settings = SqlMap(kind="opaque", url="mysql+pymysql://me:hush@h/app", table="t")
    assert "hush" not in f"{settings!r} {settings} {[settings]}"


@pytest.mark.parametrize(
    "broken",
    [
        "url: 'mysql+nope://me:hushhush@h/app', table: t, kind: opaque",  # a password in the file
        "url: 'mysql+nope://me:${SECRET}@h/app', table: t, kind: opaque",
        "url: '${WHOLE}', table: t, kind: opaque",
        "url: 'sqlite:///a.db', table: t, kind: '${SECRET}'",
        "url: 'sqlite:///a.db', table: t, kind: opaque, key: 'word ${SECRET}'",  # the refusal quotes the type alone
        "url: 'sqlite:///a.db', table: t, kind: opaque, key: ['${TWO}']",
        "url: 'sqlite:///a.db', table: t, kind: opaque, key: ['a${SECRET} int', 'a${SECRET} int']",
        "url: 'sqlite:///a.db', table: 'a\"${SECRET}', kind: opaque",  # refused by the factory
    ],
)
def test_no_secret_is_in_an_error(broken: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SECRET", "hushhush")
    monkeypatch.setenv("WHOLE", "mysql+nope://me:hushhush@hushhush/app")
    monkeypatch.setenv("TWO", "word hushhush")
    error = refused(tmp_path, f"states:\n  c: {{type: sql-map, {broken}}}")
    assert "hushhush" not in error
    assert f"{tmp_path}/states.yaml:2: states.c" in error


@pytest.mark.parametrize("password", ["hush@hush", "hush@hush/x#y", "@hush", "hush@"])
def test_an_at_in_a_password_is_refused_until_it_is_encoded(
    password: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The rest of it stood for the host: it was in the repr, and each start waited for that host."""
    text = "states:\n  c: {type: append, url: 'mysql+pymysql://me:${PW}@db.example/a', table: t}"
    monkeypatch.setenv("PW", password)
    error = refused(tmp_path, text)
    assert "percent-encode an @ in user or password (%40)" in error and "hush" not in error
    monkeypatch.setenv("PW", quote(password, safe=""))
    assert "hush" not in repr(states.load(written(tmp_path, text)))


def test_a_secret_is_hidden_in_the_texts_of_its_own_state_alone(tmp_path: Path) -> None:
    """A password such as `wrong` would else be read off from where it is missing."""
    password = "url: 'mysql+pymysql://me:wrong@127.0.0.1:9/app', table: t"
    other = "{type: append, url: 'sqlite:///wrong.db', table: "
    path = written(tmp_path, f"states:\n  a: {{type: append, {password}}}\n  b: {other}wrongcols}}\n")
    first, second = states.loading.look(path)
    assert "wrong" not in f"{first}"
    assert "'wrongcols'" in second.state and "wrongcols" in second.findings[-1].text and "***" not in f"{second}"
    broken = f"states:\n  a: {{type: append, {password}}}\n  b: {other}'wrong%'}}"
    assert "'wrong%' cannot name a table" in refused(tmp_path, broken)


def test_a_look_warns_of_two_states_in_one_place(tmp_path: Path) -> None:
    state = "{{type: sql-map, kind: opaque, url: 'sqlite:///{}.db', table: {}, key: a int}}"
    lines = [("one", "a", "same"), ("two", "a", "SAME"), ("three", "a", "other"), ("four", "b", "same")]
    text = "".join(f"  {name}: {state.format(tmp_path / file, table)}\n" for name, file, table in lines)
    looks = states.loading.look(written(tmp_path, f"states:\n{text}"))
    warned = {look.name: finding.text for look in looks for finding in look.findings if finding.level == "warning"}
    assert set(warned) == {"one", "two"} and not any(look.stops for look in looks)
    assert warned["one"].startswith("one and two would update the same table 'same' in sqlite:///")


# -- what is refused


@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        ("c: {type: sqlmap}", 2, "states.c.type: no type 'sqlmap'; installed are: append, batch, compacted-topic, "),
        ("c: {type: sqlmap}", 2, "Did you mean sql-map?"),
        ("c: {kind: opaque}", 2, "states.c: type is missing; installed are: append"),
        ("c: [1]", 2, "states.c: found ['1']; expected a mapping with type: and the type's settings"),
        (f"c: {MAP},\n    vale: x int}}", 3, "states.c.vale: sql-map has no such key; it has: url, table, kind, key, "),
        (f"c: {MAP},\n    vale: x int}}", 3, "Did you mean value?"),
        (f"c: {MAP},\n    fils: 2}}", 3, "c.fils: sql-map has no such key; it has: url, table, kind, key, value"),
        ("c:\n    type: sql-map\n    kind: opque", 4, "states.c.kind: found 'opque'; there are: non-transactional, "),
        ("c:\n    type: sql-map\n    kind: opque", 4, "Did you mean opaque?"),
        ("c:\n    type: sql-map\n    kind: opaque", 2, "states.c.url: is missing; sql-map needs: url, table, kind"),
        (f"c: {MAP}, key: [a string,\n    b strng]}}", 2, "column 'b': unknown type 'strng'; there are: bigint, "),
        (f"c: {MAP}, key: []}}", 2, "states.c.key: found a list or mapping: expected at least one field"),
        (f"c: {MAP}, key: [a int, a int]}}", 2, "duplicate field 'a'"),
        (f"c: {MAP}, key: txid int}}", 2, "'txid' is a column of the state itself, which has txid, prev_count. Give"),
        (f"c: {MAP}, key: prev_count int}}", 2, "'prev_count' is a column of the state itself"),
        (f"c: {MAP}, value: [n int, prev_n int]}}", 2, "'prev_n' is a column of the state itself"),
        ("c: {type: append, url: 'sqlite:///a.db', table: t, txid: b, columns: [a int, b int]}", 2,
         "'b' is the column of the txid, which the state fills itself"),
        ("c: {type: topic, bootstrap: 'a:1', topic: t, partitions: 0}", 2,
         "states.c.partitions: found '0': expected at least 1"),
        ("c: {type: topic, bootstrap: 'a:1', topic: t, partitions: yes}", 2,
         "states.c.partitions: found 'yes': expected an integer"),
        ("c: {type: topic, bootstrap: 'a:1', topic: t, settings: {linger.ms: ~}}", 2,
         "states.c.settings.linger.ms: found '~': expected a string"),
        ("c: {type: file, uri: rows, retention: 1.5}", 2, "states.c.retention: found '1.5': expected an integer"),
        ("c: {type: file, uri: rows, retention: true}", 2, "states.c.retention: found 'true': expected an integer"),
        ("c: {type: file, uri: rows, visible: manifest, compact: on}", 2, "states.c.compact: found 'on': expected"),
        ("c: {type: redis-map, kind: opaque, url: 'redis://h', expireIntervalSec: yes}", 2,
         "states.c.expireIntervalSec: found 'yes': expected a number"),
        ("c: {type: compacted-topic, bootstrap: 'a:1', topic: t, key: k, value: v, restart: .inf}", 2,
         "states.c.restart: found '.inf': expected less than"),
        ("c: {type: topic, bootstrap: 'a:1', topic: t, settings: {sasl.password: 0042}}", 2,
         "states.c.settings.sasl.password: YAML reads this as a number in base 8 or 60; put it in quotes"),
        ("c: {type: file, uri: rows, retention: 1:30}", 2, "states.c.retention: YAML reads this as a number in base"),
        ("c: {type: sequence, url: 'sqlite:///a.db', table: t, sender: s, sequence: n, first: true}", 2,
         "states.c.first: found 'true': expected an integer"),
        ("c: {type: sequence, url: 'sqlite:///a.db', table: t, sender: s, sequence: n, first: 9223372036854775808}", 2,
         "first must be a whole number of 64 bits, got 9223372036854775808"),
        ("c: {type: insert-ignore, url: 'sqlite:///a.db', table: 5, key: a}", 2, "table: found '5': expected a string"),
        ("c: {type: insert-ignore, url: 'oracle://a/b', table: t, key: a}", 2, "has no dialect for 'oracle'"),
        ("c: {type: insert-ignore, url: 'sqlite:///a.db', table: t, key: a, columns: [b]}", 2, "the key fields ['a']"),
        (f"c: {MAP}, key: 2026-02-31}}", 2, "states.c.key: found '2026-02-31', which is not a valid timestamp"),
    ],
)  # fmt: skip
def test_an_error_says_where_what_was_found_and_what_exists(text: str, line: int, words: str, tmp_path: Path) -> None:
    error = refused(tmp_path, f"states:\n  {text}\n")
    assert any(part.lstrip().startswith(f"{tmp_path}/states.yaml:{line}: ") and words in part
               for part in error.splitlines()), error  # fmt: skip


@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        ("states:\n  a: {type: append}\n  b: {}\n  a: {type: append}\n", 4,
         "states.a: this name is repeated; it is in line 2"),
        ("states:\n  a:\n    type: sql-map\n    type: append\n", 4, "states.a.type: this name is repeated"),
        ("states:\n  a: {type: sql-map\n  b: 1\n", 3, "this is not YAML: while parsing a flow mapping"),
        ("states:\n  a: {type: ${A}}\n", 2, 'put a variable in quotes: "${VAR}"'),
        ("states:\n\t- a\n", 2, "this is not YAML"),
        ("states: {}\n---\nstates: {}\n", 2, "this is not YAML: expected a single document"),
        ("states:\n  a: !!python/object/apply:os.getcwd []\n", 2, "unknown tag"),
        ("states:\n  a: {type: !secret x}\n", 2, "could not determine a constructor for the tag '!secret'"),
        ("states: &a\n  b: *a\n", 2, "states.b: this contains itself"),
        ("states:\n  1: {}\n", 2, "a name is a string, found 1; quote it"),
        ("", 1, "the file is empty; it begins with states:"),
        ("- a\n", 1, "expected a mapping that begins with states:"),
        ("states:\n", 1, "states: found ''; expected a mapping"),
        ("other: 1\nstates: {}\n", 1, "other: no such key; there are: states"),
        ("state: {}\n", 1, "states: is missing"),
        ("states: {}\n# \x07\n", 2, "this is not YAML: special characters are not allowed"),
    ],
)  # fmt: skip
def test_a_file_that_is_no_such_mapping_is_refused_with_its_line(
    text: str, line: int, words: str, tmp_path: Path
) -> None:
    error = refused(tmp_path, text)
    assert any(f"{tmp_path}/states.yaml:{line}: " in part and words in part for part in error.splitlines()), error


def test_a_file_that_cannot_be_read_is_an_error_of_ours(tmp_path: Path) -> None:
    with pytest.raises(DefinitionError, match=r"nope\.yaml: cannot be read: No such file"):
        states.load(tmp_path / "nope.yaml")
    (tmp_path / "b.yaml").write_bytes(b"states: \xff\xfe")
    with pytest.raises(DefinitionError, match="it is not UTF-8 text"):
        states.load(tmp_path / "b.yaml")


def test_all_errors_of_a_file_come_in_one_message_in_the_order_of_lines(tmp_path: Path) -> None:
    second = MAP.replace("opaque", "x")
    error = refused(
        tmp_path,
        f"states:\n  a: {{type: nope}}\n  b: {second}, wrong: 1}}\n  c: {{type: sql-map, kind: opaque}}\nmore: 1\n",
    )
    lines = [line.strip().removeprefix(f"{tmp_path}/states.yaml:") for line in error.splitlines()]
    assert lines[0] == f"6 errors in {tmp_path}/states.yaml"
    assert [line.split(": ")[:2] for line in lines[1:]] == [
        ["2", "states.a.type"], ["3", "states.b.kind"], ["3", "states.b.wrong"],
        ["4", "states.c.table"], ["4", "states.c.url"], ["5", "more"],
    ]  # fmt: skip


def test_shared_settings_are_merged_and_may_be_overridden(tmp_path: Path) -> None:
    text = """
x-db: &db {type: sql-map, kind: opaque, url: "sqlite:////tmp/c.db", table: shared}
states:
  a: {<<: *db, table: a}
  b: {<<: *db, kind: transactional}
"""
    assert states.load(written(tmp_path, text)) == {
        "a": SqlMapState.opaque("sqlite:////tmp/c.db", "a"),
        "b": SqlMapState.transactional("sqlite:////tmp/c.db", "shared"),
    }


# -- the types that are installed

OTHER = """
from dataclasses import dataclass
from pydantic import Field
from states.loading import StateSettings
from trident_py.state import StateFactory

@dataclass(frozen=True)
class ValkeyState(StateFactory):
    host: str
    port: int

class Valkey(StateSettings):
    '''A value for each key in Valkey.'''
    kinds = ("transactional",)
    host: str = Field(description="Where it is")
    port: int = 6379
    password: str = ""

    def make(self):
        if self.port == 1:
            raise OSError(f"no {self.password} at {self.port}")
        return ValkeyState(self.host, self.port)
"""


@pytest.fixture
def other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """``other(name, targets)``: an installed distribution with these state types."""
    (tmp_path / "other_states.py").write_text(OTHER)
    monkeypatch.syspath_prepend(str(tmp_path))

    def install(name: str, **types: str) -> None:
        folder = tmp_path / f"{name}-2.5.dist-info"
        folder.mkdir()
        (folder / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 2.5\n")
        points = "\n".join(f"{key.replace('_', '-')} = {value}" for key, value in types.items())
        (folder / "entry_points.txt").write_text(f"[trident_py.states]\n{points}\n")

    return install


def test_our_types_are_installed_by_entry_points() -> None:
    assert {name: each.settings for name, each in find_types().items()} == OURS | KAFKA | REDIS | FILES


def test_another_package_adds_a_type(other: Any, tmp_path: Path) -> None:
    other("other", valkey_map="other_states:Valkey")
    made = states.load(written(tmp_path, "states:\n  r: {type: valkey-map, host: here}"))
    assert (type(made["r"]).__name__, made["r"].port) == ("ValkeyState", 6379)  # type: ignore[attr-defined]
    found = find_types()["valkey-map"]
    assert (found.package, found.summary, found.settings.kinds) == (  # type: ignore[union-attr]
        "other 2.5", "A value for each key in Valkey.", ("transactional",),
    )  # fmt: skip
    assert "valkey-map has no such key; it has: host, port, password" in refused(
        tmp_path, "states:\n  r: {type: valkey-map, host: h, hots: 1}"
    )
    told = refused(tmp_path, "states:\n  r: {type: valkey-map, host: h, password: 12345}")
    assert "states.r.password: found ***: expected a string" in told
    refused_by_make = refused(tmp_path, "states:\n  r: {type: valkey-map, host: h, port: 1, password: '${HOME}x'}")
    assert "states.r: cannot be created: OSError: no ${HOME}x at 1" in refused_by_make


@pytest.mark.parametrize(
    ("target", "why"),
    [
        ("other_states:ValkeyState", "other_states:ValkeyState is not a subclass of states.loading.StateSettings"),
        ("other_states:Nope", "other_states:Nope cannot be loaded: AttributeError"),
        ("no_such_module:X", "no_such_module:X cannot be loaded: ModuleNotFoundError"),
    ],
)
def test_a_type_that_cannot_be_used_says_why_and_harms_no_other(
    target: str, why: str, other: Any, tmp_path: Path
) -> None:
    other("other", broken=target)
    assert f"states.r.type: type broken: {why}" in refused(tmp_path, "states:\n  r: {type: broken}")
    assert set(states.load(written(tmp_path, f"states:\n  c: {MAP}}}"))) == {"c"}


@pytest.mark.parametrize(
    ("missing", "told"),
    [
        ("trident_py.extras.redis", "needs trident_py.extras.redis.models, which this installation lacks"),
        ("trident_py.extras.redis.models", "needs trident_py.extras.redis.models, which this installation lacks"),
        ("states.sql.naems", "cannot be loaded: ModuleNotFoundError: No module named 'states.sql.naems'"),
    ],
)
def test_a_broken_import_of_ours_is_no_missing_part(missing: str, told: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def load(point: EntryPoint) -> None:
        raise ModuleNotFoundError(f"No module named {missing!r}", name=missing)

    monkeypatch.setattr(EntryPoint, "load", load)
    problem = find_types()["redis-map"].problem
    assert problem is not None and told in problem


def test_two_packages_with_one_name_are_not_chosen_between(other: Any, tmp_path: Path) -> None:
    other("other", valkey="other_states:Valkey")
    other("another", valkey="other_states:ValkeyState")
    error = refused(tmp_path, "states:\n  r: {type: valkey, host: h}")
    assert "the packages another 2.5 and other 2.5 both define a type of this name" in error


def test_a_type_without_make_is_refused(tmp_path: Path) -> None:
    with pytest.raises(NotImplementedError, match=r"StateSettings must define make\(\)"):
        StateSettings().make()


# -- the schema for editors

GOOD = [
    {"states": {}},
    {"x-shared": {"a": 1}, "states": {}},
    {"states": {"c": {"type": "sql-map", "kind": "opaque", "url": "sqlite:///c.db", "table": "t"}}},
    {"states": {"c": {"type": "sql-map", "kind": "${K}", "url": "sqlite:///c.db", "table": "t", "key": "a string",
                      "value": ["a int", "b int"]}}},
    {"states": {"r": {"type": "sequence", "url": "u", "table": "t", "sender": "a", "sequence": "b", "first": "${N}"}}},
    {"states": {"r": {"type": "insert-ignore", "url": "u", "table": "t", "key": ["a"], "onConflict": "report"}}},
    {"states": {"r": {"type": "append", "url": "u", "table": "t", "columns": ["a"], "onBadRow": "dead-letter"}}},
    {"states": {"r": {"type": "batch", "url": "u", "table": "t", "key": "a"}}},
    {"states": {"r": {"type": "sequence", "url": "u", "table": "t", "sender": "a", "sequence": "b"}}},
]  # fmt: skip
BAD = [
    {},
    {"states": {}, "more": 1},
    {"states": {"c": {"type": "nope"}}},
    {"states": {"c": {"kind": "opaque", "url": "u", "table": "t"}}},
    {"states": {"c": {"type": "sql-map", "kind": "opaque", "url": "u"}}},
    {"states": {"c": {"type": "sql-map", "kind": "opque", "url": "u", "table": "t"}}},
    {"states": {"c": {"type": "sql-map", "kind": "opaque", "url": "u", "table": 5}}},
    {"states": {"c": {"type": "sql-map", "kind": "opaque", "url": "u", "table": "t", "vale": "x"}}},
    {"states": {"c": {"type": "sql-map", "kind": "opaque", "url": "u", "table": "t", "key": []}}},
    {"states": {"c": {"type": "sql-map", "kind": "opaque", "url": "u", "table": "t", "files": 1}}},
    {"states": {"r": {"type": "sequence", "url": "u", "table": "t", "sender": "a", "sequence": "b", "onGap": "x"}}},
]


@pytest.mark.parametrize("document", GOOD, ids=str)
def test_the_schema_takes_a_good_file(document: dict) -> None:
    jsonschema.Draft202012Validator(states.schema()).validate(document)


@pytest.mark.parametrize("document", BAD, ids=str)
def test_the_schema_refuses_a_bad_file(document: dict, tmp_path: Path) -> None:
    assert not jsonschema.Draft202012Validator(states.schema()).is_valid(document)
    refused(tmp_path, json.dumps(document))  # and so does load


def test_the_schema_is_a_schema_and_describes_every_key(other: Any) -> None:
    other("other", valkey="other_states:Valkey")
    whole = states.schema()
    jsonschema.Draft202012Validator.check_schema(whole)
    types = {each["properties"]["type"]["const"]: each for each in
             whole["properties"]["states"]["additionalProperties"]["oneOf"]}  # fmt: skip
    assert set(types) == {*OURS, *KAFKA, *REDIS, *FILES, "valkey"}
    for name in OURS:
        keys = {key: each for key, each in types[name]["properties"].items() if key != "type"}
        assert [key for key, each in keys.items() if "description" not in each] == []


def test_a_worker_that_writes_loads_neither_pydantic_nor_yaml() -> None:
    code = "import sys, states.sql, states\nassert not {'pydantic', 'yaml'} & set(sys.modules)\nstates.load"
    subprocess.run([sys.executable, "-W", "error", "-c", code], check=True, cwd=Path(__file__).parents[2])


def test_the_users_page_has_every_type_and_every_key() -> None:
    page = (Path(__file__).parents[2] / "docs" / "states.md").read_text()
    for name, model in OURS.items():
        section = page.partition(f"\n### {name}\n")[2].partition("\n#")[0]
        told = re.findall(r"^\| `([A-Za-z.]+)` \|", section, re.M)
        keys = [key for key in model.model_fields if key not in ("url", "table")]
        inside = {"options": [f"options.{option}" for option in model.model_fields["options"].annotation.model_fields]
                  } if "options" in keys else {}  # fmt: skip
        assert sorted(told) == sorted(told_key for key in keys for told_key in inside.get(key, [key]))
