"""`trident states` and `trident states check FILE`: what they print, how they end, and that nothing is written."""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from typing import Any, Literal, NamedTuple

import databases
import jsonschema
import pytest
import sqlalchemy as sa
from click.testing import CliRunner

import states
from states.loading.models import Append
from states.sql import SqlMapState
from states.sql.store import close_stores
from trident_py.cli import trident
from trident_py.errors import StateError
from trident_py.testing.databases import connection

ROOT = Path(__file__).parent.parent
SERVERS = pytest.mark.parametrize("database", databases.SERVERS, indirect=True)
KEYED = "type: sql-map, kind: opaque, table: counts, key: word string"


class Done(NamedTuple):
    code: int
    out: str
    err: str


def run(*arguments: str) -> Done:
    done = CliRunner().invoke(trident, list(arguments), catch_exceptions=False)
    return Done(done.exit_code, done.stdout, done.stderr)


def check(folder: Path, url: str, settings: str = KEYED) -> Done:
    file = folder / "states.yaml"
    file.write_text(f"states:\n  one: {{{settings}, url: '{url}'}}\n")
    return run("states", "check", str(file))


def contents(folder: Path) -> dict[str, str]:
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest()
            for path in folder.iterdir() if path.is_file() and path.name != "states.yaml"}  # fmt: skip


def findings(done: Done) -> list[str]:
    return [" ".join(line.split()) for line in done.out.splitlines() if line.startswith("  ")]


# -- the list


def test_the_list_has_every_type_with_its_guarantees_and_settings() -> None:
    done = run("states")
    assert (done.code, done.err) == (0, "")
    for name in ("append", "batch", "insert-ignore", "sequence", "sql-map"):
        assert f"\n{name} (trident-py " in f"\n{done.out}"
    lines = [" ".join(line.split()) for line in done.out.partition("sql-map (")[2].splitlines()]
    assert lines[1:9] == [
        "kind opaque", "transactional spout: exactly once", "opaque spout: exactly once",
        "non-transactional spout: no guarantee", "kind transactional", "transactional spout: exactly once",
        "opaque spout: wrong", "non-transactional spout: no guarantee",
    ]  # fmt: skip
    first = "first First number of a new sender. default: 1"
    assert first in [" ".join(line.split()) for line in done.out.splitlines()]


def test_the_list_as_json_says_the_same_for_programs() -> None:
    listed = {each["type"]: each for each in json.loads(run("states", "--json").out)}
    cell = listed["sql-map"]["guarantees"]["transactional"]["opaque"]
    assert cell["guarantee"] == "wrong" and len(cell["reason"]) > 20
    keys = {each["key"]: each for each in listed["insert-ignore"]["settings"]}
    assert keys["onConflict"]["enum"] == ["ignore", "fail", "report"] and keys["key"]["required"]


def on_page(setting: dict[str, Any]) -> str:
    """The cell of docs/states.md for a setting."""
    default = setting.get("default", {})
    shown = default[0] if isinstance(default, list) else f"{default:g}" if isinstance(default, float) else default
    words = setting["description"][0].lower() + setting["description"][1:]
    end = "" if default == {} else f"; default: {str(shown).lower() if isinstance(shown, bool) else shown}"
    return f"{'required: ' if setting['required'] else ''}{words}{end}"


def test_the_page_describes_the_settings_word_for_word() -> None:
    listed = json.loads(run("states", "--json").out)
    types = {each["type"]: {setting["key"]: setting for setting in each["settings"]} for each in listed}
    page, compared = (ROOT / "docs" / "states.md").read_text(), set()
    for section in re.split(r"^##+ ", page, flags=re.MULTILINE):
        name, _, text = section.partition("\n")
        for key, cell in re.findall(r"^\| `(\w+)` \| (.*) \|$", text, re.MULTILINE):
            for kind in [name] if name in types else [each for each in types if "topic" in each]:
                other = re.match(r"as for ([a-z-]+)", cell)
                words = on_page(types[other[1]][key]) if other else cell.replace("`", "")
                assert words == on_page(types[kind][key])
                compared.add((kind, key))
    described = {(kind, key) for kind in types for key in types[kind] if key not in ("url", "table")}
    assert described - compared == {("topic", key) for key in ("value", "key", "headers", "topicSelector", "asJson")}


