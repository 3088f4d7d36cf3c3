"""What a case gave in Storm and what it gave here, and where they differ: in all that Storm defines.

Compared are the rows of every sink with their partitions, in order where there is one; what the states hold; every
call of every task of a state; what was peeked at; the attempts and the failures that fired. Of a run that ended by an
error: its phase, its meaning, the batch, and all that the batches before it did.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any

from .defined import Defined, Flow
from .meanings import same

PHASE = {"submit": "build"}  # what Storm refuses when it is submitted is refused by build() here
MARKS = ("beginCommit", "commit")
IN_BATCH = ("function", "batch", "spout")


def key(value: Any) -> str:
    """Tells 1, 1.0, true and "1" apart, which Python's == does not."""
    return json.dumps(value, sort_keys=True)


def rows(values: Iterable[Any]) -> list[str]:
    return sorted(map(key, values))


def diff(case: dict[str, Any], storm: dict[str, Any], ours: dict[str, Any]) -> dict[str, tuple[Any, Any]]:
    """What differs: {part: (in Storm, here)}; empty if nothing does."""
    defined = Defined(case)
    end = _end(storm, ours)
    a, b = (canon(case, result, defined, end) for result in (storm, ours))
    found = {k: (a.get(k), b.get(k)) for k in a.keys() | b.keys() if key(a.get(k)) != key(b.get(k))}
    if storm["error"] and ours["error"] and not same(storm["error"], ours["error"]):
        found["error"] = (storm["error"], ours["error"])
    return {**found, **_peeks(storm, ours, defined, end)}


def _end(storm: dict[str, Any], ours: dict[str, Any]) -> float:
    """The batch that an error ended, of which Storm had done more or less when its worker died; else none."""
    ends = [last_batch(result) for result in (storm, ours) if result["error"]]
    return min([float("inf"), *(end for end in ends if end is not None)])


def last_batch(result: dict[str, Any]) -> int | None:
    """The batch that failed: in Storm the last that was emitted."""
    if "txid" in result["error"]:
        return result["error"]["txid"]
    return max(map(int, result.get("attempts") or ()), default=None)


def canon(case: dict[str, Any], result: dict[str, Any], defined: Defined, end: float) -> dict[str, Any]:
    error = result["error"]
    phase = error and PHASE.get(error["phase"], error["phase"])
    made: dict[str, Any] = {"error": error and phase}
    if phase == "build":
        return made
    one = case.get("pending", 1) == 1
    return {
        **made,
        "batch": last_batch(result) if error and one else None,
        "outputs": {name: _sink(name, result, defined, end) for name in result["outputs"]},
        "sinkFields": result["sinkFields"],
        "states": None if error else {name: rows(found) for name, found in result["states"].items()},
        "calls": _calls(result, defined, end),
        "drpc": [[f, a, rows(r) if isinstance(r, list) else "error"] for f, a, r in result["drpc"]],
        "attempts": _before(result.get("attempts") or {}, end) if one else None,
        "failsFired": rows(fired for fired in result.get("failsFired") or () if fired[0] < end),
    }


def _before(attempts: dict[str, int], end: float) -> dict[str, int]:
    return {txid: attempt for txid, attempt in attempts.items() if int(txid) < end}


def _sink(name: str, result: dict[str, Any], defined: Defined, end: float) -> Any:
    """By batch and partition, in order; of what is not defined the rows alone."""
    flow = defined.sinks[name]
    seen: dict[str, list[str]] = {}
    for (txid, row), partition in zip(result["outputs"][name], result["sinkPartitions"][name], strict=True):
        if txid < end:
            seen.setdefault(f"{txid}/{partition if flow.placed else '?'}", []).append(key(row))
    return seen if flow.ordered else {where: sorted(found) for where, found in seen.items()}


