"""Whatever is typed: an exit code, a text that says what is wrong, and no traceback."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path

import click
import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

from trident_py.cli import trident

from .drawing import FOREIGN, TEXTS, damaged, often, patience
from .test_yaml_files import GATEWAY, STATES, TOPOLOGY

MODULE = """
from trident_py import TridentTopology
from trident_py.testing import FixedBatchSpout

def build():
    topology = TridentTopology()
    topology.newStream("s", FixedBatchSpout("a", 2, ["x"])).each("a", lambda a: [a], "b")
    return topology

def nothing(): ...
def failing(): raise ValueError("mine")
LIMIT = 3
"""
SAMPLE = b"sensor,number,time\na,1,2013-11-03T06:00:00Z\nb,2,2013-11-03T06:00:01Z\n"
FILES = {"trident.yml": json.dumps(TOPOLOGY), "states.yaml": json.dumps({"states": STATES}),
    "events.yaml": json.dumps(GATEWAY),
         "counting.py": MODULE, "empty.yml": "", "sample.csv": SAMPLE.decode(),
         "sample.jsonl": '{"a": 1}\n{"a": 2}\n'}  # fmt: skip
# Those that begin something that does not end by itself, or start Spark: only with arguments that are refused before.
ENDLESS = {("drpc", "serve"), ("events", "serve"), ("doctor",), ("profile",), ("txid", "watch")}
WORDS = st.one_of(
    st.sampled_from([*FILES, "counting", "counting:build", "counting:nothing", "counting:failing", "counting:LIMIT",
    "counting:none", ".",
                     "..", "/", "/dev/null", "no/such/file.yml", "no_such_module", "no.such:build", "os:getcwd",
                     "a b", "-", "--", "--help",
                     "0", "-1", "1", "99999999999999999999", "1e999", "nan", "a=b", "=", "topology.workers=x",
                     "topology.max.retries=[",
                     "a=" + "[" * 3_000, "spark.master=local", "blake2b", "plain", "sensor,number", ",", "time",
                     "inf", "65536"]),
    TEXTS.map(lambda text: text.replace("\0", "")), st.text("\udc80\udcff\u20ac-=:./", max_size=4),
)  # fmt: skip


def commands(group: click.Group = trident, path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    with click.Context(group) as context:
        for name in group.list_commands(context):
            command = group.get_command(context, name)
            if isinstance(command, click.Group):
                yield from commands(command, (*path, name))
                if command.invoke_without_command:
                    yield (*path, name)
            else:
                yield (*path, name)


def options_of(path: tuple[str, ...]) -> list[str]:
    command: click.Command = trident
    for name in path:
        assert isinstance(command, click.Group)
        found = command.get_command(click.Context(command), name)
        assert found is not None
        command = found
    return sorted(option for each in command.params if isinstance(each, click.Option) for option in each.opts)


COMMANDS = list(commands())


@st.composite
def typed(draw: st.DrawFn, path: tuple[str, ...]) -> list[str]:
    arguments = list(path)
    for _ in range(draw(st.integers(0, 4))):
        arguments += draw(st.lists(st.sampled_from(options_of(path)), max_size=1)) if options_of(path) else []
        arguments += draw(st.lists(WORDS, max_size=2))
    if path in ENDLESS:
        arguments.insert(len(path), draw(st.sampled_from(["--no-such-option", "--set", "--port=x", "--batches=-1"])))
    elif path == ("run",):
        arguments.insert(len(path), draw(st.sampled_from(["--local", "--dry-run"])))
    return arguments


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    made = tmp_path_factory.mktemp("typed")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(made)
        patch.setattr(sys, "path", [*sys.path])
        patch.setenv("TRIDENT_DRPC_TOKEN", "canary-token")
        yield made


def filled(folder: Path) -> None:
    for name, text in FILES.items():
        if not (folder / name).is_file():
            (folder / name).write_text(text)


def ends_well(arguments: list[str]) -> None:
    with patience(), pytest.MonkeyPatch.context() as patch:
        patch.chdir(Path.cwd())
        done = CliRunner().invoke(trident, arguments, prog_name="trident")
    shown = done.stdout + done.stderr
    assert done.exception is None or isinstance(done.exception, SystemExit), (arguments, repr(done.exception))
    assert done.exit_code in (0, 1, 2) and (done.exit_code == 0 or shown.strip()), (arguments, done)
    assert "Traceback" not in shown and "canary" not in shown and "secret@" not in shown, (arguments, shown)


@pytest.mark.parametrize("path", COMMANDS, ids="-".join)
@often(8, 200)
@given(data=st.data())
def test_any_arguments(folder: Path, path: tuple[str, ...], data: st.DataObject) -> None:
    filled(folder)
    ends_well(data.draw(typed(path)))


@pytest.mark.parametrize("arguments", [
    ("events", "lint"), ("states", "check"), ("explain",), ("run", "--local"), ("run", "--dry-run"), ("events",
    "expire", "--config"),
], ids="-".join)  # fmt: skip
@often(8, 200)
@given(data=st.data())
def test_a_file_that_is_damaged(folder: Path, arguments: tuple[str, ...], data: st.DataObject) -> None:
    filled(folder)
    good = SAMPLE if "lint" in arguments else b"states: {a: {type: append, url: 'sqlite:///a.db', table: t}}\n"
    file = folder / ("drawn.csv" if "lint" in arguments else "drawn.yml")
    file.write_bytes(data.draw(damaged(good, FOREIGN)))
    ends_well([*arguments, file.name])
