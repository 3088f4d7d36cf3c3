"""Every Python snippet of README.md and docs/ runs, in order, in one namespace per page.

A ```text block directly behind a ```python block is what the snippet prints. A page that says SparkCluster
needs a JVM.
"""

from __future__ import annotations

import contextlib
import io
import linecache
import re
import subprocess
from pathlib import Path
from typing import NamedTuple

import pytest

from states.loading.kafka_models import CompactedTopic, Topic, TransactionalTopic
from states.loading.settings import StateSettings
from trident_py.extras.redis.models import RedisMap, RedisTexts
from trident_py.report.guarantees import _cell
from trident_py.topology import ChainedAggregatorDeclarer, GroupedStream, Stream, TridentState, TridentTopology
from trident_py.topology.graph import Graph

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.M | re.S)
LINK = re.compile(r"\[[^\]]*\]\((?!https?:)([^)#\s]*)(?:#([^)]*))?\)")


class Snippet(NamedTuple):
    line: int
    code: str
    output: str | None


def snippets(page: Path) -> list[Snippet]:
    text = page.read_text()
    blocks = list(BLOCK.finditer(text))
    found = []
    for block, following in zip(blocks, [*blocks[1:], None], strict=False):
        if block[1] != "python":
            continue
        adjacent = (
            following is not None and following[1] == "text" and not text[block.end() : following.start()].strip()
        )
        output = following[2] if adjacent and following is not None else None
        found.append(Snippet(text[: block.start()].count("\n") + 1, block[2], output))
    return found


def project_files() -> list[str]:
    """The project's files, by their names below its root: those of git, or of a source distribution."""
    if not (ROOT / ".git").exists():
        (listed,) = ROOT.glob("*.egg-info/SOURCES.txt")
        names = listed.read_text().split("\n")
    else:
        command = ["git", "ls-files"]
        names = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout.split("\n")
    return [name for name in names if (ROOT / name).is_file()]


def needs_spark(page: Path) -> bool:
    return any("SparkCluster" in snippet.code for snippet in snippets(page))


def pages(spark: bool) -> list[Path]:
    return [page for page in PAGES if snippets(page) and needs_spark(page) == spark]


def run(page: Path) -> None:
    namespace: dict[str, object] = {"__name__": "__main__"}
    for snippet in snippets(page):
        printed = io.StringIO()
        name, text = f"{page}:{snippet.line}", "\n" * snippet.line + snippet.code
        linecache.cache[name] = (len(text), None, text.splitlines(keepends=True), name)  # as a notebook does
        code = compile(text, name, "exec")
        with contextlib.redirect_stdout(printed):
            exec(code, namespace)
        if snippet.output is not None:
            assert printed.getvalue() == snippet.output, f"{page.name}:{snippet.line} prints something else"