# ---------------------------------------------------------------- calls of states
def _calls(result: dict[str, Any], defined: Defined, end: float) -> dict[str, Any]:
    """Task by task in order; of a state whose tuples have no defined partition all that was done, together."""
    tasks: dict[str, dict[str, list]] = {}
    for name, log in result["calls"].items():
        state, _, task = name.partition("/")
        batches = [(txid, entry) for txid, entry in _batches(log) if txid < end]
        if batches:
            tasks.setdefault(state, {})[task or "0"] = batches
    return {state: _of_state(logs, defined.states[state]) for state, logs in tasks.items()}


def _batches(log: list) -> Iterator[tuple[int, list]]:
    """Each call with the batch it belongs to. A query outside of a commit stands behind the batch before it."""
    txid = 0
    for entry in log:
        txid = entry[1] if entry[0] in MARKS else txid
        yield txid, entry


def _of_state(logs: dict[str, list], flow: Flow) -> Any:
    if flow.placed:
        return {task: [_call(entry, flow.ordered) for _, entry in log] for task, log in logs.items()}
    marks = {key(entry) for log in logs.values() for _, entry in log if entry[0] in MARKS}
    return sorted([*marks, *(part for log in logs.values() for batch in log for part in _parts(*batch))])


def _call(entry: list, ordered: bool) -> list:
    """The order of the keys is a HashMap's in Storm; that of tuples is defined where the stream's is."""
    if entry[0] == "multiPut":
        return [entry[0], sorted(zip(map(key, entry[1]), map(key, entry[2]), strict=True))]
    if entry[0] in MARKS:
        return entry
    return [entry[0], list(map(key, entry[1])) if entry[0] == "update" and ordered else rows(entry[1])]


def _parts(txid: int, entry: list) -> Iterator[str]:
    """What a call did, key by key, as often as it did it. How many tasks had a part in it is chance."""
    if entry[0] == "multiPut":
        yield from (key([txid, "put", k, v]) for k, v in zip(entry[1], entry[2], strict=True))
    elif entry[0] not in MARKS:
        yield from (key([txid, entry[0], k]) for k in entry[1])


# ---------------------------------------------------------------- peeks
def _peeks(storm: dict[str, Any], ours: dict[str, Any], defined: Defined, end: float) -> dict[str, tuple[Any, Any]]:
    """The oracle does not tell which batch or task a value was seen in; what was seen here must fit to its list."""
    found = {}
    for step in (storm.get("peeks") or {}).keys() | (ours.get("peeks") or {}).keys():
        theirs, own = ((result.get("peeks") or {}).get(step, []) for result in (storm, ours))
        whole = own if not _partial(storm) else _last(own, ours.get("attempts") or {}, end)
        if not _fits(list(map(key, theirs)), whole, defined.steps[step], _partial(storm)):
            found[f"peek {step}"] = (theirs, own)
    return found


def _partial(storm: dict[str, Any]) -> bool:
    """Was there a batch of which a peek may have seen more or less before it failed?"""
    return bool(storm["error"]) or any(fired[2] in IN_BATCH for fired in storm.get("failsFired") or ())


def _last(seen: list[list], attempts: dict[str, int], end: float) -> list[list]:
    """What the last attempts saw, of the batches before an error."""
    return [each for each in seen if each[0] < end and each[1] == attempts.get(str(each[0]), 0)]


def _fits(theirs: list[str], own: list[list], flow: Flow, partial: bool) -> bool:
    tasks: dict[int, list[str]] = {}
    for _, _, task, values in own:
        tasks.setdefault(task, []).append(key(values))
    seen = Counter(value for log in tasks.values() for value in log)
    if partial:
        return seen <= Counter(theirs)
    in_order = not (flow.ordered and flow.placed) or interleave(theirs, list(tasks.values()))
    return seen == Counter(theirs) and in_order


def interleave(merged: list[str], parts: list[list[str]]) -> bool:
    """Can these lists be one, each in its own order?"""
    at = {tuple(0 for _ in parts)}
    for value in merged:
        at = {
            (*places[:i], place + 1, *places[i + 1 :])
            for places in at
            for i, place in enumerate(places)
            if place < len(parts[i]) and parts[i][place] == value
        }
    return bool(at)
