"""A canary password through every path that takes a secret, and each place where it could show.

`PATHS` is the whole list: an option that is named like a secret, a URL, or a mapping of a client's settings, and is not
in it, fails `test_every_option_that_may_hold_a_secret_is_in_the_list`. Not asked for: what the user types on the
command line, which the process list shows, and what Spark pickles for the executors (docs/security.md).
"""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import json
import logging
import os
import subprocess
import sys
import time
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import click
import httpx
import pytest
from click.testing import CliRunner
from hostile.test_command_line import COMMANDS as COMMAND_LINES
from pydantic import BaseModel

import states.files
import states.kafka
import states.redis
import states.sql
import trident_py.kafka
from states.sql.store import close_stores
from trident_py import Config, DefinitionError, DRPCExecutionException, LocalCluster, LocalDRPC, TridentTopology
from trident_py.cli import trident
from trident_py.drpc import DRPCClient
from trident_py.entry_points import find_points
from trident_py.errors import TridentError
from trident_py.extras.diagrams.diagrams import draw
from trident_py.extras.drpc_server.app import access_of
from trident_py.extras.drpc_server.server import DRPCServer
from trident_py.extras.gateway import settings as gateway_settings
from trident_py.extras.gateway.app import application_of
from trident_py.model.secrets import is_secret
from trident_py.operations.builtin import Count
from trident_py.spouts import FileSpout, FixedBatchSpout

ROOT = Path(__file__).parents[1]
CANARY = "Canary-7f3a/b+c"
TYPED = CANARY.replace("/", "%2F").replace("+", "%2B")  # in a URL
NOWHERE = "127.0.0.1:9"  # nothing listens there
SQL = [f"mysql+pymysql://me:{TYPED}@{NOWHERE}/db", f"postgresql+psycopg://me:{TYPED}@{NOWHERE}/db",
       f"postgresql+psycopg://me@{NOWHERE}/db?password={TYPED}"]  # fmt: skip
REDIS = [f"redis://:{TYPED}@{NOWHERE}/0", f"redis://me:{TYPED}@{NOWHERE}/0"]
KAFKA = {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "PLAIN", "sasl.username": "me",
    "sasl.password": CANARY,
         "ssl.key.password": CANARY, "ssl.keystore.password": CANARY, "socket.timeout.ms": 1000}  # fmt: skip
S3 = {
    "access_key": "me",
    "secret_key": CANARY,
    "session_token": CANARY,
    "endpoint_override": f"http://{NOWHERE}",
    "region": "x",
}
HDFS = {"token": CANARY, "host": "127.0.0.1", "port": 9}
CONF = {Config.TOPOLOGY_START_WAIT_SECS: 0, "my.password": CANARY, "spark.my.secret": CANARY}

# Each state's type, with its settings; then each spout.
STATES: dict[str, list[dict[str, Any]]] = {
    "sql-map": [{"url": url, "kind": "opaque", "table": "t", "key": "word string"} for url in SQL],
    "insert-ignore": [{"url": SQL[0], "table": "t", "key": "word string"}],
    "append": [{"url": SQL[1], "table": "t", "columns": "word string"}],
    "batch": [{"url": SQL[0], "table": "t", "columns": "word string"}],
    "sequence": [{"url": SQL[1], "table": "t", "sender": "word string", "sequence": "n bigint"}],
    "window": [{"url": SQL[0], "table": "t"}],
    "file": [{"uri": "s3://bucket/out", "format": "csv", "columns": "word string", "storage": S3},
             {"uri": "hdfs://127.0.0.1:9/out", "format": "csv", "columns": "word string", "storage": HDFS}],
    "topic": [{"bootstrap": NOWHERE, "topic": "t", "settings": KAFKA}],
    "transactional-topic": [{"bootstrap": NOWHERE, "topic": "t", "settings": KAFKA}],
    "compacted-topic": [{"bootstrap": NOWHERE, "topic": "t", "settings": KAFKA, "kind": "opaque",
                         "key": "word string", "value": "count bigint"}],
    "redis": [{"url": REDIS[0], "hash": "h", "key": "word string", "value": "word string"}],
    "redis-map": [{"url": url, "kind": "opaque"} for url in REDIS],
}  # fmt: skip
SPOUTS: dict[str, Callable[[], Any]] = {
    "kafka": lambda: trident_py.kafka.KafkaSpout(NOWHERE, "t", settings=KAFKA),
    "s3": lambda: FileSpout("s3://bucket/in", "word string", storage=S3, format="lines"),
    "hdfs": lambda: FileSpout("hdfs://127.0.0.1:9/in", "word string", storage=HDFS, format="lines"),
}


