"""The servers and processes of the chain: started here, killed by SIGKILL, and started again as a supervisor does."""

from __future__ import annotations

import contextlib
import json
import os
import random
import signal
import subprocess
import sys
import time
import urllib.request
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import IO, Any

import sqlalchemy as sa
import yaml

from testbed.kafka_broker import KafkaBroker
from testbed.service import free_port
from testbed.sql_servers import MariaDb

from .sensors_topology import TOPIC

PATIENCE = 60.0
FINGERPRINT = ["origin", "time_hour"]
GATEWAY, BROKER, DRIVER, DATABASE = TURNS = ("gateway", "broker", "driver", "database")


class Program:
    """A separate process, with its output in a file. It can be started again when it has ended."""

    def __init__(self, name: str, command: list[str], folder: Path) -> None:
        self.name, self.command = name, [sys.executable, "-m", *command]
        self.starts = 0
        self._log: IO[bytes] = (folder / f"{name}.log").open("ab")
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def pid(self) -> int | None:
        return None if self._process is None else self._process.pid

    def start(self) -> None:
        """Starts it unless it runs, in its own process group: its children end with it."""
        if self._process is None or self._process.poll() is not None:
            quiet: dict[str, Any] = {"stdin": subprocess.DEVNULL, "stdout": self._log, "stderr": self._log}
            self._process = subprocess.Popen(self.command, start_new_session=True, **quiet)
            self.starts += 1

    def kill(self) -> None:
        if self._process is not None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()

    def stop(self) -> None:
        """SIGTERM; SIGKILL if it has not ended after a while."""
        if self._process is not None and self._process.poll() is None:
            self._process.terminate()
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(PATIENCE / 2)
        self.kill()
        self._log.close()


def gateway(folder: Path, settings: dict[str, Any]) -> Program:
    """An events gateway with these settings, not started yet."""
    file = folder / "events.yaml"
    file.write_text(yaml.safe_dump(settings, sort_keys=False))
    return Program(GATEWAY, ["trident_py", "events", "serve", "--config", str(file)], folder)


class Chain:
    """Gateway -> broker -> Spark driver -> database. A context manager that ends and removes all of them."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.kills: Counter[str] = Counter()
        self.broker, self.database = KafkaBroker(), MariaDb()
        self._closing = contextlib.ExitStack()

    def __enter__(self) -> Chain:
        try:
            self.broker = self._closing.enter_context(self.broker)
            self.database = self._closing.enter_context(self.database)
            self.broker.create_topic(TOPIC, partitions=2)
            self.url = self.database.create_database()
            self.events = self.database.create_database()
            self.port = free_port()
            self.gateway = self._started(gateway(self.folder, self._settings()))
            topology = ["examples.sensors_topology", json.dumps(self._topology())]
            self.driver = self._started(Program(DRIVER, topology, self.folder))
            wait_for(lambda: answers(f"{self.address}/healthz"), "the gateway does not answer")
        except BaseException:
            self._closing.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self._closing.close()

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def kill(self, link: str) -> None:
        """Kills a link by SIGKILL and starts it again."""
        self.kills[link] += 1
        links: dict[str, Any] = {
            GATEWAY: self.gateway, BROKER: self.broker, DRIVER: self.driver, DATABASE: self.database,
        }  # fmt: skip
        links[link].kill()
        links[link].start()

    def look_after(self) -> None:
        """Starts what has ended by itself again, as a supervisor does."""
        self.gateway.start()
        self.driver.start()

    def _started(self, program: Program) -> Program:
        self._closing.callback(program.stop)
        program.start()
        return program

    def _settings(self) -> dict[str, Any]:
        return {
            "kafka": {"bootstrap": self.broker.bootstrap, "topic": TOPIC, "deliverySeconds": 4},
            "store": self.events,
            "fingerprint": {"fields": FINGERPRINT},
            "event": {"required": {"origin": "string", "time_hour": "string"}},
            "leaseSeconds": 5,
            "port": self.port,
        }

    def _topology(self) -> dict[str, Any]:
        checkpoints = self.folder / "checkpoints"
        checkpoints.mkdir()
        stores = {"bootstrap": self.broker.bootstrap, "url": self.url, "events": self.events}
        return {**stores, "checkpoints": str(checkpoints)}


class Killer:
    """Kills one link after the other while the fleet sends. Each kill is due at a number of acknowledged events."""

    turns: Sequence[str] = TURNS

    def __init__(self, chain: Chain, events: int, kills: int, seed: int, log: Callable[[str], None]) -> None:
        draw = random.Random(seed)
        self.at = [int(events * (n + draw.uniform(0.3, 0.9)) / kills) for n in range(kills)]
        self.chain, self.log = chain, log
        self.done = 0

    def due(self, acked: int) -> bool:
        return self.done < len(self.at) and acked >= self.at[self.done]

    def strike(self) -> None:
        """Called in a thread: a start may take seconds."""
        link = self.turns[self.done % len(self.turns)]
        self.log(f"SIGKILL: {link}")
        self.done += 1
        self.chain.kill(link)


def answers(address: str) -> bool:
    try:
        with urllib.request.urlopen(address, timeout=2) as answer:
            return bool(answer.status == 200)
    except OSError:
        return False


def wait_for(condition: Callable[[], bool], failure: str, seconds: float = PATIENCE) -> None:
    until = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > until:
            raise TimeoutError(f"{failure} within {seconds:g} s")
        time.sleep(0.1)


def query(url: str, text: str) -> list[tuple]:
    with sa.create_engine(url, poolclass=sa.NullPool).connect() as connection:
        return [tuple(row) for row in connection.execute(sa.text(text))]
