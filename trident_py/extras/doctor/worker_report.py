"""What a machine says of itself, for the probe before a start. Runs on executors and, to compare, in the driver.

Spark pickles this module by value, since a worker may lack trident_py, or have another version of it. So it imports
nothing but Python's own library, and holds plain functions and plain values. Nothing raises: what fails is in the
report.
"""

from __future__ import annotations

import hashlib
import importlib
import importlib.metadata
import importlib.util
import json
import os
import pickle
import platform
import socket
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

OURS = "trident_py"


def report_of(text: str, program: bytes = b"") -> str:
    """Return the report; it and the question are JSON. Asked are ``modules``, ``packages`` (their versions),
    ``addresses`` (each a list of host and port) and ``files``; ``paths`` are for imports, ``seconds`` to connect.
    ``program`` is unpickled, if there is one."""
    question = json.loads(text)
    sys.path.extend(path for path in question["paths"] if path not in sys.path)
    importlib.invalidate_caches()
    addresses = question["addresses"]
    with ThreadPoolExecutor(max(1, len(addresses))) as pool:
        dialled = {(host, port): pool.submit(_dial, host, port, question["seconds"]) for host, port in addresses}
        report: dict[str, Any] = {
            "host": socket.gethostname(),
            "python": platform.python_version(),
            "executable": sys.executable,
            "versions": {package: _version(package) for package in question["packages"]},
            "ours": _our_sources(),
            "modules": {module: _import(module) for module in question["modules"]},
            "files": {path: _why_unreadable(path) for path in question["files"]},
        }
        report["program"] = _unpickle(program) if program and not any(report["modules"].values()) else ["", ""]
        report["addresses"] = {f"{host} {port}": dial.result() for (host, port), dial in dialled.items()}
    report["clock"] = time.time()
    return json.dumps(report)


def _dial(host: str, port: int, seconds: float) -> str:
    """Return why a TCP connection fails; "" if it does not."""
    try:
        socket.create_connection((host, port), timeout=seconds).close()
    except TimeoutError:
        return f"no answer in {seconds:g} s"
    except OSError as error:
        return error.strerror or str(error)
    except UnicodeError as error:  # such as "db..example"
        return f"this cannot be the name of a host: {error}"
    return ""


def _version(package: str) -> str:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return ""


def _our_sources() -> str:
    """Return a digest of the sources of trident_py and states; "" if they are in no folder; "missing" without
    trident_py."""
    digest = hashlib.blake2b(digest_size=4)
    ours = _origin(OURS)
    if ours is None:
        return "missing"
    folder = Path(ours).parent
    if not folder.is_dir():
        return ""  # in a zip file
    for package in (folder, folder.parent / "states"):  # beside it, whatever else is called states on this path
        for path in sorted(package.rglob("*.py")):
            digest.update(str(path.relative_to(package)).encode() + path.read_bytes())
    return digest.hexdigest()


def _origin(name: str) -> str | None:
    """Return where a package is, which is not imported; None if it is missing."""
    try:
        spec = importlib.util.find_spec(name)
    except (ImportError, ValueError):
        return None
    return None if spec is None else spec.origin


def _import(module: str) -> str:
    """Return why a module cannot be imported; "" if it can."""
    try:
        importlib.import_module(module)
    except BaseException as error:
        return f"{type(error).__name__}: {error}"
    return ""


def _why_unreadable(path: str) -> str:
    """Return why a path cannot be read; "" if it can."""
    try:
        Path(path).stat()
    except OSError as error:
        return error.strerror or str(error)
    return "" if os.access(path, os.R_OK) else "no permission to read it"


def _unpickle(program: bytes) -> list[str]:
    """Return the missing module, if one is missing, and why the program cannot be unpickled; two empty texts if it
    can."""
    try:
        for part in pickle.loads(program):  # noqa: S301  from the driver, by Spark
            pickle.loads(part)  # noqa: S301  from the driver, by Spark
    except BaseException as error:
        missing = error.name or "" if isinstance(error, ModuleNotFoundError) else ""
        return [missing, f"{type(error).__name__}: {error}"]
    return ["", ""]
