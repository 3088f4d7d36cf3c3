"""JSON that another program may have written is read by `parse_json`: json raises RecursionError for what is nested too
deeply, which no handler of ValueError catches."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from syntax import tree

from trident_py.model.json_text import parse_json

ROOT = Path(__file__).parents[2]
OF_ITS_OWN = {
    "states/columns/values.py": "a text that was made a line before",
    "states/sql/rows/sequence/tables.py": "a row's JSON, which the state has checked",
    "trident_py/checkpoints/append_log.py": "a text that was made a line before",
    "trident_py/checkpoints/metadata_store.py": "a text that was made a line before",
    "trident_py/checkpoints/versioned_store.py": "a text that was made a line before",
    "trident_py/drpc/local_drpc.py": "an answer of this process",
    "trident_py/engine/processors/dead_letters.py": "a text that was made a line before",
    "trident_py/engine/program.py": "from the driver of the run",
    "trident_py/extras/avro/avro_format.py": "the schema, which the constructor has parsed",
    "trident_py/extras/doctor/probe.py": "from a task of ours",
    "trident_py/extras/doctor/worker_report.py": "from the driver of the run",
    "trident_py/extras/monitor/cli.py": "from the page of a run",
    "trident_py/extras/moving/batch_again.py": "a text that was made a line before",
    "trident_py/extras/moving/checkpoint.py": "a text that was made a line before",
    "trident_py/kafka/offsets.py": "a text that was made a line before",
    "trident_py/spark/internals.py": "from Spark",
    "trident_py/spark/stage.py": "from the driver of the run",
    "trident_py/spark/worker_logs.py": "from the driver of the run",
    "trident_py/spouts/coordination.py": "a text that was made a line before",
    "trident_py/testing/faults/kill_point.py": "from a process of the test",
    "trident_py/testing/operations.py": "a user's text, in an operation: the batch fails as with any error",
}
"""Who reads JSON with `json` alone, and whose text it is."""


def unguarded(within: ast.AST, guarded: bool = False) -> Iterator[ast.Call]:
    """The calls of json.loads and json.load outside of a try that handles RecursionError."""
    for node in ast.iter_child_nodes(within):
        inside = guarded
        if isinstance(node, ast.Try):
            inside = guarded or any("RecursionError" in ast.dump(handler) for handler in node.handlers)
        called = isinstance(node, ast.Call) and ast.unparse(node.func) in ("json.loads", "json.load")
        if called and not inside:
            assert isinstance(node, ast.Call)
            yield node
        yield from unguarded(node, inside)


def test_only_texts_of_our_own_are_read_without_a_limit() -> None:
    found = set()
    for package in ("trident_py", "states"):
        for file in (ROOT / package).rglob("*.py"):
            if any(unguarded(tree(file))):
                found.add(str(file.relative_to(ROOT)))
    assert found == OF_ITS_OWN.keys()


@given(st.integers(50_000, 200_000), st.sampled_from(['[', '{"a":']), st.booleans())
def test_what_is_nested_too_deeply_is_no_json(depth: int, opening: str, closed: bool) -> None:
    text = opening * depth + ("1" + ("]" if opening == "[" else "}") * depth if closed else "")
    with pytest.raises(ValueError, match=r"nested too deeply|Expecting"):
        parse_json(text)
