"""The shape of the house, held by reading the sources: who may import whom, and how long things may grow."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pytest
from syntax import nodes

from trident_py.entry_points import COMMANDS, EXTRAS, find_points
from trident_py.filesystems.registry import FILESYSTEMS
from trident_py.model.context import KEYS
from trident_py.report.progress import MONITORS

ROOT = Path(__file__).parent.parent

# Each layer may import the layers above it in this list, and itself only within one package. Modules of `LAYERED` have
# layers of their own.
LAYERED = {"checkpoints", "engine", "model", "report"}
LAYERS = [
    {"errors", "engine/phases", "model/context", "model/pickling", "model/__init__", "model/secrets"},
    {"model/canonical", "entry_points", "model/fault_points", "model/json_text"},
    {"config"},
    {"tuples", "databases", "metrics", "model/names", "model/requirements", "model/retry"},
    {"filesystems"},
    {"model/user_traceback", "model/rows"},
    {"model/chunks", "model/resources", "rpc", "documents"},
    {"operations", "checkpoints/metadata_store"},
    {"state", "spouts", "checkpoints/append_log", "checkpoints/versioned_store", "checkpoints/uri_folder"},
    {"windowing"},
    {"engine/store_position", "engine/empty_batches"},
    {"engine/recovery"},
    {"kafka"},
    {"model/partitioning"},
    {"model/plan"},
    {"engine/processors"},
    {"engine/poison"},
    {"engine/stages"},
    {"engine/lowering"},
    {"engine/hooks"},
    {"engine/program"},
    {"engine/parallel_commit"},
    {"engine/task"},
    {"engine/worker_cache", "report/progress"},
    {"report/cluster"},
    {"engine/startup", "engine/two_phase", "engine/attempts", "engine/execution_mode"},
    {"report/guarantees"},
    {"engine/batch_loop", "report/explain"},
    {"drpc"},
    {"topology"},
    {"checkpoints/hash_seed"},
    {"checkpoints/batch_log"},
    {"checkpoints/location"},
    {"engine/component"},
    {"local", "spark"},
    {"testing"},
    {"cli"},
    {"extras"},
]
RANK = {name: rank for rank, names in enumerate(LAYERS) for name in names}
# Found nowhere in the table: the package itself (the list of public names), `python -m trident_py`, and public names of
# extras.
ENTRANCES = {
    "__init__", "__main__", "checkpoints/__init__", "engine/__init__", "report/__init__", "events", "topology_files",
}  # fmt: skip
# Extras may import every layer, and of one another only what is here.
EXTRAS_MAY_IMPORT = {
    "gateway": {"drpc_server", "redis"},  # the web server and its limits; the URL of a Redis
    "monitor": {"drpc_server", "event_lines"},  # and the file of events, for batches of long ago
    # the components of a topology; readers of files; charts; the state of an HdfsState; the URL of a Redis
    "moving": {"txid", "file_spout", "run_report", "files", "redis"},
    "opentelemetry": {"monitor"},  # the timeline of a component
}
# Public names of extras that a type checker finds where users import them. At run time they come by entry point.
TYPED = {
    "trident_py/drpc/__init__.py": "drpc_server",
    "trident_py/kafka/__init__.py": "avro",
    "trident_py/spouts/__init__.py": "file_spout",
    "states/files.py": "files",
    "states/redis.py": "redis",
}
STATES_MAY_IMPORT = {
    "errors", "entry_points", "tuples", "operations", "state", "rpc", "documents", "kafka", "databases", "filesystems",
    "windowing", "model/canonical", "model/json_text", "model/chunks", "model/context", "model/names",
    "model/requirements", "model/retry", "model/secrets", "model/user_traceback",
}  # fmt: skip
# Our own modules that a function may import when it runs, and why.
LAZY = {
    "trident_py/testing/faults/driver_process.py": "a run on LocalCluster must not load pyspark",
    "trident_py/cli/run.py": "`--local` must not load pyspark",
    "trident_py/extras/moving/shadow_comparison.py": "only a picture needs matplotlib",
    "trident_py/extras/moving/source_options.py": "`trident --help` loads no SQLAlchemy",
    "trident_py/extras/topology_files/cli.py": "`trident --help` loads no YAML and no pydantic",
    "states/sql/dialects/registry.py": "a dialect and its driver are loaded when a URL asks for them",
    "trident_py/spark/jobs.py": "pickled by value; a worker imports when it knows the path",
    "trident_py/spark/stage.py": "nested functions are pickled by value; a worker imports when it knows the path",
}
# Modules that import each other, by whatever import, and why. Another circle is refused, so is one that is gone.
CIRCLES: dict[tuple[str, ...], str] = {}

PUBLIC = {
    "trident_py",
    "trident_py.events",
    "trident_py.kafka",
    "trident_py.operations",
    "trident_py.operations.builtin",
    "trident_py.spouts",
    "trident_py.state",
    "trident_py.testing",
    "trident_py.testing.faults",
    "trident_py.topology_files",
    "trident_py.windowing",
    "states",
    "states.files",
    "states.redis",
    "states.sql",
}
# Attributes that only trident_py/spark/internals.py reads; so are those that begin with `_j`.
INTERNALS = {
    "_active_spark_context", "_gateway", "_jsq", "_jsparkSession", "_jvm", "_origin",
    "CheckpointFileManager", "java_exception",
    "listenerBus", "newHadoopConf", "offsetLog", "sessionState", "statusStore", "streamingQuery", "tracker",
}  # fmt: skip
ROOT_MODULES = 8
MODULE_LINES = 450
BODY_LINES = 25
LONG_MODULES: dict[str, str] = {}
LONG_FUNCTIONS: dict[str, str] = {}


class Import(NamedTuple):
    file: str
    line: int
    module: str
    lazy: bool

    @property
    def where(self) -> str:
        return f"{self.file}:{self.line} imports {self.module}"


def sources(package: str) -> list[Path]:
    return sorted((ROOT / package).rglob("*.py"))


@cache
def imports_of(path: Path) -> list[Import]:
    return list(_imports_of(path))


def _imports_of(path: Path) -> Iterator[Import]:
    file = path.relative_to(ROOT).as_posix()
    functions = (node for node in nodes(path) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef))
    inside = {child for function in functions for child in ast.walk(function)
              if isinstance(child, ast.Import | ast.ImportFrom)}  # fmt: skip
    for node in nodes(path):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            names = imported_from(path, node)
        else:
            continue
        for name in names:
            yield Import(file, node.lineno, name, node in inside)


def imported_from(path: Path, node: ast.ImportFrom) -> list[str]:
    """Absolute names; `from .. import x` names the module, not only its package."""
    base = node.module or ""
    if node.level > 0:
        package = path.relative_to(ROOT).parts[:-1]
        parts = package[: len(package) - node.level + 1]
        base = ".".join([*parts, *([node.module] if node.module else [])])
    modules = [f"{base}.{alias.name}" for alias in node.names if is_module(f"{base}.{alias.name}")]
    return modules if len(modules) == len(node.names) else [base, *modules]


def is_module(name: str) -> bool:
    path = ROOT.joinpath(*name.split("."))
    return path.with_suffix(".py").exists() or (path / "__init__.py").exists()


def room(file: str) -> str:
    """`trident_py/state/map.py` -> `state`, `trident_py/engine/task.py` -> `engine/task`."""
    return _room([part.removesuffix(".py") for part in Path(file).parts[1:]])


def _room(parts: list[str]) -> str:
    return "/".join(parts[: 2 if parts[0] in LAYERED else 1])


def extra(name: str) -> str | None:
    """`trident_py/extras/gateway/app.py` or `trident_py.extras.gateway.app` -> `gateway`; None for what is none."""
    found = re.match(r"trident_py\.extras\.(\w+)", name.removesuffix(".py").replace("/", "."))
    return found[1] if found else None


def our(module: str, package: str) -> str | None:
    """`trident_py.state.map` -> `state`; None for what is not ours."""
    parts = module.split(".")
    if parts[0] != package:
        return None
    return _room(parts[1:]) if len(parts) > 1 else "__init__"


@cache
def all_imports() -> list[Import]:
    return [found for package in ("trident_py", "states") for path in sources(package) for found in imports_of(path)]


def test_every_module_has_its_place_in_the_layer_table() -> None:
    rooms = {room(path.relative_to(ROOT).as_posix()) for path in sources("trident_py")}
    assert rooms - set(RANK) - ENTRANCES == set()


def test_the_package_itself_has_few_modules() -> None:
    """A room's name says more than a module's. What is left has a public name or belongs to no room."""
    assert len(list((ROOT / "trident_py").glob("*.py"))) <= ROOT_MODULES


def test_a_layer_imports_only_the_layers_below_it() -> None:
    wrong = []
    for found in all_imports():
        target = our(found.module, "trident_py")
        if target is None or not found.file.startswith("trident_py/") or room(found.file) in ENTRANCES:
            continue
        source = room(found.file)
        if found.file in TYPED and extra(found.module) == TYPED[found.file]:
            continue
        if target != source and RANK.get(target, len(LAYERS)) >= RANK[source]:
            wrong.append(found.where)
    assert wrong == []


def test_nothing_imports_an_extra() -> None:
    """Extras are found by entry point. One may import another only where the table says so."""
    wrong = []
    for found in all_imports():
        target, source = extra(found.module), extra(found.file)
        if target in (None, source, TYPED.get(found.file)) or target in EXTRAS_MAY_IMPORT.get(source or "", ()):
            continue
        wrong.append(found.where)
    assert wrong == []
    modules = ", ".join(module_name(ROOT / file) for file in TYPED)
    code = f"import sys, {modules}; print(*(name for name in sys.modules if '.extras' in name))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT, check=True)
    assert [name for name in done.stdout.split() if extra(name)] == []


def test_nothing_names_a_module_of_another_extra() -> None:
    """Not by `import_module` either."""
    named = [
        f"{path.relative_to(ROOT)}:{node.lineno} {node.value}"
        for package in ("trident_py", "states")
        for path in sources(package)
        for node in nodes(path)
        if isinstance(node, ast.Constant)
        and extra(str(node.value)) not in (None, extra(path.relative_to(ROOT).as_posix()))
    ]  # fmt: skip
    assert named == []


def test_every_extra_is_found_by_an_entry_point() -> None:
    folders = {path.parent.name for path in (ROOT / "trident_py" / "extras").glob("*/__init__.py")}
    points = [point for group in (EXTRAS, COMMANDS, FILESYSTEMS, MONITORS) for point in find_points(group)]
    found = {extra(point.module) for point in points} - {None}
    assert found == folders, "trident_py/entry_points.txt lacks one"
    assert all(callable(point.load()) for point in find_points(COMMANDS))


def test_the_core_never_imports_states() -> None:
    core = [found for found in all_imports() if found.file.startswith("trident_py/") and extra(found.file) is None]
    assert [found.where for found in core if our(found.module, "states")] == []


def test_states_import_only_the_state_api() -> None:
    wrong = [
        found.where
        for found in all_imports()
        if found.file.startswith("states/")
        and our(found.module, "trident_py") is not None
        and our(found.module, "trident_py") not in STATES_MAY_IMPORT
        and extra(found.module) != TYPED.get(found.file, "")
    ]
    assert wrong == []


# The doctor asks the machines of a cluster, a profile what Spark has measured.
ON_SPARK = ("trident_py/spark/", "trident_py/extras/doctor/", "trident_py/extras/profile/spark.py")


def test_only_what_runs_on_spark_imports_pyspark() -> None:
    users = [f for f in all_imports() if f.module.split(".")[0] in ("pyspark", "py4j")]
    assert [f.where for f in users if not f.file.startswith(ON_SPARK)] == []


def private_names(path: Path) -> Iterator[str]:
    """Names of PySpark, Py4J and Spark's Java classes that those do not promise."""
    for node in nodes(path):
        if isinstance(node, ast.Attribute):
            ours = isinstance(node.value, ast.Name) and node.value.id == "self"
            if node.attr in INTERNALS or (re.fullmatch("_j[a-z]+", node.attr, re.IGNORECASE) and not ours):
                yield node.attr
        elif isinstance(node, ast.Constant) and (node.value in INTERNALS or "py4j" in str(node.value).lower()):
            yield str(node.value)