@pytest.mark.parametrize("page", pages(spark=False), ids=lambda page: page.name)
def test_the_snippets_of_a_page_run(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    run(page)


@pytest.mark.spark
@pytest.mark.parametrize("page", pages(spark=True), ids=lambda page: page.name)
def test_the_spark_snippets_of_a_page_run(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    run(page)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_between_pages_lead_somewhere(page: Path) -> None:
    links = LINK.findall(page.read_text())
    assert [target for target, _ in links if not (page.parent / target).exists()] == []
    of_pages = [(page.parent / target if target else page, anchor) for target, anchor in links if anchor]
    assert [(path.name, anchor) for path, anchor in of_pages if anchor not in anchors(path)] == []


def anchors(page: Path) -> set[str]:
    """The anchors of a page's headings, as GitHub and the site make them."""
    headings = re.findall(r"^#+ (.*)$", page.read_text(), re.M)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def test_the_readme_topology_has_at_most_12_lines() -> None:
    first = snippets(ROOT / "README.md")[0]
    assert len([line for line in first.code.splitlines() if line.strip()]) <= 12


def test_the_readme_is_short() -> None:
    assert len((ROOT / "README.md").read_text().splitlines()) <= 120


def test_the_readmes_guarantees_are_those_of_the_code() -> None:
    lines = re.findall(r"^\| `([a-z-]+)`.*?\| (.*?) \| (.*?) \| (.*?) \|$", (ROOT / "README.md").read_text(), re.M)
    assert [line[0] for line in lines] == [
        "insert-ignore", "upsert", "opaque", "transactional", "non-transactional", "append", "batch", "sequence",
        "window",
    ]  # fmt: skip
    for state, *told in lines:
        for spout, words in zip(("transactional", "opaque", "non-transactional"), told, strict=True):
            assert words.replace("*", "").startswith(_cell(spout, state)[0]), (spout, state)


def test_the_states_in_kafka_have_all_their_keys_on_the_users_page() -> None:
    page = (ROOT / "docs" / "states.md").read_text()
    common = _keys(page.partition("\n## In Kafka\n")[2].partition("\n### ")[0])
    records = _keys(_section(page, "transactional-topic"))
    assert [*common, *records] == _fields(TransactionalTopic)
    assert [*common, *_keys(_section(page, "compacted-topic"))] == _fields(CompactedTopic)
    shared = _section(page, "topic").partition("Keys:")[2].partition(" of transactional-topic")[0]
    named = re.findall(r"`(\w+)`", shared)
    assert [*common, *named] == _fields(Topic)


def test_the_states_in_redis_have_all_their_keys_on_the_users_page() -> None:
    page = (ROOT / "docs" / "states.md").read_text()
    assert "`url` is required" in page.partition("\n## In Redis\n")[2].partition("\n### ")[0]
    for name, model in {"redis-map": RedisMap, "redis": RedisTexts}.items():
        assert sorted(["url", *_keys(_section(page, name))]) == sorted(_fields(model))


def _section(page: str, name: str) -> str:
    return page.partition(f"\n### {name}\n")[2].partition("\n#")[0]


def _keys(text: str) -> list[str]:
    return re.findall(r"^\| `(\w+)` \|", text, re.M)


def _fields(model: type[StateSettings]) -> list[str]:
    return list(model.model_fields)


@pytest.mark.parametrize(("name", "least"), [("reliability", 30), ("protocol", 15), ("operations/changing", 25)])
def test_the_tests_that_a_page_of_promises_names_exist(name: str, least: int) -> None:
    page = (ROOT / "docs" / f"{name}.md").read_text()
    tests = "\n".join(path.read_text() for path in sorted((ROOT / "tests").rglob("*.py")))
    named = re.findall(r"\b(test_\w+?|Test\w+?)(?:_\.\.\.|\.\.\.|`)", page)
    assert len(named) > least
    assert [name for name in named if f"def {name}" not in tests and f"class {name}" not in tests] == []
    files = {path.name for path in (ROOT / "tests").rglob("*.py")}
    assert set(re.findall(r"\b(test_\w+\.py)\b", page)) <= files


def test_the_development_page_names_every_make_target() -> None:
    targets = re.findall(r"^([a-z-]+): .*##", (ROOT / "Makefile").read_text(), re.M)
    page = (ROOT / "docs" / "development.md").read_text()
    assert [target for target in targets if f"`make {target}" not in page] == []


def test_no_file_has_the_marks_of_an_unfinished_merge() -> None:
    marks = ("<" * 7 + " ", ">" * 7 + " ")
    texts = ((name, (ROOT / name).read_text(errors="replace")) for name in project_files())
    assert [name for name, text in texts if any(line.startswith(marks) for line in text.splitlines())] == []


def test_ci_runs_make_test_and_nothing_more() -> None:
    lines = (ROOT / ".ci" / "run").read_text().splitlines()
    assert [line for line in lines if line.startswith("exec")] == ["exec make test"]
    assert [line for line in lines if not line.startswith(("#!", "set ", "cd ", "exec "))] == []


def test_the_architecture_page_has_a_place_for_every_module() -> None:
    page = (ROOT / "docs" / "architecture.md").read_text()
    named = {name.strip("/").split("/")[-1].removesuffix(".py") for name in re.findall(r"`([\w/.]+)`", page)}
    modules = [path for top in ("trident_py", "states") for path in (ROOT / top).rglob("*.py")]
    assert sorted(path.stem for path in modules if path.stem not in named | {"__init__", "__main__"}) == []


@pytest.mark.parametrize("built", [ChainedAggregatorDeclarer, GroupedStream, Stream, TridentState, TridentTopology])
def test_the_architecture_page_says_where_each_call_of_a_topology_runs(built: type) -> None:
    page = (ROOT / "docs" / "architecture.md").read_text()
    calls = {name for name in dir(built) if not name.startswith("_") and callable(getattr(built, name))}
    assert sorted(name for name in calls - {*dir(Graph)} if f"`{name}`" not in page) == []


@pytest.mark.parametrize("page", PAGES[1:], ids=lambda page: page.stem)
def test_the_files_that_a_page_names_are_there(page: Path) -> None:
    named = re.findall(r"`((?:trident_py|states|tests|benchmarks|examples|scripts)/[\w/.-]+)`", page.read_text())
    assert [name for name in named if not (ROOT / name).exists()] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_prose_is_at_most_120_columns_wide_and_a_table_cell_at_most_25_words_long(page: Path) -> None:
    text = BLOCK.sub("", page.read_text())
    rows = [line for line in text.splitlines() if line.startswith("|")]
    assert [line for line in text.splitlines() if len(line) > 120 and line not in rows] == []
    assert [cell for row in rows for cell in row.strip("|").split("|") if len(cell.split()) > 25] == []
