"""The values that users' functions hold before the run: in attributes, closures, defaults and globals.

The source code does not show them: they may come from a setting, a clock or a random draw when the topology was
defined. If a batch began with some values and is replayed with others, its content may change. So the checkpoint keeps
a digest of each value.
"""

from __future__ import annotations

import dataclasses
import enum
import functools
import hashlib
import types
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any

import numpy as np

from ...engine.hooks import Start, StartInfo
from ...engine.recovery import Agreement
from ...errors import LineageError
from ...model.canonical import UnkeyableError, canonical
from ...model.plan import Plan, operations_of
from ...model.secrets import is_secret
from ...operations.base import name_of
from ...operations.determinism import attributes_of, is_declared
from ...report.guarantees import GUARANTEE, Guarantee, Guarantees, find_weakened
from .sources import is_ours, is_users

DIGESTS = "given"  # the checkpoint's path for the digests
MOST = 2_000  # entries of one container; of a larger one, the digest covers only the type and the number
MOST_NAMES = 200
_NO_VALUES = (types.ModuleType, type, BaseException)
Digests = dict[str, dict[str, str]]


@dataclasses.dataclass(frozen=True)
class HeldValues:
    """The operations of one component, with the values they hold. Used on the driver, before the first batch."""

    plan: Plan

    def digests(self) -> Digests:
        """Return the digests by operation and by the value's place, a JSON value. Secrets are left out."""
        return {name: _Walk().of(operation) for name, operation in self._operations()}

    def _operations(self) -> Iterator[tuple[str, Any]]:
        names: dict[str, int] = {}
        for operation in (operation for node in self.plan.nodes for operation in operations_of(node)):
            name = name_of(operation)
            names[name] = names.get(name, 0) + 1
            yield (name if names[name] == 1 else f"{name} ({names[name]})"), operation

    def others(self, then: Mapping[str, Mapping[str, str]], now: Digests) -> dict[str, str]:
        """Return the operations that hold another value, each with the first such place. A new or missing value does
        not count: it means that the program was changed, and a corrected program may go on."""
        changed = {}
        for name, digests in now.items():
            before = then.get(name, {})
            if place := next((place for place in digests if before.get(place, digests[place]) != digests[place]), None):
                changed[name] = place
        return changed

    def compare_guarantees(self, names: Iterable[str], conf: Mapping[str, Any]) -> tuple[Guarantees, list[Guarantee]]:
        """Return the guarantees if these operations count as changing, and the present guarantees that would become
        worse."""
        operations = dict(self._operations())
        changed = [operations[name] for name in names if not is_declared(operations[name])]
        return find_weakened(self.plan, conf, changed)


class ComparedStart:
    """A start that compares the values with those when a batch began, before anything is written.

    It warns if a batch is half done, an operation before a state held another value when the batch began, and the
    state's guarantee depends on that operation. Raises LineageError if the remaining guarantee is below
    ``topology.guarantee``.
    """

    def __init__(self, start: Start, about: StartInfo) -> None:
        self._start, self._about = start, about

    def examine(self) -> Agreement:
        agreed = self._start.examine()
        self._compare()
        return agreed

    def open(self) -> tuple[Agreement, dict[str, int]]:
        digests, warning = self._compare()
        agreed, generations = self._start.open()
        if warning:
            self._about.tell(agreed.txid + 1, warning)
        self._about.store.put(DIGESTS, 0, digests)  # for the next start
        return agreed, generations

    def _compare(self) -> tuple[Digests, str]:
        """Return the digests of the operations' values, and the warning, "" if there is none."""
        standing, conf, held = self._about.standing, self._about.conf, HeldValues(self._about.plan)
        now, then = held.digests(), self._about.store.get(DIGESTS, 0)
        others = held.others(then, now) if standing.begun and then is not None else {}
        after, worse = held.compare_guarantees(others, conf) if others else (Guarantees(), [])
        if not worse:
            return now, ""
        text = _with_other_values(standing.committed + 1, others, worse)
        required = conf.get(GUARANTEE)
        if required is not None and after.below(required):
            raise LineageError(f"{text}. To continue with the new values anyway, start once without {GUARANTEE}")
        return now, text