def test_only_internals_uses_what_spark_does_not_promise() -> None:
    found = {path.relative_to(ROOT).as_posix(): set(private_names(path)) for path in sources("trident_py")}
    assert found.pop("trident_py/spark/internals.py") >= INTERNALS
    assert {file: names for file, names in found.items() if names} == {}


def test_our_own_modules_are_imported_at_the_top_of_the_file() -> None:
    lazy = [f for f in all_imports() if f.lazy and (our(f.module, "trident_py") or our(f.module, "states"))]
    assert [f.where for f in lazy if f.file not in LAZY] == []


def test_no_modules_import_each_other() -> None:
    """Also not by imports in functions or under TYPE_CHECKING."""
    assert circles(module_imports()) == sorted(CIRCLES)


def module_imports() -> dict[str, set[str]]:
    """Our own modules that each of them imports. A package counts only where its ``__init__`` itself is meant."""
    modules = {module_name(path): path for package in ("trident_py", "states") for path in sources(package)}
    return {
        module: {found.module for found in imports_of(path)} & set(modules) - {module}
        for module, path in modules.items()
    }


def module_name(path: Path) -> str:
    return ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")


def circles(imports: dict[str, set[str]]) -> list[tuple[str, ...]]:
    """The groups of modules that reach each other."""
    reached = {module: reachable(imports, module) for module in imports}
    groups = {tuple(sorted(other for other in reached[module] if module in reached[other])) for module in imports}
    return sorted(group for group in groups if len(group) > 1)


