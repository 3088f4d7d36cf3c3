"""The porting guide names all of Storm's API that is here, and its Java is true Java of Storm 2.8.3.

The guide is docs/porting.md, porting_calls.md and porting_classes.md. ``tests/data/storm/api.json`` holds Storm's API;
docs/differences.md lists what is not here (`tests/test_api.py` compares both). Whatever is left, users may write.
"""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from needed import needed

from tests import test_api
from tests.test_docs import BLOCK, ROOT

from .jars import storms_jars

HERE = Path(__file__).parent / "guide"
PAGES = [ROOT / "docs" / name for name in ("porting.md", "porting_calls.md", "porting_classes.md")]
ANSWERS = ROOT / "docs" / "how_do_i.md"
TEXT = "\n".join(page.read_text() for page in PAGES)
WORDS = set(re.findall(r"\w+", TEXT))
SETTINGS = set(re.findall(r"`((?:topology|transactional|drpc)\.[\w.]+)`", TEXT))


def words_of(name: str) -> Iterator[str]:
    """What the guide must name of a class of Storm: the class (of a nested one the last part), methods, constants."""
    kept = test_api.CLASSES[name]
    if not test_api.listed(name):
        yield re.split(r"[.$]", name)[-1]
        yield from (method for method in kept["methods"] if not test_api.listed(f"{name}.{method}"))
        yield from (constant for constant in kept["constants"] if not test_api.listed(f"{name}.{constant}"))


def test_the_guide_names_each_class_and_method_of_storm_that_is_here() -> None:
    named = {name: [word for word in words_of(name) if word != "<init>"] for name in test_api.CLASSES}
    assert {name: words for name, words in named.items() if not WORDS.issuperset(words)} == {}
    assert sum(map(len, named.values())) > 400, "the record has shrunk"


def test_the_guide_names_each_key_that_storms_trident_reads() -> None:
    assert [key for key in test_api.RECORDED["keys"] if key not in SETTINGS and not test_api.listed(key)] == []


def test_every_java_block_of_the_guide_has_python_behind_it_or_a_link() -> None:
    for page in PAGES:
        text = page.read_text()
        for block in re.finditer(r"^```java\n.*?^```\n(.{0,400})", text, re.M | re.S):
            behind = block[1].lstrip("\n")
            assert behind.startswith(("```python", "```java")) or "porting_calls.md" in behind, block[0][:80]


@pytest.mark.whole("test_every_java_block_of_the_guide_has_python_behind_it_or_a_link")
def test_the_java_of_the_guide_compiles(tmp_path: Path) -> None:
    with needed("Java"):
        jars = storms_jars()
    source = tmp_path / "Guide.java"
    source.write_text((HERE / "Guide.java").read_text().replace("    // BLOCKS\n", "\n".join(blocks())))
    command = ["javac", "-nowarn", "-Xlint:none", "-proc:none", "-cp", f"{jars}/*", "-d", str(tmp_path), str(source)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[:4000]


def blocks() -> Iterator[str]:
    """The Java blocks: a class as it stands, statements each in a method of their own."""
    for page in PAGES:
        text = page.read_text()
        for block in BLOCK.finditer(text):
            place = f"{page.stem}_{text[: block.start()].count(chr(10)) + 1}"
            if block[1] == "java" and block[2].startswith("public class "):
                yield f"// {place}\n{block[2].replace('public class', 'public static class', 1)}"
            elif block[1] == "java":
                yield f"static void {place}() throws Exception {{\n{block[2]}}}\n"


def test_the_links_of_the_guide_lead_to_headings() -> None:
    for page in [*PAGES, ANSWERS]:
        for name, anchor in re.findall(r"\]\(([\w.]*)#([\w-]+)\)", page.read_text()):
            assert anchor in headings(page.parent / (name or page.name)), f"{page.name}: {name}#{anchor}"


def headings(page: Path) -> set[str]:
    """The anchors of a page, as GitHub makes them."""
    titles = re.findall(r"^#+ (.+)$", BLOCK.sub("", page.read_text()), re.M)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


def test_fifty_answers_each_with_a_link() -> None:
    rows = re.findall(r"^\| (\d+) .*\| (.*) \|$", ANSWERS.read_text(), re.M)
    assert [int(number) for number, _ in rows] == list(range(1, len(rows) + 1))
    assert len(rows) >= 50
    assert [number for number, answer in rows if "](" not in answer] == []
