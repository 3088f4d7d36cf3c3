"""What docs/security.md says of the code: who unpickles, who listens, and what is used nowhere."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[1]
SOURCES = [file for folder in ("trident_py", "states") for file in sorted((ROOT / folder).rglob("*.py"))]
PAGE = (ROOT / "docs" / "security.md").read_text()
UNPICKLES = {"pickle.loads", "pickle.load", "cloudpickle.loads", "cloudpickle.load", "Unpickler", "pickle.Unpickler",
             "read_pickle", "pd.read_pickle", "marshal.loads", "dill.loads", "np.load"}  # fmt: skip
LISTENS = {"Listener", "socket.create_server", "uvicorn.run", "uvicorn.Server", "asyncio.start_server", "HTTPServer",
           "ThreadingHTTPServer", "socketserver.TCPServer"}  # fmt: skip
NOWHERE = {"eval", "exec", "yaml.load", "yaml.unsafe_load", "yaml.full_load", "os.system", "os.popen", "os.umask"}


def calls(file: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.Call):
            yield ast.unparse(node.func)
            if any(each.arg == "shell" for each in node.keywords):
                yield "os.system"


@cache
def called() -> dict[str, set[str]]:
    """What each file calls."""
    return {str(file.relative_to(ROOT)): set(calls(file)) for file in SOURCES}


def users(names: set[str]) -> set[str]:
    return {file for file, found in called().items() if names & found}


def listed(title: str) -> set[str]:
    """The modules in the first column of the table below this title."""
    section = PAGE.partition(f"## {title}")[2].partition("\n## ")[0]
    rows = [row.split("|")[1] for row in section.splitlines() if row.startswith("| `")]
    return set(re.findall(r"`(\S+\.py)`", "".join(rows)))


def test_the_page_lists_who_unpickles() -> None:
    assert users(UNPICKLES) == listed("What is unpickled, and from where")


def test_the_page_lists_who_listens() -> None:
    assert users(LISTENS) == listed("What listens")


def test_no_text_is_run_as_code() -> None:
    assert users(NOWHERE) == set()
