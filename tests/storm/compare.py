"""Results as multisets: what a case gave in Storm and what it gave here, and where they differ."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

PHASE = {"submit": "build"}  # what Storm refuses when it is submitted is refused by build() here


def key(value: Any) -> str:
    """Tells 1, 1.0, true and "1" apart, which Python's == does not."""
    return json.dumps(value, sort_keys=True)


def rows(values: Iterable[Any]) -> list[str]:
    return sorted(map(key, values))


def call(entry: list) -> list:
    if entry[0] == "multiPut":
        return [entry[0], sorted(zip(map(key, entry[1]), map(key, entry[2]), strict=True))]
    return [entry[0], rows(entry[1])] if entry[0] in ("multiGet", "update") else entry


def tasks_of(logs: dict[str, list]) -> dict[str, dict[str, list]]:
    """The calls of each state by task."""
    states: dict[str, dict[str, list]] = {}
    for name, log in logs.items():
        state, _, task = name.partition("/")
        states.setdefault(state, {})[task or "0"] = log
    return states


def calls(logs: dict[str, list], spread: set[str]) -> dict[str, Any]:
    """The calls of each state: in order if one task made them.

    Which of several tasks a key goes to is a matter of its hash, in Storm and here; there what counts is what
    was read and written under which txid.
    """
    return {
        state: _spread(tasks.values()) if state in spread else [call(c) for c in tasks["0"]]
        for state, tasks in tasks_of(logs).items()
    }


def several_tasks(*logs: dict[str, list]) -> set[str]:
    """The states that more than the first task updated, in any of these results."""
    return {state for log in logs for state, tasks in tasks_of(log).items() if set(tasks) != {"0"}}


def _spread(logs: Iterable[list]) -> list[str]:
    seen = set()
    for log in logs:
        txid = None
        for entry in log:
            txid = entry[1] if entry[0] == "beginCommit" else txid
            if entry[0] in ("beginCommit", "commit"):
                seen.add(key(entry))
            elif entry[0] == "multiPut":
                seen.update(key([txid, "put", k, v]) for k, v in zip(entry[1], entry[2], strict=True))
            else:
                seen.update(key([txid, entry[0], k]) for k in entry[1])
    return sorted(seen)


def canon(result: dict[str, Any], spread: set[str], pending: int = 1) -> dict[str, Any]:
    error = result["error"]
    if error:  # how far it came before is a race
        return {"error": PHASE.get(error["phase"], error["phase"])}
    return {
        "error": None,
        "outputs": {name: rows(found) for name, found in result["outputs"].items()},
        "sinkFields": result["sinkFields"],
        "states": {name: rows(found) for name, found in result["states"].items()},
        "calls": calls(result["calls"], spread),
        "drpc": [[f, a, rows(r) if isinstance(r, list) else "error"] for f, a, r in result["drpc"]],
        "attempts": result.get("attempts") if pending == 1 else None,
    }


def diff(case: dict[str, Any], storm: dict[str, Any], ours: dict[str, Any]) -> dict[str, tuple[Any, Any]]:
    """What differs: {part: (in Storm, here)}; empty if nothing does."""
    pending = case.get("pending", 1)
    spread = several_tasks(storm.get("calls", {}), ours.get("calls", {}))
    a, b = canon(storm, spread, pending), canon(ours, spread, pending)
    return {k: (a.get(k), b.get(k)) for k in a.keys() | b.keys() if key(a.get(k)) != key(b.get(k))}
