"""A case with windows in which a batch is replayed: what it must give, where Storm's windows take a batch twice (S15).

Storm is asked a second time for the same case without the failure, each batch with the tuples of its last attempt. What
stands behind a window must be as in that undisturbed run; all the rest must be as in the disturbed one. `EXCUSED` says
which part of such a case neither of the two runs tells, and why.
"""

from __future__ import annotations

from typing import Any

from .compare import diff
from .everything import bolts, sources_of

WINDOWS = ("tumblingWindow", "slidingWindow")
REPLAYED = "S15: a replayed batch enters a window once; compared with Storm's run without the failure"
SEVERAL = "a state behind a window counts a replay twice (nontransactional), or is asked by its own batch"
OTHER = "a state behind a window keeps what a failed attempt with other tuples has left (surprise 2)"
DIES = "Storm's worker dies of what a failed attempt has left; compared with Storm's run without the failure"
ASKED = "S12: a request for what only a failed attempt has written to an opaque map"
EXCUSED = (REPLAYED, SEVERAL, OTHER, DIES, ASKED)


def disturbed(case: dict[str, Any], storm: dict[str, Any], ours: dict[str, Any]) -> bool:
    has_window = any(step["op"] in WINDOWS for step in case["steps"])
    return has_window and bool(storm.get("failsFired") or ours.get("failsFired"))


def calm(case: dict[str, Any], ours: dict[str, Any]) -> dict[str, Any]:
    """The case without its failures, each batch as its last attempt emitted it."""
    spouts = {}
    for name, spout in case["spouts"].items():
        other = {txid: rows for txid, rows in spout.get("replayBatches", {}).items() if ours["attempts"].get(txid)}
        batches = [other.get(str(number), rows) for number, rows in enumerate(spout["batches"], 1)]
        spouts[name] = {key: value for key, value in spout.items() if key != "replayBatches"} | {"batches": batches}
    return {key: value for key, value in case.items() if key != "fail"} | {"spouts": spouts}


class Parts:
    """Which steps of the case each of Storm's two runs tells about."""

    def __init__(self, case: dict[str, Any], storm: dict[str, Any], ours: dict[str, Any]) -> None:
        self.case = case
        self.dies = bool(storm["error"]) and not ours["error"] and bool(storm.get("failsFired"))
        self.window = _behind(case["steps"], lambda step: step["op"] in WINDOWS)
        if self.dies or any(self._place(fail) in self._late() for fail in case.get("fail", ())):
            self.window = {_name(step) for step in case["steps"]}  # then Storm's attempts and commits are others too
        self.inexact = _behind(case["steps"], _counts_again)
        replays = {txid for spout in case["spouts"].values() for txid in spout.get("replayBatches") or {}}
        self.other = any(ours["attempts"].get(txid) for txid in replays)
        self.states = _behind(case["steps"], lambda step: isinstance(step.get("state"), dict) and not _static(step))

    def _late(self) -> set[str]:
        """What the bolts of windows do, and all behind: in Storm's commit phase, when other states have committed."""
        where, steps = bolts(self.case["steps"]), self.case["steps"]
        late = {where[step["id"]] for step in steps if step["op"] in WINDOWS}
        return _behind(steps, lambda step: where.get(step.get("id", "")) in late)

    def _place(self, fail: dict[str, Any]) -> str | None:
        """The step at which the case fails."""
        for step in self.case["steps"]:
            state = step["state"]["name"] if isinstance(step.get("state"), dict) else None
            if fail.get("step") == step.get("id", "") or fail.get("state", 0) == state:
                return _name(step)
            if step["op"] == "sink" and fail.get("sink") == step["name"]:
                return _name(step)
        return None

    def as_disturbed(self) -> set[str]:
        return {_name(step) for step in self.case["steps"]} - self.window

    def as_calm(self) -> set[str]:
        return self.window - self.inexact - (self.states if self.other else set())

    def asked(self) -> set[str]:
        """The states that tuples of a window ask: how often, is the window's affair."""
        ids = {step["state"] for step in self.case["steps"] if step["op"] == "stateQuery" and step["id"] in self.window}
        return {step["state"]["name"] for step in self.case["steps"]
                if step.get("id") in ids and isinstance(step.get("state"), dict)}  # fmt: skip

    def excused(self) -> list[str]:
        lost = self.window - self.as_calm()
        found = [SEVERAL] if lost & self.inexact else []
        return [DIES if self.dies else REPLAYED, *found, *([OTHER] if lost - self.inexact else [])]