def test_the_schema_is_printed_alone() -> None:
    done = run("states", "--schema")
    jsonschema.Draft202012Validator.check_schema(json.loads(done.out))
    assert (done.code, done.err) == (0, "")


# -- check: exit codes


def test_the_commands_of_the_console_end_with_their_codes(tmp_path: Path) -> None:
    for name, place in (("good", "c.db"), ("stops", "no/c.db")):
        (tmp_path / f"{name}.yaml").write_text(f"states:\n  c: {{{KEYED}, url: 'sqlite:///{place}'}}\n")
    (tmp_path / "wrong.yaml").write_text("states:\n  c: {type: sqlmap}\n")
    for arguments, code in [
        (["check", "good.yaml"], 0), (["states", "check", "stops.yaml"], 1), (["states", "check", "wrong.yaml"], 2),
    ]:  # fmt: skip
        done = subprocess.run(
            [sys.executable, "-W", "error", "-m", "trident_py", *arguments],
            cwd=tmp_path, capture_output=True, text=True, timeout=60,
            env={"PYTHONPATH": str(ROOT), "PATH": os.defpath},
        )  # fmt: skip
        assert done.returncode == code, (arguments, done.stdout, done.stderr)
    assert done.stderr.startswith("error: wrong.yaml:2: states.c.type: no type 'sqlmap'") and done.stdout == ""
    assert sorted(path.name for path in tmp_path.iterdir()) == ["good.yaml", "stops.yaml", "wrong.yaml"]


def test_the_findings_as_json(tmp_path: Path) -> None:
    (tmp_path / "s.yaml").write_text(f"states:\n  c: {{{KEYED}, url: 'sqlite:///{tmp_path}/no/c.db'}}\n")
    (found,) = json.loads(run("check", "--json", str(tmp_path / "s.yaml")).out)
    assert (found["state"], found["type"], found["stops"]) == ("c", "sql-map", True)
    assert found["findings"] == [{"level": "error", "text": f"the folder {tmp_path}/no does not exist; create it"}]


# -- check: SQLite


def test_a_fresh_sqlite_path_is_told_and_not_made(tmp_path: Path) -> None:
    done = check(tmp_path, f"sqlite:///{tmp_path}/c.db", KEYED + ", value: [a int, b string]")
    assert (done.code, done.err) == (0, "")
    table = "table 'counts' (word string, txid bigint, a int, b string, prev_a int, prev_b string), key (word)"
    assert findings(done) == [f"creates: the file {tmp_path}/c.db", f"creates: {table}"]
    assert contents(tmp_path) == {}