def _with_other_values(txid: int, others: Mapping[str, str], worse: Sequence[Any]) -> str:
    values = ", ".join(f"{place} of {name}" for name, place in others.items())
    states = ", ".join(f"{guarantee.state} ({guarantee.guarantee})" for guarantee in worse)
    return (
        f"batch {txid} began with other values: {values}. Rows made with the old values may already be stored, and its "
        f"replay makes the rest with the new ones, which may lose or duplicate rows of {states}. Start once with the "
        f"old values; after batch {txid} is committed, the new ones are safe"
    )


class _Walk:
    """Walks through the values that an operation can reach, without running user code."""

    def __init__(self) -> None:
        self._seen: dict[int, Any] = {}

    def of(self, operation: Any) -> dict[str, str]:
        """Return the digests by place. Values that cannot be walked completely are not compared."""
        with suppress(Exception):
            return dict(self._visit("", operation))
        return {}

    def _values(self, place: str, values: Iterable[tuple[str, Any]]) -> Iterator[tuple[str, str]]:
        for name, value in values:
            if not is_secret(name):
                yield from self._visit(f"{place}.{name}" if place else name, value)

    def _visit(self, place: str, value: Any) -> Iterator[tuple[str, str]]:
        if isinstance(value, _NO_VALUES) or id(value) in self._seen:
            return
        if not _is_walked(value) and (digest := _digest(value)) is not None:
            yield place, digest
            return
        self._seen[id(value)] = value
        yield from self._values(place, _parts(value))


def _is_walked(value: Any) -> bool:
    """Return whether the value is walked by name: each named part gets its own digest, and secrets are left out."""
    if isinstance(value, dict):
        return len(value) <= MOST_NAMES and all(isinstance(key, str) for key in value)
    if isinstance(value, list | tuple):
        return len(value) <= MOST_NAMES and any(map(_is_walked, value))
    return is_users(type(value)) and not isinstance(value, enum.Enum)


def _digest(value: Any) -> str | None:
    """Return the digest of a plain value, or of a container of plain values; None for others."""
    if isinstance(value, list | tuple | dict | set | frozenset) and len(value) > MOST:
        return _hash(f"{type(value).__name__} of {len(value)}".encode())
    if isinstance(value, np.ndarray | np.void) and value.dtype.hasobject:  # their bytes are addresses
        return _digest(value.tolist())
    in_numpy = isinstance(value, np.ndarray | np.generic) and type(value).__module__ == "numpy"
    try:
        return _hash(value.tobytes() if in_numpy else canonical(value))
    except (UnkeyableError, RecursionError):
        return None


def _hash(value: bytes) -> str:
    return hashlib.sha256(value).hexdigest()[:8]


def _parts(value: Any) -> Iterator[tuple[str, Any]]:
    """Return the values that a function, a container or an object holds, each with its name."""
    if isinstance(value, functools.partial):
        yield from (
            ("func", value.func),
            *((f"args.{number}", argument) for number, argument in enumerate(value.args)),
            *value.keywords.items(),
        )
    elif isinstance(value, types.MethodType):
        yield from (("self", value.__self__), ("func", value.__func__))
    elif isinstance(value, types.FunctionType):
        yield from _of_function(value) if is_users(value) else ()
    elif isinstance(value, dict):
        yield from ((str(key), part) for key, part in value.items())
    elif isinstance(value, list | tuple | set | frozenset):
        yield from ((str(number), part) for number, part in enumerate(value))
    elif is_users(type(value)) and not isinstance(value, enum.Enum):
        yield from _of_object(value)
    elif is_ours(type(value)):
        yield from attributes_of(value).items()


def _of_function(function: types.FunctionType) -> Iterator[tuple[str, Any]]:
    code = function.__code__
    for name, cell in zip(code.co_freevars, function.__closure__ or (), strict=True):
        if cell != types.CellType():
            yield name, cell.cell_contents
    yield from zip(reversed(code.co_varnames[: code.co_argcount]), reversed(function.__defaults__ or ()), strict=False)
    yield from (function.__kwdefaults__ or {}).items()
    yield from ((name, function.__globals__[name]) for name in _names(code) if name in function.__globals__)


def _names(code: types.CodeType) -> Iterator[str]:
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from _names(constant)


def _of_object(value: Any) -> Iterator[tuple[str, Any]]:
    attributes = attributes_of(value)
    yield from attributes.items()
    for kind in filter(is_users, type(value).__mro__):
        for name, part in vars(kind).items():
            if name not in attributes and (name[:2] != "__" or isinstance(part, types.FunctionType)):
                yield name, part.__func__ if isinstance(part, staticmethod | classmethod | types.MethodType) else part
