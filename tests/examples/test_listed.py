"""Every Trident topology of Storm's examples has its port, its line in the documentation, and both clusters."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from ported import ROOT, printed, printed_on_spark
from redis_clients import close_servers

from examples import trident_redis

# The Trident topologies and states in examples/ of Storm's repository, and two that it has dropped.
STORMS = {
    "storm-starter": {
        "DebugMemoryMapState", "TridentMapExample", "TridentMinMaxOfDevicesTopology", "TridentMinMaxOfVehiclesTopology",
        "TridentReach", "TridentWindowingInmemoryStoreTopology", "TridentWordCount",
    },
    "storm-kafka-client-examples": {
        "TridentKafkaClientTopologyNamedTopics", "TridentKafkaClientTopologyWildcardTopics",
        "TridentKafkaConsumerTopology", "KafkaProducerTopology",
    },
    "storm-hdfs-examples": {"TridentFileTopology", "TridentSequenceTopology"},
    "storm-jdbc-examples": {"UserPersistenceTridentTopology"},
    "storm-redis-examples": {
        "WordCountTridentRedis", "WordCountTridentRedisCluster", "WordCountTridentRedisClusterMap",
        "WordCountTridentRedisMap",
    },
    "dropped": {"TridentHBaseWindowingStoreTopology", "TridentKafkaWordCount"},
}  # fmt: skip
NOT_PORTED = {"WordCountTridentRedisCluster", "WordCountTridentRedisClusterMap"}
PAGE = (ROOT / "docs/examples.md").read_text().partition("## Storm's examples, ported")[2].partition("\n## ")[0]
PORTED, REFUSED = PAGE.split("\nNot ported:\n")


def rows(table: str) -> list[list[str]]:
    lines = [line for line in table.splitlines() if line.startswith("| ")]
    return [[cell.strip() for cell in line.strip("|").split(" | ")] for line in lines[1:]]


def modules() -> set[str]:
    return {path.stem for path in ROOT.glob("examples/trident_*.py")} | {"word_count"}


def test_every_example_on_disk_is_in_the_documentation() -> None:
    listed = [re.fullmatch(r"\[(\w+)\]\(\.\./examples/(\w+)\.py\)(, \[as a file\].*)?", row[0]) for row in rows(PORTED)]
    assert all(found and found[1] == found[2] for found in listed)
    names = [found[1] for found in listed if found]
    assert len(names) == len(set(names)) and set(names) == modules()


def test_every_topology_of_storm_is_ported_or_told_to_be_missing() -> None:
    ported = {name for row in rows(PORTED) for name in row[1].split(", ")} - {"the same", "over JDBC"}
    refused = {name for row in rows(REFUSED) for name in row[0].split(", ")}
    assert refused == NOT_PORTED and ported | refused == set().union(*STORMS.values())
    assert not ported & refused


@pytest.mark.parametrize("module", sorted(modules()))
def test_every_example_names_its_source_and_both_clusters(module: str) -> None:
    text = (ROOT / f"examples/{module}.py").read_text()
    head = text.split('"""')[1]
    assert re.search(rf"^    python -m examples\.{module}.* --local  +in this process, no JVM", head, re.M)
    assert re.search(rf"^    python -m examples\.{module}(?!.*--local).*  +on Spark", head, re.M)
    assert re.search(r"^Source: .*\w+\.java", head, re.M | re.S)
    tests = "".join(path.read_text() for path in sorted((ROOT / "tests/examples").glob("test_trident_*.py")))
    tests += (ROOT / "tests/examples/test_word_count.py").read_text()
    assert f'"{module}"' in tests, "no test runs the module"


def shape(line: str) -> str:
    """A line without its numbers and names, which the devices, vehicles and users draw at random."""
    return re.sub(r"(peter.*|bob.*|[\d.]+)", "0", line)


def own(lines: list[str]) -> list[str]:
    """The lines of main: not those of operations, which run in Spark's workers."""
    tasks = ("DEBUG", "Received tuple", "updateCount", "Throwing")
    return [shape(line) for line in lines if line != "THE" and not any(text in line for text in tasks)]


ARGUMENTS: dict[str, Callable[[Path], str]] = {
    "trident_word_count_sql": lambda folder: f"sqlite:///{folder}/counts.db",
    "trident_user_persistence": lambda folder: f"sqlite:///{folder}/users.db",
    "trident_windowing": lambda folder: f"sqlite:///{folder}/windows.db",
    "trident_file": lambda folder: f"{folder}/files",
    "trident_sequence": lambda folder: f"{folder}/files",
}
WITH_SERVERS = {"trident_redis", "trident_redis_map", *(name for name in modules() if "kafka" in name)}


@pytest.mark.spark
@pytest.mark.whole("test_every_example_names_its_source_and_both_clusters")
@pytest.mark.parametrize("module", sorted(modules() - WITH_SERVERS))
def test_a_module_prints_the_same_on_spark(module: str, tmp_path: Path) -> None:
    said = []
    for place in ("local", "spark"):
        (tmp_path / place).mkdir()
        more = [ARGUMENTS[module](tmp_path / place)] if module in ARGUMENTS else []
        warns = "Enforced" if module == "trident_debug_state" else ""
        local = place == "local"
        said.append(own(printed(module, *more, "--local", warns=warns) if local else printed_on_spark(module, *more)))
    assert said[0] == said[1] and said[0]


@pytest.mark.spark
@pytest.mark.whole("test_every_example_names_its_source_and_both_clusters")
@pytest.mark.parametrize("module", sorted(WITH_SERVERS))
def test_a_module_with_a_server_runs_on_spark(module: str, request: pytest.FixtureRequest) -> None:
    broker = "kafka" in module
    place = request.getfixturevalue("kafka").bootstrap if broker else request.getfixturevalue("redis")
    if not broker:
        _forget(place)
    lines = printed_on_spark(module, place)
    if broker:
        assert any(line.startswith(("READ: ", "DRPC RESULT: [[")) for line in lines)
    else:
        _forget(place)
        assert [line.split(" found ")[0] for line in lines if line.startswith("batch")] == ["batch 1", "batch 2"]


def _forget(url: str) -> None:
    import redis

    with redis.Redis.from_url(url) as client:
        for key in (trident_redis.HASH, *client.scan_iter("trident:*:{test}:test*")):
            client.delete(key)
    close_servers()