def test_the_table_that_is_told_is_the_one_that_the_state_makes(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/c.db"
    told = findings(check(tmp_path, url))[1]
    used(url)
    names = [row[1] for row in sqlite3.connect(tmp_path / "c.db").execute("PRAGMA table_info(counts)")]
    assert [part.split()[0] for part in told.partition("(")[2].partition(")")[0].split(", ")] == names


def used(url: str, close: bool = True) -> None:
    """A store as a run leaves it: the table, the ledger, a row."""
    state = SqlMapState.opaque(url, "counts", "word string").makeState({}, None, 0, 1)
    state.beginCommit(1)
    state.multiPut([("a",)], [3])
    state.commit(1)
    if close:
        close_stores()


def test_a_store_in_use_is_all_right_and_unchanged(tmp_path: Path) -> None:
    used(f"sqlite:///{tmp_path}/c.db")
    before = contents(tmp_path)
    done = check(tmp_path, f"sqlite:///{tmp_path}/c.db")
    assert (done.code, [line.partition(":")[0] for line in findings(done)]) == (0, ["ok"]), done.out
    assert "table 'counts' (word text, txid bigint, count bigint, prev_count bigint), key (word)" in findings(done)[0]
    assert contents(tmp_path) == before


def test_what_is_still_in_the_log_of_a_running_state_is_seen(tmp_path: Path) -> None:
    used(f"sqlite:///{tmp_path}/c.db", close=False)
    assert (tmp_path / "c.db-wal").stat().st_size > 0
    before = contents(tmp_path)
    done = check(tmp_path, f"sqlite:///{tmp_path}/c.db")
    assert (done.code, [line.partition(":")[0] for line in findings(done)]) == (0, ["ok"]), done.out
    assert stored(contents(tmp_path)) == stored(before)
    left = tmp_path / "killed"  # what a killed process leaves: the log is all that has the table
    left.mkdir()
    for name in before:
        shutil.copy(tmp_path / name, left)
    done = check(left, f"sqlite:///{left}/c.db")
    assert (done.code, [line.partition(":")[0] for line in findings(done)]) == (0, ["ok"]), done.out
    assert stored(contents(left)) == stored(before)
    close_stores()


def stored(files: dict[str, str]) -> dict[str, str]:
    """Without the index of the log, which readers share and which holds no data."""
    return {name: digest for name, digest in files.items() if name != "c.db-shm"}


@pytest.mark.parametrize(
    ("ddl", "settings", "words"),
    [
        ("TABLE counts (word TEXT PRIMARY KEY, txid BIGINT, count BIGINT)", KEYED,
         "has no column 'prev_count'; it has: "),
        ("TABLE counts (word TEXT PRIMARY KEY, txid BIGINT, count TEXT, prev_count BIGINT)", KEYED,
         "has the column 'count' as TEXT, which cannot hold bigint"),
        ("TABLE counts (word TEXT, txid BIGINT, count BIGINT, prev_count BIGINT)", KEYED,
         "has no primary key or unique constraint on exactly (word)"),
        ("TABLE counts (word TEXT PRIMARY KEY, txid BIGINT, count BIGINT, prev_count BIGINT, who TEXT NOT NULL)", KEYED,
         "has the NOT NULL column 'who' without a default, which this state does not fill"),
        ("VIEW counts AS SELECT 1 AS word", KEYED, "'counts' is a view"),
        ("TABLE other (id TEXT)", "type: insert-ignore, table: rows, key: id, columns: [id string, v]",
         "table 'rows' does not exist, and the type of v is not declared"),
        ("TABLE rows (id TEXT PRIMARY KEY, v TEXT)", "type: insert-ignore, table: rows, key: nope",
         "has no column 'nope'; it has: id, v"),
    ],
)  # fmt: skip
def test_what_would_stop_the_start_is_an_error_and_code_1(ddl: str, settings: str, words: str, tmp_path: Path) -> None:
    with sqlite3.connect(tmp_path / "c.db") as made:
        made.execute(f"CREATE {ddl}")
    made.close()
    before = contents(tmp_path)
    done = check(tmp_path, f"sqlite:///{tmp_path}/c.db", settings)
    assert done.code == 1
    assert [line for line in findings(done) if line.startswith("error:") and words in line], done.out
    assert contents(tmp_path) == before


def test_a_table_that_an_earlier_version_has_spread_over_files_is_an_error(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/c.db"
    used(url)
    close_stores()
    with closing(sqlite3.connect(tmp_path / "c.db")) as connection, connection:
        connection.execute("UPDATE trident_layout SET files = 2")
    done = check(tmp_path, url, KEYED)
    assert done.code == 1 and "table 'counts' lies in 2 files" in done.out
    with pytest.raises(StateError, match="lies in 2 files"):
        used(url)


def test_an_insert_ignore_state_takes_its_columns_from_the_table(tmp_path: Path) -> None:
    with sqlite3.connect(tmp_path / "c.db") as made:
        made.execute("CREATE TABLE rows (id TEXT PRIMARY KEY, v DOUBLE)")
    made.close()
    done = check(tmp_path, f"sqlite:///{tmp_path}/c.db", "type: insert-ignore, table: rows, key: id")
    assert done.code == 0
    assert findings(done)[0] == "ok: table 'rows' (id text, v double), key (id)"
    assert findings(done)[1].startswith("creates: the ledger's tables trident_fence, ")


@pytest.mark.parametrize(("on_gap", "third"), [("hold", "held"), ("report", "gaps")])
def test_all_tables_of_a_sequence_state_are_told_as_they_are_made(on_gap: str, third: str, tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/c.db"
    settings = f"type: sequence, table: r, sender: who string, sequence: n, columns: [who, n, v int], onGap: {on_gap}"
    sqlite3.connect(tmp_path / "c.db").close()
    done = check(tmp_path, url, settings)
    assert findings(done)[:2] == [
        "creates: table 'r' (who string, n bigint, v int), key (who, n)",
        f"creates: the state's further tables r_senders, r_{third}",
    ]
    states.load(tmp_path / "states.yaml")["one"].makeState({}, None, 0, 1)
    close_stores()
    assert {"r", "r_senders", f"r_{third}"} <= set(tables(url))
    done = check(tmp_path, url, settings)
    assert findings(done) == ["ok: table 'r' (who text, n bigint, v bigint), key (who, n)"]


@pytest.mark.parametrize(("on_bad_row", "told"), [("fail", False), ("dead-letter", True)])
def test_the_table_of_rejected_rows_is_told(
    on_bad_row: Literal["fail", "dead-letter"], told: bool, tmp_path: Path
) -> None:
    sqlite3.connect(tmp_path / "c.db").close()
    settings = Append(url=f"sqlite:///{tmp_path}/c.db", table="r", columns=["v int"], onBadRow=on_bad_row)
    texts = [each.text for each in settings.check(settings.make())]
    assert texts[0] == "table 'r' (v int)"
    assert ("the state's further tables r_rejected" in texts) == told


def test_a_file_that_is_no_database_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "c.db").write_text("once upon a time " * 100)
    done = check(tmp_path, f"sqlite:///{tmp_path}/c.db")
    assert done.code == 1 and "file is not a database" in done.out


def test_a_folder_that_may_not_be_written_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "access", lambda path, mode: False)  # root may write everywhere
    done = check(tmp_path, f"sqlite:///{tmp_path}/c.db")
    assert (done.code, findings(done)) == (1, [f"error: no permission to write in the folder {tmp_path}"])


# -- check: servers


def statements(url: str, *texts: str) -> list[Any]:
    with connection(url) as one:
        return [one.exec_driver_sql(text) for text in texts]


def tables(url: str) -> list[str]:
    engine = sa.create_engine(url, poolclass=sa.NullPool)
    return sa.inspect(engine).get_table_names()


def test_a_table_that_is_gone_is_an_error_as_it_is_at_the_start(database: str, tmp_path: Path) -> None:
    used(database)
    statements(database, "DROP TABLE counts")
    done = check(tmp_path, database)
    told = [line for line in findings(done) if not line.startswith("ok")]
    assert (done.code, len(told)) == (1, 1) and "table 'counts'" in told[0] and "is gone: trident_layout" in told[0]
    with pytest.raises(StateError, match="is gone: trident_layout has a row for it"):
        used(database)


@SERVERS
def test_an_empty_database_is_told_and_stays_empty(database: str, tmp_path: Path) -> None:
    done = check(tmp_path, database)
    assert done.code == 0, done.out
    told = "creates: table 'counts' (word string, txid bigint, count bigint, prev_count bigint), key (word)"
    assert findings(done)[0] == told
    assert tables(database) == []


@SERVERS
def test_a_database_in_use_is_all_right(database: str, tmp_path: Path) -> None:
    used(database)
    done = check(tmp_path, database)
    assert (done.code, [line.partition(":")[0] for line in findings(done)]) == (0, ["ok"]), done.out


@SERVERS
def test_a_wrong_column_of_a_server_is_an_error(database: str, tmp_path: Path) -> None:
    columns = "word VARCHAR(20) PRIMARY KEY, txid BIGINT, count DATE, prev_count BIGINT"
    statements(database, f"CREATE TABLE counts ({columns})")
    done = check(tmp_path, database)
    assert done.code == 1 and "has the column 'count' as DATE, which cannot hold bigint" in done.out


@SERVERS
def test_the_number_of_a_sender_may_have_the_type_of_its_column(database: str, tmp_path: Path) -> None:
    statements(database, "CREATE TABLE r (who INT, n INT, v INT, PRIMARY KEY (who, n))")
    done = check(tmp_path, database, "type: sequence, table: r, sender: who, sequence: n, columns: [who, n, v]")
    assert done.code == 0, done.out
    states.load(tmp_path / "states.yaml")["one"].makeState({}, None, 0, 1)  # the start agrees


@pytest.mark.parametrize(
    ("database", "collation", "code"),
    [  # folds case; pads; exact
        ("mariadb", "utf8mb4_general_ci", 1), ("mysql", "utf8mb4_0900_ai_ci", 1), ("mysql", "utf8mb4_bin", 1),
        ("mariadb", "utf8mb4_nopad_bin", 0), ("mysql", "utf8mb4_0900_bin", 0),
    ],
    indirect=["database"],
)  # fmt: skip
def test_a_key_that_folds_texts_is_an_error(database: str, collation: str, code: int, tmp_path: Path) -> None:
    key = f"word VARCHAR(20) CHARACTER SET utf8mb4 COLLATE {collation} PRIMARY KEY"
    statements(database, f"CREATE TABLE counts ({key}, txid BIGINT, count BIGINT, prev_count BIGINT)")
    done = check(tmp_path, database)
    assert done.code == code, done.out
    assert ("treats different keys as equal" in done.out and collation in done.out) == (code == 1)


@SERVERS
def test_a_user_who_may_not_write_is_told_what_to_ask_for_and_no_password_is_shown(
    database: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    used(database)
    url = sa.make_url(database)
    mysql = url.get_backend_name() == "mysql"
    user = "reader_" + (url.database or "")[-12:]
    whom = f"'{user}'@'%%'" if mysql else user
    on = f"{url.database}.*" if mysql else "ALL TABLES IN SCHEMA public"
    create = f"CREATE USER {whom} IDENTIFIED BY 'hush%%40'" if mysql else f"CREATE USER {user} PASSWORD 'hush%%40'"
    statements(database, create, f"GRANT SELECT ON {on} TO {whom}")
    try:
        limited = url.set(username=user, password="hush%40").render_as_string(hide_password=False)
        monkeypatch.setenv("LIMITED_URL", limited)
        done = check(tmp_path, "${LIMITED_URL}")
        assert done.code == 1 and "INSERT on counts, UPDATE on counts" in done.out, done.out
        assert "SELECT on counts" not in done.out and f"{user}:***@" in done.out
        assert "hush" not in done.out + done.err
    finally:
        statements(database, *([] if mysql else [f"DROP OWNED BY {user}"]), f"DROP USER {whom}")


@SERVERS
def test_a_server_that_refuses_is_a_finding_without_the_password(database: str, tmp_path: Path) -> None:
    for changed in ({"port": 1}, {"database": "no_such_database"}):
        url = sa.make_url(database).set(password="hushhush", **changed).render_as_string(hide_password=False)
        done = check(tmp_path, url)
        assert done.code == 1 and "error:" in done.out and "could not look at table 'counts'" in done.out, done.out
        assert "hushhush" not in done.out + done.err


# -- check: types of others


def install(folder: Path, monkeypatch: pytest.MonkeyPatch, module: str) -> None:
    """A package of a user's own with one type, `checked`."""
    (folder / "checked_states.py").write_text(module)
    metadata = folder / "checked-1.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: checked\nVersion: 1\n")
    (metadata / "entry_points.txt").write_text("[trident_py.states]\nchecked = checked_states:Settings\n")
    monkeypatch.syspath_prepend(str(folder))


OWN = """
from states.loading.settings import FactorySettings
from trident_py.state import StateFactory
class S(StateFactory):
    kind = "ring"
    guarantees = {"transactional": ("exactly once", "a slot is written once"), "opaque": ("wrong", "slots move", "x")}
class Settings(FactorySettings):
    kinds = ("ring",)
    factory = "checked_states:S"
"""


def test_the_guarantees_that_a_factory_declares_are_listed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install(tmp_path, monkeypatch, OWN)
    listed = {each["type"]: each["guarantees"] for each in json.loads(run("states", "--json").out)}
    of = listed["checked"]["ring"]
    assert [of[kind]["guarantee"] for kind in of] == ["exactly once", "wrong", "no guarantee"]
    assert (of["opaque"]["reason"], of["opaque"]["raise_by"]) == ("slots move", "x")
    assert listed["topic"]["non-transactional"]["transactional"]["raise_by"] == "use TransactionalTopicState"


def test_guarantees_that_cannot_be_read_are_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install(tmp_path, monkeypatch, OWN.replace("wrong", "rong"))
    assert "checked (checked 1): cannot be used: " in run("states").out
    assert "guarantees['opaque'] is ('rong', 'slots move', 'x'); it must be a tuple" in run("states").out


def test_a_factory_that_checks_itself_is_asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install(
        tmp_path,
        monkeypatch,
        "from states import Finding\nfrom states.loading import StateSettings\n"
        "from trident_py.state import StateFactory\n"
        "class S(StateFactory):\n    def __init__(self, secret): self.secret = secret\n"
        "    def __repr__(self): return f'S({self.secret})'\n"
        "    def check(self):\n        if self.secret == 'boom': raise OSError('no boom')\n"
        "        return [Finding('creates', f'a topic, {self.secret}')]\n"
        "class Settings(StateSettings):\n    secret: str\n    def make(self): return S(self.secret)\n",
    )
    monkeypatch.setenv("SECRET", "hushhush")
    (tmp_path / "s.yaml").write_text("states:\n  a: {type: checked, secret: '${SECRET}'}\n")
    done = run("check", str(tmp_path / "s.yaml"))
    assert (done.code, done.out) == (0, "a (checked): S(${SECRET})\n  creates: a topic, ${SECRET}\n")
    (tmp_path / "s.yaml").write_text("states:\n  a: {type: checked, secret: boom}\n")
    assert run("check", str(tmp_path / "s.yaml")) == Done(1, "a (checked): S(boom)\n  error:   OSError: no boom\n", "")


def test_the_stores_of_a_topology_in_a_module_are_checked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "checked_counting.py").write_text(
        "from states.sql import SqlMapState\nfrom trident_py import TridentTopology\n"
        "from trident_py.operations.builtin import Count\n"
        "from trident_py.testing import FixedBatchSpout\n"
        "def build():\n"
        "    counts = SqlMapState.opaque('sqlite:///c.db', 'counts', 'w string', 'n bigint')\n"
        "    topology = TridentTopology()\n"
        "    topology.newStream('words', FixedBatchSpout('w', 1, ('a',))).groupBy('w')"
        ".persistentAggregate(counts, Count(), 'n')\n"
        "    return topology\n"
    )
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    done = run("check", "checked_counting:build")
    assert (done.code, done.err) == (0, "") and f"creates: the file {tmp_path}/c.db" in done.out
    assert not (tmp_path / "c.db").exists()
    assert "`trident explain` shows what is guaranteed" in " ".join(run("check", "--help").out.split())
