"""The nodes that Storm keeps in ZooKeeper, of a live one or of its dump. Source in Storm: TransactionalState."""

from __future__ import annotations

import json
import logging
import os
import time
from collections.abc import Collection, Iterable
from pathlib import Path
from typing import Any

from ...errors import DefinitionError, TridentError, explain_missing
from ...model.json_text import parse_json

ROOT = "/transactional"  # Storm's default of transactional.zookeeper.root
AUTH = "TRIDENT_ZOOKEEPER_AUTH"
SECONDS = 10.0
Nodes = dict[str, str]
"""The data of each node by its path."""
QUIET = logging.getLogger(__name__)
QUIET.setLevel(logging.ERROR)  # kazoo warns of each attempt to connect; the error says it once
Walked = dict[str, tuple[str, int]]
STILL = 2.0  # seconds; a topology that runs commits its batches more often


def read_dump(file: Path, root: str = ROOT) -> Nodes:
    """Return the nodes below the root that a file of JSON lines holds, ``{"path": ..., "data": ...}`` each. Raises
    DefinitionError for a line that is none, and for a node with two contents."""
    try:
        lines = file.read_text("utf-8").split("\n")
    except OSError as error:
        raise DefinitionError(f"{file} cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise DefinitionError(f"{file} cannot be read: it is not UTF-8, and no dump of ZooKeeper") from error
    nodes: Nodes = {}
    for number, line in enumerate(lines, 1):
        if line.strip():
            path, data = _parse(line, f"{file}, line {number}")
            if nodes.setdefault(path, data) != data:
                raise DefinitionError(
                    f"{file}, line {number}: node {path} is there twice, with other data: dumps of several moments. "
                    "Give the one that was made after the topology was killed"
                )
    return _below(nodes, root, str(file))


def _parse(line: str, where: str) -> tuple[str, str]:
    try:
        node = parse_json(line)
        path, data = node["path"], node["data"]
    except (ValueError, TypeError, KeyError) as error:
        raise DefinitionError(
            f'{where}: expected a node of ZooKeeper as {{"path": "/transactional/...", "data": "..."}}, got {line[:80]}'
        ) from error
    return str(path), data if isinstance(data, str) else json.dumps(data)


def _below(nodes: Nodes, root: str, where: str) -> Nodes:
    found = {path: data for path, data in nodes.items() if path == root or path.startswith(f"{root}/")}
    if not found:
        tops = sorted({"/".join(path.split("/")[:2]) for path in nodes})
        raise DefinitionError(
            f"{where} has nothing below {root}: name Storm's transactional.zookeeper.root with --root; there is "
            f"{', '.join(tops) or 'no node at all'}"
        )
    return found


def read_live(hosts: str, root: str, streams: Collection[str]) -> Nodes:
    """Return the nodes below the root of a live ZooKeeper. Raises TridentError if it does not answer, or if a topology
    writes meanwhile what belongs to one of these streams: its positions would belong to several moments."""
    try:
        from kazoo.client import KazooClient
        from kazoo.exceptions import KazooException
        from kazoo.handlers.threading import KazooTimeoutError
    except ImportError as error:
        raise DefinitionError(explain_missing("ZooKeeper", f"the client {error.name}", "moving")) from error
    client = _client(KazooClient, hosts)
    try:
        client.start(SECONDS)
        client.sync(root)  # a server may lag behind the others, and would give the positions of an earlier batch
        before = dict(_walk(client, root)) or {f"/{name}": ("", 0) for name in client.get_children("/")}
        time.sleep(STILL)
        for stream in streams:
            place = f"{root.rstrip('/')}/{stream}"
            _check_still(hosts, place, before, dict(_walk(client, place)))
    except (KazooException, KazooTimeoutError, OSError, UnicodeDecodeError) as error:
        advice = f"check its address, and {AUTH}=SCHEME:CREDENTIAL if its nodes are protected; or import a dump of it"
        raise TridentError(f"ZooKeeper at {hosts}: {str(error) or 'it refuses'}; {advice}") from error
    finally:
        client.stop()
        client.close()
    return _below({path: data for path, (data, _) in before.items()}, root, f"ZooKeeper at {hosts}")


def _client(kazoo: Any, hosts: str) -> Any:
    """Return a client that is not connected. Raises DefinitionError for an address that it cannot read."""
    scheme, _, credential = os.environ.get(AUTH, "").partition(":")
    auth = [(scheme, credential)] if scheme else None
    try:
        return kazoo(hosts, timeout=SECONDS, read_only=True, auth_data=auth, logger=QUIET)
    except ValueError as error:
        raise DefinitionError(f"--zookeeper {hosts}: expected HOST:PORT,...") from error


def _walk(client: Any, path: str) -> Iterable[tuple[str, tuple[str, int]]]:
    """Yield the data and the last change of each node from this one on. One that vanishes meanwhile is left out."""
    from kazoo.exceptions import NoNodeError

    try:
        data, stat = client.get(path)
        children = client.get_children(path)
    except NoNodeError:
        return
    yield path, (data.decode(), stat.last_modified_transaction_id)
    for child in sorted(children):
        yield from _walk(client, f"{path.rstrip('/')}/{child}")


def _check_still(hosts: str, place: str, before: Walked, now: Walked) -> None:
    before = {path: node for path, node in before.items() if path == place or path.startswith(f"{place}/")}
    moved = sorted(path for path in before.keys() | now.keys() if before.get(path) != now.get(path))
    if moved:
        raise TridentError(
            f"ZooKeeper at {hosts}: {moved[0]} has changed while it was read: the topology still runs in Storm. "
            "Deactivate it, kill it, and see that its workers are gone; then import again. Nothing was changed"
        )