def shown(texts: dict[str, str]) -> list[str]:
    """The places that show the canary, in one of its forms, with what stands around it."""
    found = ((place, text.find(CANARY[:11]), text) for place, text in texts.items())
    return [f"{place}: {text[max(0, at - 150) : at + 30]}" for place, at, text in found if at >= 0]


def chain(error: BaseException | None) -> str:
    """An error as a log shows it, with its causes and notes."""
    return "" if error is None else "".join(traceback.format_exception(error)) + repr(error) + chain(error.__cause__)


@pytest.fixture(autouse=True)
def watched(caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]) -> Iterator[dict[str, str]]:
    """Texts by place, to be filled; at the end the log at DEBUG and what was printed are places too."""
    caplog.set_level(logging.DEBUG)
    texts: dict[str, str] = {}
    yield texts
    out = capfd.readouterr()
    texts |= {"log": "\n".join(record.getMessage() + str(record.exc_text) for record in caplog.records)}
    texts |= {"stdout": out.out, "stderr": out.err}
    assert shown(texts) == []


def files_in(folder: Path) -> str:
    """The content of all files that a run has written."""
    return "".join(file.read_bytes().decode("latin-1") for file in folder.rglob("*") if file.is_file())


def look_everywhere(topology: TridentTopology, folder: Path, texts: dict[str, str]) -> None:
    """Build, explain, draw and run a topology whose store or source does not answer."""
    built = topology.build()
    texts |= {"explain": built.explain(), "guarantees": str(built.guarantees()), "plan": repr(built.plan),
              "diagrams": draw(built.plan, "mermaid") + draw(built.plan, "dot")}  # fmt: skip
    try:
        with LocalCluster(str(folder / "checkpoints")) as cluster:
            running = cluster.submitTopology("canary", CONF, built)
            seen: list[Any] = []
            running.addListener(lambda *event: seen.append(event))
            running.awaitTermination(2)
            texts["running"] = repr(running) + repr(seen)
    except Exception as error:  # of the run, or at the end of the block
        texts["error"] = chain(error)
    close_stores()
    texts["files"] = files_in(folder / "checkpoints")