def reachable(imports: dict[str, set[str]], start: str) -> set[str]:
    seen: set[str] = set()
    waiting = [start]
    while waiting:
        new = imports[waiting.pop()] - seen
        seen |= new
        waiting += new
    return seen


def test_circles_are_found() -> None:
    assert circles({"a": {"b"}, "b": {"c"}, "c": {"b", "d"}, "d": set()}) == [("b", "c")]


def test_one_module_knows_the_keys_of_a_run() -> None:
    keys = {key for key in KEYS.values() if key != "topology.name"}
    spelt = [
        f"{path.relative_to(ROOT)}:{node.lineno} {node.value}"
        for package in ("trident_py", "states")
        for path in sources(package)
        if path.relative_to(ROOT).as_posix() != "trident_py/model/context.py"
        for node in nodes(path)
        if isinstance(node, ast.Constant) and node.value in keys
    ]
    assert spelt == []


def test_one_function_says_what_to_install() -> None:
    found = []
    for path in [*sources("trident_py"), *sources("states")]:
        docstrings = {node.value for node in nodes(path) if isinstance(node, ast.Expr)}
        texts = [node for node in nodes(path) if isinstance(node, ast.Constant) and isinstance(node.value, str)]
        said = [text for text in texts if text not in docstrings and "pip install 'trident-py" in text.value]
        found += [path.relative_to(ROOT).as_posix() for _ in said]
    assert found == ["trident_py/errors.py"]


