"""The file events.yaml, and the commands that read it."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from pydantic import ValidationError

from testbed.service import free_port
from trident_py.cli import trident
from trident_py.errors import DefinitionError
from trident_py.extras.gateway.claims import Claim
from trident_py.extras.gateway.metrics import FOLDER
from trident_py.extras.gateway.settings import Settings, read_settings
from trident_py.extras.gateway.stores import store_of

WHOLE = """
kafka:
  bootstrap: localhost:9092
  topic: events
  settings: {sasl.password: "${SECRET}", compression.type: lz4}
store: mysql+pymysql://me:${SECRET}@localhost/events
fingerprint: {fields: [sensor, number], algorithm: sha1, timestamp: time}
event:
  required: {sensor: string}
bloom: {capacity: 1000}
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "events.yaml"


def wrong(file: Path, text: str) -> list[str]:
    file.write_text(text)
    with pytest.raises(DefinitionError) as found:
        read_settings(file)
    return str(found.value).replace(f"{file}:", "").split("\n  ")


def test_a_whole_file_is_read_and_shows_no_secret(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SECRET", "geheim")
    file.write_text(WHOLE)
    settings = read_settings(file)
    assert settings.kafka.cluster.config()["sasl.password"] == "geheim"
    assert settings.fingerprint.make().algorithm == "sha1"
    assert settings.limits.batch == 1_000
    assert "geheim" not in f"{settings!r} {settings} {settings.kafka!r}"


def test_every_mistake_is_told_with_its_line_and_without_secrets(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SECRET", "geheim")
    text = WHOLE.replace("bootstrap: localhost:9092", "bootsrap: localhost")
    told = wrong(file, f"{text}leese: 3\nport: ${{SECRET}}\n")
    assert told[0].startswith("4 errors")
    assert told[1] == "2: kafka.bootstrap: is missing; the gateway needs: bootstrap, topic"
    assert told[2].startswith("3: kafka.bootsrap: the gateway has no such key; it has: bootstrap, topic")
    assert told[2].endswith("Did you mean bootstrap?")
    assert any(each.startswith("11: leese: the gateway has no such key") for each in told)
    assert any(each.startswith("12: port: found '${SECRET}'") for each in told)
    assert "geheim" not in "".join(told)


@pytest.mark.parametrize("line, reason", [
    ("expirySeconds: 60", "shorter than longestResendSeconds"),
    ("leaseSeconds: 5", "not longer than kafka.deliverySeconds"),
    ("store: mongodb://x", "no store for 'mongodb'"),
    ("fingerprint: {algorithm: crc}", "no algorithm 'crc'"),
    ("event: {required: {sensor: text}}", "found 'text'; there are: string, integer"),
    ("workers: 0", "expected at least 1"),
])  # fmt: skip
def test_settings_that_do_not_fit_together_are_refused_before_the_start(file: Path, line: str, reason: str) -> None:
    told = wrong(file, f"kafka: {{bootstrap: 'localhost:9092', topic: events}}\n{line}\n")
    assert reason in told[0]


def test_settings_of_kafka_that_would_break_the_order_of_steps_are_refused(file: Path) -> None:
    told = wrong(file, "kafka:\n  bootstrap: localhost:9092\n  topic: events\n  settings: {acks: 1}\n")
    assert told == ["4: kafka.settings: found a list or mapping: acks: set by the gateway itself; use deliverySeconds "
                    "and lingerMs"]  # fmt: skip


@pytest.mark.parametrize("text", ["", "- a\n", "a: [\n", "kafka: ${NOT_SET_ANYWHERE}\n"])
def test_what_is_no_file_of_settings_is_told(file: Path, text: str) -> None:
    assert wrong(file, text)[0][:2] in ("1:", "2:")


def test_the_command_refuses_a_wrong_file_before_anything_starts(file: Path) -> None:
    file.write_text("kafka: {bootstrap: here, topic: events}\n")
    done = CliRunner().invoke(trident, ["events", "serve", "--config", str(file)])
    assert done.exit_code == 2
    assert done.stderr.startswith(f"error: {file}:1: kafka.bootstrap: found 'here'")
    missing = CliRunner().invoke(trident, ["events", "serve", "--config", str(file.with_name("none.yaml"))])
    assert (missing.exit_code, "cannot be read" in missing.stderr) == (2, True)


@pytest.mark.parametrize("more", [
    {"settings": {"compression.typ": "gzip"}}, {"settings": {"compression.typ": "gzip"}, "workers": 2},
    {"lingerMs": 900, "deliverySeconds": 0.5},
])  # fmt: skip
def test_the_command_refuses_what_kafkas_client_does_not_take(file: Path, more: dict[str, Any]) -> None:
    workers = more.pop("workers", 1)
    kafka = {"bootstrap": "localhost:1", "topic": "events", **more}
    file.write_text(json.dumps({"kafka": kafka, "store": f"sqlite:///{file.parent}/events.db", "workers": workers}))
    done = subprocess.run(
        [sys.executable, "-m", "trident_py", "events", "serve", "--config", str(file)],
        capture_output=True, text=True, timeout=60,
    )  # fmt: skip
    assert (done.returncode, done.stderr.count("\n")) == (2, 1), done.stderr
    assert "Kafka at localhost:1: cannot create a client: " in done.stderr


@pytest.mark.parametrize("workers", [1, 2])
def test_a_gateway_that_does_not_start_has_failed(file: Path, workers: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(FOLDER, f"{file.parent}/nowhere")
    kafka = {"bootstrap": "localhost:1", "topic": "events"}
    store = f"sqlite:///{file.parent}/events.db"
    file.write_text(json.dumps({"kafka": kafka, "store": store, "workers": workers, "port": free_port()}))
    done = subprocess.run(
        [sys.executable, "-m", "trident_py", "events", "serve", "--config", str(file)],
        capture_output=True, text=True, timeout=60,
    )  # fmt: skip
    assert done.returncode == 1, done.stderr
    assert done.stderr.endswith("TridentError: the gateway did not start; the log says why\n")


def test_the_command_forgets_old_events(file: Path, tmp_path: Path) -> None:
    store = store_of(f"sqlite:///{tmp_path}/events.db")
    store.claim([Claim("a", "hash")], "me", 1)
    store.close()
    kafka = "{bootstrap: 'localhost:9092', topic: events, deliverySeconds: 0.0001}"
    settings = f"kafka: {kafka}\nleaseSeconds: 0.0005\nstore: sqlite:///{tmp_path}/events.db\n"
    runner = CliRunner()
    for seconds, forgotten in (("3600", 0), ("0.001", 1)):
        file.write_text(f"{settings}longestResendSeconds: {seconds}\nexpirySeconds: {seconds}\n")
        done = runner.invoke(trident, ["events", "expire", "--config", str(file)])
        assert (done.exit_code, done.stdout) == (0, f"{forgotten} events deleted\n")


def settings(**more: Any) -> Settings:
    kafka = {"bootstrap": "localhost:1", "topic": "events", **more.pop("kafka", {})}
    return Settings.model_validate({"kafka": kafka, **more})


def test_an_event_is_not_forgotten_while_its_claim_is_held() -> None:
    with pytest.raises(ValidationError, match="longer than leaseSeconds"):
        settings(expirySeconds=20, longestResendSeconds=5, leaseSeconds=30)


def test_a_producer_that_tells_errors_only_is_refused() -> None:
    with pytest.raises(ValidationError, match=r"delivery\.report\.only\.error"):
        settings(kafka={"settings": {"delivery.report.only.error": "true"}})