def differs(case: dict[str, Any], storm: dict[str, Any], undisturbed: dict[str, Any], ours: dict[str, Any]) -> dict:
    """What differs: {part: (in Storm, here)}."""
    parts = Parts(case, storm, ours)
    keep = parts.as_disturbed()
    both = [_unread(_part(case, result, keep), parts.asked()) for result in (storm, ours)]
    found = diff(case, *both) if keep else {}
    keep = parts.as_calm()
    quiet, own = (_quiet(_part(case, result, keep)) for result in (undisturbed, ours))
    return found | {f"{part}, undisturbed": both for part, both in diff(case, quiet, own).items()}


def asks_what_failed(case: dict[str, Any], ours: dict[str, Any], found: dict[str, Any]) -> bool:
    """Do only answers differ, after a batch was replayed with other tuples, of functions that ask opaque maps?"""
    if set(found) != {"drpc"} or not Parts(case, {"error": None}, ours).other:
        return False
    opaque = {step["id"] for step in case["steps"] if isinstance(step.get("state"), dict)
              and step["state"]["kind"] in ("opaque", "memory", "lru")}  # fmt: skip
    asking = _behind(case["steps"], lambda step: step["op"] == "stateQuery" and step["state"] in opaque)
    lines = {step["function"]: _behind(case["steps"], lambda other, step=step: other is step)
             for step in case["steps"] if step["op"] == "newDRPCStream"}  # fmt: skip
    pairs = zip(*found["drpc"], strict=True)
    return all(lines[storm[0]] & asking for storm, own in pairs if storm != own)


def _name(step: dict[str, Any]) -> str:
    return str(step.get("id") or f"sink {step['name']}")


def _behind(steps: list[dict[str, Any]], first: Any) -> set[str]:
    """These steps, and all that read from them, also by a query of a state."""
    found: set[str] = set()
    for step in steps:
        asked = [step["state"]] if isinstance(step.get("state"), str) else []
        if first(step) or found.intersection([*sources_of(step), *asked]):
            found.add(_name(step))
    return found


def _static(step: dict[str, Any]) -> bool:
    return bool(step["op"] == "newStaticState")


def _counts_again(step: dict[str, Any]) -> bool:
    state = step.get("state")
    if isinstance(state, dict):
        return state["kind"] == "nontransactional"
    return step["op"] == "stateQuery"


def _part(case: dict[str, Any], result: dict[str, Any], keep: set[str]) -> dict[str, Any]:
    """The result with what these steps have made."""
    steps = [step for step in case["steps"] if _name(step) in keep]
    sinks = {step["name"] for step in steps if step["op"] == "sink"}
    states = {step["state"]["name"] for step in steps if isinstance(step.get("state"), dict)}
    functions = _answered(case, keep)
    named = dict.fromkeys(("outputs", "sinkFields", "sinkPartitions"), sinks) | {"states": states}
    chosen = {part: {k: v for k, v in result[part].items() if k in names} for part, names in named.items()}
    calls = {k: v for k, v in result["calls"].items() if k.partition("/")[0] in states}
    peeks = {k: v for k, v in (result.get("peeks") or {}).items() if k in keep}
    drpc = [answer for answer in result["drpc"] if answer[0] in functions]
    return {**result, **chosen, "calls": calls, "peeks": peeks, "drpc": drpc}


def _answered(case: dict[str, Any], keep: set[str]) -> set[str]:
    """The functions whose every statement is kept."""
    found = set()
    for step in case["steps"]:
        if step["op"] == "newDRPCStream":
            line = _behind(case["steps"], lambda other, step=step: other is step)
            found |= {step["function"]} if line <= keep else set()
    return found


def _unread(result: dict[str, Any], states: set[str]) -> dict[str, Any]:
    """Without the reads of these states."""
    calls = {
        name: [entry for entry in log if entry[0] != "multiGet" or name.partition("/")[0] not in states]
        for name, log in result["calls"].items()
    }
    return {**result, "calls": calls}


def _quiet(result: dict[str, Any]) -> dict[str, Any]:
    """Without what attempts leave: how often a state was called, and which failures fired."""
    return {**result, "calls": {}, "peeks": {}, "attempts": {}, "failsFired": []}