def test_examples_use_the_public_names_only() -> None:
    found = [f for path in sources("examples") for f in imports_of(path)]
    ours = [f for f in found if f.module.split(".")[0] in ("trident_py", "states")]
    assert [
        f.where for f in ours if not any(public in (f.module, f.module.rpartition(".")[0]) for public in PUBLIC)
    ] == []


@pytest.mark.parametrize("statement", ["import trident_py", "import states.sql", "from trident_py import LocalCluster"])
def test_importing_does_not_load_pyspark(statement: str) -> None:
    code = f"{statement}\nimport sys\nassert 'pyspark' not in sys.modules, 'pyspark was loaded'"
    subprocess.run([sys.executable, "-W", "error", "-c", code], check=True, cwd=ROOT)


def test_importing_loads_few_modules_of_ours() -> None:
    code = "import sys, trident_py; print(*(name for name in sys.modules if name.partition('.')[0] == 'trident_py'))"
    loaded = subprocess.check_output([sys.executable, "-W", "error", "-c", code], cwd=ROOT, text=True).split()
    assert len(loaded) <= 110, sorted(loaded)
    assert {"trident_py.local", "trident_py.extras"}.isdisjoint(loaded)


def test_modules_stay_under_450_lines() -> None:
    files = [path for package in ("trident_py", "states", "examples", "benchmarks") for path in sources(package)]
    lengths = {path.relative_to(ROOT).as_posix(): len(path.read_text().splitlines()) for path in files}
    too_long = {file: lines for file, lines in lengths.items() if lines > MODULE_LINES and file not in LONG_MODULES}
    assert too_long == {}
    assert [file for file in LONG_MODULES if lengths.get(file, 0) <= MODULE_LINES] == [], (
        "no longer needs its exception"
    )


def body_lines(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """Lines of the body without the docstring."""
    body = function.body
    if (
        isinstance(body[0], ast.Expr)
        and isinstance(body[0].value, ast.Constant)
        and isinstance(body[0].value.value, str)
    ):
        body = body[1:]
    return body[-1].end_lineno - body[0].lineno + 1 if body else 0  # type: ignore[operator]


def test_functions_stay_under_25_lines() -> None:
    lengths = {
        f"{path.relative_to(ROOT).as_posix()}:{node.name}": body_lines(node)
        for package in ("trident_py", "states")
        for path in sources(package)
        for node in nodes(path)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    }
    too_long = {name: n for name, n in lengths.items() if n > BODY_LINES and name not in LONG_FUNCTIONS}
    assert too_long == {}
    assert [name for name in LONG_FUNCTIONS if lengths.get(name, 0) <= BODY_LINES] == [], (
        "no longer needs its exception"
    )