@pytest.mark.parametrize("kind, number", [(kind, n) for kind, all_of in STATES.items() for n in range(len(all_of))])
def test_a_states_secret_is_shown_nowhere(
    kind: str, number: int, tmp_path: Path, watched: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    file = tmp_path / "states.yaml"
    written = json.dumps({"states": {"one": {"type": kind, **STATES[kind][number]}}})
    monkeypatch.setenv("CANARY", CANARY)
    monkeypatch.setenv("CANARY_TYPED", TYPED)
    for form in (written, written.replace(CANARY, "${CANARY}").replace(TYPED, "${CANARY_TYPED}")):
        file.write_text(form)
        factory = states.load(file)["one"]
        watched |= {"repr": repr(factory), "str": str(factory), "needs": repr(getattr(factory, "needs", ""))}
        done = CliRunner().invoke(trident, ["states", "check", "--json", str(file)])
        watched["check"] = done.output + chain(done.exception)
        file.write_text(form.replace('"type"', '"typo": 1, "type"').replace(NOWHERE, f"{NOWHERE}x"))
        done = CliRunner().invoke(trident, ["states", "check", str(file)])
        watched["mistyped"] = done.output
    if kind == "window":
        return
    topology = TridentTopology()
    fields = ["word", "n"] if kind == "sequence" else ["word"]
    stream = topology.newStream("s", FixedBatchSpout(fields, 2, ["a", 1][: len(fields)]))
    if "map" in kind or kind == "compacted-topic":
        stream.groupBy("word").persistentAggregate(factory, Count(), "count")
    else:
        updater = (
            states.redis.RedisStateUpdater(states.redis.FieldMapper("word", "word"))
            if kind == "redis"
            else states.sql.RowUpdater()
        )
        stream.partitionPersist(factory, fields, updater)
    look_everywhere(topology, tmp_path, watched)


@pytest.mark.parametrize("kind", SPOUTS)
def test_a_spouts_secret_is_shown_nowhere(kind: str, tmp_path: Path, watched: dict[str, str]) -> None:
    spout = SPOUTS[kind]()
    watched |= {"repr": repr(spout), "str": str(spout)}
    topology = TridentTopology()
    topology.newStream("s", spout).each(spout.getOutputFields(), print)
    look_everywhere(topology, tmp_path, watched)


@pytest.mark.parametrize("uri, storage", [("s3a://bucket/checkpoints", S3), ("hdfs://127.0.0.1:9/checkpoints", HDFS)])
def test_a_checkpoints_secret_is_shown_nowhere(uri: str, storage: dict[str, Any], watched: dict[str, str]) -> None:
    topology = TridentTopology()
    topology.newStream("s", FixedBatchSpout("word", 2, ["a"])).each("word", print)
    with LocalCluster(uri, storage=storage) as cluster:
        watched["repr"] = repr(cluster)
        with pytest.raises(TridentError) as failed:
            cluster.submitTopology("canary", CONF, topology.build()).awaitTermination(30)
        watched["error"] = chain(failed.value)


def test_the_gateways_secrets_are_shown_nowhere(tmp_path: Path, watched: dict[str, str]) -> None:
    for store in (SQL[0], REDIS[0]):
        file = tmp_path / "events.yaml"
        given = {"kafka": {"bootstrap": NOWHERE, "topic": "t", "settings": KAFKA, "deliverySeconds": 1}, "store": store}
        file.write_text(json.dumps(given))
        read = gateway_settings.read_settings(file)
        watched |= {
            "repr": repr(read),
            "cluster": repr(read.kafka.cluster),
        }
        done = CliRunner().invoke(trident, ["events", "expire", "--config", str(file)])
        watched["expire"] = done.output + chain(done.exception)
        file.write_text(json.dumps({**given, "port": "x", "store": store.replace("://", ":/")}))
        watched["mistyped"] = CliRunner().invoke(trident, ["events", "serve", "--config", str(file)]).output
        app = application_of(read)
        with asyncio.Runner() as runner:
            answers = runner.run(pages(app))
        watched["pages"] = answers
        assert '"store":"away"' in answers and "retry" in answers
    close_stores()


async def pages(app: Any) -> str:
    """Every page of the gateway, and the answers to an event that cannot be taken."""
    async with (
        app.router.lifespan_context(app),
        httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://test", timeout=60) as client,
    ):
        asked = [
            await client.get(path) for path in ("/healthz", "/metrics", "/docs", "/openapi.json", "/events/x", "/none")
        ]
        asked += [await client.post("/events", content=body) for body in ('{"a": 1}', "{")]
    return "".join(each.text + repr(each.headers) for each in asked)


def test_tokens_of_drpc_are_shown_nowhere(
    tmp_path: Path, watched: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TRIDENT_DRPC_TOKEN", CANARY)
    file = tmp_path / "acl.yaml"
    for text in (f"drpc.tokens: {{a: '{CANARY}', b: '{CANARY}'}}\ndrpc.authorizer.acl: {{}}\n",
                 f"drpc.tokens: {{a: '{CANARY}'}}\ndrpc.authorizer.acl: {{f: {{client.users: [b]}}}}\n",
                 f"drpc.tokens: {{a: ['{CANARY}']}}\ndrpc.authorizer.acl: {{}}\n"):  # fmt: skip
        file.write_text(text)
        with pytest.raises(DefinitionError) as refused:
            access_of(str(file))
        watched[text[:30]] = chain(refused.value)
    access, drpc = access_of(None), LocalDRPC()
    watched["access"] = repr(access)
    with DRPCServer(drpc, {"drpc.http.port": 0}) as server, DRPCClient("127.0.0.1", server.port) as client:
        watched |= {"client": repr(client) + str(client), "server": repr(server)}
        for token in (None, f"{CANARY}x"):
            with pytest.raises(DRPCExecutionException) as failed:
                DRPCClient("127.0.0.1", server.port, token=token).execute("none", "x")
            watched[f"failed {token is None}"] = chain(failed.value)
    with pytest.raises(DefinitionError) as refused:
        DRPCClient("127.0.0.1", 1, token=f"{CANARY}\n")
    watched["token"] = chain(refused.value)


TOPOLOGY = """\
name: canary
storage: checkpoints
configuration:
  topology.start.wait.secs: 0
  my.password: ${CANARY}
  spark.hadoop.fs.s3a.secret.key: ${CANARY}
states:
  counts: {type: sql-map, kind: opaque, table: t, key: word string,
           url: "mysql+pymysql://me:${CANARY_TYPED}@127.0.0.1:9/db"}
  own: {className: "trident_py.testing:MemoryMapState.Factory"}
streams:
  words:
    newStream: {txId: s, spout: {className: FixedBatchSpout, constructorArgs: [word, 2, [a]]}}
    operations:
      - groupBy: word
      - persistentAggregate: {state: counts, agg: Count, functionFields: count}
"""
RUNS = [
    ("run", "--local", "--json"),
    ("run", "--local", "--log-format", "json", "--events", "events.jsonl", "--name", "with-events"),
    ("txid", "ls", "--json"),
]
"""Commands in processes of their own, which a list of processes shows."""
COMMANDS = [
    ("run", "--local", "--dry-run"),
    ("explain", "--format", "dot"),
    ("check", "--json"),
    ("txid", "show", "1"),
    ("txid", "sql", "txids.db"),
]


def test_a_topology_files_secrets_are_shown_by_no_command_and_in_no_process_list(
    tmp_path: Path, watched: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "trident.yml").write_text(TOPOLOGY)
    given = {"CANARY": CANARY, "CANARY_TYPED": TYPED, "PYTHONPATH": str(ROOT), "PYTHONHASHSEED": "0"}
    ps = {
        command: subprocess.Popen([sys.executable, "-m", "trident_py", *command], cwd=tmp_path,
                                  env={**os.environ, **given}, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        for command in RUNS
    }  # fmt: skip
    while any(process.poll() is None for process in ps.values()):
        watched["processes"] = watched.get("processes", "") + process_list()
        time.sleep(0.1)
    for command, process in ps.items():
        out, err = process.communicate()
        assert process.returncode in (0, 1), err.decode()
        watched[f"{command}"] = (out + err).decode()
    monkeypatch.chdir(tmp_path)
    for command in COMMANDS:
        done = CliRunner().invoke(trident, command, env=given)
        assert done.exit_code in (0, 1), done.output
        watched[f"{command}"] = done.output + chain(done.exception)
    close_stores()
    watched["files"] = files_in(tmp_path / "checkpoints")
    watched["events"] = (tmp_path / "events.jsonl").read_text()


@pytest.mark.parametrize("url", [f"http://me:{CANARY}@127.0.0.1:9", f"127.0.0.1:9?token={CANARY}", f"me:{CANARY}@x:9"])
def test_a_url_of_a_run_is_shown_without_its_secret(url: str, watched: dict[str, str]) -> None:
    asked = CliRunner().invoke(trident, ["status", url])
    assert asked.exit_code in (1, 2)
    assert asked.output.startswith("error: ")
    watched["status"] = asked.output


def process_list() -> str:
    """The command lines of all processes, as `ps` shows them."""
    lines = []
    for file in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):
            lines.append(file.read_text(errors="replace"))
    return "\n".join(lines)


# -- the list is whole

CLASSES = [trident_py.kafka.KafkaSpout, FileSpout, DRPCClient, DRPCServer, LocalCluster]
MAPPINGS = {"settings", "storage", "url", "uri", "store", "conf", "bootstrap"}
PATHS = {
    *(f"state {kind}: {name}" for kind, name in [
        *((kind, "url") for kind in ("sql-map", "insert-ignore", "append", "batch", "sequence", "window", "redis",
        "redis-map")),
        *((kind, name) for kind in ("topic", "transactional-topic", "compacted-topic") for name in ("bootstrap",
        "settings")),
        ("file", "uri"), ("file", "storage"),
    ]),
    "LocalCluster: storage",
    "KafkaSpout: bootstrap", "KafkaSpout: settings", "FileSpout: storage", "DRPCClient: conf", "DRPCClient: token",
    "DRPCServer: conf",
    "gateway: store", "gateway: kafka.bootstrap", "gateway: kafka.settings",
    *(f"{command}: {option}" for command in ("run", "profile", "doctor", "drpc serve", "shadow") for option in ("conf",
    "settings")),
    *(f"txid {command}: settings" for command in ("ls", "show", "watch", "fence", "rewind", "sql")),
    "import offsets: settings", "compare: settings", "SqlQuery: url", "status: url", "top: url",
}  # fmt: skip
"""Who takes a secret, and as what."""


def may_hold_one(name: str) -> bool:
    return name in MAPPINGS or is_secret(name)


def options() -> Iterator[str]:
    for point in find_points("trident_py.states"):
        yield from (f"state {point.name}: {name}" for name in point.load().model_fields if may_hold_one(name))
    for thing in [*CLASSES, states.sql.SqlQuery]:
        yield from (f"{thing.__name__}: {name}" for name in inspect.signature(thing).parameters if may_hold_one(name))
    yield from (
        f"gateway: {name}" for name in fields_of(gateway_settings.Settings) if may_hold_one(name.rpartition(".")[2])
    )
    for path in COMMAND_LINES:
        command: Any = trident
        for name in path:
            command = command.get_command(click.Context(command), name)
        yield from (f"{' '.join(path)}: {each.name}" for each in command.params if may_hold_one(each.name or ""))


def fields_of(model: type[BaseModel], before: str = "") -> Iterator[str]:
    for name, field in model.model_fields.items():
        kind = field.annotation
        if isinstance(kind, type) and issubclass(kind, BaseModel):
            yield from fields_of(kind, f"{before}{name}.")
        yield before + name


def test_every_option_that_may_hold_a_secret_is_in_the_list() -> None:
    assert set(options()) == PATHS
    assert set(STATES) == {point.name for point in find_points("trident_py.states")}
    assert not [key for name, key in vars(Config).items() if name.isupper() and is_secret(key)]
